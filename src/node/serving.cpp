// The owner: takes requests, turns the engine's results into tokens of the stream.

#include <algorithm>
#include <utility>

#include "node/impl.h"

namespace pallas::node {

engine::SamplingParams sampling_of(const wire::SessionParams& params) {
  engine::SamplingParams s;
  s.temperature = params.temperature;
  s.top_p = params.top_p;
  s.top_k = params.top_k;
  s.min_p = params.min_p;
  s.repeat_penalty = params.repeat_penalty;
  s.presence_penalty = params.presence_penalty;
  s.frequency_penalty = params.frequency_penalty;
  s.penalty_last_n = params.penalty_last_n;
  s.seed = params.seed;
  s.min_tokens = params.min_tokens;
  s.ignore_eos = params.ignore_eos;
  s.grammar = params.grammar;
  s.logit_bias = params.logit_bias;
  return s;
}

// Refused early, so that nobody waits for what will not come.
Status Node::Impl::has_place(const OpenRequest& request) const {
  if (draining_) {
    return fail(Errc::kResourceExhausted, "this gNB is being drained: it takes no new sessions");
  }
  if (config.max_sessions_tenant == 0) return {};
  std::uint32_t live = 0;
  for (const auto& [slot, s] : by_slot_) {
    const bool here = s->role == Role::kServing || s->role == Role::kArriving;
    if (here && s->params.tenant == request.params.tenant) ++live;
  }
  if (live < config.max_sessions_tenant) return {};
  return fail(Errc::kRateLimited, "all " + std::to_string(config.max_sessions_tenant) +
                                      " sessions that one tenant may have are in use");
}

Status Node::Impl::open(OpenRequest request, StreamId stream) {
  const auto& info = ports.engine->info();
  if (request.prompt.empty()) return fail(Errc::kInvalidArgument, "prompt: it has no tokens");
  const auto prompt = static_cast<TokenPosition>(request.prompt.size());
  if (prompt >= info.context_tokens) {
    return fail(Errc::kContextExceeded, "prompt: " + std::to_string(prompt) +
                                            " tokens, the context has " +
                                            std::to_string(info.context_tokens));
  }
  if (request.params.max_tokens == 0)
    return fail(Errc::kInvalidArgument, "max_tokens: must be at least 1");
  if (find(request.session) != nullptr)
    return fail(Errc::kAlreadyExists, "session: that id is taken");
  if (auto place = has_place(request); !place) {
    ++stats_.opens_refused;
    return place;
  }
  if (!room_for_session()) {
    ++stats_.opens_refused;
    return fail(Errc::kResourceExhausted,
                "sessions: all " + std::to_string(config.max_sessions) + " places are taken");
  }
  session::TokenLog log(std::move(request.prompt));
  Session& s = emplace(request.session, std::move(request.params), std::move(log));
  if (auto reserved = ensure_slot(s, s.log.size() + s.params.max_tokens); !reserved) {
    ++stats_.opens_refused;
    erase(s);
    return reserved;
  }
  s.resumable = request.resumable;
  s.epoch = Epoch(1);
  s.holder = config.name;
  s.role = Role::kServing;
  set_stream(s, stream, 0);
  ++stats_.sessions_opened;
  start_serving(s, Duration{0});
  evaluate(s);
  return {};
}

engine::DecodeParams Node::Impl::decode_params(const Session& s, Duration first_due) const {
  engine::DecodeParams params;
  params.sampling = sampling_of(s.params);
  params.tokens = s.log.copy(0, s.log.size());
  params.prompt_tokens = s.log.prompt_tokens();
  params.last_position = last_position(s);
  params.max_token_rate = TokensPerSecond(s.params.max_token_rate);
  if (s.back_fill && s.back_fill->pace.value > 0) params.max_token_rate = s.back_fill->pace;
  params.first_due = first_due;
  params.awaited = s.report.has_value();
  return params;
}

TokenPosition Node::Impl::last_position(const Session& s) const {
  const std::uint64_t wanted = std::uint64_t{s.log.prompt_tokens()} + s.params.max_tokens - 1;
  return static_cast<TokenPosition>(std::min<std::uint64_t>(wanted, s.reserved));
}

// Prefills what is missing of the prompt, then decodes. The last id is always the input of a step.
void Node::Impl::start_serving(Session& s, Duration first_due) {
  drop_held(s);
  const TokenPosition end = s.log.size() - 1;
  if (s.front < end) {
    s.prefilling = true;
    ports.engine->prefill(*s.slot, s.front, s.log.copy(s.front, end));
    return;
  }
  s.prefilling = false;
  s.decoding = true;
  residents_until_ = TimePoint();
  if (s.report) s.arriving->decode_asked.first(ports.clock->now());
  ports.engine->decode(*s.slot, decode_params(s, first_due));
}

void Node::Impl::sync_text(Session& s) {
  while (s.texts.size() < s.log.generated()) {
    const auto index = static_cast<TokenIndex>(s.texts.size());
    auto out = s.assembler.push(ports.text->piece(s.log.generated_at(index)));
    s.texts.push_back(out.text);
  }
}

// The ids are no longer those that the text was made of, or nobody needs it here: it is made anew
// when it is needed.
void Node::Impl::forget_text(Session& s) {
  s.assembler = session::TextAssembler(s.params.stop);
  s.texts = {};
}

void Node::Impl::on_prefilled(engine::SlotId slot, TokenPosition front, Duration busy) {
  Session* s = find(slot);
  if (s == nullptr) return;
  if (fills(*s, slot)) return computed_whole(*s, front, busy);
  const TokenPosition before = s->front;
  s->front = front;
  resident_ = true;
  if (s->incoming) {
    const TokenPosition computed = front - std::min(before, front);
    stats_.tokens_recomputed += computed;
    s->arriving->prefill.ended(ports.clock->now(), computed, busy);
    s->incoming->on_front(front, busy);
    after_target(*s);
    return;
  }
  if (s->outgoing) s->outgoing->on_front(front);
  if (s->prefilling && !s->stopping && front + 1 == s->log.size()) start_serving(*s, Duration{0});
}

void Node::Impl::on_replayed(engine::SlotId slot, TokenPosition front, Duration busy) {
  Session* s = find(slot);
  if (s != nullptr && fills(*s, slot)) return computed_whole(*s, front, busy);
  if (s == nullptr || !s->incoming) return;
  const TokenPosition computed = front - std::min(s->front, front);
  stats_.tokens_replayed += computed;
  s->arriving->replay.ended(ports.clock->now(), computed, busy);
  s->front = front;
  s->incoming->on_front(front, busy);
  after_target(*s);
}

void Node::Impl::on_attached(engine::SlotId slot, TokenPosition front) {
  Session* s = find(slot);
  if (s != nullptr && fills(*s, slot)) return computed_whole(*s, front, Duration{0});
  if (s == nullptr || !s->incoming) return;
  s->arriving->attaching().ended(ports.clock->now(), front - std::min(s->front, front));
  s->front = front;
  s->incoming->on_front(front, Duration{0});
  after_target(*s);
}

void Node::Impl::on_sampled(engine::SlotId slot, const engine::Sampled& token) {
  Session* s = find(slot);
  if (s != nullptr && s->shadowing) {
    shadowed(*s, token);
    return;
  }
  if (s == nullptr || !s->decoding || s->discards || s->finish != wire::FinishReason::kNone) return;
  if (token.position != s->log.size()) {
    fail_session(*s, Error{Errc::kInternal, "the engine sampled at an unexpected position"});
    return;
  }
  if (s->report) {
    const TimePoint now = ports.clock->now();
    s->arriving->first_step_begun.first(now - token.step);
    s->arriving->first_step_ended.first(now);
  }
  sampled(*s, token);
  if (s->back_fill) decoded_on_part(*s);
}

// The owner's next token.
void Node::Impl::sampled(Session& s, const engine::Sampled& token) {
  ++stats_.tokens_sampled;
  resident_ = true;
  s.log.append(token.id, config.name);
  s.front = token.position;
  s.last_sampled = ports.clock->now();

  auto out = s.assembler.push(ports.text->piece(token.id));
  s.texts.push_back(out.text);
  wire::FinishReason finish = wire::FinishReason::kNone;
  if (out.stop || token.end_of_generation) {
    finish = wire::FinishReason::kStop;
  } else if (token.limit) {
    finish = wire::FinishReason::kLength;
  }
  if (finish != wire::FinishReason::kNone) {
    finish_session(s, finish);
    return;
  }
  // The update leaves before the token is written (rule 5).
  tell_tokens(s);
  write_own(s);
  if (s.outgoing) s.outgoing->on_front(s.front);
  move_on(s);
}

// The handover is complete with the first of them that is written.
void Node::Impl::write_own(Session& s) {
  if (!write_wait(s)) note_first_token(s);
  pump_stream(s);
  if (s.report && !s.hold.armed()) close_report(s);
}

// Everybody who follows this session's ids learns the new ones.
void Node::Impl::tell_tokens(Session& s) {
  if (s.outgoing) s.outgoing->on_tokens(s.finish);
  if (s.relay_to) {
    wire::TokenUpdate update;
    update.session = s.id;
    update.epoch = s.epoch;
    update.first = s.log.size() - 1;
    update.ids = s.log.copy(update.first, s.log.size());
    update.by = config.name;
    update.finish = s.finish;
    ports.peers->send(*s.relay_to, std::move(update));
  }
  for (auto& [peer, told] : s.mirrors) {
    const bool follows = (s.outgoing && s.outgoing->target() == peer) || s.relay_to == peer;
    if (follows || !ports.peers->is_up(peer)) continue;
    if (told >= s.log.size() && s.finish == wire::FinishReason::kNone) continue;
    wire::TokenUpdate update;
    update.session = s.id;
    update.epoch = s.epoch;
    update.first = told;
    update.ids = s.log.copy(told, s.log.size());
    update.by = config.name;
    update.finish = s.finish;
    told = s.log.size();
    ports.peers->send(peer, std::move(update));
  }
}

// How long the next token is kept back, for the tokens in hand to be evenly apart. No longer than
// until one more has been sampled.
std::optional<Duration> Node::Impl::write_wait(const Session& s) const {
  const bool spreads = s.role == Role::kServing && s.finish == wire::FinishReason::kNone &&
                       s.next_to_write < s.spread_until && s.log.generated() <= s.spread_until;
  if (!spreads || !s.stream || !s.writing || !s.wrote) return std::nullopt;
  const Duration wait = s.last_write + s.spread - ports.clock->now();
  return wait > Duration{0} ? std::optional(wait) : std::nullopt;
}

void Node::Impl::pump_stream(Session& s) {
  if (!s.stream || !s.writing) return;
  const bool may_emit = s.role == Role::kServing || s.role == Role::kArriving ||
                        s.role == Role::kRelaying || s.role == Role::kFinished;
  if (!may_emit) return;
  sync_text(s);
  const TimePoint now = ports.clock->now();
  while (s.next_to_write < s.log.generated()) {
    if (const auto wait = write_wait(s)) {
      arm(s.hold, *wait, s, [this](Session& live) {
        if (live.role == Role::kServing) write_own(live);  // else it has gone on, or ended
      });
      return;
    }
    const TokenIndex i = s.next_to_write++;
    if (s.wrote && to_ms(now - s.last_write) > config.slo_ms) ++stats_.slo_misses;
    s.wrote = true;
    s.last_write = now;
    ++stats_.tokens_emitted;
    ports.ue->deliver(*s.stream,
                      TokenEvent{s.epoch, i, s.log.generated_at(i), s.texts[i], s.log.by(i)});
  }
  if (s.finish == wire::FinishReason::kNone) return;
  // A copy, so that a second attach gets the same tail.
  auto assembler = s.assembler;
  FinishEvent event;
  event.reason = s.finish;
  event.text = assembler.finish().text;
  event.prompt_tokens = s.log.prompt_tokens();
  event.completion_tokens = s.log.generated();
  const StreamId stream = *s.stream;
  by_stream_.erase(stream);
  s.stream.reset();
  ports.ue->finish(stream, event);
}

void Node::Impl::finish_session(Session& s, wire::FinishReason reason) {
  s.finish = reason;
  ++stats_.sessions_finished;
  end_move(s, MoveState::kFailed, "the session ended");
  const bool claimed =
      s.outgoing && s.outgoing->state() == session::SourceHandover::State::kClaimed;
  tell_tokens(s);
  release_slot(s);
  s.role = Role::kFinished;
  note_first_token(s);
  pump_stream(s);
  if (s.report) close_report(s);
  if (claimed) {
    s.outgoing->on_paused(0, reason, false, Duration{0});
    close_departure(s);
  } else {
    cancel_outgoing(s, wire::Cause::kFinished);
  }
  s.outgoing.reset();
  s.incoming.reset();
  s.relay_to.reset();
  s.grace.cancel();
  s.plan_again.cancel();
  arm_log_life(s);
}

void Node::Impl::fail_session(Session& s, const Error& error) {
  ++stats_.sessions_failed;
  end_move(s, MoveState::kFailed, error.describe());
  if (s.stream) {
    const StreamId stream = *s.stream;
    by_stream_.erase(stream);
    s.stream.reset();
    ports.ue->fail(stream, error);
  }
  cancel_outgoing(s, wire::Cause::kEngineFailed);
  s.outgoing.reset();
  if (s.role == Role::kRelaying) leave_lender(s.id, s.epoch, s.elsewhere);
  if (s.report) {
    s.report->error = error.describe();
    close_report(s);
  }
  become_mirror(s);
}

void Node::Impl::on_failed(engine::SlotId slot, const Error& error) {
  Session* s = find(slot);
  if (s == nullptr) return;
  const bool here = s->role == Role::kServing || s->role == Role::kArriving;
  const bool preparing = s->role == Role::kPreparing;
  const bool claimed = s->role == Role::kServing && s->outgoing &&
                       s->outgoing->state() == session::SourceHandover::State::kClaimed;
  release_slot(*s);
  if (claimed) {  // it was about to be given away: the ids are enough
    frozen(*s);
    return;
  }
  if (preparing) {
    const auto source = s->incoming->source();
    ports.peers->send(source,
                      wire::HandoverPreparationFailure{s->id, s->incoming->attempt(),
                                                       wire::Cause::kEngineFailed, error.message});
    become_mirror(*s);
    return;
  }
  if (!here) {
    become_moved(*s, s->elsewhere);
    return;
  }
  // The tokens are the truth: rebuild from them once, then give up with the engine's words.
  if (s->rebuilds >= 1) {
    fail_session(*s, error);
    return;
  }
  ++s->rebuilds;
  rebuild(*s);
}

// Own KV is gone; the session is computed anew here from its tokens.
void Node::Impl::rebuild(Session& s) {
  end_move(s, MoveState::kFailed, "the engine failed");
  cancel_outgoing(s, wire::Cause::kEngineFailed);
  s.outgoing.reset();
  s.incoming.reset();
  s.staged.clear();
  if (auto reserved = ensure_slot(s, s.log.prompt_tokens() + s.params.max_tokens); !reserved) {
    fail_session(s, reserved.error());
    return;
  }
  s.role = Role::kArriving;
  recover(s, "engine");
}

void Node::Impl::set_stream(Session& s, StreamId stream, TokenIndex next) {
  drop_stream(s, config.name);
  s.stream = stream;
  by_stream_[stream] = &s;
  s.next_to_write = next;
  s.writing = true;
  s.wrote = false;
  s.last_write = ports.clock->now();
  s.announced = NodeId();
  s.grace.cancel();
}

void Node::Impl::drop_stream(Session& s, const NodeId& next) {
  if (!s.stream) return;
  const StreamId stream = *s.stream;
  by_stream_.erase(stream);
  s.stream.reset();
  ports.ue->close(stream, next);
}

}  // namespace pallas::node
