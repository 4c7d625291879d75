// The UE attaches here: prepared, unprepared (pull), or with no source left (recovery); completion.

#include <algorithm>
#include <utility>

#include "node/impl.h"

namespace pallas::node {

namespace {

constexpr int kMaxHops = 4;       // Moved answers followed for one claim
constexpr int kMaxReleases = 25;  // then the source's own clock ends it

// The UE is here, and the source has not said yet where it stopped.
bool awaits_status(const Session& s) {
  return s.role == Role::kArriving && s.incoming && !s.incoming->status_known();
}

double ms_since(TimePoint from, TimePoint to) {
  return to_ms(to - from);
}

}  // namespace

// What a log ended with is not the end of another one. A stop is for all.
void Node::Impl::forget_end(Session& s) {
  if (!s.stopped) s.finish = wire::FinishReason::kNone;
}

// The ids from `end` on are not the session's, and the KV that was made of them is not either.
void Node::Impl::cut_log(Session& s, TokenPosition end) {
  s.log.truncate(end);
  s.staged.drop_from(end);
  forget_end(s);
  forget_text(s);
  if (s.incoming) {
    s.incoming->on_log_cut(end);
    s.front = s.incoming->front();
  } else if (s.shadowing || s.stopping) {
    release_slot(s);
  } else if (s.slot && s.front > end) {
    ports.engine->truncate(*s.slot, end);
    s.front = end;
  }
}

void Node::Impl::adopt_ids(Session& s, const UeContext& context, const NodeId& last_node) {
  const auto& ids = context.generated;
  const TokenPosition prompt = s.log.prompt_tokens();
  const TokenPosition same = s.log.agrees_until(prompt, ids);
  const TokenPosition ue_end = prompt + static_cast<TokenPosition>(ids.size());
  if (same < std::min(s.log.size(), ue_end)) {
    cut_log(s, same);  // they differ: the UE's ids win (rule 5)
  }
  if (s.log.size() < ue_end) {
    forget_end(s);
    TokenIndex index = 0;
    for (const auto& [node, count] : context.sampled_by) {
      for (std::uint32_t k = 0; k < count && index < ids.size(); ++k, ++index) {
        if (prompt + index >= s.log.size()) s.log.append(ids[index], node);
      }
    }
    for (; index < ids.size(); ++index) {
      if (prompt + index >= s.log.size()) s.log.append(ids[index], last_node);
    }
  }
  forget_text(s);
}

// The UE has ids that this owner's log does not: another node went on while the two could not talk.
bool Node::Impl::served_elsewhere(const Session& s, const UeContext& context) const {
  if (s.stopped) return false;
  const TokenPosition prompt = s.log.prompt_tokens();
  return s.log.agrees_until(prompt, context.generated) < prompt + context.generated.size();
}

// The UE's attachment before this one was here, as far as it says.
bool Node::Impl::was_here(const Session& s, const AttachRequest& request) const {
  const bool next = s.holder == config.name && request.epoch.value == s.epoch.value + 1;
  return next || request.last_node.value.empty() || request.last_node == config.name;
}

// The same without ids to compare: the UE's last tokens are more than this log has, or another
// node's, and nobody can say that they are those of the log here but that node, which told its ids
// to whom it prepared or mirrored.
bool Node::Impl::another_served(const Session& s, const AttachRequest& request) const {
  const NodeId& last = request.last_node;
  if (request.next_index == 0) return false;
  if (request.next_index > s.log.generated()) return true;
  if (was_here(s, request)) return s.doubtful;
  const bool told = (s.role == Role::kPreparing && s.incoming->source() == last) ||
                    (s.role == Role::kMirror && s.copy_of == last);
  return !told || request.epoch.value > s.epoch.value + 1;
}

// An answer to the question what the UE was given. False: it is not enough, and the UE was told to
// bring its ids.
bool Node::Impl::answers_doubt(Session& s, const wire::SessionSnapshot& snapshot) {
  if (!s.doubtful) return true;
  if (snapshot.tokens.size() < snapshot.prompt_tokens + std::size_t{s.next_to_write}) {
    ask_for_ids(s);
    return false;
  }
  s.doubtful = false;
  return true;
}

// Nobody could say what the UE was given: it has to (rule 5).
void Node::Impl::ask_for_ids(Session& s) {
  fail_session(s, Error{Errc::kInvalidArgument,
                        "ids: nobody here knows what the UE was given; send the session's ids"});
}

// What was decoded or ended here meanwhile is not the session any more: the UE's ids are (rule 5).
void Node::Impl::give_way(Session& s, const NodeId& to) {
  end_move(s, MoveState::kFailed, "the UE was served elsewhere");
  cancel_outgoing(s, wire::Cause::kWithdrawn);
  if (!to.value.empty() && to != config.name) s.elsewhere = to;
  s.finish = wire::FinishReason::kNone;
  become_mirror(s);
}

Status Node::Impl::attach(AttachRequest request, StreamId stream) {
  Session* s = find(request.session);
  if (takes_nothing(s)) {
    return fail(Errc::kResourceExhausted, "this gNB is being drained: it takes no sessions");
  }
  if (s == nullptr) {
    if (!request.context)
      return fail(Errc::kNotFound, "session: not known here; attach with its context");
    if (request.context->prompt.empty())
      return fail(Errc::kInvalidArgument, "prompt: it has no tokens");
    if (request.context->prompt.size() + request.context->generated.size() >
        ports.engine->info().context_tokens) {
      return fail(Errc::kContextExceeded, "ids: more than the context here");
    }
    if (!room_for_session()) {
      return fail(Errc::kResourceExhausted, "sessions: all places are taken");
    }
    s = &emplace(request.session, request.context->params,
                 session::TokenLog(request.context->prompt));
    s->params.resume_token = request.resume_token;
    become_mirror(*s);
  }
  if (s->params.resume_token != request.resume_token) {
    return fail(Errc::kNotFound, "session: not known here");
  }
  if (request.epoch <= s->epoch) {
    ++stats_.stale_epochs;
    return fail(Errc::kStaleEpoch, "epoch: " + std::to_string(request.epoch.value) +
                                       ", the current one is " + std::to_string(s->epoch.value));
  }
  if (request.context && request.next_index > request.context->generated.size()) {
    return fail(Errc::kInvalidArgument, "next_index: above the ids that came with it");
  }
  const bool brings_ids = request.context.has_value();
  if (s->role == Role::kServing || s->role == Role::kFinished) {
    if (request.context && served_elsewhere(*s, *request.context)) {
      give_way(*s, request.last_node);
    } else {
      request.context.reset();  // its own log is what the UE's came from
    }
  }
  const bool doubtful = !brings_ids && another_served(*s, request);
  if (doubtful) {
    const bool waits = s->role == Role::kArriving || s->role == Role::kRelaying;
    const bool asks =
        s->role == Role::kRetained || s->role == Role::kMirror || s->role == Role::kMoved ||
        (s->role == Role::kFrozen && s->outgoing && s->outgoing->claim_epoch().value != 0);
    const bool again = was_here(*s, request);
    const NodeId& knows = again ? s->elsewhere : request.last_node;
    if (!(waits && again) && !(asks && ports.peers->is_up(knows))) {
      return fail(Errc::kInvalidArgument,
                  "ids: what the UE was given elsewhere is not known here; send the session's ids");
    }
  }
  const TokenPosition known = s->log.size();
  if (request.context) adopt_ids(*s, *request.context, request.last_node);
  const bool went_on_elsewhere = s->log.size() != known;
  s->doubtful = doubtful;
  if (doubtful) {  // nothing is written until somebody has said what came next
    if (!was_here(*s, request)) s->elsewhere = request.last_node;
    const TokenPosition has = s->log.prompt_tokens() + request.next_index;
    if (s->log.size() > has) cut_log(*s, has);
    if (!s->incoming) release_slot(*s);  // KV of ids that may not be the UE's
  }

  s->epoch = request.epoch;
  s->holder = config.name;
  s->resumable = true;
  set_stream(*s, stream, request.next_index);
  s->attached_at = ports.clock->now();
  s->hops = 0;
  if (s->move && !prepares_move(*s)) {
    end_move(*s, MoveState::kFailed, "the UE came back here");
  }
  if (s->leaving && s->leaving->handover_began()) close_departure(*s);  // it came back

  const bool lent = s->relay_to.has_value();
  s->relay_to.reset();  // in any role: the UE is here
  switch (s->role) {
    case Role::kServing:
      s->executing.reset();
      if (s->outgoing && s->outgoing->state() == session::SourceHandover::State::kClaimed) {
        // Claimed, but back before the step ended: the claim is stale now.
        ports.peers->send(s->outgoing->target(), wire::StaleEpoch{s->id, s->epoch, config.name});
        s->outgoing.reset();
      }
      pump_stream(*s);
      evaluate(*s);
      return {};
    case Role::kFinished:
      pump_stream(*s);
      return {};
    case Role::kFrozen:
      if (s->outgoing && s->outgoing->claim_epoch().value == 0 && !went_on_elsewhere && s->slot) {
        // The radio said that the UE had left, but it came back before anybody claimed it.
        s->outgoing->cancel(wire::Cause::kWithdrawn);
        s->outgoing.reset();
        s->loan.cancel();
        s->executing.reset();
        s->role = Role::kServing;
        pump_stream(*s);
        if (!s->stopping) start_serving(*s, next_due(*s));  // else when the step has ended
        return {};
      }
      s->outgoing.reset();
      [[fallthrough]];
    case Role::kRetained:
    case Role::kMirror:
    case Role::kMoved:
      open_report(*s, request);
      pull(*s, s->elsewhere.value.empty() ? request.last_node : s->elsewhere);
      return {};
    case Role::kPreparing:
      open_report(*s, request);
      s->lease.cancel();
      if (s->incoming->plan().relay) {
        s->incoming.reset();
        s->role = Role::kRelaying;
        pump_stream(*s);
        claim(*s);
        return {};
      }
      s->role = Role::kArriving;
      if (s->finish != wire::FinishReason::kNone) {  // it ended before the UE came
        arrived_finished(*s);
        return {};
      }
      pump_stream(*s);
      s->incoming->on_attach();
      arm_deadline(*s);
      if (!ports.peers->is_up(s->incoming->source()) && !s->incoming->status_known()) {
        recover(*s, "mirror");
        return {};
      }
      if (!s->incoming->status_known()) {
        claim(*s);
      } else {
        claim(*s);  // the source learns the epoch even where its status came early
        watch_progress(*s);
      }
      after_target(*s);
      return {};
    case Role::kArriving:
      if (lent) open_report(*s, request);  // decoding for another gNB needed none here
      if (s->incoming && !s->incoming->status_known()) claim(*s);
      pump_stream(*s);
      return {};
    case Role::kRelaying:
      pump_stream(*s);
      claim(*s);
      return {};
  }
  return {};
}

void Node::Impl::open_report(Session& s, const AttachRequest& request) {
  if (s.role != Role::kPreparing && s.role != Role::kArriving) s.arriving->restart();
  s.arriving->attached.set(s.attached_at);
  HandoverReport report;
  report.session = s.id;
  report.epoch = request.epoch;
  report.id = s.id.value + ":" + std::to_string(request.epoch.value);
  report.source = s.incoming ? s.incoming->source() : s.elsewhere;
  if (report.source.value.empty()) report.source = request.last_node;
  report.target = config.name;
  report.scheme = scheme_->name();
  report.load_s = resident_ ? 0 : ports.engine->info().profile.load.count();
  if (s.incoming) {
    report.fraction_at_attach = s.incoming->fraction();
  } else if (s.front > 0) {
    report.fraction_at_attach = std::min(1.0, s.front / (s.log.size() - 1.0));
  }
  s.fraction = report.fraction_at_attach;
  if (s.role == Role::kPreparing && s.incoming) {
    report.prepared = true;
    const auto& plan = s.incoming->plan();
    report.scheme = plan.scheme;
    report.relay = plan.relay;
    report.oracle = plan.oracle;
    report.window_s = plan.window_s;
    report.expected_sit_s = plan.expected_sit_s;
    report.load_s = s.load.count();
    if (s.requested_at) report.request_ms = ms_since(s.attached_at, *s.requested_at);
    if (s.met_at) {
      report.fronts_met_ms = ms_since(s.attached_at, *s.met_at);
      report.early_s = to_seconds(s.attached_at - *s.met_at).count();
    }
  }
  s.report = std::move(report);
}

void Node::Impl::claim(Session& s) {
  const bool relay = s.role == Role::kRelaying;
  const NodeId source = relay ? s.elsewhere : s.incoming->source();
  if (!relay && s.incoming->attempt().counter == 0) {
    pull(s, source);
    return;
  }
  wire::HandoverSuccess success;
  success.session = s.id;
  success.epoch = s.epoch;
  if (!relay) success.attempt = s.incoming->attempt();
  success.next_index = s.next_to_write;
  success.relay = relay;
  s.arriving->claim_sent.first(ports.clock->now());
  ports.peers->send(source, std::move(success));
  await_source(s, source);
}

// Asks again until an answer comes, and goes on alone when none does.
void Node::Impl::await_source(Session& s, const NodeId& source) {
  arm(s.repeat, config.repeat, s, [this, source](Session& live) {
    const bool waiting = awaits_status(live) || live.role == Role::kRelaying;
    if (waiting && ports.peers->is_up(source)) claim(live);
  });
  if (s.watch.armed()) return;
  arm(s.watch, config.peer_answer, s, [this](Session& live) {
    if (awaits_status(live) || live.role == Role::kRelaying) recover(live, "ue");
  });
}

void Node::Impl::watch_progress(Session& s) {
  s.progress_at = ports.clock->now();
  await_progress(s);
}

void Node::Impl::await_progress(Session& s) {
  arm(s.watch, kStall, s, [this](Session& live) {
    if (live.role != Role::kArriving || !live.incoming) return;
    if (waits_for_turn(live.incoming->source(), live.progress_at)) return await_progress(live);
    live.incoming->on_source_lost();
    after_target(live);
  });
}

// A source may be busy with others whose turn comes before: queueing is no stall. They end; and a
// source that goes on without this session for so long has none of it any more.
bool Node::Impl::waits_for_turn(const NodeId& source, TimePoint since) const {
  const TimePoint now = ports.clock->now();
  const auto peer = peers_.find(source);
  return peer != peers_.end() && now - peer->second.rows_at < kStall && now - since < config.frozen;
}

void Node::Impl::pull(Session& s, const NodeId& from) {
  s.repeat.cancel();
  if (s.shadowing && !step_input_holds(s)) release_slot(s);
  const auto reserved = ensure_slot(s, s.log.prompt_tokens() + s.params.max_tokens);
  s.loan.cancel();
  s.log_life.cancel();
  const bool reachable = !from.value.empty() && from != config.name && ports.peers->is_up(from);
  if (!reserved) {
    if (!reachable) {
      fail_session(s, reserved.error());
      return;
    }
    // No room to compute: let the owner go on and relay (design.md, "target infeasible").
    s.incoming.reset();
    s.elsewhere = from;
    s.role = Role::kRelaying;
    pump_stream(s);
    claim(s);
    return;
  }
  // A chunk of a preparation that was cancelled, or whose source was another, still runs in it.
  const bool other = s.incoming && s.incoming->source() != from;
  if (s.stopping || (other && s.incoming->busy() && !s.shadowing)) {
    release_slot(s);
    if (auto again = ensure_slot(s, s.log.prompt_tokens() + s.params.max_tokens); !again) {
      fail_session(s, again.error());
      return;
    }
  }
  s.role = Role::kArriving;
  pump_stream(s);
  if (!reachable) {
    recover(s, "ue");
    return;
  }
  if (!s.incoming || s.incoming->source() != from) {
    // Nothing is computed before the plan is known: it says who computes what.
    kv::TransferPlan undecided;
    undecided.order = kv::SendOrder::kHighestFirst;
    begin_incoming(s, from, Attempt{}, undecided, s.lineage, true);
    s.incoming->on_attach();
  }
  wire::RetrieveUeContextRequest request;
  request.session = s.id;
  request.epoch = s.epoch;
  request.next_index = s.next_to_write;
  request.tokens_known = s.log.size();
  request.token_hash = s.log.hash(s.log.size());
  request.kv_front = s.front;
  request.lineage = s.lineage;
  request.compatibility = to_wire(ports.engine->info().compatibility);
  request.resume_token = s.params.resume_token;
  request.prefill_rate = ports.engine->info().profile.prefill_rate(0, s.log.size()).value;
  s.arriving->retrieve_sent.first(ports.clock->now());
  ports.peers->send(from, std::move(request));
  await_source(s, from);
}

// The UE stays attached here while `owner` decodes (rule 14).
void Node::Impl::become_relay(Session& s, const NodeId& owner) {
  s.incoming.reset();
  release_slot(s);
  s.role = Role::kRelaying;
  s.elsewhere = owner;
  if (s.report) s.report->relay = true;
  pump_stream(s);
}

void Node::Impl::handle(const NodeId& peer, wire::RetrieveUeContextResponse& m) {
  Session* s = find(m.session);
  if (s == nullptr || s->role != Role::kArriving || !s->incoming || m.epoch != s->epoch ||
      s->incoming->source() != peer || s->incoming->status_known()) {
    // It answers what was asked in a former life, or for a UE that has left.
    const bool relays = s != nullptr && s->role == Role::kRelaying && s->elsewhere == peer;
    if (m.plan.relay && !relays) leave_lender(m.session, m.epoch, peer);
    return;
  }
  if (s->incoming->attempt() == m.attempt) return;  // the answer to a repeated question
  s->arriving->response_received.first(ports.clock->now());
  const auto& info = ports.engine->info();
  const auto theirs = from_wire(m.compatibility);
  if (auto ok = engine::check_compatible(info.compatibility, theirs); !ok) {
    fail_session(*s, ok.error());
    return;
  }
  if (!merge_snapshot(*s, m.snapshot)) {
    recover(*s, "ue");
    return;
  }
  if (!answers_doubt(*s, m.snapshot)) return;
  if (s->report) {
    s->report->scheme = m.plan.scheme;
    s->report->recovery = "retrieved";
    s->report->relay = m.plan.relay;
    s->report->expected_sit_s = m.plan.expected_sit_s;
  }
  s->watch.cancel();
  if (m.snapshot.finish != wire::FinishReason::kNone) {
    // What ended there may be another continuation than the UE's, which goes on. A stop is for all.
    const bool same = s->log.size() == m.snapshot.tokens.size() &&
                      s->log.agrees_until(0, m.snapshot.tokens) == s->log.size();
    if (!same && m.snapshot.finish != wire::FinishReason::kCancelled) {
      recover(*s, "ue");
      return;
    }
    s->finish = m.snapshot.finish;
    arrived_finished(*s);
    return;
  }
  if (m.plan.relay) {
    become_relay(*s, peer);
    await_source(*s, peer);
    return;
  }
  const bool exact = engine::why_not_exact(info.compatibility, theirs).empty();
  if (m.snapshot.lineage != s->lineage && s->front > 0 && !s->incoming->busy()) {
    ports.engine->truncate(*s->slot, 0);
    s->front = 0;
    begin_incoming(*s, peer, m.attempt, m.plan, m.snapshot.lineage, exact);
    s->incoming->on_attach();
  }
  s->lineage = m.snapshot.lineage;
  s->incoming->adopt_plan(m.attempt, m.plan, m.snapshot.lineage, exact);
  arm_deadline(*s);
  pump_stream(*s);
  await_source(*s, peer);
  after_target(*s);
}

void Node::Impl::handle(const NodeId& peer, wire::RetrieveUeContextFailure& m) {
  Session* s = find(m.session);
  if (s == nullptr) return;
  const bool arriving = s->role == Role::kArriving && s->incoming &&
                        s->incoming->source() == peer && !s->incoming->status_known();
  const bool relaying = s->role == Role::kRelaying && s->elsewhere == peer;
  if (!arriving && !relaying) return;
  switch (m.cause) {
    case wire::Cause::kIncompatible:
      fail_session(*s, Error{Errc::kIncompatible, m.message});
      return;
    case wire::Cause::kFinished:
      s->finish = wire::FinishReason::kCancelled;
      arrived_finished(*s);
      return;
    default:
      recover(*s, "ue");
  }
}

void Node::Impl::handle(const NodeId& peer, wire::Moved& m) {
  Session* s = find(m.session);
  if (s == nullptr) return;
  const bool arriving = s->role == Role::kArriving && s->incoming &&
                        s->incoming->source() == peer && !s->incoming->status_known();
  const bool relaying = s->role == Role::kRelaying && s->elsewhere == peer;
  if (!arriving && !relaying) return;
  if (m.epoch > s->epoch) {  // before its ids are taken: an epoch is not this UE's for being known
    wire::StaleEpoch stale{m.session, m.epoch, m.node};
    handle(peer, stale);
    return;
  }
  // Without ids: it was in doubt itself, and gave the UE nothing.
  if (m.snapshot && m.snapshot->params.resume_token == s->params.resume_token) {
    merge_snapshot(*s, *m.snapshot);
    if (!answers_doubt(*s, *m.snapshot)) return;
    pump_stream(*s);
  }
  s->elsewhere = m.node;
  if (m.node.value.empty() || m.node == config.name || ++s->hops > kMaxHops ||
      !ports.peers->is_up(m.node)) {
    recover(*s, "mirror");
    return;
  }
  if (relaying) {
    claim(*s);
  } else {
    pull(*s, m.node);
  }
}

void Node::Impl::handle(const NodeId& peer, wire::StaleEpoch& m) {
  Session* s = find(m.session);
  if (s == nullptr || s->role == Role::kFinished) return;
  // Whoever does not know the holder of an epoch that this node has tells nothing new.
  const bool other = !m.node.value.empty() && m.node != config.name;
  const bool newer = m.current > s->epoch || (m.current == s->epoch && other);
  // Only the relay itself can say that it is none any more.
  if (!newer || (s->relay_to == m.node && peer != m.node)) return;
  // A node that only prepares holds nothing that could be stale; the source's attempt decides.
  if (s->role == Role::kPreparing) return;
  fence(*s, m.current, m.node);
}

// Somebody attached the UE later: this node neither emits nor computes any more.
void Node::Impl::fence(Session& s, Epoch epoch, const NodeId& node) {
  end_move(s, MoveState::kFailed, "the UE went to " + node.value);
  close_departure(s);
  s.epoch = std::max(s.epoch, epoch);
  s.holder = node;
  if (!node.value.empty() && node != config.name) s.elsewhere = node;
  drop_stream(s, node);
  s.report.reset();
  s.repeat.cancel();
  s.watch.cancel();
  if (s.back_fill) release_slot(s);
  const bool computes = s.decoding || s.prefilling || (s.incoming && s.incoming->busy());
  s.incoming.reset();
  s.outgoing.reset();
  s.relay_to.reset();
  if (s.role == Role::kServing || s.role == Role::kArriving) {
    if (computes && s.slot) stop_engine(s);
    retain(s, config.flap);
  } else if (s.role == Role::kRelaying) {
    become_moved(s, s.elsewhere);
  }
}

void Node::Impl::handle(const NodeId&, wire::ErrorMessage&) {}

void Node::Impl::handle(const NodeId& peer, wire::SnStatusTransfer& m) {
  Session* s = find(m.session);
  if (s == nullptr || !s->incoming || s->incoming->source() != peer) return;
  const bool finished = m.finish != wire::FinishReason::kNone;
  if (s->incoming->attempt() != m.attempt && !finished) return;
  if (s->incoming->status_known()) return;
  if (s->role == Role::kPreparing) renew_incoming(*s);
  s->repeat.cancel();
  s->watch.cancel();
  s->due = ports.clock->now() + std::chrono::microseconds(m.next_due_us);
  s->arriving->status_received.first(ports.clock->now());
  if (s->report) s->report->status_ms = ms_since(s->attached_at, ports.clock->now());
  s->incoming->on_status(m);
  if (finished) {
    if (!ends_with(*s, m.first, m.ids, m.finish)) {
      if (s->role == Role::kArriving) recover(*s, "ue");
      return;
    }
    s->finish = m.finish;
    if (s->role == Role::kArriving) arrived_finished(*s);
    return;
  }
  if (s->role != Role::kArriving) {
    after_target(*s);
    return;
  }
  pump_stream(*s);
  watch_progress(*s);
  after_target(*s);
}

// A session that ended elsewhere with these ids ends so here: this log has no others. A stop is for
// all.
bool Node::Impl::ends_with(const Session& s, TokenPosition first, std::span<const TokenId> ids,
                           wire::FinishReason finish) {
  if (finish == wire::FinishReason::kCancelled) return true;
  const TokenPosition end = first + static_cast<TokenPosition>(ids.size());
  return s.log.size() == end && s.log.agrees_until(first, ids) == end;
}

// The session had ended before it came here: only its tail is left to deliver (rule 9).
void Node::Impl::arrived_finished(Session& s) {
  if (s.incoming && s.incoming->attempt().counter != 0) {
    ports.peers->send(s.incoming->source(),
                      wire::UeContextRelease{s.id, s.epoch, s.incoming->attempt()});
  }
  s.incoming.reset();
  s.repeat.cancel();
  s.watch.cancel();
  release_slot(s);
  s.role = Role::kFinished;
  note_first_token(s);
  pump_stream(s);
  if (s.report) {
    s.report->exact = true;
    close_report(s);
  }
  arm_log_life(s);
}

// No source will help: what is missing is computed here from the tokens.
void Node::Impl::recover(Session& s, const char* from) {
  if (s.doubtful) return ask_for_ids(s);
  ++stats_.recoveries;
  s.repeat.cancel();
  s.watch.cancel();
  if (!s.slot) {
    if (auto reserved = ensure_slot(s, s.log.prompt_tokens() + s.params.max_tokens); !reserved) {
      fail_session(s, reserved.error());
      return;
    }
  }
  s.role = Role::kArriving;
  if (s.report) s.report->recovery = from;
  if (!s.incoming) {
    kv::TransferPlan alone;
    alone.scheme = std::string(scheme_->name());
    begin_incoming(s, NodeId(), Attempt{}, alone, s.lineage, true);
    s.incoming->on_attach();
  }
  s.incoming->on_source_lost();
  pump_stream(s);
  after_target(s);
}

void Node::Impl::after_target(Session& s) {
  if (!s.incoming) return;
  const TimePoint now = ports.clock->now();
  s.front = s.incoming->front();
  count_shadow(s);
  note_fraction(s);
  if (!s.met_at && s.incoming->fronts_met()) {
    s.met_at = now;
    s.arriving->fronts_met.set(now);
  }
  const NodeId& source = s.incoming->source();
  if (!source.value.empty() && s.incoming->attempt().counter != 0 && !s.incoming->plan().relay &&
      !s.incoming->source_lost() && ports.peers->is_up(source)) {
    ports.peers->send(source, s.incoming->progress());
  }
  using State = session::TargetHandover::State;
  const State state = s.incoming->state();
  if (s.role == Role::kArriving && (state == State::kComplete || state == State::kOnPart)) {
    activate(s);
  }
}

// The fraction is constant between the moments at which something was covered: what was seen last
// before the deadline was so at it, and no clock has to be set.
void Node::Impl::note_fraction(Session& s) {
  if (!s.report || s.report->fraction_at_deadline) return;
  const TimePoint deadline = s.attached_at + config.fraction_deadline;
  if (ports.clock->now() > deadline) s.report->fraction_at_deadline = s.fraction;
  s.fraction = s.incoming->fraction();
}

void Node::Impl::count(HandoverReport& r, const session::TargetHandover::Counts& counts) {
  r.tokens_recomputed = counts.recomputed;
  r.tokens_replayed = counts.replayed;
  r.tokens_received = counts.received;
  r.tokens_overlap = counts.overlap;
  r.residual_tokens = counts.residual;
  r.bytes = counts.bytes;
  r.shadow_tokens = counts.shadow_tokens;
  r.shadow_agreed = counts.shadow_agreed;
  r.shadow_differed = counts.shadow_differed;
}

// The session goes on here: with all its KV, or with a part of it for now.
void Node::Impl::activate(Session& s) {
  const TimePoint now = ports.clock->now();
  const bool on_part = s.incoming->state() == session::TargetHandover::State::kOnPart;
  (on_part ? s.arriving->part_attached : s.arriving->covered).set(now);
  const std::vector<session::ShadowToken> shadow = s.incoming->take_shadow();
  const auto& counts = s.incoming->counts();
  if (s.report) {
    HandoverReport& r = *s.report;
    count(r, counts);
    r.tokens_total = s.front;
    if (!on_part) r.covered_ms = ms_since(s.attached_at, now);
    r.exact = !counts.inexact && !on_part;
    if (!r.fraction_at_deadline) r.fraction_at_deadline = on_part ? s.fraction : 1;
  }
  stats_.kv_blocks_refused += counts.blocks_refused;
  // Rows computed in an unproven class differ from what another node would compute (rule 3).
  if (counts.inexact) s.lineage = Lineage(random_() | 1);
  s.release_to = s.incoming->source();
  s.release_attempt = s.incoming->attempt();
  s.partial.cancel();
  if (on_part) {
    begin_back_fill(s);
  } else {
    s.incoming.reset();
    s.staged.clear();
  }
  s.watch.cancel();
  s.repeat.cancel();
  s.role = Role::kServing;
  s.executing.reset();
  if (const auto finish = finish_of(s); finish != wire::FinishReason::kNone) {
    finish_session(s, finish);
    return;
  }
  if (!shadow.empty()) {
    go_on_with(s, shadow);
  } else {
    trim_kv(s);
    start_serving(s, std::max(s.due - ports.clock->now(), Duration{0}));
  }
  if (s.relay_to) {
    // Taken over for a relay: no UE here, so no first token completes it.
    tell_relay(s);
    send_release(s);
  }
  if (s.back_fill) {
    back_filled(s);  // perhaps nothing more will come
  } else {
    evaluate(s);
  }
}

// A session that ended with its last known id, though nobody said so (its source is gone).
wire::FinishReason Node::Impl::finish_of(Session& s) {
  sync_text(s);
  if (s.assembler.stopped()) return wire::FinishReason::kStop;
  const TokenIndex generated = s.log.generated();
  if (generated > 0 && !s.params.ignore_eos && generated > s.params.min_tokens &&
      ports.text->is_end_of_generation(s.log.generated_at(generated - 1))) {
    return wire::FinishReason::kStop;
  }
  if (generated >= s.params.max_tokens || s.log.size() > s.reserved) {
    return wire::FinishReason::kLength;
  }
  return wire::FinishReason::kNone;
}

// Before it is written: afterwards the UE may have it before the clock is read.
void Node::Impl::note_first_token(Session& s) {
  if (s.report) s.arriving->first_token_written.first(ports.clock->now());
}

// The first own token is out: the handover is complete, and the source may free.
void Node::Impl::close_report(Session& s) {
  if (s.report->error.empty()) note_first_token(s);
  const Mark& written = s.arriving->first_token_written;
  s.report->first_token_ms =
      ms_since(s.attached_at, written.happened() ? written.at() : ports.clock->now());
  send_release(s);
  if (config.report_phases) s.report->phases = std::move(s.arriving);
  s.arriving.reset();
  reports.push_back(std::move(*s.report));
  s.report.reset();
  if (reports.size() > config.max_handover_reports) reports.erase(reports.begin());
}

void Node::Impl::send_release(Session& s) {
  if (s.back_fill) return;  // its rows are still wanted
  if (s.release_to.value.empty() || s.release_attempt.counter == 0) return;
  if (s.report) s.arriving->release_sent.first(ports.clock->now());
  ports.peers->send(s.release_to, wire::UeContextRelease{s.id, s.epoch, s.release_attempt});
  if (++s.releases > kMaxReleases || s.role != Role::kServing) return;
  arm(s.repeat, config.repeat, s, [this](Session& live) { send_release(live); });
}

void Node::Impl::handle(const NodeId& peer, wire::UeContextReleaseAck& m) {
  Session* s = find(m.session);
  if (s == nullptr || s->release_to != peer || s->role != Role::kServing) return;
  s->release_to = NodeId();
  s->releases = 0;
  s->repeat.cancel();
  for (auto report = reports.rbegin(); report != reports.rend(); ++report) {
    if (report->session != s->id || report->epoch != m.epoch) continue;
    report->release_ack_ms = ms_since(s->attached_at, ports.clock->now());
    if (report->phases) report->phases->release_acknowledged.set(ports.clock->now());
    break;
  }
}

}  // namespace pallas::node
