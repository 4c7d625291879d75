#include "session/target_handover.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace pallas::session {

namespace {

// Replays are short runs, so that rows arriving meanwhile are used.
constexpr TokenPosition kReplayRun = 4;
// Shorter prefills cost as much as this one.
constexpr TokenPosition kShortestRun = 4;
// The ids that a follower may know beyond the step that it takes. Each would cost a step at the
// handover; rows from above and replays from below meet sooner.
constexpr TokenPosition kMostBehind = 1;
// Rows that wait for the whole are attached in runs: each command may have to wait for a step.
constexpr TokenPosition kFillRun = 256;
// A follower is in step with its source while it is late by no more than this share of a step.
constexpr double kInStep = 0.05;
// From this many times the usual interval on, the source's ids come slower than a step here takes.
constexpr double kSlowSource = 1.5;
// One of several that are followed may be late by this share of the interval.
constexpr double kInTurn = 0.25;
// Tokens that a follower samples before the source has confirmed the first of them.
constexpr std::size_t kMostAhead = 2;

// What a message has room for: a peer that is told of less sends some rows twice.
std::vector<kv::TokenRange> told(const kv::Coverage& held) {
  auto ranges = held.ranges();
  ranges.resize(std::min(ranges.size(), wire::kMaxRanges));
  return ranges;
}

}  // namespace

TargetHandover::TargetHandover(Setup setup, TokenLog& log, StagedRows& staged, TokenPosition front,
                               TargetPort& port)
    : setup_(std::move(setup)),
      log_(log),
      staged_(staged),
      port_(port),
      front_(front),
      goal_(front) {
  kv_coming_ = setup_.plan.order != wire::SendOrder::kNothing;
  collects_ = may_collect();
}

void TargetHandover::adopt_plan(const Attempt& attempt, const wire::Plan& plan, Lineage lineage,
                                bool exact_available) {
  if (lineage != setup_.lineage && front_ > 0) counts_.inexact = true;
  setup_.attempt = attempt;
  setup_.plan = plan;
  setup_.lineage = lineage;
  setup_.exact_available = exact_available;
  follows_ = false;
  kv_coming_ = plan.order != wire::SendOrder::kNothing;
  collects_ = may_collect() && !on_part_;
  advance();
}

// The last id has no KV at the source either: it is the input of the first step.
TokenPosition TargetHandover::known_end() const {
  return log_.size() - 1;
}

// The prompt's last position is computed in the decode class everywhere: it is the input of the
// first step at the node that took the request.
TokenPosition TargetHandover::chunk_end() const {
  if (setup_.exact_generated_chunks) return known_end();
  return std::min(known_end(), log_.prompt_tokens() - 1);
}

kv::Coverage TargetHandover::covered() const {
  kv::Coverage all = staged_.coverage();
  all.add({0, whole_front()});
  return all;
}

bool TargetHandover::fronts_met() const {
  return covered().covers({0, known_end()});
}

bool TargetHandover::fronts_about_to_meet() const {
  return covered().total() + setup_.block_tokens > known_end();
}

double TargetHandover::fraction() const {
  const TokenPosition end = known_end();
  if (end == 0) return 1;
  return std::min(1.0, static_cast<double>(covered().total()) / static_cast<double>(end));
}

wire::HeldAttempt TargetHandover::held() const {
  wire::HeldAttempt held;
  held.session = setup_.session;
  held.attempt = setup_.attempt;
  held.tokens_known = log_.size();
  held.token_hash = log_.hash(log_.size());
  held.ranges = told(covered());
  return held;
}

wire::PreparationProgress TargetHandover::progress() const {
  wire::PreparationProgress progress;
  progress.session = setup_.session;
  progress.attempt = setup_.attempt;
  progress.front = whole_front();
  progress.prefill_goal = std::max(progress.front, on_part_ && !fills_ ? 0 : goal_);
  progress.staged = told(staged_.coverage());
  progress.tokens_known = log_.size();
  progress.received_bytes = counts_.bytes;
  progress.prefilled_tokens = prefill_tokens_;
  progress.prefill_ns = prefill_ns_;
  progress.follows = follows_;
  const bool samples = running_ == Running::kShadow;
  progress.sampled_to = log_.size() + static_cast<TokenPosition>(ahead_.size()) + (samples ? 1 : 0);
  return progress;
}

void TargetHandover::run_prefill(TokenPosition end) {
  end = std::min({end, front_ + setup_.run_tokens, front_ + share_of_gap()});
  if (state_ == State::kPreparing) {
    const TokenPosition budget = port_.prefill_budget();
    if (budget == 0) return;
    if (budget < end - front_) end = front_ + budget;
  }
  const auto ids = log_.ids();
  if (end > chunk_end()) counts_.inexact = true;
  counts_.recomputed += end - front_;
  goal_ = end;
  busy_ = true;
  running_ = Running::kPrefill;
  port_.prefill(front_, {ids.begin() + front_, ids.begin() + end});
}

// How far to prefill towards rows that come down from above: to where they will be by then. Beyond
// that they would have to wait for the run, and below it the run's next begin would.
TokenPosition TargetHandover::share_of_gap() const {
  const TokenPosition end = known_end();
  if (!setup_.plan.meet || !kv_coming_ || setup_.row_wire <= Seconds(0)) return end;
  const TokenPosition gap = staged_.next_begin(front_).value_or(end) - front_;
  const double share = setup_.row_wire / (setup_.row_wire + setup_.prefill_per_token);
  return std::max(static_cast<TokenPosition>(std::ceil(share * gap)), kShortestRun);
}

void TargetHandover::run_replay(TokenPosition end) {
  end = std::min(end, front_ + kReplayRun);
  const auto ids = log_.ids();
  if (front_ < chunk_end() && !setup_.exact_generated_chunks) counts_.inexact = true;
  counts_.replayed += end - front_;
  if (fills_ && end > source_n_) {
    const TokenPosition steps = end - std::max(front_, source_n_);
    counts_.part_replayed += steps;
    if (patience_) *patience_ -= std::min(*patience_, steps);
  }
  goal_ = end;
  busy_ = true;
  running_ = Running::kReplay;
  port_.replay(front_, {ids.begin() + front_, ids.begin() + end});
}

// [front, end) will not come: rebuild it in the class that the session's consistency asks for.
void TargetHandover::recompute_rest(TokenPosition end) {
  const TokenPosition chunked = std::min(end, chunk_end());
  if (front_ < chunked) {
    run_prefill(chunked);
    return;
  }
  const Seconds replay_time = setup_.step * static_cast<double>(end - front_);
  // What the whole is built for is to be what a full transfer gives; it has the time.
  const bool replay = fills_ || setup_.consistency == wire::Consistency::kExact ||
                      (setup_.consistency == wire::Consistency::kPreferExact && !counts_.inexact &&
                       setup_.exact_available && replay_time <= setup_.prefer_exact_wait);
  if (replay) {
    run_replay(end);
  } else {
    run_prefill(end);
  }
}

// Rows are coming from above while the front waits. On a link where they take longer than a few
// steps, replaying upward meets them earlier (two fronts, the lower one exact but slow).
bool TargetHandover::replay_pays(TokenPosition end) const {
  if (!setup_.plan.meet || setup_.consistency == wire::Consistency::kFast) return false;
  if (setup_.plan.order == wire::SendOrder::kNothing) return false;
  const TokenPosition missing = end - front_ - staged_.coverage().total();
  const double steps = status_known_ ? 1 : 4;
  return setup_.row_wire * static_cast<double>(missing) > setup_.step * steps;
}

// After the status the block on the wire and the incomplete one may be missing. Where the plan
// recomputes and chunks of any ids will do, one more small chunk often brings them sooner than the
// link.
bool TargetHandover::chunk_pays(TokenPosition end) const {
  if (!status_known_ || setup_.consistency != wire::Consistency::kFast) return false;
  if (setup_.plan.recompute_end == 0) return false;
  const TokenPosition missing = end - front_ - staged_.coverage().total();
  return missing < 2 * setup_.block_tokens && setup_.prefill_per_token < setup_.row_wire;
}

// A step over the source's KV gives the source's row: where the self-test says so, on moved rows of
// any lineage or beside recomputed ones of the original.
bool TargetHandover::steps_are_exact() const {
  const bool same_kv = setup_.lineage == Lineage() || counts_.recomputed == 0;
  return setup_.exact_single_step && setup_.exact_available && same_kv && !counts_.inexact;
}

// Following begins when the KV has caught up (but for one position, where its row would come later
// than its replay), and ends when the engine is needed elsewhere or falls behind.
void TargetHandover::decide_to_follow() {
  if (state_ == State::kCompleting) return;  // what was told to the source holds
  const TokenPosition behind = known_end() - std::min(front_, known_end());
  const bool foreseen = setup_.plan.window_s > 0 && !source_lost_ && !diverged_ && !refuted_ &&
                        finish_ == wire::FinishReason::kNone;
  const bool allowed = setup_.consistency == wire::Consistency::kFast || steps_are_exact();
  if (!foreseen || !allowed || behind > kMostBehind || !port_.may_follow()) {
    follows_ = false;
  } else if (behind == 0 || (behind == 1 && setup_.row_wire >= setup_.step)) {
    follows_ = true;
  }
}

// How long after the source's next id a step would end that begins now, and what of it is usual. A
// source whose ids are far apart decodes others at the same time, and so does this engine where it
// follows them, too: not all fit into one step, but who is a little late every time does not fall
// behind.
TargetHandover::Lateness TargetHandover::lateness() const {
  const Pace pace = port_.pace();
  const Seconds interval = to_seconds(pace.interval);
  const Seconds usual = std::max(setup_.interval, setup_.step);
  const Seconds age = to_seconds(pace.age);
  if (interval > kSlowSource * usual) {
    return {age + std::max(setup_.step, pace.step) - interval, kInTurn * interval};
  }
  return {age + setup_.step - usual, kInStep * setup_.step};
}

// The step over the last known id, or over the token sampled after it.
void TargetHandover::follow() {
  const auto ahead = static_cast<TokenPosition>(ahead_.size());
  const TokenPosition next = log_.size() + ahead;
  if (!follows_ || front_ + 1 != next || next > setup_.last_position) return;
  if (ahead > 0 && !may_go_ahead()) return;
  if (!steps_are_exact()) counts_.inexact = true;
  const auto [late, usual] = lateness();
  if (ahead == 0 && !status_known_ && late > usual) {
    // The row of this position may well be here before a step could end.
    const bool waits = kv_coming_ && front_ >= setup_.plan.recompute_end;
    if (waits && setup_.row_wire > Seconds(0) && late > 1.5 * setup_.row_wire) {
      follows_ = false;
    } else {
      run_replay(log_.size());
    }
    return;
  }
  std::vector<TokenId> ids;
  for (const ShadowToken& token : ahead_) ids.push_back(token.id);
  goal_ = next;
  busy_ = true;
  running_ = Running::kShadow;
  port_.decode_next(std::move(ids));
}

// A reader's pace leaves time between two steps, and a token that may well differ is not worth one.
bool TargetHandover::may_go_ahead() const {
  return ahead_.size() < kMostAhead && !ahead_.back().end_of_generation && steps_are_exact() &&
         setup_.interval <= setup_.step;
}

// The source's id wins. Its row at the front was computed from ids that are known, so nothing is
// dropped but the token and what was built upon it.
void TargetHandover::check_shadow() {
  while (!ahead_.empty() && ahead_.front().position < log_.size()) {
    const ShadowToken token = ahead_.front();
    ahead_.erase(ahead_.begin());
    if (log_.at(token.position) == token.id) {
      ++counts_.shadow_agreed;
      continue;
    }
    ++counts_.shadow_differed;
    // Equal KV and an equal engine sample equal ids: one of the two is not what it claims to be.
    refuted_ = setup_.consistency != wire::Consistency::kFast;
    counts_.inexact = true;
    cut_ = std::min(token.position, cut_.value_or(token.position));
    cut_kv();
    return;
  }
}

void TargetHandover::advance() {
  check_shadow();
  decide_to_follow();
  if (busy_ || state_ == State::kComplete || setup_.plan.relay) return;
  if (collects_ && waits_for_part()) return;
  if (state_ == State::kOnPart) return;
  counts_.overlap += staged_.drop_below(front_);
  if (attach_staged()) return;
  const TokenPosition end = known_end();
  if (fills_ && !patience_ && front_ >= source_n_) patience_ = 2 * behind();
  if (front_ >= end) {
    if (state_ == State::kCompleting) {
      state_ = State::kComplete;
    } else {
      follow();
    }
    return;
  }
  const TokenPosition hole_end = std::min(end, staged_.next_begin(front_).value_or(end));
  const TokenPosition planned = std::min(hole_end, setup_.plan.recompute_end);
  if (front_ < planned) {
    if (setup_.consistency == wire::Consistency::kExact && planned > chunk_end()) {
      recompute_rest(planned);
    } else {
      run_prefill(planned);
    }
    return;
  }
  if (!status_known_ && !source_lost_) {
    if (front_ >= chunk_end() && (follows_ || replay_pays(end))) run_replay(hole_end);
    return;
  }
  const bool coming = kv_coming_ && !source_lost_ && !diverged_ && !follows_ &&
                      front_ < source_n_ && front_ >= setup_.plan.send_begin;
  if (!coming) {
    recompute_rest(hole_end);
    return;
  }
  if (chunk_pays(end)) {
    run_prefill(hole_end);
    return;
  }
  if (!replay_pays(end)) return;
  if (front_ < chunk_end()) {
    run_prefill(std::min(hole_end, chunk_end()));
  } else {
    run_replay(hole_end);
  }
}

// All that lies at the front without a gap, at once: an engine that decodes for others takes
// commands between two steps only.
bool TargetHandover::attach_staged() {
  const TokenPosition joined = fills_ ? kFillRun : 0;
  auto rows = staged_.take_at(front_, joined);
  if (!rows) return false;
  busy_ = true;
  running_ = Running::kAttach;
  for (; rows; rows = staged_.take_at(goal_, joined)) {
    goal_ = rows->range.end;
    counts_.received += rows->range.size();
    port_.attach_rows(std::move(*rows));
  }
  return true;
}

Status TargetHandover::on_tokens(const wire::TokenUpdate& update) {
  const TokenPosition end = update.first + static_cast<TokenPosition>(update.ids.size());
  if (update.first > log_.size()) {
    return fail(Errc::kOutOfOrder, "TokenUpdate.first: ids " + std::to_string(log_.size()) +
                                       " to " + std::to_string(update.first) + " are missing");
  }
  for (TokenPosition p = update.first; p < end; ++p) {
    const TokenId id = update.ids[p - update.first];
    if (p < log_.size()) {
      if (log_.ids()[p] != id) {
        diverged_ = true;  // rule 5: what the UE has wins
        counts_.inexact = true;
        return {};
      }
      continue;
    }
    if (diverged_) return {};
    // Of what is delivered here, this node's engine sampled what it had first.
    const bool had = state_ == State::kClaiming &&
                     std::any_of(ahead_.begin(), ahead_.end(), [p, id](const ShadowToken& token) {
                       return token.position == p && token.id == id;
                     });
    log_.append(id, had ? setup_.self : update.by);
  }
  if (update.finish != wire::FinishReason::kNone) finish_ = update.finish;
  advance();
  return {};
}

Status TargetHandover::on_rows(const wire::KvBlock& header, kv::Bytes rows) {
  const TokenPosition end =
      header.positions.empty() ? header.first + header.count : header.positions.back().end;
  const kv::TokenRange range{header.first, end};
  const auto refuse = [&](Errc code, const char* why) {
    ++counts_.blocks_refused;
    return fail(code, std::string("KvBlock: ") + why);
  };
  if (range.end > log_.size() || range.end < range.begin) {
    return refuse(Errc::kOutOfOrder, "its range lies above the known ids");
  }
  if (log_.hash(range.end) != header.token_hash) {
    return refuse(Errc::kInvalidArgument, "token_hash differs: it belongs to other ids");
  }
  if (header.lineage != setup_.lineage) {
    if (setup_.consistency == wire::Consistency::kExact) {
      return refuse(Errc::kInvalidArgument, "lineage differs and the session is exact");
    }
    counts_.inexact = true;
  }
  counts_.bytes += rows.size();
  if (status_known_) counts_.residual += header.count;
  if (range.end <= whole_front()) {
    counts_.overlap += header.count;
    return {};
  }
  const TokenPosition kept = header.positions.empty() ? staged_.add({range, std::move(rows)})
                                                      : staged_.add(header.covered(), rows);
  counts_.overlap += header.count - kept;
  advance();
  return {};
}

void TargetHandover::on_status(const wire::SnStatusTransfer& status) {
  wire::TokenUpdate rest;
  rest.first = status.first;
  rest.ids = status.ids;
  rest.by = status.by;
  const TokenPosition rest_end = status.first + static_cast<TokenPosition>(status.ids.size());
  if (!on_tokens(rest)) diverged_ = true;
  status_known_ = true;
  source_n_ = diverged_ ? 0 : status.n;
  kv_coming_ = kv_coming_ && status.has_kv;
  next_due_ = std::chrono::microseconds(status.next_due_us);
  if (status.finish != wire::FinishReason::kNone) finish_ = status.finish;
  // The UE may have brought more ids than the source had.
  if (log_.size() < rest_end || log_.hash(rest_end) != status.token_hash) counts_.inexact = true;
  if (state_ == State::kClaiming) state_ = State::kCompleting;
  if (state_ == State::kPreparing) state_ = State::kSettled;
  advance();
}

void TargetHandover::on_front(TokenPosition front, Duration busy) {
  front_ = front;
  if (running_ == Running::kPrefill) {
    prefill_ns_ += static_cast<std::uint64_t>(std::max<std::int64_t>(busy.count(), 0));
    prefill_tokens_ = counts_.recomputed;
  }
  if (front_ < goal_) return;  // a chunk of a longer run
  busy_ = false;
  running_ = Running::kNone;
  cut_kv();
  advance();
}

void TargetHandover::on_shadow(const ShadowToken& token) {
  ++counts_.shadow_tokens;
  front_ = token.position;
  ahead_.push_back(token);
  busy_ = false;
  running_ = Running::kNone;
  cut_kv();
  advance();
}

void TargetHandover::wait_for_step() {
  busy_ = true;
  running_ = Running::kShadow;
  goal_ = front_ + 1;
}

std::vector<ShadowToken> TargetHandover::take_shadow() {
  check_shadow();
  if (!ahead_.empty() && ahead_.back().position != front_) ahead_.clear();
  return std::exchange(ahead_, {});
}

void TargetHandover::on_attach() {
  if (state_ == State::kPreparing) state_ = State::kClaiming;
  if (state_ == State::kSettled) state_ = State::kCompleting;
  if (source_lost_ && state_ == State::kClaiming) state_ = State::kCompleting;
  advance();
}

void TargetHandover::on_source_lost() {
  source_lost_ = true;
  kv_coming_ = false;
  if (state_ == State::kClaiming) state_ = State::kCompleting;
  advance();
}

void TargetHandover::on_log_cut(TokenPosition end) {
  staged_.drop_from(end);
  diverged_ = true;
  counts_.inexact = true;
  cut_ = std::min(end, cut_.value_or(end));
  cut_kv();
}

void TargetHandover::cut_kv() {
  if (busy_ || !cut_) return;
  std::erase_if(ahead_, [this](const ShadowToken& token) { return token.position > *cut_; });
  if (on_part_) {  // above the first hole nothing is of use
    cut_ = std::min(*cut_, first_hole_);
    on_part_ = collects_ = false;
  }
  if (front_ > *cut_) {
    front_ = goal_ = *cut_;
    port_.truncate(front_);
  }
  cut_.reset();
}

}  // namespace pallas::session
