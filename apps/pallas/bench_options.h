#pragma once
// What `pallas bench handover` was asked for, and the runs that follow from it. Pure.
//
// A setting is one point of what is compared: every scheme is measured there, and the same request
// without a handover. A run is one such measurement: a group of users that start together and, in
// a handover run, move together, once or to and fro.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/utility.h"

namespace pallas::app {

// "two-front", or with settings of the gNBs of its own: "two-front:window_margin_ms=0".
struct SchemeChoice {
  std::string label;   // as it was given
  std::string scheme;  // name alone
  std::vector<std::string> flags;
  bool slow = false;  // moves everything at the handover: measured less often
  // What its gNBs take a fraction of the KV to be worth; filled by make_plan().
  plan::Utility utility;
};
// kInvalidArgument, naming `scheme`, for an unknown scheme or setting.
Result<SchemeChoice> parse_scheme_choice(const std::string& text);

struct Goodput {
  std::string label;      // as it was given
  double value = 0;       // Mbit/s, or how many times the decoder's KV stream; 0: not paced
  bool multiple = false;  // "2x"
};
Result<Goodput> parse_goodput(const std::string& text);

struct BenchOptions {
  std::vector<std::string> schemes{"two-front", "pallas", "ctho", "full-copy", "recompute"};
  std::vector<std::uint32_t> contexts{1000};
  std::vector<std::string> goodputs{"20"};
  std::vector<std::uint32_t> movers{1};
  std::vector<std::uint32_t> residents{0};
  std::vector<double> token_rates{0};  // 0: uncapped
  std::vector<std::uint32_t> trip_handovers{1};
  std::vector<double> available_s;                   // none: as long as any scheme can use
  std::vector<double> window_s;                      // none: the scheme decides
  std::uint32_t handovers = 20, handovers_slow = 3;  // per scheme and setting
  double wrong_target = 0;                           // share of predictions for the wrong cell
  double mover_spread = 0;  // contexts of movers differ from --context by up to this share of it
  std::string goodput_trace;
  std::optional<std::string> consistency;  // none: default_consistency() of the scheme
  std::uint64_t seed = 7;
  std::string engine = "llama";
  std::string model;
  std::uint32_t context_tokens = 2048;
  std::vector<std::string> gnb_settings;  // key=value for every gNB
  bool pin = true;
  bool with_llama = true;  // as the program was built

  std::string out;
  bool resume = false, json = false, plain = false;
  std::string keep_logs;
};

struct BenchSetting {
  std::uint32_t context = 0;
  Goodput goodput;
  std::uint32_t movers = 1, residents = 0;
  double max_token_rate = 0;
  std::uint32_t trip_handovers = 1;
  std::optional<double> available_s, window_s;
  double mover_spread = 0;

  std::string key() const;
};

// What is to be run, in order: within a setting round by round, in each every scheme that still
// lacks handovers and the control, whose order rotates, so that drift of the machine hits all
// alike.
struct PlannedRun {
  std::size_t setting = 0;
  std::optional<std::size_t> scheme;  // none: the control
  std::uint32_t round = 0;
};

struct BenchPlan {
  BenchOptions options;
  std::vector<SchemeChoice> schemes;
  std::vector<std::string> gnb_flags;  // from gnb_settings
  std::vector<BenchSetting> settings;
  std::vector<PlannedRun> runs;

  // Names a run and everything that its result depends on, for --resume.
  std::string key(const PlannedRun& run) const;
  // The control of the same round.
  std::string control_key(const PlannedRun& run) const;
  // The same for what was found out about a setting before the first run.
  std::string sizing_key(const BenchSetting& setting) const;
};

// kInvalidArgument; every message begins with the option's name as a field.
Result<BenchPlan> make_plan(const BenchOptions& options);

}  // namespace pallas::app
