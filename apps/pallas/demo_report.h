#pragma once
// What a trip came to: the gNBs' reports and the UE's observations joined, judged and printed.
// Pure; demo_run.h collects the inputs.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace pallas::app {

// One token as the UE got it.
struct SeenToken {
  TokenIndex index = 0;
  TokenId id = 0;
  TimePoint at{};
  NodeId by;
};

// One handover as the UE saw it.
struct SeenHandover {
  Epoch epoch;
  NodeId source, target;
  TimePoint executed{};  // the UE left the source
  std::optional<double> gap_ms, sit_ms;
};

// One element of GET /v1/handovers, what of it is used here.
struct GnbReport {
  Epoch epoch;
  std::string scheme, source, target, recovery, error;
  bool prepared = false, exact = false, relay = false, oracle = false;
  std::optional<double> request_ms;  // HandoverRequest at the target, relative to the attach
  double window_s = 0, early_s = 0, expected_sit_s = 0;
  std::uint64_t tokens_total = 0, tokens_recomputed = 0, tokens_replayed = 0;
  std::uint64_t tokens_received = 0, tokens_overlap = 0, residual_tokens = 0, bytes = 0;
  std::uint64_t shadow_tokens = 0, shadow_agreed = 0, shadow_differed = 0;
  bool shadow_used = false;
};
// Elements about `session` in the answer of GET /v1/handovers; kParse when it is not that.
Result<std::vector<GnbReport>> parse_gnb_reports(const std::string& json, const SessionId& session);

// ITL in milliseconds; absent when there is no interval.
struct Percentiles {
  std::optional<double> p50, p95;
};
Percentiles percentiles(std::vector<double> values);

struct DemoHandover {
  SeenHandover seen;
  std::optional<GnbReport> gnb;  // none: the target kept no report of it
};

struct DemoInput {
  std::string scheme, consistency, model;
  std::vector<SeenToken> tokens;  // of the trip
  std::vector<TokenId> reference;
  std::vector<double> reference_itl_ms;  // of the uncapped run at one gNB
  std::vector<SeenHandover> handovers;
  std::vector<GnbReport> reports;
  std::uint64_t expected_tokens = 0;  // what the finish said; 0: it never finished
  std::string failure;                // why it never finished
  std::uint64_t contradictions = 0;   // an index that came again with another id
  std::uint64_t skipped = 0;          // an index from beyond the next one
  std::uint64_t feed_failures = 0;    // reports of the driver that a gNB did not take
  std::string first_feed_failure;
  double max_token_rate = 0;
  TokenPosition prompt_tokens = 0;
};

struct DemoReport {
  std::string scheme, consistency, model;
  bool text_identical = false;
  bool every_exact = false;  // every handover's report says so
  bool oracle = false;       // predictions came from a driver that knows the future
  std::size_t tokens = 0;
  TokenPosition prompt_tokens = 0;
  Percentiles itl, step;
  Percentiles itl_before, itl_during, itl_after;  // of preparation and handover
  std::vector<DemoHandover> handovers;
  std::optional<std::size_t> first_difference;  // index of the first id unlike the reference's
  // Sentences about what must never be: lost, repeated or contradicted tokens, ids that differ
  // where everything was exact. Empty: all is well.
  std::vector<std::string> faults;
};
DemoReport judge(const DemoInput& input);

std::string to_json(const DemoReport& report);
std::string handover_table(const DemoReport& report);
// One line a scheme.
std::string comparison_table(const std::vector<DemoReport>& reports);

}  // namespace pallas::app
