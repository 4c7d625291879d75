// A gNB that is to end: it takes nothing new, lets transfers end or go back, and gives its sessions
// to a peer, or time to end.

#include <algorithm>

#include "node/impl.h"

namespace pallas::node {

namespace {

// Moves at a time: each has a share of the link and of the target's engine that is worth having.
constexpr std::uint32_t kMovesAtOnce = 8;

}  // namespace

// Whether this gNB is being drained and `s` (null: an unknown session) is none of those that it
// still works for.
bool Node::Impl::takes_nothing(const Session* s) const {
  if (!draining_) return false;
  if (s == nullptr) return true;
  switch (s->role) {
    case Role::kMirror:
    case Role::kPreparing:
    case Role::kRetained:
    case Role::kMoved:
      return true;
    case Role::kArriving:
    case Role::kRelaying:
    case Role::kServing:
    case Role::kFrozen:
    case Role::kFinished:
      return false;
  }
  return false;
}

Status Node::Impl::drain(const NodeId& to) {
  if (!to.value.empty() && (to == config.name || !peers_.contains(to))) {
    return fail(Errc::kInvalidArgument,
                "to: '" + to.value + "' is no peer of this gNB, or was never up");
  }
  drain_to_ = to;
  if (!draining_) {
    draining_ = true;
    moved_before_ = stats_.moves_completed;
    refused_before_ = stats_.moves_failed;
    std::vector<SessionId> ids;
    for (const auto& [id, s] : sessions_) ids.push_back(id);
    std::sort(ids.begin(), ids.end());
    for (const SessionId& id : ids) {
      Session* s = find(id);
      if (s == nullptr) continue;
      if (s->role == Role::kRetained) become_moved(*s, s->elsewhere);
      if (s->role != Role::kPreparing) continue;
      // The source has everything, and the UE is there.
      if (s->incoming) {
        ++stats_.preparations_refused;
        ports.peers->send(
            s->incoming->source(),
            wire::HandoverPreparationFailure{s->id, s->incoming->attempt(), wire::Cause::kDraining,
                                             "this gNB is being drained"});
      }
      become_mirror(*s);
    }
  }
  drain_on();
  return {};
}

void Node::Impl::drain_on() {
  drain_timer_.arm(config.control_period, [this] { drain_on(); });
  if (drain_to_.value.empty()) return;
  std::uint32_t moving = 0;
  std::vector<SessionId> waiting;
  for (const auto& [slot, s] : by_slot_) {
    if (s->move) {
      ++moving;
    } else if (s->role == Role::kServing && may_move(*s, drain_to_)) {
      waiting.push_back(s->id);
    }
  }
  std::sort(waiting.begin(), waiting.end());
  for (const SessionId& id : waiting) {
    if (moving >= kMovesAtOnce) return;
    if (move({id, drain_to_, false})) ++moving;
  }
}

DrainStatus Node::Impl::drain_status() const {
  DrainStatus status;
  status.draining = draining_;
  status.to = drain_to_;
  status.moved = stats_.moves_completed - moved_before_;
  status.refused = stats_.moves_failed - refused_before_;
  for (const auto& [id, s] : sessions_) {
    switch (s->role) {
      case Role::kServing:
        ++status.serving;
        break;
      case Role::kArriving:
      case Role::kRelaying:
        ++status.arriving;
        break;
      case Role::kFrozen:
        ++status.leaving;
        break;
      case Role::kMirror:
      case Role::kPreparing:
      case Role::kRetained:
      case Role::kFinished:
      case Role::kMoved:
        break;
    }
  }
  return status;
}

std::uint32_t Node::Impl::cut_off() {
  std::vector<StreamId> streams;
  for (const auto& [stream, s] : by_stream_) streams.push_back(stream);
  std::sort(streams.begin(), streams.end());
  for (const StreamId stream : streams) {
    const auto found = by_stream_.find(stream);
    if (found == by_stream_.end()) continue;
    Session& s = *found->second;
    if (s.resumable) {
      drop_stream(s, drain_to_);
      continue;
    }
    by_stream_.erase(found);
    s.stream.reset();
    ports.ue->fail(stream, Error{Errc::kCancelled, "the gNB ended before the answer did"});
  }
  return static_cast<std::uint32_t>(streams.size());
}

}  // namespace pallas::node
