#pragma once
// What an operator may order of a gNB, as JSON: the move of one session, and draining.

#include <optional>
#include <string>
#include <string_view>

#include "http/request_parser.h"
#include "http/wall_clock.h"
#include "node/move.h"
#include "node/node.h"

namespace pallas::http {

// {"target": NAME, "dry_run": false}
Parsed<node::MoveOrder> parse_move(std::string_view body, SessionId session);

struct DrainOrder {
  NodeId to;                      // empty: sessions stay and may end
  std::optional<Duration> limit;  // none: the gNB's own
};
// {"to": NAME, "limit_s": N}; an empty body is one without both.
Parsed<DrainOrder> parse_drain(std::string_view body);

std::string move_json(const node::MoveReport& move, const ClockAnchor& anchor);
// What was reported about one handover at this gNB; either may be absent.
std::string found_handover_json(const std::string& id, const node::HandoverReport* arrival,
                                const node::DepartureReport* departure, const ClockAnchor& anchor);
// `ends_in`: when what is left is cut off, where that is known.
std::string drain_json(const node::DrainStatus& status, std::optional<Duration> ends_in);

}  // namespace pallas::http
