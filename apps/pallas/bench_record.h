#pragma once
// What a run of `pallas bench handover` saw, as it is kept: everything else follows from it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "bench_sizing.h"
#include "gnb_report.h"

namespace pallas::app {

// Times are in milliseconds from the moment when every session of the run had its first token.
struct HopRecord {
  double executed_ms = 0;
  std::optional<double> gap_ms, sit_ms;
  std::optional<GnbReport> gnb;  // none: the target kept no report
  bool foretold_wrongly = false;
};

struct MoverRecord {
  TokenPosition prompt_tokens = 0;
  std::vector<double> at_ms;  // of token i
  std::vector<TokenId> ids;
  std::vector<HopRecord> hops;
  // Sentences about tokens that were lost, repeated or contradicted, and failures.
  std::vector<std::string> faults;
};

struct RunRecord {
  std::string key;
  double goodput_mbps = 0;
  double available_s = 0;
  double step_ms = 0;              // of the sizing
  std::vector<double> planned_ms;  // handovers as they were planned
  std::vector<MoverRecord> movers;
  std::vector<std::vector<double>> residents;  // arrivals of each one's tokens
};

// One line, without its end.
std::string to_json(const RunRecord& run);
std::string to_json(const std::string& key, const Sizing& sizing);

// The lines that earlier invocations left. A last line that was cut off is dropped.
struct BenchRecords {
  std::vector<RunRecord> runs;
  std::vector<std::pair<std::string, Sizing>> sizings;

  const RunRecord* run(const std::string& key) const;
  const Sizing* sizing(const std::string& key) const;
};
// kParse, naming the line.
Result<BenchRecords> parse_records(const std::string& text);

}  // namespace pallas::app
