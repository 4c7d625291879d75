// Partial handover. Source: in which order positions matter. Target: the session decodes on a part
// of its KV while the rest comes (docs/decisions/0008); then the whole is built, in a second slot
// beside the first or in the same one, and the session goes on with it.

#include <algorithm>
#include <utility>

#include "node/impl.h"
#include "node/target_port.h"

namespace pallas::node {

namespace {

// The latest tokens that look back at the others, for the ordering that wants them.
constexpr TokenPosition kObserved = 16;
// Tokens that may be decoded before a ranking is begun.
constexpr TokenPosition kObservedSlack = 8;

}  // namespace

// --- source ---

// What the target can take says its Hello, and `exact` sessions never decode on a part (rule 15).
bool Node::Impl::may_be_partial(const Session& s, const NodeId& target) const {
  const auto peer = peers_.find(target);
  return peer != peers_.end() && peer->second.holes && ports.engine->info().capabilities.holes &&
         s.params.consistency != wire::Consistency::kExact;
}

void Node::Impl::ask_for_order(Session& s) {
  if (!s.slot) return;
  engine::RankRequest request;
  request.ordering = config.partial_ordering;
  request.seed = s.params.seed;
  if (request.ordering == engine::Ordering::kObservationWindow) {
    const TokenPosition used = s.log.size() + kObservedSlack;
    const TokenPosition room = s.reserved - std::min(s.reserved, used);
    const TokenPosition window = std::min({kObserved, room, s.log.size()});
    request.window = s.log.copy(s.log.size() - window, s.log.size());
    // Evaluated above the front, where this slot has no room for it.
    if (window == 0) request.ordering = engine::Ordering::kKeyDiff;
  }
  ports.engine->rank(*s.slot, std::move(request));
}

void Node::Impl::on_ranked(engine::SlotId slot, std::vector<double> scores) {
  Session* s = find(slot);
  if (s != nullptr && s->outgoing) s->outgoing->on_ranked(engine::by_importance(scores));
}

// --- target ---

void Node::Impl::arm_deadline(Session& s) {
  if (!s.incoming || !s.incoming->plan().partial()) return;
  const double deadline = s.incoming->plan().partial_deadline_s;
  if (deadline <= 0) return;
  const TimePoint at = s.attached_at + to_duration(Seconds(std::min(deadline, 3600.)));
  arm(s.partial, std::max(at - ports.clock->now(), Duration{0}), s, [this](Session& live) {
    if (!live.incoming) return;
    live.incoming->on_deadline();
    after_target(live);
  });
}

bool Node::Impl::fills(const Session& s, engine::SlotId slot) const {
  return s.back_fill && s.back_fill->slot == slot;
}

HandoverReport* Node::Impl::partial_report(Session& s, const BackFill& fill) {
  if (s.report && s.report->epoch == fill.epoch) return &*s.report;
  for (auto report = reports.rbegin(); report != reports.rend(); ++report) {
    if (report->session == s.id && report->epoch == fill.epoch) return &*report;
  }
  return nullptr;
}

TargetPhases* Node::Impl::partial_phases(Session& s, const BackFill& fill) {
  if (s.report && s.report->epoch == fill.epoch) return s.arriving.operator->();
  HandoverReport* report = partial_report(s, fill);
  return report != nullptr && report->phases ? report->phases.operator->() : nullptr;
}

// The session decodes from now on, and the machine that received its rows goes on receiving.
void Node::Impl::begin_back_fill(Session& s) {
  s.back_fill = std::make_unique<BackFill>();
  BackFill& fill = *s.back_fill;
  fill.port = std::move(s.target_port);
  fill.target = std::move(s.incoming);
  fill.begun_at = s.log.generated();
  fill.attached_at = s.attached_at;
  fill.epoch = s.report ? s.report->epoch : s.epoch;
  fill.refused_before = fill.target->counts().blocks_refused;
  ++stats_.partial_handovers;
  if (s.report) {
    const auto& counts = fill.target->counts();
    PartialReport partial;
    partial.positions = counts.part_positions;
    partial.fraction = static_cast<double>(counts.part_positions) / counts.part_of;
    s.report->partial = partial;
    s.arriving->partial_decode.started(ports.clock->now());
  }
  watch_back_fill(s);
}

// A source that sends nothing more for so long is not waited for.
void Node::Impl::watch_back_fill(Session& s) {
  s.progress_at = ports.clock->now();
  await_back_fill(s);
}

void Node::Impl::await_back_fill(Session& s) {
  arm(s.partial, kStall, s, [this](Session& live) {
    if (!live.back_fill || live.back_fill->slot || live.back_fill->pausing) return;
    const NodeId& source = live.back_fill->target->source();
    if (waits_for_turn(source, live.progress_at)) return await_back_fill(live);
    lose_back_fill_source(live);
  });
}

// What is missing is computed from the ids, in the same way.
void Node::Impl::lose_back_fill_source(Session& s) {
  ++stats_.recoveries;
  s.back_fill->target->on_source_lost();
  back_filled(s);
}

void Node::Impl::rows_filled_in(Session& s, TokenPosition count) {
  BackFill& fill = *s.back_fill;
  if (TargetPhases* phases = partial_phases(s, fill)) {
    phases->back_fill.ended(ports.clock->now(), count);
  }
  const NodeId& source = fill.target->source();
  if (ports.peers->is_up(source)) ports.peers->send(source, fill.target->progress());
  watch_back_fill(s);
  back_filled(s);
}

void Node::Impl::decoded_on_part(Session& s) {
  s.back_fill->target->advance();  // one more to replay
  back_filled(s);
}

void Node::Impl::computed_whole(Session& s, TokenPosition front, Duration busy) {
  BackFill& fill = *s.back_fill;
  const TokenPosition before = std::min(fill.target->front(), front);
  if (TargetPhases* phases = partial_phases(s, fill)) {
    phases->rebuild.ended(ports.clock->now(), front - before, busy);
  }
  if (*fill.slot == *s.slot) s.front = front;
  fill.target->on_front(front, busy);
  back_filled(s);
}

// Does what is next as soon as it can be done: a slot for the whole once all rows are here, the end
// of decoding on the part once the whole has caught up with it, the change over.
void Node::Impl::back_filled(Session& s) {
  BackFill& fill = *s.back_fill;
  if (!fill.slot && !fill.pausing && fill.target->may_fill()) {
    // What the slot had before the handover is in no other: it is completed in place.
    const bool beside = fill.target->held_whole() == 0;
    if (beside) {
      if (const auto slot = reserve_slot(s.reserved)) fill.slot = *slot;
    }
    if (!fill.slot) return stop_part(s);
    by_slot_[*fill.slot] = &s;
    build_in(s, *fill.slot, 0);
    slow_part(s);
  }
  if (fill.slot && !fill.pausing && fill.target->caught_up()) return stop_part(s);
  if (fill.target->state() == session::TargetHandover::State::kComplete) change_over(s);
}

void Node::Impl::build_in(Session& s, engine::SlotId slot, TokenPosition front) {
  if (TargetPhases* phases = partial_phases(s, *s.back_fill)) {
    phases->rebuild.started(ports.clock->now());
  }
  static_cast<TargetPortOf&>(*s.back_fill->port).build_in(slot);
  s.back_fill->target->begin_whole(front);
}

// A stream that is as fast as its replay would never be caught up with, and then stand still for
// all that is behind. At half the pace of the steps that both share it is a little slower for a
// while.
void Node::Impl::slow_part(Session& s) {
  const Seconds step = ports.engine->info().profile.decode_step(2, s.front);
  if (step.count() <= 0) return;
  const double most = 0.5 / step.count();
  if (s.params.max_token_rate > 0 && s.params.max_token_rate <= most) return;
  s.back_fill->pace = TokensPerSecond(most);
  if (s.decoding) stop_engine(s);  // goes on at that pace
}

void Node::Impl::stop_part(Session& s) {
  s.back_fill->pausing = true;
  if (s.decoding) {
    stop_engine(s);
  } else {
    part_ended(s);
  }
}

void Node::Impl::part_ended(Session& s) {
  BackFill& fill = *s.back_fill;
  if (!fill.slot) {
    const TokenPosition hole = fill.target->first_hole();
    fill.slot = s.slot;
    ports.engine->truncate(*s.slot, hole);
    s.front = hole;
    build_in(s, *s.slot, hole);
  }
  fill.target->end_part();
  back_filled(s);
}

// The whole has the rows of a full transfer, and those of all tokens decoded meanwhile.
void Node::Impl::change_over(Session& s) {
  const std::unique_ptr<BackFill> fill = std::move(s.back_fill);
  const TimePoint now = ports.clock->now();
  const auto& counts = fill->target->counts();
  const bool beside = *fill->slot != *s.slot;
  if (beside) {
    by_slot_.erase(*s.slot);
    ports.engine->release(*s.slot);
    s.slot = fill->slot;
  }
  s.front = fill->target->front();
  s.decoding = s.stopping = s.discards = false;
  s.partial.cancel();
  s.staged.clear();
  if (counts.inexact) s.lineage = Lineage(random_() | 1);
  const TokenIndex tokens = s.log.generated() - fill->begun_at;
  ++stats_.partial_completed;
  stats_.partial_tokens += tokens;
  stats_.partial_tokens_replayed += counts.part_replayed;
  stats_.kv_blocks_refused += counts.blocks_refused - fill->refused_before;
  if (TargetPhases* phases = partial_phases(s, *fill)) {
    phases->partial_decode.ended(now, tokens);
    phases->covered.set(now);
  }
  if (HandoverReport* report = partial_report(s, *fill); report != nullptr && report->partial) {
    count(*report, counts);
    report->covered_ms = to_ms(now - fill->attached_at);
    report->partial->tokens = tokens;
    report->partial->tokens_replayed = counts.part_replayed;
    report->partial->second_slot = beside;
    report->partial->complete_ms = report->covered_ms;
  }
  start_serving(s, next_due(s));
  send_release(s);
  if (s.executing && !s.outgoing) {
    prepare_at_handover(s, *s.executing);
  } else {
    evaluate(s);
  }
}

// The session ends, moves on or is computed anew: nobody wants the rest any more.
void Node::Impl::end_back_fill(Session& s) {
  if (!s.back_fill) return;
  const std::unique_ptr<BackFill> fill = std::move(s.back_fill);
  s.partial.cancel();
  if (fill->slot && fill->slot != s.slot) {
    by_slot_.erase(*fill->slot);
    ports.engine->release(*fill->slot);
  }
  const TokenIndex tokens = s.log.generated() - fill->begun_at;
  stats_.partial_tokens += tokens;
  if (TargetPhases* phases = partial_phases(s, *fill)) {
    phases->partial_decode.ended(ports.clock->now(), tokens);
  }
  if (HandoverReport* report = partial_report(s, *fill); report != nullptr && report->partial) {
    report->partial->tokens = tokens;
  }
  if (s.release_to.value.empty()) return;
  ports.peers->send(s.release_to, wire::UeContextRelease{s.id, s.epoch, s.release_attempt});
  s.release_to = NodeId();
}

}  // namespace pallas::node
