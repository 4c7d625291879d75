#pragma once
// The reports of one handover, by whoever took part in it: read from JSON of any of the places that
// hold them, and chosen. Pure.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace pallas::app {

// From `begin` to `end`, in ms from the report's zero; an instant has both alike.
struct TracePhase {
  double begin_ms = 0, end_ms = 0;
  std::optional<std::uint64_t> count, tokens;  // of a stretch
  std::optional<double> busy_ms;
};

enum class TraceRole { kSource, kTarget, kUe };

// What one of them reported (docs/client-api.md, "Phases of a handover").
struct TraceReport {
  TraceRole role = TraceRole::kTarget;
  std::string node;  // the gNB, or the UE's name where it is known
  SessionId session;
  Epoch epoch;
  std::string scheme, source, target;
  // The report's zero by its own clocks.
  std::string clock_id;
  std::int64_t monotonic_us = 0, unix_us = 0;
  std::map<std::string, TracePhase> phases;  // those that happened, without "_ms"
};

// Every report in there, however deep: an answer of GET /v1/handovers (of a gNB or a UE), a report
// of `pallas demo`, a list of such. kParse, naming the member, for one that is broken.
Result<std::vector<TraceReport>> read_trace_reports(std::string_view json);

// Which handover: "latest", "SESSION" (its latest), or "SESSION:EPOCH".
struct HandoverName {
  SessionId session;           // empty: any
  std::optional<Epoch> epoch;  // none: the latest
};
Result<HandoverName> parse_handover_name(const std::string& text);

struct TracedHandover {
  SessionId session;
  Epoch epoch;
  std::optional<TraceReport> source, target, ue;  // the target's or the source's is there
};
// kNotFound says which handovers there are.
Result<TracedHandover> choose_handover(const std::vector<TraceReport>& reports,
                                       const HandoverName& name);

}  // namespace pallas::app
