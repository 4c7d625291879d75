#pragma once
// What a UE measured, as plain structs and as JSON.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock_anchor.h"
#include "base/units.h"
#include "ue/client_machine.h"

namespace pallas::ue {

struct HandoverStats {
  SessionId session;
  NodeId from, to;
  Epoch epoch;
  TimePoint executed_at;
  std::optional<TokenIndex> last_before;  // the last token that had arrived at execution
  // Longest interval between successive arrivals, from the last token before the handover up to the
  // 8th token sampled by the target's engine, the next handover or the session's end. Absent while
  // no token came after it.
  std::optional<double> gap_ms;
  // From execution to the arrival of the first token that the target's engine sampled. When it
  // sampled none before the next handover or the end (`relayed`): to the first token that arrived.
  std::optional<double> sit_ms;
  bool relayed = false;
  std::uint64_t tokens = 0;  // that arrived between this handover and the next
  // When what happened here; see client_machine.h for the attach. `first_own_at`: the first token
  // that the target's engine sampled.
  std::optional<TimePoint> last_token_at, attach_sent_at, granted_at, first_token_at, first_own_at;
};

struct IntervalStats {
  std::uint64_t count = 0;
  double p50_ms = 0, p95_ms = 0, max_ms = 0;
};

struct SessionReport {
  SessionId session;
  std::string state;  // ClientMachine's
  std::string model;
  std::string finish_reason;  // empty unless finished
  std::optional<Usage> usage;
  std::vector<TokenRecord> tokens;
  std::vector<HandoverStats> handovers;
  IntervalStats itl;
  ClientCounters counters;
};

struct UeReport {
  UeId ue;
  CellId cell;
  NodeId gnb;
  std::vector<SessionReport> sessions;  // oldest first; of ended ones only the latest are kept
};

// `tokens` and `marks` ascending in time.
std::vector<HandoverStats> measure_handovers(const SessionId& session,
                                             const std::vector<TokenRecord>& tokens,
                                             const std::vector<HandoverMark>& marks);
// Intervals between successive arrivals; percentiles interpolate linearly between ranks.
IntervalStats measure_intervals(const std::vector<TokenRecord>& tokens);

// One handover, one object: what GET /v1/handovers of the local endpoint lists. Times are in ms;
// `executed_at_ms` counts from the session's first token, those of `phases` from the execution,
// which `anchor` dates.
std::string to_json(const HandoverStats& handover, const ClockAnchor& anchor);
// {"handovers": [...]} over all sessions.
std::string handovers_to_json(const UeReport& report, const ClockAnchor& anchor);
std::string to_json(const SessionReport& session, bool tokens);
// Everything; token texts and ids only if `tokens`.
std::string to_json(const UeReport& report, bool tokens);

}  // namespace pallas::ue
