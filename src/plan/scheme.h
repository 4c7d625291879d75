#pragma once
// The decision: when preparation starts, what the target recomputes and what the source sends. A
// scheme is one small class; the session protocol executes what it returns.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "kv/transfer_plan.h"

namespace pallas::plan {

// What ctHO decided for all who move together (plan/ctho_group.h).
struct CommonSplit {
  TokenPosition recompute = 0;  // L*
  Seconds time{0};              // D*: what the one waits that waits longest
};

// What a scheme sees. Rates are effective ones (smoothed, under the load of the moment).
struct PlanInput {
  TokenPosition context = 0;  // K_curr: positions with KV at the source, >= 0
  TokenPosition prompt = 0;   // of these, prompt positions at most
  TokenPosition block_tokens = 16;
  std::uint64_t kv_bytes_per_token = 0;  // s_KV > 0
  TokensPerSecond prefill_rate;          // r_p of the target, > 0
  // What is left of it to a preparation that spares the sessions at the target, (0, 1]; two-front's
  // do, as its rows come from the source where the front is slow.
  double spared_share = 1;
  // What is left of the link and of the target when those come that are foretold for the same gNB
  // at about the same time, (0, 1]; two-front begins so early that there is time for all.
  double foretold_share = 1;
  TokensPerSecond decode_rate;            // r_d of this session, >= 0
  std::optional<BytesPerSecond> goodput;  // B between the two, > 0; none: not known yet
  Seconds remaining{0};                   // T_rem >= 0
  bool at_handover = false;               // the UE is leaving now; remaining is 0
  Seconds load{0};                        // T_load of the model at the target
  Seconds activation{0};                  // T_0
  // `exact`: generated positions must not be recomputed in chunks; the target then recomputes
  // prompt positions only, and replays or receives the others.
  bool recompute_prompt_only = false;
  double alpha = 0.8;   // [0, 1]
  Seconds step{0.1};    // grid step of Algorithm 1, > 0
  Seconds t_max{5};     // largest window, > 0
  Seconds margin{0.3};  // two-front: for granularity, shared rates, unknown errors; >= 0
  // two-front: the window is so much longer, as a share of it, for rates that are not what they
  // were; >= 0
  double margin_share = 0;
  // How good the prediction is, where it says so (docs/uncertainty.md). Absent: the papers' rule.
  std::optional<Seconds> sigma;       // standard deviation of the handover time, >= 0
  std::optional<double> confidence;   // that the target is right, [0, 1]; none: 1
  std::optional<CommonSplit> common;  // `ctho` takes it for its own, where there is one
  // `partial`: the target can decode on scattered rows, and the session allows it. Decoding begins
  // with this fraction of the positions, (0, 1], or after the deadline (0: none).
  bool may_be_partial = false;
  double partial_fraction = 0.4;
  Seconds partial_deadline{0};
};

// Fails with kInvalidArgument, naming the field, for NaN, negative rates, alpha outside [0, 1], ...
Status check(const PlanInput& input);

struct Decision {
  bool trigger = false;   // start preparation now
  kv::TransferPlan plan;  // what to do when triggered; filled also when not (for display)
  Seconds window{0};      // T_w*: start when remaining <= window
  Seconds expected_sit{0};
  Seconds expected_early{0};
  double expected_bytes = 0;
  double expected_recomputed = 0;  // positions that the target computes itself
  // When to look again at the latest, if nothing changes: remaining - window from now, >= 0.
  Seconds look_again{0};
};

class Scheme {
 public:
  virtual ~Scheme() = default;
  virtual std::string_view name() const = 0;
  // One sentence for --help.
  virtual std::string_view summary() const = 0;
  // `input` has passed check(). Called each control period before the handover, and once with
  // at_handover when the UE leaves unprepared (then trigger is true).
  virtual Decision decide(const PlanInput& input) const = 0;
};

// All schemes that the protocol runs live, in the order of docs/schemes.md: detour, full-copy,
// recompute, ctho, partial, pallas, pallas-no-rc, pallas-no-sm, two-front.
std::vector<std::string_view> scheme_names();
// kInvalidArgument with the list of names when there is none of that name.
Result<std::unique_ptr<Scheme>> make_scheme(std::string_view name);

}  // namespace pallas::plan
