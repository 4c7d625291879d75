// Shadow decoding at the target: session::TargetHandover says when a step is taken; here is whether
// the engine has time for it, and what becomes of a token that is there before the handover.

#include <algorithm>
#include <utility>

#include "node/impl.h"

namespace pallas::node {

// With `idle` nobody else may wait for this engine: no session that it serves, none that it still
// fills with KV. Sessions that are followed, too, do not count.
bool Node::Impl::may_follow(const Session& s) const {
  if (config.shadow != Shadow::kIdle) return config.shadow == Shadow::kAlways;
  return std::none_of(by_slot_.begin(), by_slot_.end(), [&s](const auto& entry) {
    const Session* other = entry.second;
    if (other == &s) return false;
    if (other->role == Role::kServing || other->role == Role::kArriving) return true;
    return other->role == Role::kPreparing && other->incoming && !other->incoming->follows() &&
           !other->incoming->fronts_about_to_meet();
  });
}

// Smoothed over a few: one late id is no pace.
void Node::Impl::note_id(Session& s) {
  const TimePoint now = ports.clock->now();
  const Duration interval = now - std::exchange(s.last_id_at, now);
  s.id_interval = s.id_interval.count() == 0 ? interval : (3 * s.id_interval + interval) / 4;
}

session::Pace Node::Impl::pace(const Session& s) const {
  const auto others = std::count_if(by_slot_.begin(), by_slot_.end(), [&s](const auto& entry) {
    return entry.second != &s && (entry.second->decoding || entry.second->shadowing);
  });
  const auto batch = static_cast<std::uint32_t>(others) + 1;
  return {ports.clock->now() - s.last_id_at, s.id_interval,
          ports.engine->info().profile.decode_step(batch, s.front)};
}

// One step of an ordinary decode: the sampler and its state follow from the ids, as at any node.
void Node::Impl::decode_shadow(Session& s, std::vector<TokenId> ahead) {
  s.shadowing = true;
  s.arriving->shadow.started(ports.clock->now());
  engine::DecodeParams params = decode_params(s, Duration{0});
  params.tokens.insert(params.tokens.end(), ahead.begin(), ahead.end());
  s.step_input = params.tokens.back();
  params.last_position = static_cast<TokenPosition>(params.tokens.size());
  params.max_token_rate = {};  // the source's tokens set the pace
  ports.engine->decode(*s.slot, std::move(params));
}

void Node::Impl::shadowed(Session& s, const engine::Sampled& token) {
  s.shadowing = false;
  s.front = token.position;
  resident_ = true;
  ++stats_.shadow_tokens;
  if (!s.incoming) {
    // Nobody compares any more what the step was built upon with what the source sampled.
    const TokenPosition input = token.position - 1;
    if (input < s.log.size() && s.log.at(input) != s.step_input) {
      s.front = input;
      ports.engine->truncate(*s.slot, s.front);
    }
    trim_ahead(s);
    return;
  }
  s.arriving->shadow.ended(ports.clock->now(), 1, token.step);
  s.incoming->on_shadow({token.position, token.id, token.end_of_generation});
  after_target(s);
}

// The step that runs goes on from the session's own ids: its row may be used whoever compares.
bool Node::Impl::step_input_holds(const Session& s) const {
  return s.front < s.log.size() && s.log.at(s.front) == s.step_input;
}

// Rows above the known ids belong to ids that nobody has confirmed.
void Node::Impl::trim_ahead(Session& s) {
  if (!s.slot || s.shadowing || s.front <= s.log.size()) return;
  s.front = s.log.size();
  ports.engine->truncate(*s.slot, s.front);
}

void Node::Impl::count_shadow(Session& s) {
  const auto& counts = s.incoming->counts();
  stats_.shadow_agreed += counts.shadow_agreed - s.agreed_counted;
  stats_.shadow_differed += counts.shadow_differed - s.differed_counted;
  s.agreed_counted = counts.shadow_agreed;
  s.differed_counted = counts.shadow_differed;
}

// The session is here, and so are its next tokens. A reader with a max_token_rate gets the next one
// when it is due; without one, they are spread over the step that makes the one after them: that
// step is the first at a new place, and at once they would only make its gap longer.
void Node::Impl::go_on_with(Session& s, const std::vector<session::ShadowToken>& tokens) {
  ++stats_.shadow_used;
  if (s.report) s.report->shadow_used = true;
  const auto sampled_here = [&](const session::ShadowToken& token) {
    engine::Sampled next;
    next.position = token.position;
    next.id = token.id;
    next.end_of_generation = token.end_of_generation;
    next.limit = token.position >= last_position(s);
    return next;
  };
  if (s.params.max_token_rate <= 0) {
    const auto count = static_cast<TokenIndex>(tokens.size());
    s.spread_until = s.log.generated() + count;
    s.spread = to_duration(ports.engine->info().profile.decode_step(1, s.front) / (count + 1.0));
    for (const session::ShadowToken& token : tokens) {
      sampled(s, sampled_here(token));
      if (s.role != Role::kServing) return;  // it was the last one
    }
    start_serving(s, Duration{0});
    return;
  }
  s.held = sampled_here(tokens.front());
  if (s.front > s.held->position) {
    s.front = s.held->position;
    ports.engine->truncate(*s.slot, s.front);
  }
  const Duration wait = s.due - ports.clock->now();
  if (wait <= Duration{0}) {
    emit_held(s);
    return;
  }
  // As if the token before had been sampled here: who asks for the pace in the meantime.
  s.last_sampled = s.due - to_duration(Seconds(1 / s.params.max_token_rate));
  arm(s.hold, wait, s, [this](Session& live) { emit_held(live); });
}

void Node::Impl::emit_held(Session& s) {
  const engine::Sampled token = *s.held;
  s.held.reset();
  sampled(s, token);
  if (s.role != Role::kServing) return;  // it was the last one
  // The next one is due an interval later, and takes a step.
  const Duration step = to_duration(ports.engine->info().profile.decode_step(1, s.front));
  start_serving(s, std::max(next_due(s) - step, Duration{0}));
}

// Decoding goes on otherwise, or elsewhere: the token will be sampled again.
void Node::Impl::drop_held(Session& s) {
  if (!s.held) return;
  s.held.reset();
  s.hold.cancel();
  trim_kv(s);
}

// Without the token that a shadow sampled, the last id is the input of the next step again.
void Node::Impl::trim_kv(Session& s) {
  if (!s.slot || s.front < s.log.size()) return;
  s.front = s.log.size() - 1;
  ports.engine->truncate(*s.slot, s.front);
}

}  // namespace pallas::node
