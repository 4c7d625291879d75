// Sessions as things with a life: creation, loans, ends; peers that come and go; stop.

#include <algorithm>
#include <limits>
#include <utility>

#include "node/impl.h"

namespace pallas::node {

std::string_view to_string(Role role) {
  switch (role) {
    case Role::kMirror:
      return "mirror";
    case Role::kPreparing:
      return "preparing";
    case Role::kArriving:
      return "arriving";
    case Role::kRelaying:
      return "relaying";
    case Role::kServing:
      return "serving";
    case Role::kFrozen:
      return "frozen";
    case Role::kRetained:
      return "retained";
    case Role::kFinished:
      return "finished";
    case Role::kMoved:
      return "moved";
  }
  return "unknown";
}

Session* Node::Impl::find(const SessionId& id) const {
  auto it = sessions_.find(id);
  return it == sessions_.end() ? nullptr : it->second.get();
}

Session* Node::Impl::find(const engine::SlotId& slot) const {
  auto it = by_slot_.find(slot);
  return it == by_slot_.end() ? nullptr : it->second;
}

Session& Node::Impl::emplace(SessionId id, wire::SessionParams params, session::TokenLog log) {
  auto session = std::make_unique<Session>(id, std::move(params), std::move(log), *ports.clock,
                                           ports.engine->info().geometry, staged_bytes_);
  Session& s = *session;
  if (!s.params.ue.value.empty()) {
    s.ue = &ue_of(s.params.ue);
    s.ue->sessions.push_back(&s);
  }
  sessions_.emplace(std::move(id), std::move(session));
  return s;
}

UeState& Node::Impl::ue_of(const UeId& id) {
  if (ues_.size() >= kMaxUes && !ues_.contains(id)) forget_ues();
  UeState& ue = ues_[id];
  ue.heard = ports.clock->now();
  return ue;
}

// Who names a UE chooses the name: without an end they would fill the memory. Those of which
// nothing was heard for longest go, many at once, so that this is rare.
void Node::Impl::forget_ues() {
  std::vector<std::pair<TimePoint, UeId>> idle;
  for (const auto& [id, ue] : ues_) {
    if (ue.sessions.empty()) idle.emplace_back(ue.heard, id);
  }
  const std::size_t most = (idle.size() + 1) / 2;
  std::nth_element(idle.begin(), idle.begin() + static_cast<std::ptrdiff_t>(most), idle.end());
  for (std::size_t i = 0; i < most; ++i) ues_.erase(idle[i].second);
}

// Old logs make room for new sessions; what is live never does.
bool Node::Impl::room_for_session() {
  if (sessions_.size() < config.max_sessions) return true;
  Session* oldest = nullptr;
  for (auto& [id, s] : sessions_) {
    const bool log_only = s->role == Role::kMirror || s->role == Role::kMoved ||
                          (s->role == Role::kFinished && !s->stream);
    if (!log_only || !s->log_life.armed()) continue;
    if (oldest == nullptr || s->log_life.when() < oldest->log_life.when() ||
        (s->log_life.when() == oldest->log_life.when() && s->id < oldest->id)) {
      oldest = s.get();
    }
  }
  if (oldest == nullptr) return false;
  erase(*oldest);
  return true;
}

void Node::Impl::erase(Session& s) {
  end_move(s, MoveState::kFailed, "the session is not known here any more");
  drop_stream(s, s.elsewhere);
  release_slot(s);
  if (s.ue != nullptr) std::erase(s.ue->sessions, &s);
  for (const NodeId& peer : s.asked) {
    auto& attempts = peers_[peer].attempts;
    std::replace(attempts.begin(), attempts.end(), &s, static_cast<Session*>(nullptr));
  }
  const SessionId id = s.id;
  sessions_.erase(id);
}

void Node::Impl::arm_log_life(Session& s) {
  arm(s.log_life, config.resume, s, [this](Session& live) { erase(live); });
}

void Node::Impl::release_slot(Session& s) {
  end_back_fill(s);
  s.staged.clear();
  if (!s.slot) return;
  by_slot_.erase(*s.slot);
  ports.engine->release(*s.slot);
  s.slot.reset();
  s.front = 0;
  s.reserved = 0;
  s.decoding = s.stopping = s.discards = s.prefilling = s.shadowing = false;
  s.held.reset();
  s.hold.cancel();
}

void Node::Impl::retain(Session& s, Duration how_long) {
  drop_held(s);
  trim_ahead(s);
  s.role = Role::kRetained;
  s.lease.cancel();
  s.plan_again.cancel();
  s.grace.cancel();
  arm(s.loan, how_long, s, [this](Session& live) {
    if (live.role == Role::kRetained) become_moved(live, live.elsewhere);
  });
}

bool Node::Impl::evict_one_retained() {
  Session* oldest = nullptr;
  for (auto& [id, s] : sessions_) {
    if (s->role != Role::kRetained || !s->slot) continue;
    if (oldest == nullptr || s->loan.when() < oldest->loan.when() ||
        (s->loan.when() == oldest->loan.when() && s->id < oldest->id)) {
      oldest = s.get();
    }
  }
  if (oldest == nullptr) return false;
  become_moved(*oldest, oldest->elsewhere);
  return true;
}

void Node::Impl::become_mirror(Session& s) {
  become_moved(s, s.elsewhere);
  s.role = Role::kMirror;
}

void Node::Impl::become_moved(Session& s, const NodeId& where) {
  end_move(s, MoveState::kFailed, "the session left this gNB otherwise");
  close_departure(s);
  s.arriving.reset();
  release_slot(s);
  s.incoming.reset();
  s.outgoing.reset();
  s.staged.clear();
  s.relay_to.reset();
  s.executing.reset();
  s.mirrors.clear();
  for (Timer* timer :
       {&s.lease, &s.loan, &s.grace, &s.repeat, &s.watch, &s.partial, &s.chunk, &s.plan_again}) {
    timer->cancel();
  }
  s.elsewhere = where;
  s.copy_of = NodeId();
  s.role = Role::kMoved;
  // Only the ids are kept, without slack: such records are many.
  s.log.shrink();
  forget_text(s);
  arm_log_life(s);
}

// A session without a UE goes on for `grace`, which covers a handover, and then only its ids are
// kept.
void Node::Impl::begin_grace(Session& s) {
  arm(s.grace, config.grace, s, [this](Session& live) {
    if (live.stream && live.writing) return;
    if (live.role == Role::kServing && !live.relay_to) {
      lapse(live);
    } else if (live.role == Role::kArriving) {
      become_mirror(live);
    } else if (live.role == Role::kRelaying) {
      leave_lender(live.id, live.epoch, live.elsewhere);
      become_mirror(live);
    }
  });
}

// Whoever decodes for this relay need not go on.
void Node::Impl::leave_lender(const SessionId& id, Epoch epoch, const NodeId& lender) {
  wire::HandoverSuccess left;
  left.session = id;
  left.epoch = epoch;
  left.relay = left.stop = true;
  ports.peers->send(lender, std::move(left));
}

// The UE is gone: nothing is computed any more. The ids stay for `resume_s`: it may come back, or
// be at a node that could not tell.
void Node::Impl::lapse(Session& s) {
  ++stats_.sessions_finished;
  drop_stream(s, NodeId());
  cancel_outgoing(s, wire::Cause::kWithdrawn);
  become_mirror(s);
}

void Node::Impl::on_stream_closed(StreamId stream) {
  auto it = by_stream_.find(stream);
  if (it == by_stream_.end()) return;
  Session& s = *it->second;
  by_stream_.erase(it);
  s.stream.reset();
  if (s.finish != wire::FinishReason::kNone) return;
  if (s.resumable) {
    begin_grace(s);
  } else if (s.role == Role::kServing) {
    finish_session(s, wire::FinishReason::kCancelled);  // rule 10: a plain client stops so
  }
}

Status Node::Impl::stop(const SessionId& id, const std::string& token, const NodeId& last_node) {
  Session* s = find(id);
  if (s != nullptr && !token.empty() && s->params.resume_token != token) s = nullptr;
  if (s == nullptr) {
    if (last_node.value.empty() || last_node == config.name || !ports.peers->is_up(last_node)) {
      return fail(Errc::kNotFound, "session: not known here");
    }
    wire::RetrieveUeContextRequest stop;
    stop.session = id;
    stop.epoch = Epoch(std::numeric_limits<std::uint32_t>::max());
    stop.resume_token = token;
    stop.stop = true;
    stop.compatibility = compatibility_;
    ports.peers->send(last_node, std::move(stop));
    return {};
  }
  // Where it is known as a thing of the past, the UE may know better where it went.
  const bool owner = s->role == Role::kServing || s->role == Role::kFinished;
  const NodeId known = s->incoming ? s->incoming->source() : s->elsewhere;
  if (!owner && !last_node.value.empty() && last_node != config.name && last_node != known) {
    send_stop(*s, last_node);
  }
  end_everywhere(*s);
  return {};
}

void Node::Impl::send_stop(const Session& s, const NodeId& to) {
  wire::RetrieveUeContextRequest stop;
  stop.session = s.id;
  stop.epoch = Epoch(s.epoch.value + 1);
  stop.resume_token = s.params.resume_token;
  stop.stop = true;
  stop.compatibility = compatibility_;
  ports.peers->send(to, std::move(stop));
}

// Ends the session here and passes the stop on to where it is, as far as that is known (rule 10).
// Each node ends its own record as it passes the stop on, so tombstones in a circle end it too.
void Node::Impl::end_everywhere(Session& s) {
  s.stopped = true;
  if (s.role == Role::kFinished) return;
  end_move(s, MoveState::kFailed, "the session was stopped");
  if (s.role == Role::kServing) {
    finish_session(s, wire::FinishReason::kCancelled);
    return;
  }
  const NodeId owner = s.incoming ? s.incoming->source() : s.elsewhere;
  if (!owner.value.empty() && owner != config.name) {
    send_stop(s, owner);
  }
  s.finish = wire::FinishReason::kCancelled;
  s.outgoing.reset();
  s.lease.cancel();
  s.loan.cancel();
  arrived_finished(s);
}

// Peers are many, their records mostly one.
const wire::Compatibility& Node::Impl::kept_record(const wire::Compatibility& record) {
  const auto same = std::find_if(records_.begin(), records_.end(),
                                 [&](const auto& kept) { return *kept == record; });
  if (same != records_.end()) return **same;
  return *records_.emplace_back(std::make_unique<const wire::Compatibility>(record));
}

void Node::Impl::on_peer_up(const PeerHello& hello) {
  using State = session::SourceHandover::State;
  PeerState& peer = peers_[hello.node];
  const bool rebooted = peer.boot != hello.boot;
  peer.boot = hello.boot;
  peer.compatibility = &kept_record(hello.compatibility);
  peer.up = true;
  peer.holes = hello.holes;
  peer.minor = hello.minor;
  peer.spared_share = peer.told_share = 1;
  tell_resources(hello.node);
  if (rebooted) {
    peer.prefill_rate.reset();
    peer.contention.reset();
    peer.resident = false;
  }

  std::vector<SessionId> ids;
  for (auto& [id, s] : sessions_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  for (const SessionId& id : ids) {
    Session* s = find(id);
    if (s == nullptr) continue;
    if (s->mirrors.erase(hello.node) > 0 && s->role == Role::kServing) mirror_to(*s, hello.node);
    if (s->outgoing && s->outgoing->target() == hello.node) {
      const wire::HeldAttempt* held = nullptr;
      for (const auto& h : hello.held) {
        if (h.session == id && h.attempt == s->outgoing->attempt()) held = &h;
      }
      const State state = s->outgoing->state();
      const bool early =
          state == State::kRequested || state == State::kPreparing || state == State::kCancelling;
      if (early && (held == nullptr || state == State::kCancelling)) {
        s->outgoing.reset();  // void (rule 12)
        s->lease.cancel();
      } else {
        s->outgoing->on_resynchronized(held);
      }
    }
    evaluate(*s);
  }
}

void Node::Impl::on_peer_down(const NodeId& down) {
  peers_[down].up = false;
  std::vector<SessionId> ids;
  for (auto& [id, s] : sessions_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  for (const SessionId& id : ids) {
    Session* s = find(id);
    if (s == nullptr) continue;
    if (s->role == Role::kServing && s->relay_to == down) {
      s->relay_to.reset();  // it goes on alone
      begin_grace(*s);
    }
    if (s->back_fill && s->back_fill->target->source() == down) lose_back_fill_source(*s);
    const bool waits = s->role == Role::kArriving && s->incoming && s->incoming->source() == down &&
                       !s->incoming->source_lost();
    if (waits || (s->role == Role::kRelaying && s->elsewhere == down)) {
      recover(*s, "ue");
      continue;
    }
    if (s->role == Role::kPreparing && s->incoming && s->incoming->source() == down) {
      // Prepared state is worth most now: the lease is extended once (rule 8).
      const TimePoint until =
          std::max(ports.clock->now() + config.lease, s->expected_at + config.grace);
      arm(s->lease, until - ports.clock->now(), *s,
          [this](Session& live) { drop_preparation(live, false); });
    }
  }
}

void Node::Impl::on_kv_drained(const NodeId& peer) {
  if (divide_link(peer)) return;
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  auto& attempts = found->second.attempts;
  for (Session* s : attempts) {
    if (s != nullptr && s->outgoing && s->outgoing->target() == peer) s->outgoing->on_drained();
  }
}

std::vector<wire::HeldAttempt> Node::Impl::held_from(const NodeId& peer) const {
  std::vector<wire::HeldAttempt> held;
  for (const auto& [id, s] : sessions_) {
    const session::TargetHandover* target =
        s->back_fill ? s->back_fill->target.get() : s->incoming.get();
    if (target == nullptr || target->source() != peer || target->attempt().counter == 0) continue;
    held.push_back(target->held());
  }
  std::sort(held.begin(), held.end(),
            [](const auto& a, const auto& b) { return a.session < b.session; });
  return held;
}

// A waiting UE sees that its stream lives. Divided links are looked at, too: a session that ended
// while its rows were being exported leaves its turn without a word.
void Node::Impl::housekeeping() {
  divide_links();
  tell_resources();
  const TimePoint now = ports.clock->now();
  for (auto& [stream, s] : by_stream_) {
    if (!s->writing || now - s->last_write < config.keep_alive) continue;
    ports.ue->keep_alive(stream);
  }
  housekeeping_timer_.arm(config.keep_alive, [this] { housekeeping(); });
}

}  // namespace pallas::node
