#pragma once
// One session's move to another gNB by an operator's order (docs/protocol.md, "Moves by order"): no
// radio moves the UE, so this gNB prepares the target, tells the UE to go there, and is claimed as
// in any handover.
//
//   kPreparing --target has caught up, or `move_s`--> kExecuting --claim--> kCompleting
//   --release-->
//       |                                                 |                     |        kCompleted
//       +-- refused, no answer, overtaken ---> kFailed <--+---------------------+

#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"
#include "node/phases.h"

namespace pallas::node {

struct MoveOrder {
  SessionId session;
  NodeId target;
  bool dry_run = false;  // only says what would be done
};

enum class MoveState {
  kPlanned,     // a dry run's: nothing happens
  kPreparing,   // the UE is still served here
  kExecuting,   // the UE was told to go
  kCompleting,  // it is there and the target claimed the session
  kCompleted,   // the target released it, or relays it
  kFailed       // it went on here, ended, or went elsewhere: `reason`
};
std::string_view to_string(MoveState state);

struct MoveReport {
  std::string id;  // "<session>.m<number>"; empty: a dry run
  SessionId session;
  NodeId source, target;
  MoveState state = MoveState::kPlanned;
  std::string reason;    // of kFailed
  std::string handover;  // id of the reports about it, once it was claimed

  // The plan, by the rates of the moment of the order.
  std::string scheme;
  bool relay = false;         // the source would go on decoding
  TokenPosition context = 0;  // positions with KV
  TokenPosition split = 0;    // the source sends from here on, as far as the plan knows
  double recomputed = 0;      // positions that the target computes
  double bytes = 0;           // of KV to be sent
  double window_s = 0;        // time from the order to the UE's leaving
  double interruption_s = 0;  // expected from there to the first token of the target

  TimePoint ordered_at{};
  std::optional<TimePoint> told_at, ended_at;  // the UE was told to go
  SourcePhases phases;
};

}  // namespace pallas::node
