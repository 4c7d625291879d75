// Moves by an operator's order (node/move.h). The order stands in for the radio: until the target
// has caught up it counts as a prediction, then as `execution`, and the end of the UE's stream is
// what sends the UE there. Everything after that is the handover that it always is.

#include <algorithm>
#include <utility>

#include "node/impl.h"

namespace pallas::node {

namespace {

// A prediction that outlives the order by this much, so that none expires under it.
constexpr Duration kBeyond = std::chrono::seconds(1);
// So many times its planned window a preparation may take, and that second.
constexpr int kPatience = 2;

std::string quoted(const NodeId& node) {
  return "'" + node.value + "'";
}

void fill_in(const plan::Decision& decision, TokenPosition context, MoveReport& report) {
  report.scheme = decision.plan.scheme;
  report.relay = decision.plan.relay;
  report.context = context;
  const bool sends = decision.plan.order != wire::SendOrder::kNothing;
  const auto computed = static_cast<TokenPosition>(decision.expected_recomputed);
  report.split = std::min(context, sends ? std::max(decision.plan.send_begin, computed) : context);
  report.recomputed = decision.expected_recomputed;
  report.bytes = decision.expected_bytes;
  report.window_s = decision.window.count();
  report.interruption_s = decision.expected_sit.count();
}

}  // namespace

std::string_view to_string(MoveState state) {
  switch (state) {
    case MoveState::kPlanned:
      return "planned";
    case MoveState::kPreparing:
      return "preparing";
    case MoveState::kExecuting:
      return "executing";
    case MoveState::kCompleting:
      return "completing";
    case MoveState::kCompleted:
      return "completed";
    case MoveState::kFailed:
      return "failed";
  }
  return "unknown";
}

bool Node::Impl::prepares_move(const Session& s) {
  return s.move && s.move->report.state == MoveState::kPreparing;
}

// Whoever cannot be told where to go, or could not follow, stays.
Status Node::Impl::client_follows(const Session& s) const {
  if (!s.resumable) {
    return fail(Errc::kOutOfOrder,
                "session: its client did not opt in to resume and cannot follow; it ends here");
  }
  if (!s.stream) return fail(Errc::kOutOfOrder, "session: its UE is not attached");
  return {};
}

Status Node::Impl::may_move(const Session& s, const NodeId& target) const {
  if (target == config.name) return fail(Errc::kInvalidArgument, "target: is this gNB itself");
  const auto peer = peers_.find(target);
  if (peer == peers_.end()) {
    return fail(Errc::kInvalidArgument,
                "target: " + quoted(target) + " is no peer of this gNB, or was never up");
  }
  if (s.role == Role::kFinished) return fail(Errc::kOutOfOrder, "session: it has ended");
  if (s.role != Role::kServing && s.role != Role::kArriving) {
    const bool known = !s.elsewhere.value.empty() && s.elsewhere != config.name;
    return fail(Errc::kNotOwner, "session: it is not decoded here" +
                                     (known ? ", but at " + quoted(s.elsewhere) : std::string()));
  }
  if (s.role == Role::kArriving || s.back_fill) {
    return fail(Errc::kOutOfOrder, "session: it is still arriving here");
  }
  if (s.executing || (s.outgoing && s.outgoing->claim_epoch().value != 0)) {
    return fail(Errc::kAlreadyExists, "session: a handover is under way");
  }
  if (s.relay_to) {
    return fail(Errc::kOutOfOrder, "session: " + quoted(*s.relay_to) + " relays it");
  }
  if (auto follows = client_follows(s); !follows) return follows;
  if (!peer->second.up || !ports.peers->is_up(target)) {
    return fail(Errc::kUnreachable, "target: the link to " + quoted(target) + " is down");
  }
  if (peer->second.compatibility != nullptr) {
    const auto& ours = ports.engine->info().compatibility;
    const auto theirs = from_wire(*peer->second.compatibility);
    if (auto ok = engine::check_compatible(ours, theirs); !ok) return ok;
    const std::string differs = engine::why_not_exact(ours, theirs);
    if (s.params.consistency == wire::Consistency::kExact && !differs.empty()) {
      return fail(Errc::kIncompatible, "consistency exact: " + differs + " differs");
    }
  }
  if (!may_ask(s, target)) {
    return fail(Errc::kResourceExhausted, "target: " + quoted(target) + " refused a moment ago");
  }
  return {};
}

// What the scheme would do if it were told in time, which an order can be.
plan::Decision Node::Impl::plan_move(const Session& s, const NodeId& target) {
  auto input = plan_input(s, target, config.t_max, false);
  input.sigma.reset();  // of the radio's prediction; an order is certain
  input.confidence.reset();
  const Seconds window = scheme_->decide(input).window;
  if (window <= Seconds(0)) {
    input.at_handover = true;
    input.remaining = Seconds(0);
    input.common = common_split(s, target, prefill_rate_at(target, s));
  } else {
    input.remaining = window;
  }
  plan::Decision decision = scheme_->decide(input);
  decision.window = window;
  return decision;
}

Result<MoveReport> Node::Impl::move(const MoveOrder& order) {
  Session* s = find(order.session);
  if (s == nullptr) return fail(Errc::kNotFound, "session: not known here");
  if (s->move && !order.dry_run) {
    if (s->move->report.target == order.target) return *moved(s->move->report.id);
    return fail(Errc::kAlreadyExists,
                "session: a move to " + quoted(s->move->report.target) + " is under way");
  }
  if (auto may = may_move(*s, order.target); !may) return Failure(may.error());
  const TimePoint now = ports.clock->now();
  MoveReport report;
  report.session = s->id;
  report.source = config.name;
  report.target = order.target;
  report.ordered_at = now;
  const plan::Decision decision = plan_move(*s, order.target);
  fill_in(decision, s->log.size() - 1, report);
  if (order.dry_run) return report;

  ++stats_.moves_ordered;
  report.id = s->id.value + ".m" + std::to_string(++move_counter_);
  report.state = MoveState::kPreparing;
  s->move = std::make_unique<Move>(*ports.clock);
  s->move->report = report;
  s->move->forecast.target = order.target;
  s->move->forecast.at = now + to_duration(decision.window);
  s->move->forecast.valid_until = now + config.move + kBeyond;
  if (decision.window <= Seconds(0)) {
    tell_to_go(*s);
  } else {
    // Some plans leave work for after the handover, so "caught up" may never come.
    const Duration planned = kPatience * to_duration(decision.window) + kBeyond;
    arm(s->move->latest, std::min(config.move, planned), *s,
        [this](Session& live) { move_is_late(live); });
    const bool prepared = s->outgoing && s->outgoing->target() == order.target &&
                          s->outgoing->state() != session::SourceHandover::State::kCancelling;
    if (!prepared) {
      s->plan_again.cancel();
      start_preparation(*s, order.target, decision.plan, to_duration(decision.window), false);
    }
    announce(*s, order.target);
    move_on(*s);
  }
  return *moved(report.id);
}

// Prepared as far as it is, or not at all.
void Node::Impl::move_is_late(Session& s) {
  if (s.outgoing && s.outgoing->acknowledged()) return tell_to_go(s);
  const Duration left = s.move->report.ordered_at + config.move - ports.clock->now();
  if (left > Duration{0}) {
    arm(s.move->latest, left, s, [this](Session& live) { move_is_late(live); });
    return;
  }
  end_move(s, MoveState::kFailed, s.move->report.target.value + " did not answer in time");
  evaluate(s);
}

std::optional<MoveReport> Node::Impl::moved(const std::string& id) const {
  const Session* s = find(SessionId(id.substr(0, id.rfind('.'))));
  if (s != nullptr && s->move && s->move->report.id == id) {
    MoveReport report = s->move->report;
    report.phases = s->leaving.value();
    return report;
  }
  const auto ended = std::find_if(ended_moves_.rbegin(), ended_moves_.rend(),
                                  [&](const MoveReport& report) { return report.id == id; });
  if (ended == ended_moves_.rend()) return std::nullopt;
  return *ended;
}

// Called whenever the target may have caught up.
void Node::Impl::move_on(Session& s) {
  if (!prepares_move(s) || s.role != Role::kServing || !s.outgoing) return;
  if (s.outgoing->target() == s.move->report.target && s.outgoing->caught_up()) tell_to_go(s);
}

// The UE's stream ends with the name of the gNB that it has to go to. As after the radio's
// `execution`, decoding goes on here until the claim, or until `grace` is over.
void Node::Impl::tell_to_go(Session& s) {
  const NodeId target = s.move->report.target;
  if (auto follows = client_follows(s); !follows) {
    end_move(s, MoveState::kFailed, follows.error().message);
    evaluate(s);
    return;
  }
  s.move->latest.cancel();
  s.move->report.state = MoveState::kExecuting;
  s.move->report.told_at = ports.clock->now();
  s.leaving->ran_execution.set(ports.clock->now());
  s.executing = target;
  s.writing = false;
  s.plan_again.cancel();
  const bool prepared = s.outgoing && s.outgoing->target() == target &&
                        s.outgoing->state() != session::SourceHandover::State::kCancelling;
  if (!prepared) prepare_at_handover(s, target);
  drop_stream(s, target);
  begin_grace(s);
}

void Node::Impl::move_claimed(Session& s) {
  if (!s.move) return;
  MoveReport& report = s.move->report;
  if (s.holder != report.target) {
    end_move(s, MoveState::kFailed, "the UE went to " + s.holder.value);
    return;
  }
  s.move->latest.cancel();
  report.state = MoveState::kCompleting;
  report.handover = s.id.value + ":" + std::to_string(s.epoch.value);
}

// The first word about its end stands. Must come before close_departure(), which takes the phases.
void Node::Impl::end_move(Session& s, MoveState state, std::string reason) {
  if (!s.move) return;
  MoveReport report = std::move(s.move->report);
  s.move.reset();
  report.state = state;
  report.reason = std::move(reason);
  report.ended_at = ports.clock->now();
  report.phases = s.leaving.value();
  ++(state == MoveState::kCompleted ? stats_.moves_completed : stats_.moves_failed);
  ended_moves_.push_back(std::move(report));
  if (ended_moves_.size() > config.max_handover_reports) ended_moves_.pop_front();
}

}  // namespace pallas::node
