#pragma once
// Which transitions of docs/protocol.md runs went through: what a node was told about a session in
// which role, and what role it had afterwards; and the states of the source's and the target's
// machine.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "node/session.h"

namespace pallas::sim {

// Role, or that the node does not know the session.
inline constexpr int kRoles = 10;
inline constexpr int kNoRole = 9;
inline constexpr int kSourceStates = 6;
inline constexpr int kTargetStates = 7;
inline constexpr int kNoState = -1;
std::string_view role_name(int role);
std::string_view source_state_name(int state);
std::string_view target_state_name(int state);

// The events of the table "Roles", in its order, and those that only time brings.
enum class SessionEvent : std::uint8_t {
  kAttachNewer,
  kAttachStale,
  kHandoverRequest,
  kHandoverCancel,
  kTokenUpdate,
  kKvBlock,
  kSnStatusTransfer,
  kHandoverSuccess,
  kRetrieve,
  kRelease,
  kStaleEpoch,
  kMoved,
  kLinkLost,
  kExecution,
  kCompleted,
  kTakenBack,  // rejected, cancelled, reestablished here
  kStop,
  kStreamClosed,
  kOther,  // answers of the engine, timers, other messages
};
inline constexpr int kSessionEvents = 19;
std::string_view to_string(SessionEvent event);
// Of what a World tells its observer.
SessionEvent session_event(std::string_view what, bool stale_attach);

class FaultCoverage {
 public:
  void role(int before, SessionEvent event, int after) {
    ++roles_[at(before)][at(static_cast<int>(event))][at(after)];
  }
  void source(int before, int after) { ++source_[at(before + 1)][at(after + 1)]; }
  void target(int before, int after) { ++target_[at(before + 1)][at(after + 1)]; }
  void add(const FaultCoverage& other);

  std::uint64_t count(int before, SessionEvent event, int after) const {
    return roles_[at(before)][at(static_cast<int>(event))][at(after)];
  }
  std::uint64_t count(int before, SessionEvent event) const;  // whatever came of it
  std::uint64_t source_count(int before, int after) const {
    return source_[at(before + 1)][at(after + 1)];
  }
  std::uint64_t target_count(int before, int after) const {
    return target_[at(before + 1)][at(after + 1)];
  }

 private:
  static constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }
  std::array<std::array<std::array<std::uint64_t, kRoles>, kSessionEvents>, kRoles> roles_{};
  std::array<std::array<std::uint64_t, kSourceStates + 1>, kSourceStates + 1> source_{};
  std::array<std::array<std::uint64_t, kTargetStates + 1>, kTargetStates + 1> target_{};
};

// What the tables of docs/protocol.md list, each as a sentence with the number of times that it was
// seen.
struct ListedTransition {
  std::string name;
  std::uint64_t seen = 0;
};
std::vector<ListedTransition> listed_transitions(const FaultCoverage& coverage);

}  // namespace pallas::sim
