#include "session/source_handover.h"

#include <algorithm>
#include <utility>

#include "kv/rows.h"
#include "session/partial.h"

namespace pallas::session {

namespace {

// The status repeats the last ids, so that a target that missed an update can tell.
constexpr TokenPosition kIdsInStatus = 16;

}  // namespace

SourceHandover::SourceHandover(Setup setup, const TokenLog& log, TokenPosition front,
                               SourcePort& port)
    : setup_(std::move(setup)), log_(log), port_(port), front_(front), told_(log.size()) {}

void SourceHandover::begin_retrieved(Epoch claim, TokenPosition held_front) {
  state_ = State::kClaimed;
  acknowledged_ = true;
  claim_ = claim;
  sent_.add({0, held_front});
  target_front_ = target_goal_ = held_front;
}

void SourceHandover::on_acknowledged(const wire::HandoverRequestAcknowledge& ack) {
  acknowledged_ = true;
  for (const kv::TokenRange& range : ack.held) sent_.add(range);
  if (state_ == State::kRequested) state_ = State::kPreparing;
  // Ids sampled between the request and now were told already: TokenUpdate follows the request on
  // the same ordered connection.
  pump();
}

void SourceHandover::on_progress(const wire::PreparationProgress& progress) {
  target_front_ = std::max(target_front_, progress.front);
  target_goal_ = std::max(progress.prefill_goal, progress.front);
  follows_ = progress.follows;
  target_sampled_ = progress.sampled_to;
  pump();
}

void SourceHandover::on_tokens(wire::FinishReason finish) {
  if (state_ == State::kOver || state_ == State::kCancelling || sync_) return;
  if (told_ >= log_.size() && finish == wire::FinishReason::kNone) return;
  wire::TokenUpdate update;
  update.session = setup_.session;
  update.attempt = setup_.attempt;
  update.first = told_;
  const auto ids = log_.ids();
  update.ids.assign(ids.begin() + told_, ids.end());
  update.by = setup_.self;
  update.finish = finish;
  told_ = log_.size();
  port_.send(std::move(update));
}

void SourceHandover::on_front(TokenPosition front) {
  front_ = front;
  pump();
}

void SourceHandover::on_exported(kv::TokenRange range, kv::Bytes rows) {
  exporting_bytes_ -= std::min<std::uint64_t>(exporting_bytes_, rows.size());
  kv::Coverage positions;
  if (!collected_.empty() && collected_.front().expects(range)) {
    Collected& block = collected_.front();
    block.rows.push_back({range, std::move(rows)});
    if (block.rows.size() < block.positions.ranges().size()) return;
    std::vector<kv::RowsPart> parts;
    for (const Rows& part : block.rows) parts.push_back({part.range.size(), &part.bytes});
    rows = kv::join_rows(setup_.geometry, parts);
    positions = std::move(block.positions);
    collected_.pop_front();
  } else {
    positions.add(range);
  }
  if (state_ == State::kOver || state_ == State::kCancelling) return;
  send_block(positions, std::move(rows));
  pump();
}

void SourceHandover::send_block(const kv::Coverage& positions, kv::Bytes rows) {
  const auto& ranges = positions.ranges();
  wire::KvBlock header;
  header.session = setup_.session;
  header.attempt = setup_.attempt;
  header.first = ranges.front().begin;
  header.count = positions.total();
  header.token_hash = log_.hash(ranges.back().end);
  header.lineage = setup_.lineage;
  if (ranges.size() > 1) header.positions = ranges;
  bytes_sent_ += rows.size();
  port_.send_kv(std::move(header), std::move(rows));
}

void SourceHandover::on_ranked(std::vector<TokenPosition> order) {
  order_ = std::move(order);
  in_order_ = 0;
  ranked_ = true;
  pump();
}

std::optional<kv::TokenRange> SourceHandover::next_range() const {
  const wire::Plan& plan = setup_.plan;
  if (plan.order == wire::SendOrder::kNothing || plan.relay || follows_) return std::nullopt;
  const TokenPosition block = setup_.geometry.block_tokens;
  const TokenPosition low = plan.meet ? std::max(plan.send_begin, target_goal_) : plan.send_begin;
  const TokenPosition complete = front_ / block * block;
  const TokenPosition high = sync_ ? front_ : complete;
  if (low >= high && !plan.partial_ranges) return std::nullopt;

  const kv::TokenRange all{low, high};
  if (plan.order == wire::SendOrder::kOldestFirst) {
    if (const auto hole = sent_.lowest_missing(all)) {
      const TokenPosition block_end = (hole->begin / block + 1) * block;
      return kv::TokenRange{hole->begin, std::min(hole->end, block_end)};
    }
  } else if (const auto hole = sent_.highest_missing(all)) {
    const TokenPosition block_begin = (hole->end - 1) / block * block;
    return kv::TokenRange{std::max(hole->begin, block_begin), hole->end};
  }
  // Nothing complete is left: on an idle link even single positions go, so that the handover finds
  // as little as possible to do.
  const bool idle = exporting_bytes_ == 0 && port_.kv_backlog() == 0;
  if (plan.partial_ranges && idle) {
    const auto tail = sent_.highest_missing({std::max(low, complete), front_});
    if (tail) return tail;
  }
  return std::nullopt;
}

// As many positions as a block has: those always sent, then those that came after the ranking, then
// by rank.
kv::Coverage SourceHandover::next_important() const {
  kv::Coverage block;
  const TokenPosition size = setup_.geometry.block_tokens;
  const TokenPosition high = sync_ ? front_ : front_ / size * size;
  const auto take = [&](TokenPosition p) {
    if (p < high && block.total() < size && !sent_.contains(p)) block.add({p, p + 1});
  };
  if (high > 0) take(high - 1);
  for (TokenPosition p = 0; p < kSinkPositions; ++p) take(p);
  for (TokenPosition p = high; p > 0 && high - p < kRecentBlocks * size; --p) take(p - 1);
  if (!ranked_) return block;
  for (TokenPosition p = high; p > order_.size() && block.total() < size; --p) take(p - 1);
  for (std::size_t i = in_order_; i < order_.size() && block.total() < size; ++i) take(order_[i]);
  return block;
}

kv::Coverage SourceHandover::next() const {
  const wire::Plan& plan = setup_.plan;
  if (plan.order == wire::SendOrder::kByImportance && !plan.relay) return next_important();
  kv::Coverage one;
  if (const auto range = next_range()) one.add(*range);
  return one;
}

bool SourceHandover::may_send() const {
  return acknowledged_ &&
         (state_ == State::kPreparing || state_ == State::kClaimed || state_ == State::kSynced);
}

std::uint64_t SourceHandover::wanted_bytes() const {
  if (!may_send()) return 0;
  return next().total() * setup_.geometry.bytes_per_token();
}

bool SourceHandover::send_next() {
  if (!may_send()) return false;
  kv::Coverage block = next();
  if (block.empty()) return false;
  const std::vector<kv::TokenRange> ranges = block.ranges();
  for (const kv::TokenRange& range : ranges) sent_.add(range);
  while (in_order_ < order_.size() && sent_.contains(order_[in_order_])) ++in_order_;
  exporting_bytes_ += block.total() * setup_.geometry.bytes_per_token();
  if (ranges.size() > 1) collected_.push_back({std::move(block), {}});
  for (const kv::TokenRange& range : ranges) port_.export_rows(range);
  return true;
}

TokenPosition SourceHandover::covered() const {
  kv::Coverage all = sent_;
  all.add({0, std::min(target_front_, front_)});
  return all.total();
}

bool SourceHandover::caught_up() const {
  return state_ == State::kPreparing && front_ < covered() + setup_.geometry.block_tokens;
}

void SourceHandover::pump() {
  if (!may_send()) return;
  if (!port_.gives_turns()) {
    const std::uint64_t ahead = port_.link_ahead();
    while (port_.kv_backlog() + exporting_bytes_ < ahead && send_next()) {
    }
  }
  // After the first exports, which do not wait for it.
  const bool wants_order = setup_.plan.order == wire::SendOrder::kByImportance;
  if (wants_order && !std::exchange(rank_asked_, true)) port_.rank();
}

bool SourceHandover::claim(Epoch epoch) {
  claim_ = std::max(claim_, epoch);
  acknowledged_ = true;
  if (state_ == State::kCancelling) {
    // What was queued for the target was taken back; only its own front is certain.
    sent_.clear();
    in_order_ = 0;
    sent_.add({0, target_front_});
  }
  if (sync_) {
    status_.epoch = claim_;
    port_.send(status_);
    state_ = State::kSynced;
    return false;
  }
  state_ = State::kClaimed;
  return true;
}

void SourceHandover::on_paused(TokenPosition n, wire::FinishReason finish, bool has_kv,
                               Duration next_due) {
  front_ = n;
  status_ = {};
  status_.session = setup_.session;
  status_.epoch = claim_;
  status_.attempt = setup_.attempt;
  status_.n = has_kv ? n : 0;
  status_.first = log_.size() > kIdsInStatus ? log_.size() - kIdsInStatus : 0;
  status_.first = std::min(status_.first, told_);
  const auto ids = log_.ids();
  status_.ids.assign(ids.begin() + status_.first, ids.end());
  status_.token_hash = log_.hash(log_.size());
  status_.lineage = setup_.lineage;
  status_.finish = finish;
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(next_due).count();
  status_.next_due_us = static_cast<std::uint32_t>(std::clamp<std::int64_t>(us, 0, 10'000'000));
  status_.has_kv = has_kv;
  status_.by = setup_.self;
  told_ = log_.size();
  sync_ = true;
  state_ = State::kSynced;
  port_.send(status_);  // control overtakes the rows still queued
  pump();
}

void SourceHandover::cancel(wire::Cause cause) {
  if (state_ == State::kOver || state_ == State::kCancelling) return;
  state_ = State::kCancelling;
  port_.send(wire::HandoverCancel{setup_.session, setup_.attempt, cause});
}

void SourceHandover::on_cancel_acknowledged() {
  if (state_ == State::kCancelling) state_ = State::kOver;
}

void SourceHandover::on_resynchronized(const wire::HeldAttempt* held) {
  if (state_ == State::kOver || state_ == State::kCancelling) return;
  sent_.clear();
  in_order_ = 0;
  exporting_bytes_ = 0;
  follows_ = false;
  const bool same = held != nullptr && held->tokens_known <= log_.size() &&
                    log_.hash(held->tokens_known) == held->token_hash;
  told_ = same ? held->tokens_known : 0;
  if (same) {
    for (const kv::TokenRange& range : held->ranges) sent_.add(range);
  }
  if (sync_) {
    status_.first = std::min(status_.first, told_);
    const auto ids = log_.ids();
    status_.ids.assign(ids.begin() + status_.first, ids.end());
    told_ = log_.size();
    port_.send(status_);
  } else {
    on_tokens(wire::FinishReason::kNone);
  }
  pump();
}

}  // namespace pallas::session
