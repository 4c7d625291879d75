#include "sim/fault_coverage.h"

#include <utility>

namespace pallas::sim {
namespace {

using node::Role;
using E = SessionEvent;
using Source = session::SourceHandover::State;
using Target = session::TargetHandover::State;

constexpr std::array<std::string_view, kSourceStates> kSourceNames = {
    "requested", "preparing", "claimed", "synced", "cancelling", "over"};
constexpr std::array<std::string_view, kTargetStates> kTargetNames = {
    "preparing", "settled", "claiming", "completing", "on part", "filling", "complete"};
constexpr std::array<std::string_view, kSessionEvents> kEventNames = {
    "UE attaches, newer epoch",
    "UE attaches, older or same epoch",
    "HandoverRequest",
    "HandoverCancel",
    "TokenUpdate",
    "KvBlock",
    "SnStatusTransfer",
    "HandoverSuccess",
    "RetrieveUeContextRequest",
    "UeContextRelease",
    "StaleEpoch",
    "Moved",
    "link lost",
    "RAN execution",
    "RAN completed",
    "RAN rejected, cancelled, reestablished",
    "stop",
    "stream closed",
    "time"};

}  // namespace

std::string_view role_name(int role) {
  return role == kNoRole ? "unknown" : node::to_string(static_cast<Role>(role));
}
std::string_view source_state_name(int state) {
  return state == kNoState ? "none" : kSourceNames.at(static_cast<std::size_t>(state));
}
std::string_view target_state_name(int state) {
  return state == kNoState ? "none" : kTargetNames.at(static_cast<std::size_t>(state));
}
std::string_view to_string(SessionEvent event) {
  return kEventNames.at(static_cast<std::size_t>(event));
}

SessionEvent session_event(std::string_view what, bool stale_attach) {
  static constexpr std::array<std::pair<std::string_view, E>, 17> kByName = {
      {{"HandoverRequest", E::kHandoverRequest},
       {"HandoverCancel", E::kHandoverCancel},
       {"TokenUpdate", E::kTokenUpdate},
       {"KvBlock", E::kKvBlock},
       {"SnStatusTransfer", E::kSnStatusTransfer},
       {"HandoverSuccess", E::kHandoverSuccess},
       {"RetrieveUeContextRequest", E::kRetrieve},
       {"UeContextRelease", E::kRelease},
       {"StaleEpoch", E::kStaleEpoch},
       {"Moved", E::kMoved},
       {"link lost", E::kLinkLost},
       {"execution", E::kExecution},
       {"completed", E::kCompleted},
       {"rejected", E::kTakenBack},
       {"cancelled", E::kTakenBack},
       {"reestablished", E::kTakenBack},
       {"stop", E::kStop}}};
  if (what == "attach") return stale_attach ? E::kAttachStale : E::kAttachNewer;
  if (what == "stream closed") return E::kStreamClosed;
  for (const auto& [name, event] : kByName) {
    if (name == what) return event;
  }
  return E::kOther;
}

void FaultCoverage::add(const FaultCoverage& other) {
  for (std::size_t i = 0; i < roles_.size(); ++i) {
    for (std::size_t j = 0; j < roles_[i].size(); ++j) {
      for (std::size_t k = 0; k < roles_[i][j].size(); ++k) {
        roles_[i][j][k] += other.roles_[i][j][k];
      }
    }
  }
  const auto sum = [](auto& mine, const auto& theirs) {
    for (std::size_t i = 0; i < mine.size(); ++i) {
      for (std::size_t j = 0; j < mine[i].size(); ++j) mine[i][j] += theirs[i][j];
    }
  };
  sum(source_, other.source_);
  sum(target_, other.target_);
}

namespace {

// "Roles" of docs/protocol.md, cell by cell: what leads to another role, and to which. Where a cell
// names several columns, each has its own line.
struct RoleCell {
  Role before;
  E event;
  Role after;
};
constexpr std::array kRoleCells = {
    RoleCell{Role::kMirror, E::kAttachNewer, Role::kArriving},
    RoleCell{Role::kMoved, E::kAttachNewer, Role::kArriving},
    RoleCell{Role::kRetained, E::kAttachNewer, Role::kArriving},
    RoleCell{Role::kPreparing, E::kAttachNewer, Role::kArriving},
    RoleCell{Role::kPreparing, E::kAttachNewer, Role::kRelaying},
    RoleCell{Role::kArriving, E::kAttachNewer, Role::kArriving},
    RoleCell{Role::kRelaying, E::kAttachNewer, Role::kRelaying},
    RoleCell{Role::kServing, E::kAttachNewer, Role::kServing},
    RoleCell{Role::kServing, E::kAttachNewer, Role::kArriving},
    RoleCell{Role::kFrozen, E::kAttachNewer, Role::kServing},
    RoleCell{Role::kFrozen, E::kAttachNewer, Role::kArriving},
    RoleCell{Role::kFinished, E::kAttachNewer, Role::kFinished},
    RoleCell{Role::kMirror, E::kHandoverRequest, Role::kPreparing},
    RoleCell{Role::kMoved, E::kHandoverRequest, Role::kPreparing},
    RoleCell{Role::kRetained, E::kHandoverRequest, Role::kPreparing},
    RoleCell{Role::kPreparing, E::kHandoverRequest, Role::kPreparing},
    RoleCell{Role::kArriving, E::kHandoverRequest, Role::kArriving},
    RoleCell{Role::kFrozen, E::kHandoverRequest, Role::kPreparing},
    RoleCell{Role::kServing, E::kHandoverRequest, Role::kServing},
    RoleCell{Role::kPreparing, E::kHandoverCancel, Role::kRetained},
    RoleCell{Role::kPreparing, E::kHandoverCancel, Role::kMirror},
    RoleCell{Role::kArriving, E::kHandoverCancel, Role::kArriving},
    RoleCell{Role::kMirror, E::kTokenUpdate, Role::kMirror},
    RoleCell{Role::kPreparing, E::kTokenUpdate, Role::kPreparing},
    RoleCell{Role::kArriving, E::kTokenUpdate, Role::kArriving},
    RoleCell{Role::kRelaying, E::kTokenUpdate, Role::kRelaying},
    RoleCell{Role::kRelaying, E::kTokenUpdate, Role::kFinished},
    RoleCell{Role::kPreparing, E::kKvBlock, Role::kPreparing},
    RoleCell{Role::kArriving, E::kKvBlock, Role::kArriving},
    RoleCell{Role::kPreparing, E::kSnStatusTransfer, Role::kPreparing},
    RoleCell{Role::kArriving, E::kSnStatusTransfer, Role::kArriving},
    RoleCell{Role::kArriving, E::kSnStatusTransfer, Role::kServing},
    RoleCell{Role::kArriving, E::kSnStatusTransfer, Role::kFinished},
    RoleCell{Role::kServing, E::kHandoverSuccess, Role::kServing},
    RoleCell{Role::kServing, E::kHandoverSuccess, Role::kFrozen},
    RoleCell{Role::kFrozen, E::kHandoverSuccess, Role::kFrozen},
    RoleCell{Role::kFinished, E::kHandoverSuccess, Role::kFinished},
    RoleCell{Role::kPreparing, E::kHandoverSuccess, Role::kArriving},
    RoleCell{Role::kRetained, E::kRetrieve, Role::kRetained},
    RoleCell{Role::kMoved, E::kRetrieve, Role::kMoved},
    RoleCell{Role::kArriving, E::kRetrieve, Role::kRetained},
    RoleCell{Role::kRelaying, E::kRetrieve, Role::kMoved},
    RoleCell{Role::kServing, E::kRetrieve, Role::kServing},
    RoleCell{Role::kFrozen, E::kRetrieve, Role::kFrozen},
    RoleCell{Role::kFinished, E::kRetrieve, Role::kFinished},
    RoleCell{Role::kFrozen, E::kRelease, Role::kRetained},
    RoleCell{Role::kArriving, E::kStaleEpoch, Role::kRetained},
    RoleCell{Role::kRelaying, E::kStaleEpoch, Role::kMoved},
    RoleCell{Role::kServing, E::kStaleEpoch, Role::kRetained},
    RoleCell{Role::kPreparing, E::kLinkLost, Role::kPreparing},
    RoleCell{Role::kArriving, E::kLinkLost, Role::kArriving},
    RoleCell{Role::kRelaying, E::kLinkLost, Role::kArriving},
    RoleCell{Role::kServing, E::kLinkLost, Role::kServing},
    RoleCell{Role::kServing, E::kExecution, Role::kServing},
    RoleCell{Role::kServing, E::kCompleted, Role::kServing},
    RoleCell{Role::kServing, E::kTakenBack, Role::kServing},
    RoleCell{Role::kServing, E::kOther, Role::kFrozen},
    RoleCell{Role::kServing, E::kOther, Role::kFinished},
    RoleCell{Role::kServing, E::kOther, Role::kMirror},
    RoleCell{Role::kArriving, E::kOther, Role::kServing},
    RoleCell{Role::kFrozen, E::kOther, Role::kMoved},
    RoleCell{Role::kRetained, E::kOther, Role::kMoved},
    RoleCell{Role::kPreparing, E::kOther, Role::kMirror},
};

struct StateStep {
  int before, after;
};
constexpr int at(Source s) {
  return static_cast<int>(s);
}
constexpr int at(Target s) {
  return static_cast<int>(s);
}
constexpr std::array kSourceSteps = {
    StateStep{kNoState, at(Source::kRequested)},
    StateStep{kNoState, at(Source::kClaimed)},
    StateStep{at(Source::kRequested), at(Source::kPreparing)},
    StateStep{at(Source::kRequested), at(Source::kClaimed)},
    StateStep{at(Source::kRequested), at(Source::kCancelling)},
    StateStep{at(Source::kRequested), kNoState},
    StateStep{at(Source::kPreparing), at(Source::kClaimed)},
    StateStep{at(Source::kPreparing), at(Source::kSynced)},
    StateStep{at(Source::kPreparing), at(Source::kCancelling)},
    StateStep{at(Source::kClaimed), at(Source::kSynced)},
    StateStep{at(Source::kCancelling), at(Source::kClaimed)},
    StateStep{at(Source::kCancelling), kNoState},
    StateStep{at(Source::kSynced), kNoState},
};
constexpr std::array kTargetSteps = {
    StateStep{kNoState, at(Target::kPreparing)},
    StateStep{kNoState, at(Target::kClaiming)},
    StateStep{at(Target::kPreparing), at(Target::kSettled)},
    StateStep{at(Target::kPreparing), at(Target::kClaiming)},
    StateStep{at(Target::kSettled), at(Target::kCompleting)},
    StateStep{at(Target::kClaiming), at(Target::kCompleting)},
    StateStep{at(Target::kCompleting), kNoState},
    StateStep{at(Target::kCompleting), at(Target::kOnPart)},
    StateStep{at(Target::kOnPart), at(Target::kFilling)},
};

}  // namespace

std::vector<ListedTransition> listed_transitions(const FaultCoverage& coverage) {
  std::vector<ListedTransition> all;
  for (const RoleCell& cell : kRoleCells) {
    const int before = static_cast<int>(cell.before), after = static_cast<int>(cell.after);
    all.push_back({std::string(role_name(before)) + " -- " + std::string(to_string(cell.event)) +
                       " -> " + std::string(role_name(after)),
                   coverage.count(before, cell.event, after)});
  }
  for (const StateStep& step : kSourceSteps) {
    all.push_back({"source: " + std::string(source_state_name(step.before)) + " -> " +
                       std::string(source_state_name(step.after)),
                   coverage.source_count(step.before, step.after)});
  }
  for (const StateStep& step : kTargetSteps) {
    all.push_back({"target: " + std::string(target_state_name(step.before)) + " -> " +
                       std::string(target_state_name(step.after)),
                   coverage.target_count(step.before, step.after)});
  }
  return all;
}

std::uint64_t FaultCoverage::count(int before, SessionEvent event) const {
  std::uint64_t all = 0;
  for (int after = 0; after < kRoles; ++after) all += count(before, event, after);
  return all;
}

}  // namespace pallas::sim
