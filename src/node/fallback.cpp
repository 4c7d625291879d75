// When the target cannot: who is prepared in its place, who decodes for a node that only relays,
// and what a target that is busy is worth.

#include <utility>

#include "node/impl.h"
#include "plan/partial.h"

namespace pallas::node {

// Sessions of this node whose preparation keeps that peer busy at this moment.
int Node::Impl::preparing_at(const PeerState& peer, const NodeId& name,
                             const Session& besides) const {
  using State = session::SourceHandover::State;
  int count = 0;
  for (const Session* s : peer.attempts) {
    if (s == nullptr || s == &besides || !s->outgoing || s->outgoing->target() != name) continue;
    const State state = s->outgoing->state();
    const bool over = state == State::kCancelling || state == State::kOver;
    if (!over && s->seen.unfinished && !s->outgoing->plan().relay) ++count;
  }
  return count;
}

bool Node::Impl::may_ask(const Session& s, const NodeId& target) const {
  const auto refused = s.refused_until.find(target);
  return ports.peers->is_up(target) &&
         (refused == s.refused_until.end() || refused->second <= ports.clock->now());
}

// Whom to prepare for a handover to `target`: the configured fallback where the target refuses.
// Once chosen it stays, or the target would be asked again and again meanwhile.
NodeId Node::Impl::prepared_for(const Session& s, const NodeId& target) const {
  if (has_stand_in(s, target)) return config.fallback;
  const bool possible = !config.fallback.value.empty() && config.fallback != config.name &&
                        config.fallback != target && may_ask(s, config.fallback);
  return possible && s.refused_until.contains(target) && !may_ask(s, target) ? config.fallback
                                                                             : target;
}

// The node that was prepared in place of `target` can take over.
bool Node::Impl::has_stand_in(const Session& s, const NodeId& target) const {
  using State = session::SourceHandover::State;
  if (s.stands_in_for != target || !s.outgoing || s.outgoing->target() == target) return false;
  const State state = s.outgoing->state();
  return state != State::kCancelling && state != State::kOver &&
         ports.peers->is_up(s.outgoing->target());
}

// For a UE that came to an unprepared cell. A source without KV only has ids to give; where all of
// the scheme's KV would take too long, a part comes first.
plan::Decision Node::Impl::decide_pull(const plan::PlanInput& input, bool without_kv) const {
  const auto decide = [&input](std::string_view name) {
    return (*plan::make_scheme(name))->decide(input);
  };
  if (without_kv) return decide("recompute");
  plan::Decision decision = scheme_->decide(input);
  const bool may = config.partial_fallback > Duration{0} && !decision.plan.relay;
  if (may && plan::partial_rescues(input, to_seconds(config.partial_fallback))) {
    return decide("partial");
  }
  return decision;
}

// Rule 14: the UE is at `peer`, which only relays; decoding goes on here.
void Node::Impl::lend_to(Session& s, const NodeId& peer) {
  const bool anew = s.relay_to != peer;
  s.relay_to = peer;
  ++stats_.relays;
  tell_relay(s);
  if (anew) {
    end_move(s, MoveState::kCompleted);  // as far as it can: it is relayed there
    close_departure(s);
    s.outgoing.reset();
    s.lease.cancel();
    s.elsewhere = peer;
    evaluate(s);
  }
}

// Everything that the relay may emit so far.
void Node::Impl::tell_relay(Session& s) {
  wire::TokenUpdate update;
  update.session = s.id;
  update.epoch = s.epoch;
  update.first = s.log.size();
  update.by = config.name;
  update.finish = s.finish;
  update.snapshot = snapshot(s);
  ports.peers->send(*s.relay_to, std::move(update));
}

// The UE is at `relay`, which refused to prepare; this node was prepared in its place. It takes the
// session over from the source as if the UE had come here, and the relay emits what it decodes.
void Node::Impl::decode_for(Session& s, const NodeId& relay, Epoch epoch) {
  s.epoch = epoch;
  s.holder = relay;
  s.relay_to = relay;
  s.lease.cancel();
  s.attached_at = ports.clock->now();
  s.hops = 0;
  s.role = Role::kArriving;
  ++stats_.relays;
  tell_relay(s);
  s.incoming->on_attach();
  arm_deadline(s);
  if (!ports.peers->is_up(s.incoming->source()) && !s.incoming->status_known()) {
    recover(s, "mirror");
    return;
  }
  claim(s);
  if (s.incoming->status_known()) watch_progress(s);
  after_target(s);
}

}  // namespace pallas::node
