// The source of a handover: preparation, claim, release; the owner that lends decoding to a relay.

#include <algorithm>
#include <utility>

#include "kv/link_ahead.h"
#include "node/impl.h"

namespace pallas::node {

namespace {

// The share of a lease for which its source relies on it (rule 8): the target's clock began later.
constexpr double kRelyOnLease = 0.8;
// A target that refused is asked again after, and one that is being drained after.
constexpr Duration kAskAgain = std::chrono::seconds(1);
constexpr Duration kAskDrainedAgain = std::chrono::seconds(5);

// The SourceHandover's way to one peer and to the session's slot; notes when what left.
class SourcePortOf : public session::SourcePort {
 public:
  SourcePortOf(Node::Ports ports, NodeId peer, engine::SlotId slot, OnDemand<SourcePhases>& phases,
               std::function<bool(const NodeId&)> divide_link, std::function<void()> rank)
      : ports_(ports),
        peer_(std::move(peer)),
        slot_(slot),
        phases_(phases),
        divide_link_(std::move(divide_link)),
        rank_(std::move(rank)) {}
  void send(wire::Message message) override {
    if (std::holds_alternative<wire::SnStatusTransfer>(message)) {
      phases_->status_sent.first(ports_.clock->now());
    }
    ports_.peers->send(peer_, std::move(message));
  }
  void send_kv(wire::KvBlock header, kv::Bytes rows) override {
    Stretch& sent = phases_->handover_began() ? phases_->tail_sent : phases_->rows_sent;
    sent.ended(ports_.clock->now(), header.count);
    ports_.peers->send_kv(peer_, std::move(header), std::move(rows));
  }
  std::uint64_t kv_backlog() const override { return ports_.peers->kv_backlog(peer_); }
  std::uint64_t link_ahead() const override {
    const kv::Geometry& geometry = ports_.engine->info().geometry;
    return kv::link_ahead(geometry.block_tokens * geometry.bytes_per_token(),
                          ports_.peers->goodput(peer_));
  }
  void export_rows(kv::TokenRange range) override { ports_.engine->export_kv(slot_, range); }
  void rank() override { rank_(); }
  bool gives_turns() override { return divide_link_(peer_); }

 private:
  Node::Ports ports_;
  NodeId peer_;
  engine::SlotId slot_;
  OnDemand<SourcePhases>& phases_;
  std::function<bool(const NodeId&)> divide_link_;
  std::function<void()> rank_;
};

}  // namespace

wire::SessionSnapshot Node::Impl::snapshot(const Session& s) const {
  wire::SessionSnapshot snapshot;
  snapshot.params = s.params;
  snapshot.prompt_tokens = s.log.prompt_tokens();
  snapshot.tokens = s.log.copy(0, s.log.size());
  snapshot.sampled_by = s.log.sampled_by();
  snapshot.lineage = s.lineage;
  snapshot.finish = s.finish;
  snapshot.epoch = s.epoch;
  return snapshot;
}

void Node::Impl::make_outgoing(Session& s, const NodeId& target, const kv::TransferPlan& plan) {
  session::SourceHandover::Setup setup;
  setup.session = s.id;
  setup.attempt = Attempt{config.name, boot, ++attempt_counter_};
  setup.target = target;
  setup.plan = plan;
  setup.geometry = ports.engine->info().geometry;
  setup.lineage = s.lineage;
  setup.self = config.name;
  s.leaving->restart();
  s.source_port = std::make_unique<SourcePortOf>(
      ports, target, s.slot.value_or(engine::SlotId()), s.leaving,
      [this](const NodeId& peer) { return divide_link(peer); }, [this, &s] { ask_for_order(s); });
  s.outgoing =
      std::make_unique<session::SourceHandover>(std::move(setup), s.log, s.front, *s.source_port);
  s.seen = {};
  s.seen.at = ports.clock->now();
  s.stands_in_for = NodeId();
  s.redirected = 0;
  auto& attempts = peers_[target].attempts;
  std::erase_if(attempts, [&](const Session* other) {
    return other == nullptr || other == &s || !other->outgoing ||
           other->outgoing->target() != target;
  });
  attempts.push_back(&s);
  if (std::find(s.asked.begin(), s.asked.end(), target) == s.asked.end()) s.asked.push_back(target);
}

void Node::Impl::start_preparation(Session& s, const NodeId& target, const kv::TransferPlan& plan,
                                   Duration expected_in, bool oracle) {
  cancel_outgoing(s, wire::Cause::kWithdrawn);
  make_outgoing(s, target, plan);
  wire::HandoverRequest request;
  request.session = s.id;
  request.attempt = s.outgoing->attempt();
  request.snapshot = snapshot(s);
  request.compatibility = to_wire(ports.engine->info().compatibility);
  request.plan = plan;
  request.plan.oracle = oracle;
  request.plan.expected_in_s = to_seconds(expected_in).count();
  request.source_front = s.front;
  request.lease_ms = static_cast<std::uint32_t>(to_ms(config.lease));
  request.reserve_tokens = s.reserved;
  request.token_rate = plan_input(s, target, expected_in, false).decode_rate.value;
  ++stats_.preparations_requested;
  s.lease_named = ports.clock->now();
  s.leaving->request_sent.set(s.lease_named);
  ports.peers->send(target, std::move(request));
  renew_lease(s);
}

// Frames that name the attempt renew its lease; when tokens are rare, this does. Over a link that
// is down nothing does, and at kRelyOnLease of the lease the preparation counts as lost.
void Node::Impl::renew_lease(Session& s) {
  const TimePoint relied_until =
      s.lease_named + to_duration(to_seconds(config.lease) * kRelyOnLease);
  const Duration left = std::max(relied_until - ports.clock->now(), Duration{0});
  arm(s.lease, std::min(config.lease / 3, left), s, [this, relied_until](Session& live) {
    using State = session::SourceHandover::State;
    if (!live.outgoing) return;
    const NodeId target = live.outgoing->target();
    const State state = live.outgoing->state();
    if (!ports.peers->is_up(target)) {
      if (ports.clock->now() < relied_until) return renew_lease(live);
      if (state != State::kRequested && state != State::kPreparing) return;
      ++stats_.preparations_cancelled;
      live.outgoing.reset();
      if (prepares_move(live)) {
        end_move(live, MoveState::kFailed, "the link to " + target.value + " is down");
      }
      announce(live, NodeId());
      evaluate(live);
      return;
    }
    live.lease_named = ports.clock->now();
    Duration in{0};
    if (const Forecast* f = forecast_of(live))
      in = std::max(f->at - ports.clock->now(), Duration{0});
    ports.peers->send(target, wire::LeaseRenew{live.id, live.outgoing->attempt(),
                                               static_cast<std::uint32_t>(to_ms(in))});
    renew_lease(live);
  });
}

void Node::Impl::cancel_outgoing(Session& s, wire::Cause cause) {
  using State = session::SourceHandover::State;
  if (!s.outgoing) return;
  const State state = s.outgoing->state();
  if (state != State::kRequested && state != State::kPreparing) return;
  ++stats_.preparations_cancelled;
  ports.peers->discard_kv(s.outgoing->target(), s.outgoing->attempt());
  s.outgoing->cancel(cause);
  s.lease.cancel();
  announce(s, NodeId());
}

void Node::Impl::handle(const NodeId& peer, wire::HandoverRequestAcknowledge& m) {
  Session* s = find(m.session);
  if (s == nullptr || !s->outgoing || s->outgoing->attempt() != m.attempt ||
      s->outgoing->target() != peer) {
    // Nobody here wants it any more: let it go at once instead of by its lease.
    ports.peers->send(peer, wire::HandoverCancel{m.session, m.attempt, wire::Cause::kWithdrawn});
    return;
  }
  if (!s->outgoing->acknowledged()) ++stats_.preparations_successful;
  s->leaving->acknowledged.first(ports.clock->now());
  if (m.prefill_rate > 0) peers_[peer].profiled_rate = m.prefill_rate;
  s->outgoing->on_acknowledged(m);
  move_on(*s);
}

void Node::Impl::handle(const NodeId& peer, wire::HandoverPreparationFailure& m) {
  Session* s = find(m.session);
  if (s == nullptr || !s->outgoing || s->outgoing->attempt() != m.attempt ||
      s->outgoing->target() != peer) {
    return;
  }
  ++stats_.preparations_failed;
  const bool served = s->role == Role::kServing;
  s->outgoing.reset();
  s->lease.cancel();
  if (!served) return;  // claimed already: the target rebuilds, or the UE goes on elsewhere
  announce(*s, NodeId());
  if (prepares_move(*s) && s->move->report.target == peer) {
    end_move(*s, MoveState::kFailed,
             peer.value + " refuses: " + std::string(wire::to_string(m.cause)) +
                 (m.message.empty() ? "" : " (" + m.message + ")"));
  }
  const bool ends = m.cause == wire::Cause::kDraining;
  s->refused_until[peer] = ports.clock->now() + (ends ? kAskDrainedAgain : kAskAgain);
  evaluate(*s);
}

void Node::Impl::handle(const NodeId& peer, wire::PreparationProgress& m) {
  Session* s = find(m.session);
  if (s == nullptr || !s->outgoing || s->outgoing->attempt() != m.attempt ||
      s->outgoing->target() != peer) {
    return;
  }
  PeerState& state = peers_[peer];
  if (state.minor == 0) m.follows = false;  // not part of that version
  Session::Seen& seen = s->seen;
  const TimePoint now = ports.clock->now();
  if (m.prefilled_tokens > seen.tokens && m.prefill_ns > seen.busy_ns) {
    const double tokens = m.prefilled_tokens - seen.tokens;
    const double seconds = static_cast<double>(m.prefill_ns - seen.busy_ns) * 1e-9;
    if (!state.prefill_rate) state.prefill_rate.emplace(config.ewma);
    state.prefill_rate->sample(tokens / seconds);
    // From one report to the next, with work left all the time, what was not spent on this session
    // went to others. The first report has the way of the request in it.
    if (seen.tokens > 0 && seen.unfinished) {
      if (!state.contention) state.contention.emplace(config.ewma);
      state.contention->sample(std::max(1.0, to_seconds(now - seen.at).count() / seconds));
      state.contention_at = now;
    }
    seen.tokens = m.prefilled_tokens;
    seen.busy_ns = m.prefill_ns;
    seen.at = now;
    state.resident = true;
  }
  seen.unfinished = m.front < m.prefill_goal && !m.follows;
  s->outgoing->on_progress(m);
  if (s->role == Role::kFrozen) keep_frozen(*s);
  move_on(*s);
}

// A lower epoch is stale; equal ones of two gNBs that numbered for a plain client are ordered by
// name, and the lower is stale.
bool Node::Impl::stale(const Session& s, Epoch epoch, const NodeId& peer) const {
  if (epoch != s.epoch) return epoch < s.epoch;
  return s.holder != peer && peer < s.holder;
}

// What that peer says under an older epoch it said before it heard of the claim that is on its way
// to it, or has answered by lending decoding: it is not stale, but its word is.
bool Node::Impl::claims_from(const Session& s, const NodeId& peer) {
  const bool attached = s.role == Role::kRelaying || s.role == Role::kArriving;
  return (attached && s.elsewhere == peer) || (s.incoming && s.incoming->source() == peer);
}

void Node::Impl::answer_stale(const Session& s, const NodeId& peer) {
  ++stats_.stale_epochs;
  if (claims_from(s, peer)) return;
  ports.peers->send(peer, wire::StaleEpoch{s.id, s.epoch, s.holder});
}

void Node::Impl::claimed_by(Session& s, const NodeId& peer, Epoch epoch) {
  // Claimed by somebody else before.
  if (s.leaving && s.leaving->claim_received.happened()) close_departure(s);
  s.leaving->claim_received.set(ports.clock->now());
  s.epoch = epoch;
  s.holder = peer;
  s.executing.reset();
  s.grace.cancel();
  s.plan_again.cancel();
  drop_stream(s, peer);
  ++stats_.executions_requested;
  move_claimed(s);
}

void Node::Impl::handle(const NodeId& peer, wire::HandoverSuccess& m) {
  Session* s = find(m.session);
  if (s == nullptr) {
    ports.peers->send(
        peer, wire::RetrieveUeContextFailure{m.session, m.epoch, wire::Cause::kUnknownSession,
                                             "session: not known here"});
    return;
  }
  if (stale(*s, m.epoch, peer)) {
    answer_stale(*s, peer);
    return;
  }
  if (m.stop) {
    s->epoch = m.epoch;
    if (s->role != Role::kServing) return;
    if (m.relay) {
      if (s->relay_to == peer) lapse(*s);
    } else {
      s->stopped = true;
      finish_session(*s, wire::FinishReason::kCancelled);
    }
    return;
  }
  switch (s->role) {
    case Role::kServing: {
      const bool known = s->outgoing && s->outgoing->target() == peer;
      const bool relay = m.relay || (known && s->outgoing->plan().relay);
      const bool again = s->holder == peer && s->epoch == m.epoch;
      // Twice at most: where the stand-in lost what it had, decoding goes on here.
      if (m.relay && has_stand_in(*s, peer) && s->outgoing->acknowledged() &&
          ++s->redirected <= 2) {
        ports.peers->send(peer, wire::Moved{s->id, s->outgoing->target(), s->epoch, snapshot(*s)});
        return;
      }
      if (!again) claimed_by(*s, peer, m.epoch);
      if (relay) {
        if (!known) cancel_outgoing(*s, wire::Cause::kWrongTarget);
        lend_to(*s, peer);
        return;
      }
      if (again && s->stopping) return;  // the step is ending; the status follows
      s->relay_to.reset();
      if (!known || s->outgoing->attempt() != m.attempt) {
        // A preparation that is over here: go on as if the target had asked for everything.
        cancel_outgoing(*s, wire::Cause::kWithdrawn);
        wire::RetrieveUeContextRequest all;
        all.session = m.session;
        all.epoch = m.epoch;
        all.next_index = m.next_index;
        all.resume_token = s->params.resume_token;
        if (const auto* record = peers_[peer].compatibility) all.compatibility = *record;
        handle(peer, all);
        return;
      }
      if (s->outgoing->claim(m.epoch)) freeze(*s);
      return;
    }
    case Role::kFrozen:
      if (s->outgoing && s->outgoing->target() == peer && s->outgoing->attempt() == m.attempt) {
        s->epoch = m.epoch;
        s->holder = peer;
        s->leaving->claim_received.first(ports.clock->now());
        s->outgoing->claim(m.epoch);
        return;
      }
      break;
    case Role::kFinished: {
      s->epoch = m.epoch;
      s->holder = peer;
      wire::SnStatusTransfer status;
      status.session = s->id;
      status.epoch = m.epoch;
      status.attempt = m.attempt;
      status.ids = s->log.copy(0, s->log.size());
      status.token_hash = s->log.hash(s->log.size());
      status.lineage = s->lineage;
      status.finish = s->finish;
      status.has_kv = false;
      status.by = config.name;
      ports.peers->send(peer, std::move(status));
      return;
    }
    case Role::kPreparing:
      if (m.relay && s->incoming && s->incoming->attempt().counter != 0 &&
          !s->incoming->plan().relay) {
        decode_for(*s, peer, m.epoch);
        return;
      }
      break;
    case Role::kArriving:
      if (m.relay && s->relay_to == peer) {  // asked again
        tell_relay(*s);
        return;
      }
      break;
    case Role::kMirror:
    case Role::kRelaying:
    case Role::kRetained:
    case Role::kMoved:
      break;
  }
  wire::Moved moved;
  moved.session = s->id;
  moved.node = s->elsewhere;
  moved.epoch = s->epoch;
  if (!s->doubtful) moved.snapshot = snapshot(*s);
  ports.peers->send(peer, std::move(moved));
}

// Ends the running step or chunk; on_paused tells where.
void Node::Impl::stop_engine(Session& s) {
  if (s.shadowing) return;  // a single step: it ends by itself
  if (std::exchange(s.stopping, true)) return;
  if (s.decoding) {
    ports.engine->pause(*s.slot);
  } else {
    ports.engine->abort(*s.slot);
  }
}

// Ends the step that runs, then frozen() answers the claim. A target that follows takes the same
// step: where it has come as far, it gets the session at once, and what comes of the step here is
// dropped.
void Node::Impl::freeze(Session& s) {
  if (s.decoding || s.prefilling) {
    stop_engine(s);
    if (s.prefilling || !s.outgoing->target_is_level()) return;
    s.discards = true;
  }
  frozen(s);
}

void Node::Impl::on_paused(engine::SlotId slot, TokenPosition front) {
  Session* s = find(slot);
  if (s == nullptr) return;
  s->front = front;
  s->decoding = false;
  s->prefilling = false;
  if (std::exchange(s->discards, false)) trim_kv(*s);
  if (!std::exchange(s->stopping, false)) return;
  if (s->back_fill && s->back_fill->pausing) return part_ended(*s);
  using State = session::SourceHandover::State;
  if (s->outgoing && s->outgoing->state() == State::kClaimed) {
    frozen(*s);
  } else if (s->role == Role::kServing) {
    if (s->outgoing && s->executing) {
      frozen(*s);  // completed: the status goes out before the claim
    } else {
      start_serving(*s, next_due(*s));  // the reason to stop went away meanwhile
    }
  }
}

void Node::Impl::frozen(Session& s) {
  s.leaving->step_ended.first(ports.clock->now());
  drop_held(s);
  s.role = Role::kFrozen;
  s.elsewhere = s.outgoing->target();
  s.lease.cancel();
  s.outgoing->on_paused(s.front, s.finish, s.slot.has_value(), next_due(s));
  keep_frozen(s);
}

// Counted from the last sign that the target makes progress (rule 4). While rows wait for their
// turn on a link that carries others', it is not the target that is late.
void Node::Impl::keep_frozen(Session& s) {
  arm(s.loan, config.frozen, s, [this](Session& live) {
    if (live.role != Role::kFrozen) return;
    if (waits_for_link(live)) return keep_frozen(live);
    end_move(live, MoveState::kFailed, "the target never released the session");
    become_moved(live, live.elsewhere);
  });
}

bool Node::Impl::waits_for_link(const Session& s) const {
  if (!s.slot || !s.outgoing || s.outgoing->wanted_bytes() == 0) return false;
  const auto peer = peers_.find(s.outgoing->target());
  return peer != peers_.end() && peer->second.up &&
         ports.clock->now() - peer->second.rows_sent_at < config.frozen;
}

// The session is not this node's to give any more. What was never claimed leaves no report.
void Node::Impl::close_departure(Session& s) {
  if (config.report_phases && s.leaving && s.leaving->claim_received.happened()) {
    DepartureReport r;
    r.session = s.id;
    r.epoch = s.epoch;
    r.id = s.id.value + ":" + std::to_string(s.epoch.value);
    r.scheme = s.outgoing ? s.outgoing->plan().scheme : std::string(scheme_->name());
    r.source = config.name;
    r.target = s.holder;
    r.prepared = s.leaving->acknowledged.happened();
    r.relay = s.relay_to.has_value();
    r.tokens_total = s.front;
    r.bytes = s.outgoing ? s.outgoing->bytes_sent() : 0;
    r.phases = s.leaving.value();
    departures.push_back(std::move(r));
    if (departures.size() > config.max_handover_reports) departures.erase(departures.begin());
  }
  s.leaving.reset();
}

Duration Node::Impl::next_due(const Session& s) const {
  if (s.params.max_token_rate <= 0 || s.log.generated() == 0) return Duration{0};
  const Duration interval = to_duration(Seconds(1 / s.params.max_token_rate));
  return std::max(s.last_sampled + interval - ports.clock->now(), Duration{0});
}

void Node::Impl::handle(const NodeId& peer, wire::UeContextRelease& m) {
  // Always acknowledged: the other side repeats it until then.
  ports.peers->send(peer, wire::UeContextReleaseAck{m.session, m.epoch});
  Session* s = find(m.session);
  if (s == nullptr || s->role != Role::kFrozen) return;
  if (!s->outgoing || s->outgoing->target() != peer || m.epoch < s->epoch) return;
  ++stats_.executions_successful;
  s->leaving->released.set(ports.clock->now());
  end_move(*s, MoveState::kCompleted);
  close_departure(*s);
  s->epoch = m.epoch;
  s->holder = peer;
  s->outgoing->on_released();
  s->outgoing.reset();
  s->elsewhere = peer;
  retain(*s, config.retain);
}

void Node::Impl::handle(const NodeId& peer, wire::HandoverCancelAck& m) {
  Session* s = find(m.session);
  if (s == nullptr || !s->outgoing || s->outgoing->attempt() != m.attempt ||
      s->outgoing->target() != peer) {
    return;
  }
  s->outgoing->on_cancel_acknowledged();
  if (s->outgoing->state() == session::SourceHandover::State::kOver) s->outgoing.reset();
}

// The UE arrived at `peer` without a preparation there.
void Node::Impl::handle(const NodeId& peer, wire::RetrieveUeContextRequest& m) {
  const auto refuse = [&](wire::Cause cause, std::string why) {
    ports.peers->send(peer,
                      wire::RetrieveUeContextFailure{m.session, m.epoch, cause, std::move(why)});
  };
  Session* s = find(m.session);
  // A wrong token is answered like an unknown session: ids cannot be probed.
  if (s == nullptr || s->params.resume_token != m.resume_token) {
    refuse(wire::Cause::kUnknownSession, "session: not known here");
    return;
  }
  if (m.stop) {  // a stop wins whatever its epoch: the token is what entitles to it
    end_everywhere(*s);
    refuse(wire::Cause::kFinished, "session: stopped");
    return;
  }
  if (stale(*s, m.epoch, peer)) {
    answer_stale(*s, peer);
    return;
  }

  const bool frozen_here = s->role == Role::kFrozen && s->slot.has_value();
  if (s->role != Role::kServing && s->role != Role::kFinished && !frozen_here) {
    wire::Moved moved{s->id, s->elsewhere, s->epoch, std::nullopt};
    if (!s->doubtful) moved.snapshot = snapshot(*s);
    ports.peers->send(peer, std::move(moved));
    // The UE that was attached here has gone on; whoever asks fetches the session where it is.
    const NodeId where = s->elsewhere;
    if (s->role == Role::kArriving || s->role == Role::kRelaying) fence(*s, m.epoch, peer);
    if (!where.value.empty()) s->elsewhere = where;
    return;
  }
  if (s->role != Role::kFinished) {
    auto compatible =
        engine::check_compatible(ports.engine->info().compatibility, from_wire(m.compatibility));
    if (!compatible) {
      refuse(wire::Cause::kIncompatible, compatible.error().message);
      return;
    }
  }
  // What it decodes on is of no use elsewhere: whoever takes it over has the ids.
  const bool on_part = s->back_fill != nullptr;
  if (on_part) release_slot(*s);
  const bool again = s->holder == peer && s->epoch == m.epoch;
  const NodeId previous = s->holder;
  const bool fence_previous = frozen_here && previous != peer && previous != config.name;
  if (!again) claimed_by(*s, peer, m.epoch);
  ++stats_.retrievals;
  if (fence_previous) ports.peers->send(previous, wire::StaleEpoch{s->id, s->epoch, peer});

  s->leaving->response_sent.first(ports.clock->now());
  wire::RetrieveUeContextResponse response;
  response.session = s->id;
  response.epoch = m.epoch;
  response.compatibility = to_wire(ports.engine->info().compatibility);
  response.source_front = s->slot ? s->front : 0;
  if (s->role == Role::kFinished) {
    response.attempt = Attempt{config.name, boot, ++attempt_counter_};
    response.snapshot = snapshot(*s);
    ports.peers->send(peer, std::move(response));
    close_departure(*s);
    return;
  }
  using State = session::SourceHandover::State;
  const bool usable = s->outgoing && s->outgoing->target() == peer &&
                      s->outgoing->state() != State::kOver &&
                      s->outgoing->state() != State::kCancelling;
  if (usable && s->outgoing->plan().relay && !frozen_here) {
    // The pull crossed our offer to relay: that is the answer, under an attempt of its own, since
    // the offer's may have been taken for a preparation.
    response.plan = s->outgoing->plan();
    response.snapshot = snapshot(*s);
    response.attempt = Attempt{config.name, boot, ++attempt_counter_};
    ports.peers->send(peer, std::move(response));
    lend_to(*s, peer);
    return;
  }
  if (!usable) {
    if (!frozen_here) cancel_outgoing(*s, wire::Cause::kWrongTarget);
    auto input = plan_input(*s, peer, Duration{0}, true);
    if (m.prefill_rate > 0) {
      input.prefill_rate = TokensPerSecond(m.prefill_rate);
      input.common = common_split(*s, peer, m.prefill_rate);
    }
    const plan::Decision decision = decide_pull(input, on_part);
    if (decision.plan.relay && !frozen_here) {
      response.plan = decision.plan;
      response.snapshot = snapshot(*s);
      response.attempt = Attempt{config.name, boot, ++attempt_counter_};
      ports.peers->send(peer, std::move(response));
      lend_to(*s, peer);
      return;
    }
    make_outgoing(*s, peer, decision.plan);
    const bool held = m.tokens_known <= s->log.size() && m.kv_front <= m.tokens_known &&
                      s->log.hash(m.tokens_known) == m.token_hash && m.lineage == s->lineage;
    s->outgoing->begin_retrieved(m.epoch, held ? m.kv_front : 0);
  }
  response.attempt = s->outgoing->attempt();
  response.plan = s->outgoing->plan();
  response.snapshot = snapshot(*s);
  ports.peers->send(peer, std::move(response));
  s->relay_to.reset();  // whom it decoded for until now
  const bool status_out = s->outgoing->state() == State::kSynced;
  if (s->outgoing->claim(m.epoch) && !status_out) freeze(*s);
}

void Node::Impl::on_exported(engine::SlotId slot, kv::TokenRange range, kv::Bytes rows) {
  Session* s = find(slot);
  if (s == nullptr || !s->outgoing) return;
  stats_.kv_bytes_sent += rows.size();
  peers_[s->outgoing->target()].rows_sent_at = ports.clock->now();
  s->outgoing->on_exported(range, std::move(rows));
  move_on(*s);
}

}  // namespace pallas::node
