// The target of a handover before the UE comes: requests, ids and rows of the source, leases.

#include <algorithm>
#include <utility>

#include "node/impl.h"
#include "node/target_port.h"

namespace pallas::node {

namespace {

wire::Cause cause_of(Errc code) {
  switch (code) {
    case Errc::kIncompatible:
      return wire::Cause::kIncompatible;
    case Errc::kContextExceeded:
      return wire::Cause::kContextExceeded;
    default:
      return wire::Cause::kNoResources;
  }
}

}  // namespace

// Loans of KV make room.
Result<engine::SlotId> Node::Impl::reserve_slot(TokenPosition tokens) {
  auto slot = ports.engine->reserve(tokens);
  while (!slot && slot.error().code == Errc::kResourceExhausted && evict_one_retained()) {
    slot = ports.engine->reserve(tokens);
  }
  return slot;
}

Status Node::Impl::ensure_slot(Session& s, TokenPosition tokens) {
  if (s.slot) return {};
  tokens = std::min(tokens, ports.engine->info().context_tokens);
  const auto slot = reserve_slot(tokens);
  if (!slot) return Failure(slot.error());
  s.slot = *slot;
  s.reserved = tokens;
  s.front = 0;
  s.decoding = s.stopping = s.discards = s.prefilling = s.shadowing = false;
  by_slot_[*slot] = &s;
  return {};
}

void Node::Impl::begin_incoming(Session& s, const NodeId& source, const Attempt& attempt,
                                const kv::TransferPlan& plan, Lineage lineage, bool exact) {
  const auto& info = ports.engine->info();
  session::TargetHandover::Setup setup;
  setup.session = s.id;
  setup.attempt = attempt;
  setup.source = source;
  setup.self = config.name;
  setup.plan = plan;
  setup.consistency = s.params.consistency;
  setup.exact_available = exact;
  setup.exact_generated_chunks = info.capabilities.exact_chunked_generated;
  setup.exact_single_step = info.capabilities.exact_single_step;
  setup.holes = info.capabilities.holes;
  setup.last_position = last_position(s);
  setup.run_tokens = std::max<TokenPosition>(2 * info.profile.chunk_tokens, 2);
  setup.block_tokens = info.geometry.block_tokens;
  setup.step = info.profile.decode_step(1, s.log.size());
  if (s.params.max_token_rate > 0) setup.interval = Seconds(1 / s.params.max_token_rate);
  setup.prefill_per_token =
      info.profile.prefill_time(0, s.log.size()) / static_cast<double>(s.log.size());
  setup.prefer_exact_wait = to_seconds(config.prefer_exact_wait);
  std::optional<BytesPerSecond> goodput = ports.peers->goodput(source);
  if (!goodput) goodput = config.initial_goodput;
  if (goodput && goodput->value > 0) {
    setup.row_wire = Seconds(static_cast<double>(info.geometry.bytes_per_token()) / goodput->value);
  }
  setup.lineage = lineage;
  if (!s.shadowing) trim_kv(s);
  s.target_port = std::make_unique<TargetPortOf>(*this, s, source);
  s.incoming = std::make_unique<session::TargetHandover>(std::move(setup), s.log, s.staged, s.front,
                                                         *s.target_port);
  if (s.shadowing) s.incoming->wait_for_step();
  s.agreed_counted = s.differed_counted = 0;
  s.last_id_at = ports.clock->now();
  s.id_interval = {};
  s.met_at.reset();
}

// How much of the KV that this session's slot holds belongs to `other`'s ids; none when the slot
// cannot be used as it is.
std::optional<TokenPosition> Node::Impl::usable_front(const Session& s,
                                                      const session::TokenLog& other,
                                                      Lineage lineage) const {
  if (!s.slot || s.stopping || s.decoding || s.prefilling) return std::nullopt;
  if (lineage != s.lineage) return std::nullopt;
  const TokenPosition same = s.log.agrees_until(0, other.ids());
  // The input of the step that runs must be the same, too.
  if (s.shadowing) {
    return same > s.front && step_input_holds(s) ? std::optional(s.front) : std::nullopt;
  }
  return std::min({s.front, same, other.size() - 1});
}

// Takes over what a peer knows of the session. False: the snapshot is not consistent.
bool Node::Impl::merge_snapshot(Session& s, const wire::SessionSnapshot& snapshot) {
  auto log =
      session::TokenLog::restore(snapshot.tokens, snapshot.prompt_tokens, snapshot.sampled_by);
  if (!log) return false;
  merge(s, snapshot, std::move(*log));
  return true;
}

// A later attachment than those that are known here; whose, its own words will say.
void Node::Impl::raise_epoch(Session& s, Epoch epoch) {
  if (epoch <= s.epoch) return;
  s.epoch = epoch;
  s.holder = NodeId();
}

// The same with the snapshot's ids as a log.
void Node::Impl::merge(Session& s, const wire::SessionSnapshot& snapshot, session::TokenLog log) {
  const TokenPosition same = s.log.agrees_until(0, log.ids());
  // The UE may have brought more ids than the snapshot has: they stay.
  bool extends = log.size() > s.log.size() || same < std::min(s.log.size(), log.size());
  // Nor is anything taken back that the UE, attached here, was given (rule 5).
  const bool attached = s.holder == config.name && s.stream.has_value() && !s.doubtful;
  const TokenPosition given = s.log.prompt_tokens() + (attached ? s.next_to_write : 0);
  if (same < std::min({given, s.log.size(), log.size()})) extends = false;
  if (extends) {
    take_over(s, snapshot, std::move(log));
    return;
  }
  s.params = snapshot.params;
  forget_text(s);
  s.resumable = true;
  raise_epoch(s, snapshot.epoch);
}

// The log is the snapshot's from now on: of ids that were known here besides, nobody knows whether
// they are the session's.
void Node::Impl::take_over(Session& s, const wire::SessionSnapshot& snapshot,
                           session::TokenLog log) {
  s.params = snapshot.params;
  s.staged.drop_from(s.log.agrees_until(0, log.ids()));
  s.log = std::move(log);
  s.doubtful = false;
  forget_end(s);
  forget_text(s);
  s.resumable = true;
  raise_epoch(s, snapshot.epoch);
}

void Node::Impl::handle(const NodeId& peer, wire::HandoverRequest& m) {
  const auto refuse = [&](wire::Cause cause, std::string why) {
    ++stats_.preparations_refused;
    ports.peers->send(
        peer, wire::HandoverPreparationFailure{m.session, m.attempt, cause, std::move(why)});
  };
  const auto& info = ports.engine->info();
  const auto theirs = from_wire(m.compatibility);
  if (auto ok = engine::check_compatible(info.compatibility, theirs); !ok) {
    refuse(wire::Cause::kIncompatible, ok.error().message);
    return;
  }
  const bool exact = engine::why_not_exact(info.compatibility, theirs).empty() &&
                     info.capabilities.exact_chunked_prompt && info.capabilities.exact_attach;
  if (!exact && m.snapshot.params.consistency == wire::Consistency::kExact) {
    refuse(wire::Cause::kConsistency,
           "consistency exact: " + engine::why_not_exact(info.compatibility, theirs) + " differs");
    return;
  }
  if (m.snapshot.tokens.size() > info.context_tokens) {
    refuse(wire::Cause::kContextExceeded, "tokens: more than the context here");
    return;
  }
  auto log = session::TokenLog::restore(m.snapshot.tokens, m.snapshot.prompt_tokens,
                                        m.snapshot.sampled_by);
  if (!log) {
    refuse(wire::Cause::kUnknown, log.error().message);
    return;
  }
  Session* s = find(m.session);
  if (takes_nothing(s)) {
    refuse(wire::Cause::kDraining, "this gNB is being drained");
    return;
  }
  if (!m.plan.relay && staged_bytes_ >= config.max_staged_bytes) {
    refuse(wire::Cause::kNoResources, "max_staged_bytes: received KV fills it");
    return;
  }
  bool busy = false;  // a command runs in the slot
  if (s != nullptr) {
    // The source has the UE under a later epoch than this node: the attachment here is of the past.
    const bool attached = s->role == Role::kArriving || s->role == Role::kRelaying;
    if (attached && m.snapshot.epoch > s->epoch) fence(*s, m.snapshot.epoch, peer);
    busy = s->incoming && s->incoming->busy() && !s->shadowing;
    if (s->role == Role::kRelaying && s->elsewhere == peer) {
      refuse(wire::Cause::kNoResources, "session: this gNB relays it already");
      return;
    }
    const bool ours = s->role == Role::kServing || s->role == Role::kRelaying;
    if (m.snapshot.epoch < s->epoch && s->role != Role::kArriving) {
      ++stats_.stale_epochs;
      ports.peers->send(peer, wire::StaleEpoch{m.session, s->epoch, s->holder});
      return;
    }
    if (ours && m.snapshot.epoch == s->epoch) {
      ports.peers->send(peer, wire::StaleEpoch{m.session, s->epoch, s->holder});
      return;
    }
    if (s->role == Role::kFinished) {
      refuse(wire::Cause::kFinished, "session: it has ended");
      return;
    }
    if (s->role == Role::kArriving) {
      // The request meets the UE's attach or a pull (rule 7): it joins, and the claim answers it.
      if (s->incoming && !s->incoming->status_known() && s->incoming->source() == peer) {
        merge(*s, m.snapshot, std::move(*log));
        if (!answers_doubt(*s, m.snapshot)) return;
        s->arriving->request_received.first(ports.clock->now());
        if (m.plan.relay) {
          become_relay(*s, peer);
          claim(*s);
          return;
        }
        s->incoming->adopt_plan(m.attempt, m.plan, m.snapshot.lineage, exact);
        arm_deadline(*s);
        claim(*s);
      }
      return;
    }
  } else {
    if (!room_for_session()) {
      refuse(wire::Cause::kNoResources, "sessions: all places are taken");
      return;
    }
    s = &emplace(m.session, m.snapshot.params, session::TokenLog(*log));
  }
  // Said twice: what came after it stays.
  const bool repeated = s->incoming && s->incoming->attempt() == m.attempt;
  s->incoming.reset();
  s->loan.cancel();
  // It may have been this node's a moment ago: what was to be sent of it then is of the past.
  close_departure(*s);
  s->outgoing.reset();
  s->relay_to.reset();
  s->executing.reset();
  s->grace.cancel();
  s->plan_again.cancel();
  drop_stream(*s, peer);
  drop_held(*s);
  // What an earlier preparation or service left here counts as far as its ids are the same.
  std::optional<TokenPosition> front;
  if (!busy) front = usable_front(*s, *log, m.snapshot.lineage);
  if (!front || m.plan.relay) release_slot(*s);
  if (repeated) {
    merge(*s, m.snapshot, std::move(*log));
  } else {
    take_over(*s, m.snapshot, std::move(*log));
  }
  if (!m.plan.relay) {
    const TokenPosition wanted = std::max<TokenPosition>(m.reserve_tokens, s->log.size());
    if (auto reserved = ensure_slot(*s, wanted); !reserved) {
      refuse(cause_of(reserved.error().code), reserved.error().message);
      become_mirror(*s);
      return;
    }
    if (front && *front < s->front) {
      ports.engine->truncate(*s->slot, *front);
      s->front = *front;
    }
  }
  s->role = Role::kPreparing;
  s->lineage = m.snapshot.lineage;
  s->elsewhere = peer;
  s->incoming_boot = peers_[peer].boot;
  s->requested_at = ports.clock->now();
  s->arriving->restart();
  s->arriving->request_received.set(*s->requested_at);
  s->load = resident_ ? Seconds(0) : info.profile.load;
  s->expected_at =
      ports.clock->now() + to_duration(Seconds(std::clamp(m.plan.expected_in_s, 0., 3600.)));
  s->log_life.cancel();
  begin_incoming(*s, peer, m.attempt, m.plan, m.snapshot.lineage, exact);
  renew_incoming(*s);
  wire::HandoverRequestAcknowledge ack;
  ack.session = m.session;
  ack.attempt = m.attempt;
  ack.lease_ms = static_cast<std::uint32_t>(to_ms(config.lease));
  ack.prefill_rate = info.profile.prefill_rate(0, s->log.size()).value;
  ack.exact = exact;
  ack.held = s->incoming->held().ranges;
  s->arriving->acknowledge_sent.set(ports.clock->now());
  ports.peers->send(peer, std::move(ack));
  s->incoming->advance();
  after_target(*s);
}

void Node::Impl::drop_preparation(Session& s, bool keep_kv) {
  if (s.role != Role::kPreparing) return;
  const bool idle = !s.incoming || !s.incoming->busy();
  if (!keep_kv) ++stats_.leases_expired;
  const NodeId source = s.incoming ? s.incoming->source() : NodeId();
  s.incoming.reset();
  s.lease.cancel();
  if (!keep_kv || !s.slot) {
    become_mirror(s);
    s.copy_of = source;
    return;
  }
  if (!idle) stop_engine(s);
  retain(s, config.flap);
}

void Node::Impl::handle(const NodeId& peer, wire::HandoverCancel& m) {
  Session* s = find(m.session);
  const bool ours = s != nullptr && s->incoming && s->incoming->attempt() == m.attempt &&
                    s->incoming->source() == peer;
  if (ours && s->role == Role::kArriving) {
    claim(*s);  // rule 6
    return;
  }
  ports.peers->send(peer, wire::HandoverCancelAck{m.session, m.attempt});
  if (!ours) return;
  if (s->finish != wire::FinishReason::kNone) {
    s->incoming.reset();
    s->lease.cancel();
    release_slot(*s);
    s->role = Role::kFinished;
    arm_log_life(*s);
    return;
  }
  drop_preparation(*s, true);
}

void Node::Impl::handle(const NodeId& peer, wire::LeaseRenew& m) {
  Session* s = find(m.session);
  if (s == nullptr || !s->incoming || s->incoming->attempt() != m.attempt || s->elsewhere != peer) {
    return;
  }
  s->expected_at = ports.clock->now() + std::chrono::milliseconds(m.expected_in_ms);
  if (s->role == Role::kPreparing) renew_incoming(*s);
}

void Node::Impl::handle(const NodeId& peer, wire::TokenUpdate& m) {
  Session* s = find(m.session);
  if (m.attempt) {
    if (s == nullptr || !s->incoming || s->incoming->attempt() != *m.attempt ||
        s->incoming->source() != peer) {
      return;
    }
    if (s->role == Role::kPreparing) renew_incoming(*s);
    if (!m.ids.empty()) note_id(*s);
    // A gap cannot be closed here; the link's resynchronization does.
    if (!s->incoming->on_tokens(m)) return;
    if (m.finish != wire::FinishReason::kNone && ends_with(*s, m.first, m.ids, m.finish)) {
      s->finish = m.finish;
      if (s->role == Role::kArriving) return arrived_finished(*s);
    }
    if (s->role == Role::kArriving) pump_stream(*s);
    after_target(*s);
    return;
  }
  if (s == nullptr) {
    if (!m.snapshot || !room_for_session()) return;
    auto log = session::TokenLog::restore(m.snapshot->tokens, m.snapshot->prompt_tokens,
                                          m.snapshot->sampled_by);
    if (!log) return;
    s = &emplace(m.session, m.snapshot->params, std::move(*log));
    become_mirror(*s);
  }
  // The UE was attached later than here, or its owner could not say so under that epoch.
  const bool live =
      s->role == Role::kRelaying || s->role == Role::kArriving || s->role == Role::kServing;
  if (live && m.epoch > s->epoch) {
    fence(*s, m.epoch, peer);
    become_mirror(*s);
  }
  const bool relays = s->role == Role::kRelaying && s->elsewhere == peer;
  // The UE was given its last tokens here, without the owner that was.
  const bool had_it =
      s->role == Role::kServing || (s->role == Role::kMirror && s->holder == config.name);
  if (m.epoch < s->epoch || (m.epoch == s->epoch && had_it)) {
    if (claims_from(*s, peer)) return;
    // An owner that was, or that decodes for a relay which this node is no more.
    ports.peers->send(peer, wire::StaleEpoch{m.session, s->epoch, s->holder});
    return;
  }
  if (!relays) {
    if (s->role == Role::kMirror) mirror(*s, peer, m);
    return;
  }
  if (m.snapshot) {
    merge_snapshot(*s, *m.snapshot);
    if (!answers_doubt(*s, *m.snapshot)) return;
  }
  if (s->doubtful) return;  // of what the UE was given it says nothing
  const bool others =
      m.snapshot && s->log.agrees_until(0, m.snapshot->tokens) <
                        std::min<std::size_t>(s->log.size(), m.snapshot->tokens.size());
  if (others || !take_ids(*s, m)) {
    // It decodes on other ids than the UE has.
    leave_lender(s->id, s->epoch, s->elsewhere);
    recover(*s, "ue");
    return;
  }
  if (m.first > s->log.size()) return;  // a gap: the next snapshot closes it
  if (ends_with(*s, m.first, m.ids, m.finish)) s->finish = m.finish;
  s->repeat.cancel();
  s->watch.cancel();
  if (s->report) {
    s->report->exact = true;
    close_report(*s);
  }
  if (s->finish != wire::FinishReason::kNone) {
    s->role = Role::kFinished;
    s->grace.cancel();
    arm_log_life(*s);
  }
  pump_stream(*s);
}

// New ids; false where they differ from those that are known. What they do not join to is left out.
bool Node::Impl::take_ids(Session& s, const wire::TokenUpdate& m) {
  for (std::size_t k = 0; k < m.ids.size(); ++k) {
    const TokenPosition p = m.first + static_cast<TokenPosition>(k);
    if (p < s.log.size() && s.log.at(p) != m.ids[k]) return false;
    if (p == s.log.size()) s.log.append(m.ids[k], m.by);
  }
  return true;
}

// No UE is here: the owner's word is all that counts.
void Node::Impl::mirror(Session& s, const NodeId& peer, const wire::TokenUpdate& m) {
  const bool newer = m.epoch > s.epoch;
  s.elsewhere = peer;
  raise_epoch(s, m.epoch);
  if (m.snapshot) {
    auto log = session::TokenLog::restore(m.snapshot->tokens, m.snapshot->prompt_tokens,
                                          m.snapshot->sampled_by);
    if (!log) return;
    // Said twice, or late: what came after it stays.
    const bool known =
        !newer && s.copy_of == peer && s.log.agrees_until(0, log->ids()) == log->size();
    if (!known) take_over(s, *m.snapshot, std::move(*log));
    s.copy_of = peer;
  } else if (s.copy_of != peer) {
    s.copy_of = NodeId();  // of the ids before these it has not told all
  }
  const TokenPosition before = s.log.size();
  if (!take_ids(s, m)) {
    cut_log(s, m.first);
    take_ids(s, m);
  } else if (s.log.size() != before) {
    forget_end(s);
  }
  if (m.first > s.log.size()) return;  // a gap: the next snapshot closes it
  const bool ended = m.finish != wire::FinishReason::kNone && s.copy_of == peer;
  if (ended && ends_with(s, m.first, m.ids, m.finish)) s.finish = m.finish;
  arm_log_life(s);  // anew
}

// Any frame that names the attempt renews its lease (rule 8).
void Node::Impl::renew_incoming(Session& s) {
  arm(s.lease, config.lease, s, [this](Session& live) { drop_preparation(live, false); });
}

void Node::Impl::on_kv(const NodeId& peer, const wire::KvBlock& header, kv::Bytes rows) {
  Session* s = find(header.session);
  stats_.kv_bytes_received += rows.size();
  const auto& geometry = ports.engine->info().geometry;
  if (s == nullptr) return;
  session::TargetHandover* const target = s->back_fill  ? s->back_fill->target.get()
                                          : s->incoming ? s->incoming.get()
                                                        : nullptr;
  if (target == nullptr || target->plan().relay) return;
  // Rows that find no room name the attempt, too.
  if (s->role == Role::kPreparing && target->attempt() == header.attempt) renew_incoming(*s);
  if (rows.size() != std::uint64_t{header.count} * geometry.bytes_per_token()) {
    ++stats_.kv_blocks_refused;
    ports.peers->send(peer, wire::ErrorMessage{Errc::kInvalidArgument,
                                               "KvBlock.payload_bytes: not count x bytes a token",
                                               header.session});
    return;
  }
  if (staged_bytes_ + rows.size() > config.max_staged_bytes ||
      s->staged.bytes() + rows.size() > config.max_staged_bytes_session) {
    ++stats_.kv_blocks_refused;
    return;  // what is missing later is rebuilt after kStall
  }
  const TimePoint came = ports.clock->now();
  peers_[peer].rows_at = came;
  if (auto taken = target->on_rows(header, std::move(rows)); !taken) {
    ++stats_.kv_blocks_refused;
    ports.peers->send(peer, wire::ErrorMessage{taken.error().code, taken.error().message, s->id});
    return;
  }
  if (s->back_fill) {
    rows_filled_in(*s, header.count);
    return;
  }
  s->arriving->receiving().ended(came, header.count);
  if (s->role == Role::kArriving && s->watch.armed() && s->incoming->status_known()) {
    watch_progress(*s);
  }
  after_target(*s);
}

}  // namespace pallas::node
