#include "ue/client_machine.h"

#include <algorithm>

namespace pallas::ue {
namespace {

// A gNB that says one of these in the middle of a stream may be the only one in trouble.
bool worth_another_try(const std::string& code) {
  for (const Errc errc : {Errc::kUnreachable, Errc::kTimeout, Errc::kResourceExhausted,
                          Errc::kEngine, Errc::kInternal, Errc::kNotOwner, Errc::kIo}) {
    if (code == to_string(errc)) return true;
  }
  return false;
}

ApiError as_api_error(const Error& error) {
  const bool ours = error.code == Errc::kInternal;
  return ApiError{.status = ours ? 500 : 503,
                  .message = error.message,
                  .type = "server_error",
                  .param = {},
                  .code = std::string(to_string(error.code))};
}

ApiError protocol_error(std::string message) {
  return as_api_error(Error{Errc::kOutOfOrder, std::move(message)});
}

// Immediate retries after stale_epoch; then the answers are treated like any other refusal.
constexpr int kStaleAtOnce = 3;

}  // namespace

std::string_view to_string(ClientMachine::State state) {
  switch (state) {
    case ClientMachine::State::kConnecting:
      return "connecting";
    case ClientMachine::State::kStreaming:
      return "streaming";
    case ClientMachine::State::kWaiting:
      return "waiting";
    case ClientMachine::State::kFinished:
      return "finished";
    case ClientMachine::State::kFailed:
      return "failed";
    case ClientMachine::State::kStopped:
      return "stopped";
  }
  return "failed";
}

ClientMachine::ClientMachine(ClientConfig config, NodeId home)
    : config_(config), home_(std::move(home)) {}

void ClientMachine::start(TimePoint now) {
  connect(home_, now);
}

void ClientMachine::stop() {
  if (over()) return;
  if (known()) {
    const NodeId& last = records_.empty() ? session_.node : records_.back().by;
    actions_.emplace_back(DeleteSession{attached_.value.empty() ? home_ : attached_, last});
  }
  end(State::kStopped);
}

// --- where to be ---

void ClientMachine::on_handover(const NodeId& gnb, TimePoint now) {
  if (over()) return;
  if (gnb == home_) {
    if (awaiting_radio_) connect(home_, now);  // the handover was called off
    return;
  }
  if (!known()) {
    // Nothing can be attached before the session has a name. Its stream says it in a moment; when
    // it does not, the new cell is asked as if nothing had happened.
    previous_ = std::exchange(home_, gnb);
    if (streams_.empty()) {
      connect(home_, now);
    } else {
      move_pending_ = now;
      timer_ = now + config_.open_wait;
    }
    return;
  }
  const auto newest = streams_.find(newest_);
  if (newest != streams_.end() && newest->second.granted && newest->second.gnb == gnb) {
    previous_ = std::exchange(home_, gnb);  // the stream had gone ahead of the radio
    return;
  }
  move_to(gnb, now, now);
}

void ClientMachine::move_to(const NodeId& gnb, TimePoint executed_at, TimePoint now) {
  HandoverMark mark{attached_, gnb, {}, executed_at, {}, {}, {}};
  if (!records_.empty()) mark.last_before = records_.back().index;
  handovers_.push_back(std::move(mark));
  mark_open_ = true;
  if (home_ != gnb) previous_ = std::exchange(home_, gnb);
  if (!next_.value.empty() && next_ != gnb) actions_.emplace_back(WarmConnection{});
  next_ = {};
  for (auto it = streams_.begin(); it != streams_.end();) {
    const bool kept = config_.keep_old_stream && it->second.granted;
    if (kept) {
      ++it;
    } else {
      actions_.emplace_back(CloseStream{it->first});
      it = streams_.erase(it);
    }
  }
  failures_ = 0;
  fruitless_ = 0;
  stale_in_row_ = 0;
  trouble_since_.reset();
  denied_by_.clear();
  connect(gnb, now);
}

void ClientMachine::connect(const NodeId& gnb, TimePoint now) {
  timer_.reset();
  moved_to_ = {};
  awaiting_radio_ = false;
  state_ = State::kConnecting;
  const StreamNo stream = ++newest_;
  if (!known()) {
    streams_[stream] = Stream{gnb, {}, true, false, false};
    actions_.emplace_back(OpenStream{stream, gnb});
    return;
  }
  ++highest_.value;
  streams_[stream] = Stream{gnb, highest_, false, false, false};
  if (mark_open_ && handovers_.back().to == gnb) {
    handovers_.back().epoch = highest_;
    handovers_.back().attach_sent_at = now;
  }
  actions_.emplace_back(AttachStream{stream, gnb, highest_, next_index(), attached_});
}

void ClientMachine::take_epoch(Epoch epoch) {
  highest_ = std::max(highest_, epoch);
}

// --- a stream's events ---

bool ClientMachine::believed(StreamNo stream) const {
  return streams_.contains(stream);
}

void ClientMachine::on_event(StreamNo stream, StreamEvent event, TimePoint now) {
  if (over()) return;
  if (!believed(stream)) {
    ++counters_.fenced;
    return;
  }
  std::visit([&](auto&& e) { on(stream, std::forward<decltype(e)>(e), now); }, std::move(event));
}

void ClientMachine::on(StreamNo stream, SessionEvent event, TimePoint now) {
  if (known() && event.session != session_.session) {
    stream_failed(stream, protocol_error("the gNB answered with another session"), now);
    return;
  }
  const bool first = !known();
  take_epoch(event.epoch);
  if (known() && event.resume_token.empty()) {
    // A node that fetches the session says only who it is; what a later one needs is kept.
    session_.node = event.node;
    session_.epoch = event.epoch;
  } else {
    session_ = std::move(event);
  }
  Stream& granted = streams_.at(stream);
  granted.granted = true;
  if (first) actions_.emplace_back(SessionOpened{});
  if (stream != newest_) return;  // an old stream that was kept and repeats itself
  attached_ = granted.gnb;
  close_all_but(stream);
  failures_ = 0;
  stale_in_row_ = 0;
  if (mark_open_ && handovers_.back().to == attached_) handovers_.back().granted_at = now;
  mark_open_ = false;
  trouble_since_.reset();
  denied_by_.clear();
  timer_.reset();
  state_ = State::kStreaming;
  if (move_pending_) {
    const TimePoint executed_at = *std::exchange(move_pending_, std::nullopt);
    if (home_ != attached_) move_to(home_, executed_at, now);
  }
}

void ClientMachine::on(StreamNo stream, StreamToken token, TimePoint now) {
  Stream& from = streams_.at(stream);
  if (!from.granted) {
    stream_failed(stream, protocol_error("a token came before the pallas.session event"), now);
    return;
  }
  take_epoch(token.epoch);
  if (token.index < next_index()) {
    const bool same = records_[token.index].id == token.id;
    ++(same ? counters_.duplicates : counters_.contradictions);
    return;
  }
  if (token.index > next_index()) {
    ++counters_.skipped;
    stream_failed(stream,
                  protocol_error("token index " + std::to_string(token.index) +
                                 " came instead of " + std::to_string(next_index())),
                  now);
    return;
  }
  from.delivered = true;
  fruitless_ = 0;
  records_.push_back(TokenRecord{token.index, token.id, std::move(token.by), token.epoch, now,
                                 std::move(token.text)});
  actions_.emplace_back(DeliverToken{records_.back()});
}

void ClientMachine::on(StreamNo stream, const NextEvent& event, TimePoint) {
  if (stream != newest_) return;
  const NodeId wanted = event.node == attached_ ? NodeId{} : event.node;
  if (wanted == next_) return;
  next_ = wanted;
  actions_.emplace_back(WarmConnection{next_});
}

void ClientMachine::on(StreamNo stream, const MovedEvent& event, TimePoint now) {
  if (stream != newest_) {
    forget(stream);
    return;
  }
  forget(stream);
  if (!known()) {
    connect(home_, now);
  } else if (!event.node.value.empty() && event.node != attached_) {
    // The gNB knows before the radio tells us, or there is no radio feed here.
    if (config_.follow_moved_after <= Duration::zero()) {
      return move_to(event.node, now, now);
    }
    moved_to_ = event.node;
    awaiting_radio_ = true;
    state_ = State::kWaiting;
    timer_ = now + config_.follow_moved_after;
  } else {
    // Attaching here again would tell the gNB that the handover was called off: the radio's word
    // is awaited first.
    if (!trouble_since_) trouble_since_ = now;
    failures_ = std::max(failures_, 1);
    awaiting_radio_ = true;
    state_ = State::kWaiting;
    timer_ = now + config_.moved_wait;
  }
}

void ClientMachine::on(StreamNo, const FinishEvent& event, TimePoint) {
  if (!finish_reason_.empty()) return;
  finish_reason_ = event.reason;
  finish_text_ = event.text;
}

void ClientMachine::on(StreamNo, const UsageEvent& event, TimePoint) {
  usage_ = event.usage;
}

void ClientMachine::on(StreamNo stream, const DoneEvent&, TimePoint now) {
  if (finish_reason_.empty()) {
    stream_failed(stream, protocol_error("[DONE] came without a finish reason"), now);
    return;
  }
  finish();
}

void ClientMachine::on(StreamNo stream, const ErrorEvent& event, TimePoint now) {
  if (stream != newest_) {
    forget(stream);
  } else if (!streams_.at(stream).granted) {
    on_refused(stream, event.error, now);  // its header had been sent to keep the UE waiting
  } else if (event.error.code == to_string(Errc::kStaleEpoch)) {
    forget(stream);
    take_stale(event.error, now);
  } else if (worth_another_try(event.error.code)) {
    stream_failed(stream, event.error, now);
  } else {
    fail_with(event.error);
  }
}

// --- when it goes wrong ---

void ClientMachine::on_refused(StreamNo stream, const ApiError& error, TimePoint now) {
  if (over()) return;
  const auto it = streams_.find(stream);
  if (it == streams_.end()) {
    ++counters_.fenced;
    return;
  }
  const Stream refused = it->second;
  forget(stream);
  if (stream != newest_) return;
  if (refused.opens) {
    fail_with(error);  // the user's own request was refused: the answer is theirs
  } else if (error.status == 409 && error.code == to_string(Errc::kStaleEpoch)) {
    take_stale(error, now);
  } else if (error.status == 404 || error.code == to_string(Errc::kIncompatible)) {
    denied_by_.insert(refused.gnb);
    const std::vector<NodeId> all = candidates();
    const bool nobody = std::all_of(all.begin(), all.end(),
                                    [&](const NodeId& gnb) { return denied_by_.contains(gnb); });
    if (nobody) {
      fail_with(error);
    } else {
      retry_later(error, now);
    }
  } else if (error.status >= 400 && error.status < 500 && error.status != 408 &&
             error.status != 409 && error.status != 429) {
    fail_with(error);
  } else {
    retry_later(error, now);
  }
}

void ClientMachine::on_lost(StreamNo stream, const Error& why, TimePoint now) {
  if (over()) return;
  if (!believed(stream)) {
    ++counters_.fenced;
    return;
  }
  if (why.code == Errc::kUnsupported) {
    fail_with(as_api_error(why));
    return;
  }
  stream_failed(stream, as_api_error(why), now);
}

void ClientMachine::take_stale(const ApiError& error, TimePoint now) {
  ++counters_.stale_answers;
  take_epoch(Epoch(error.current_epoch));
  if (++stale_in_row_ <= kStaleAtOnce) {
    connect(home_, now);
  } else {
    retry_later(error, now);
  }
}

void ClientMachine::stream_failed(StreamNo stream, const ApiError& why, TimePoint now) {
  const Stream failed = streams_.at(stream);
  forget(stream);
  if (stream != newest_) return;
  if (!finish_reason_.empty() && usage_) {
    finish();  // only [DONE] was missing
    return;
  }
  if (failed.granted && !failed.delivered) {
    if (++fruitless_ >= config_.max_fruitless) {
      fail_with(why);
      return;
    }
    failures_ = std::max(failures_, fruitless_);
  }
  retry_later(why, now);
}

void ClientMachine::retry_later(const ApiError& why, TimePoint now) {
  if (!trouble_since_) trouble_since_ = now;
  const Duration patience = known() ? config_.give_up : config_.open_give_up;
  if (now - *trouble_since_ >= patience) {
    fail_with(why);
    return;
  }
  Duration delay{0};  // the first retry follows at once
  if (failures_ > 0) {
    const int doublings = std::min(failures_ - 1, 20);
    delay = std::min(config_.max_backoff, config_.first_backoff * (std::int64_t{1} << doublings));
  }
  ++failures_;
  state_ = State::kWaiting;
  timer_ = now + delay;
}

void ClientMachine::on_timer(TimePoint now) {
  if (over() || !timer_ || now < *timer_) return;
  timer_.reset();
  if (!moved_to_.value.empty()) {
    move_to(NodeId(moved_to_), now, now);
  } else if (state_ == State::kWaiting) {
    ++counters_.retries;
    connect(next_candidate(), now);
  } else if (move_pending_ && !known()) {
    move_pending_.reset();
    close_all_but(0);
    connect(home_, now);
  }
}

std::vector<NodeId> ClientMachine::candidates() const {
  std::vector<NodeId> all{home_};
  for (const NodeId& gnb : {attached_, next_, previous_}) {
    const bool listed = std::find(all.begin(), all.end(), gnb) != all.end();
    if (!gnb.value.empty() && !listed) all.push_back(gnb);
  }
  return all;
}

// The cell's own gNB gets two tries; then the others that may know the session take turns with it.
NodeId ClientMachine::next_candidate() const {
  if (!known() || failures_ <= 2) return home_;
  const std::vector<NodeId> all = candidates();
  return all[static_cast<std::size_t>(failures_ - 2) % all.size()];
}

// --- ends ---

void ClientMachine::forget(StreamNo stream) {
  if (streams_.erase(stream) > 0) actions_.emplace_back(CloseStream{stream});
}

void ClientMachine::close_all_but(StreamNo kept) {
  for (auto it = streams_.begin(); it != streams_.end();) {
    if (it->first == kept) {
      ++it;
    } else {
      actions_.emplace_back(CloseStream{it->first});
      it = streams_.erase(it);
    }
  }
}

void ClientMachine::finish() {
  end(State::kFinished);
  actions_.emplace_back(SessionFinished{finish_reason_, finish_text_, usage_});
}

void ClientMachine::fail_with(ApiError error) {
  if (!finish_reason_.empty()) {
    finish();  // the text is whole; only its usage was never told
    return;
  }
  end(State::kFailed);
  actions_.emplace_back(SessionFailed{std::move(error)});
}

void ClientMachine::end(State state) {
  close_all_but(0);
  if (!next_.value.empty()) actions_.emplace_back(WarmConnection{});
  next_ = {};
  timer_.reset();
  state_ = state;
}

}  // namespace pallas::ue
