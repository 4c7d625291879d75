// What the radio side says, and the decisions that follow: when to prepare whom.

#include <algorithm>
#include <cmath>
#include <utility>

#include "node/impl.h"

namespace pallas::node {

namespace {

// A prediction made here from positions holds until the next few positions must have come.
constexpr Duration kPositionValid = std::chrono::seconds(2);
// How busy a peer was says this long how busy it is.
constexpr Duration kContentionValid = std::chrono::seconds(2);

}  // namespace

// Empty when no gNB is known to serve it.
const NodeId& Node::Impl::node_of(const CellId& cell) const {
  static const NodeId kNobody;
  const auto found = gnb_of_cell_.find(cell);
  return found == gnb_of_cell_.end() ? kNobody : found->second;
}

Status Node::Impl::take_seq(const char* what, std::uint64_t seq, std::uint64_t& last,
                            bool& seen) const {
  if (seen && seq <= last) {
    return fail(Errc::kOutOfOrder, std::string("seq: ") + what + " " + std::to_string(seq) +
                                       " is not newer than " + std::to_string(last));
  }
  last = seq;
  seen = true;
  return {};
}

Status Node::Impl::on_prediction(const mobility::Prediction& prediction) {
  const NodeId target = prediction.target ? node_of(*prediction.target) : NodeId();
  if (prediction.target && target.value.empty()) {
    return fail(Errc::kNotFound,
                "target: no gNB is configured for cell " + prediction.target->value);
  }
  UeState& ue = ue_of(prediction.ue);
  if (auto ok = take_seq("prediction", prediction.seq, ue.prediction_seq, ue.prediction_seen);
      !ok) {
    return ok;
  }
  const TimePoint now = ports.clock->now();
  if (!prediction.target) {
    ue.forecast.reset();
  } else {
    ue.forecast = Forecast{target,           now + prediction.in,   now + prediction.valid,
                           prediction.sigma, prediction.confidence, prediction.oracle};
  }
  evaluate_all(ue);
  return {};
}

Status Node::Impl::on_position(const mobility::PositionReport& report) {
  if (ports.cells == nullptr) {
    return fail(Errc::kUnsupported, "positions: no cell layout is configured here");
  }
  UeState& ue = ue_of(report.ue);
  if (auto ok = take_seq("position", report.seq, ue.position_seq, ue.position_seen); !ok) return ok;
  ue.previous = std::exchange(ue.last, report);
  const mobility::CvhPredictor predictor(*ports.cells, mobility::CvhOptions{});
  const auto crossing = predictor.predict(*ue.last, ue.previous ? &*ue.previous : nullptr);
  // A vehicle that stands still says nothing new: the last prediction lasts as long as it is valid.
  const NodeId target = crossing ? node_of(crossing->to) : NodeId();
  if (!target.value.empty()) {
    const TimePoint now = ports.clock->now();
    const mobility::PositionReport* previous = ue.previous ? &*ue.previous : nullptr;
    ue.forecast = Forecast{target,
                           now + to_duration(crossing->in),
                           now + kPositionValid,
                           to_duration(predictor.sigma(*ue.last, previous, crossing->in)),
                           std::nullopt,
                           false};
  }
  evaluate_all(ue);
  return {};
}

Status Node::Impl::on_handover(const mobility::HandoverEvent& event) {
  if (node_of(event.target).value.empty()) {
    return fail(Errc::kNotFound, "target: no gNB is configured for cell " + event.target.value);
  }
  UeState& ue = ue_of(event.ue);
  if (auto ok = take_seq("handover", event.seq, ue.handover_seq, ue.handover_seen); !ok) return ok;
  using Phase = mobility::HandoverPhase;
  const NodeId target = node_of(event.target);
  const bool leaves = target != config.name;
  const TimePoint now = ports.clock->now();
  // A fact beats a prediction.
  if (event.phase == Phase::kExecution || event.phase == Phase::kCompleted) ue.forecast.reset();

  std::vector<SessionId> ids;
  for (const Session* s : ue.sessions) ids.push_back(s->id);
  for (const SessionId& id : ids) {
    Session* s = find(id);
    if (s == nullptr || !s->resumable) continue;
    switch (event.phase) {
      case Phase::kPreparation:
        break;
      case Phase::kExecution:
        if (!leaves && s->role != Role::kServing) s->arriving->ran_execution.set(now);
        if (!leaves || s->role != Role::kServing || s->relay_to) break;
        s->leaving->ran_execution.set(now);
        if (s->move && s->move->report.target != target) {
          end_move(*s, MoveState::kFailed, "the radio hands over to " + target.value);
        } else if (s->move) {
          s->move->report.state = MoveState::kExecuting;
          s->move->latest.cancel();
        }
        s->executing = target;
        s->writing = false;
        s->plan_again.cancel();
        if (has_stand_in(*s, target)) {
          // The fallback goes on preparing; the target will relay.
        } else if (!s->outgoing || s->outgoing->target() != target ||
                   s->outgoing->state() == session::SourceHandover::State::kCancelling) {
          prepare_at_handover(*s, target);
        }
        begin_grace(*s);
        break;
      case Phase::kCompleted:
        if (!leaves && s->role != Role::kServing) s->arriving->ran_completed.set(now);
        if (leaves && s->leaving && s->leaving->handover_began())
          s->leaving->ran_completed.set(now);
        if (leaves && s->executing) stop_for_claim(*s);
        break;
      case Phase::kRejected:
      case Phase::kCancelled:
      case Phase::kReestablished:
        if (event.phase == Phase::kReestablished && leaves) break;
        if (s->role != Role::kServing || s->holder != config.name) break;
        if (s->move && s->executing) {
          end_move(*s, MoveState::kFailed, "the radio keeps the UE here");
        }
        s->executing.reset();
        if (s->leaving) s->leaving->ran_execution = s->leaving->ran_completed = {};
        s->writing = true;
        if (s->stream) s->grace.cancel();
        cancel_outgoing(*s, wire::Cause::kWithdrawn);
        pump_stream(*s);
        evaluate(*s);
        break;
    }
  }
  return {};
}

// The UE leaves now, and nobody is prepared. A session on a part of its KV has none to give: what
// the target needs are the ids, and it asks for them.
void Node::Impl::prepare_at_handover(Session& s, const NodeId& target) {
  if (s.back_fill) return;
  auto input = plan_input(s, target, Duration{0}, true);
  input.common = common_split(s, target, prefill_rate_at(target, s));
  start_preparation(s, target, scheme_->decide(input).plan, Duration{0}, false);
  announce(s, target);
}

// The UE has left for good. Unless decoding is lent, the step ends and the status goes out before
// the claim (rule 1).
void Node::Impl::stop_for_claim(Session& s) {
  if (s.role != Role::kServing || s.relay_to || s.stopping || !s.outgoing) return;
  if (!s.outgoing->acknowledged() || s.outgoing->plan().relay) return;
  if (s.decoding || s.prefilling) freeze(s);
}

const Forecast* Node::Impl::forecast_of(const Session& s) const {
  if (prepares_move(s)) return &s.move->forecast;
  if (s.ue == nullptr || !s.ue->forecast) return nullptr;
  const Forecast& forecast = *s.ue->forecast;
  return ports.clock->now() <= forecast.valid_until ? &forecast : nullptr;
}

// Deciding neither makes nor ends a session.
void Node::Impl::evaluate_all(const UeState& ue) {
  for (Session* s : ue.sessions) evaluate(*s);
}

// Of the target's engine for this session alone, tokens/s: as measured there, or a share of what it
// says of itself, or of this one's.
double Node::Impl::prefill_rate_at(const NodeId& target, const Session& s) const {
  const TokenPosition context = std::max<TokenPosition>(s.log.size() - 1, 1);
  double rate = ports.engine->info().profile.prefill_rate(0, context).value;
  std::optional<double> measured;
  if (const auto it = peers_.find(target); it != peers_.end()) {
    const PeerState& peer = it->second;
    if (peer.profiled_rate > 0) rate = peer.profiled_rate;
    if (peer.prefill_rate) measured = peer.prefill_rate->value();
  }
  return measured.value_or(rate * config.unmeasured_rate);
}

// Its generated positions must not be recomputed in chunks.
bool Node::Impl::prompt_only(const Session& s) const {
  return s.params.consistency != wire::Consistency::kFast &&
         !ports.engine->info().capabilities.exact_chunked_generated;
}

plan::PlanInput Node::Impl::plan_input(const Session& s, const NodeId& target, Duration remaining,
                                       bool at_handover) {
  const auto& info = ports.engine->info();
  plan::PlanInput input;
  // What the target needs, also where the source is still in mid-prompt.
  input.context = s.log.size() - 1;
  input.prompt = std::min(input.context, s.log.prompt_tokens() - 1);
  input.block_tokens = info.geometry.block_tokens;
  input.kv_bytes_per_token = info.geometry.bytes_per_token();
  double prefill_share = 1, link_share = 1;
  input.load = info.profile.load;  // all gNBs are taken to load alike
  if (auto it = peers_.find(target); it != peers_.end()) {
    const PeerState& peer = it->second;
    if (peer.resident) input.load = Seconds(0);
    // Effective rates: this session is one more at the target and on the way to it.
    const int others = preparing_at(peer, target, s);
    link_share = 1 + others;
    const bool fresh = ports.clock->now() - peer.contention_at < kContentionValid;
    const double seen = fresh && peer.contention ? peer.contention->value().value_or(1) : 1;
    prefill_share = others > 0 ? 1 + std::max<double>(others, seen) : seen;
  }
  input.prefill_rate = TokensPerSecond(prefill_rate_at(target, s) / prefill_share);
  if (auto it = peers_.find(target); it != peers_.end()) {
    input.spared_share = it->second.spared_share;
  }
  const Seconds step = info.profile.decode_step(1, s.log.size());
  const auto batch = std::max<std::uint32_t>(survey().decoding, 1);
  const Seconds shared_step = info.profile.decode_step(batch, s.log.size());
  input.decode_rate = TokensPerSecond(shared_step.count() > 0 ? 1 / shared_step.count() : 0);
  if (s.params.max_token_rate > 0) {
    input.decode_rate = TokensPerSecond(std::min(input.decode_rate.value, s.params.max_token_rate));
  }
  input.goodput = ports.peers->goodput(target);
  if (!input.goodput) input.goodput = config.initial_goodput;
  if (input.goodput) input.goodput->value /= link_share;
  input.remaining = to_seconds(std::max(remaining, Duration{0}));
  input.at_handover = at_handover;
  input.activation = step;
  input.recompute_prompt_only = prompt_only(s);
  input.may_be_partial = may_be_partial(s, target);
  input.partial_fraction = config.partial_fraction;
  input.partial_deadline = to_seconds(config.partial_deadline);
  input.alpha = config.alpha;
  input.step = to_seconds(config.control_period);
  input.t_max = to_seconds(config.t_max);
  input.margin = to_seconds(config.window_margin);
  input.margin_share = config.window_margin_share;
  const Forecast* forecast = forecast_of(s);
  if (config.use_uncertainty && forecast != nullptr && !at_handover) {
    if (forecast->sigma) input.sigma = to_seconds(*forecast->sigma);
    input.confidence = forecast->confidence;
  }
  return input;
}

void Node::Impl::announce(Session& s, const NodeId& next) {
  if (s.announced == next) return;
  s.announced = next;
  if (s.stream && s.writing) ports.ue->announce(*s.stream, next);
}

// Rule 16: ids without KV or admission, so that a crash or a wrong target costs a prefill only.
void Node::Impl::mirror_to(Session& s, const NodeId& peer) {
  if (peer == config.name || s.mirrors.contains(peer) || !ports.peers->is_up(peer)) return;
  wire::TokenUpdate update;
  update.session = s.id;
  update.epoch = s.epoch;
  update.first = s.log.size();
  update.by = config.name;
  update.snapshot = snapshot(s);
  s.mirrors[peer] = s.log.size();
  ports.peers->send(peer, std::move(update));
}

// Of all sessions at once: a gNB serves thousands, and each decides in each control period.
const Survey& Node::Impl::survey() {
  const TimePoint now = ports.clock->now();
  if (survey_ && now < survey_->until) return *survey_;
  survey_.emplace();
  survey_->until = now + config.control_period;
  for (const auto& [slot, s] : by_slot_) {
    if (s->role != Role::kServing) continue;
    if (s->decoding) ++survey_->decoding;
    if (!s->resumable || s->executing || s->relay_to) continue;
    if (s->outgoing && s->outgoing->state() != session::SourceHandover::State::kCancelling)
      continue;
    const Forecast* forecast = forecast_of(*s);
    if (forecast == nullptr || forecast->target == config.name) continue;
    survey_->foretold[prepared_for(*s, forecast->target)].push_back(forecast->at);
  }
  for (auto& [peer, times] : survey_->foretold) std::sort(times.begin(), times.end());
  return *survey_;
}

// Other sessions that are to be prepared at `target` about when this one is, and have not begun.
int Node::Impl::foretold_with(const NodeId& target, TimePoint at, Duration window) {
  const auto& foretold = survey().foretold;
  const auto found = foretold.find(target);
  if (found == foretold.end()) return 0;
  const auto& times = found->second;
  const auto first = std::upper_bound(times.begin(), times.end(), at - window);
  const auto last = std::lower_bound(first, times.end(), at + window);
  return std::max(0, static_cast<int>(last - first) - 1);
}

// Who moves with others must begin earlier than alone. A longer window may take in more of them.
plan::Decision Node::Impl::decide_with_company(const Session& s, const NodeId& target, TimePoint at,
                                               plan::PlanInput input) {
  const auto peer = peers_.find(target);
  const int present = 1 + (peer == peers_.end() ? 0 : preparing_at(peer->second, target, s));
  for (int company = 0;;) {
    plan::Decision decision = scheme_->decide(input);
    const int found = foretold_with(target, at, to_duration(decision.window));
    if (found <= company) return decision;
    company = found;
    input.foretold_share = static_cast<double>(present) / (present + company);
  }
}

// Decides for one session, as often as something changed and at the time the scheme asks for.
void Node::Impl::evaluate(Session& s) {
  using State = session::SourceHandover::State;
  if (s.role != Role::kServing || !s.resumable || s.relay_to || s.executing) return;
  if (s.back_fill) return;  // again when it is whole
  if (s.finish != wire::FinishReason::kNone) return;
  if (s.outgoing && s.outgoing->state() != State::kRequested &&
      s.outgoing->state() != State::kPreparing && s.outgoing->state() != State::kCancelling) {
    return;
  }
  s.plan_again.cancel();
  for (const NodeId& peer : config.mirrors) mirror_to(s, peer);

  const Forecast* forecast = forecast_of(s);
  const NodeId target = forecast != nullptr ? forecast->target : NodeId();
  const bool preparing = s.outgoing && s.outgoing->state() != State::kCancelling;
  if (target.value.empty() || target == config.name) {
    if (preparing) cancel_outgoing(s, wire::Cause::kWithdrawn);
    return;
  }
  const NodeId prepare = prepared_for(s, target);
  if (preparing && s.outgoing->target() == prepare) {
    // Triggered: a one-way transition for this target. Look again when the prediction expires.
    const Duration valid = forecast->valid_until - ports.clock->now();
    arm(s.plan_again, valid + std::chrono::milliseconds(1), s,
        [this](Session& live) { evaluate(live); });
    return;
  }
  if (preparing) cancel_outgoing(s, wire::Cause::kWithdrawn);
  if (config.mirror_on_prediction) mirror_to(s, target);

  const TimePoint now = ports.clock->now();
  Duration again = config.control_period;
  const bool may = may_ask(s, prepare);
  const auto input = plan_input(s, prepare, forecast->at - now, false);
  if (may && plan::check(input)) {
    const plan::Decision decision = decide_with_company(s, prepare, forecast->at, input);
    if (decision.trigger) {
      survey_.reset();
      start_preparation(s, prepare, decision.plan, forecast->at - now, forecast->oracle);
      if (prepare != target) s.stands_in_for = target;
      announce(s, target);
      again = forecast->valid_until - now + std::chrono::milliseconds(1);
    } else {
      const Duration look = to_duration(decision.look_again);
      again = std::clamp(look, Duration(std::chrono::milliseconds(1)), config.control_period);
    }
  }
  arm(s.plan_again, again, s, [this](Session& live) { evaluate(live); });
}

}  // namespace pallas::node
