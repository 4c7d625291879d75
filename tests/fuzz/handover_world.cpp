#include "handover_world.h"

#include <algorithm>
#include <numeric>

namespace pallas::fuzz {
namespace {

// In the layout of kv/geometry.h: K of all positions, then V.
kv::Bytes rows_of(const session::TokenLog& log, kv::TokenRange range) {
  kv::Bytes bytes(range.size() * kGeometry.bytes_per_token());
  for (TokenPosition p = range.begin; p < range.end; ++p) {
    const std::uint64_t value = log.hash(p + 1);
    const TokenPosition i = p - range.begin;
    std::memcpy(bytes.data() + std::size_t{i} * 4, &value, 4);
    std::memcpy(bytes.data() + (std::size_t{range.size()} + i) * 4,
                reinterpret_cast<const char*>(&value) + 4, 4);
  }
  return bytes;
}

std::vector<std::uint64_t> values_of(const kv::Bytes& bytes) {
  std::vector<std::uint64_t> values(bytes.size() / kGeometry.bytes_per_token());
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::memcpy(&values[i], bytes.data() + i * 4, 4);
    std::memcpy(reinterpret_cast<char*>(&values[i]) + 4, bytes.data() + (values.size() + i) * 4, 4);
  }
  return values;
}

Seconds some_time(InputReader& input) {
  constexpr double kTimes[] = {0, 0.0001, 0.004, 0.02, 0.5};
  return Seconds(kTimes[input.byte() % std::size(kTimes)]);
}

}  // namespace

// --- the target's engine ---

void HandoverWorld::Engine::compute(TokenPosition first, std::vector<TokenId> tokens) {
  require(!busy() && !tokens.empty());
  require(first == kv.size() && first + tokens.size() < world_.target_log_.size() + 1);
  const auto ids =
      world_.target_log_.copy(first, first + static_cast<TokenPosition>(tokens.size()));
  require(ids == tokens);
  computing_ = std::move(tokens);
}

void HandoverWorld::Engine::attach_rows(session::Rows rows) {
  require(computing_.empty() && !decoding_ && !rows.range.empty());
  std::size_t front = kv.size();
  for (const auto& values : attaching_) front += values.size();
  require(rows.range.begin == front);
  require(rows.bytes.size() == rows.range.size() * kGeometry.bytes_per_token());
  require(rows.range.end < world_.target_log_.size() + 1);
  auto values = values_of(rows.bytes);
  for (TokenPosition p = rows.range.begin; p < rows.range.end; ++p) {
    require(values[p - rows.range.begin] == world_.target_log_.hash(p + 1));
  }
  attaching_.push_back(std::move(values));
}

void HandoverWorld::Engine::decode_next(std::vector<TokenId> ahead) {
  const auto& log = world_.target_log_;
  require(!busy() && ahead.size() < 2 && kv.size() + 1 == log.size() + ahead.size());
  decoding_ = true;
  append(ahead.empty() ? log.at(log.size() - 1) : ahead.back());
}

void HandoverWorld::Engine::truncate(TokenPosition front) {
  require(!busy() && front <= kv.size());
  kv.resize(front);
}

void HandoverWorld::Engine::go_on(TokenPosition at_most, TokenId sampled) {
  if (!busy()) return;
  if (std::exchange(decoding_, false)) {
    const auto position = static_cast<TokenPosition>(kv.size());
    if (world_.target_) world_.target_->on_shadow({position, sampled, false});
    return;
  }
  if (!attaching_.empty()) {
    kv.insert(kv.end(), attaching_.front().begin(), attaching_.front().end());
    attaching_.pop_front();
  } else {
    const auto count =
        std::min<std::size_t>(computing_.size(), std::max<TokenPosition>(at_most, 1));
    const std::vector<TokenId> now(computing_.begin(), computing_.begin() + count);
    computing_.erase(computing_.begin(), computing_.begin() + count);
    for (const TokenId id : now) append(id);
  }
  if (world_.target_) {
    world_.target_->on_front(static_cast<TokenPosition>(kv.size()), std::chrono::milliseconds(1));
  }
}

// --- the source's port ---

void HandoverWorld::send_kv(wire::KvBlock header, kv::Bytes rows) {
  require(source_ && source_->acknowledged());
  const kv::Coverage held = header.covered();
  require(held.ranges().back().end <= source_front_);
  require(rows.size() == held.total() * kGeometry.bytes_per_token());
  header.payload_bytes = rows.size();
  require(wire::encode(header).has_value());
  kv_.emplace_back(std::move(header), std::move(rows));
}

std::uint64_t HandoverWorld::kv_backlog() const {
  std::uint64_t bytes = 0;
  for (const auto& [header, rows] : kv_) bytes += rows.size();
  return bytes;
}

std::uint64_t HandoverWorld::link_ahead() const {
  return 2 * kGeometry.block_tokens * kGeometry.bytes_per_token();
}

void HandoverWorld::export_rows(kv::TokenRange range) {
  require(!range.empty() && range.end <= source_front_);
  exports_.push_back(range);
}

// --- the world ---

HandoverWorld::HandoverWorld(InputReader& input) {
  const TokenPosition prompt = 1 + input.up_to(80);
  std::vector<TokenId> ids(prompt);
  for (TokenPosition p = 0; p < prompt; ++p) ids[p] = id_at(p);
  source_log_ = session::TokenLog(ids);
  const bool in_prompt = input.one_in(8);  // rule 11
  source_front_ = in_prompt ? input.up_to(prompt - 1) : prompt - 1;
  for (std::uint32_t n = in_prompt ? 0 : input.up_to(60); n > 0; --n) {
    source_log_.append(id_at(source_log_.size()), NodeId("a"));
    ++source_front_;
  }
  target_log_ = source_log_;
  begin(input);
}

void HandoverWorld::begin(InputReader& input) {
  wire::Plan plan;
  plan.order = static_cast<wire::SendOrder>(input.byte() % 4);
  plan.recompute_end = input.up_to(100);
  plan.send_begin = input.up_to(100);
  const std::uint8_t flags = input.byte();
  plan.meet = flags & 1;
  plan.partial_ranges = flags & 2;
  plan.window_s = flags & 4 ? 1 : 0;
  divided_ = flags & 8;
  const Attempt attempt{NodeId("a"), BootId(7), ++attempts_};

  session::SourceHandover::Setup source;
  source.session = SessionId("s");
  source.attempt = attempt;
  source.target = NodeId("b");
  source.plan = plan;
  source.geometry = kGeometry;
  source.self = NodeId("a");
  source_ = std::make_unique<session::SourceHandover>(source, source_log_, source_front_, *this);

  session::TargetHandover::Setup target;
  target.session = source.session;
  target.attempt = attempt;
  target.source = source.self;
  target.self = source.target;
  target.plan = plan;
  target.consistency = static_cast<wire::Consistency>(input.byte() % 3);
  target.exact_generated_chunks = flags & 16;
  target.exact_single_step = flags & 32;
  target.last_position = kMostTokens;
  target.run_tokens = 1 + input.up_to(63);
  target.step = some_time(input) + Seconds(0.001);
  target.interval = some_time(input);
  target.prefill_per_token = some_time(input) + Seconds(0.0001);
  target.prefer_exact_wait = some_time(input);
  target.row_wire = some_time(input);
  exact_ = target.consistency == wire::Consistency::kExact;
  const auto front = static_cast<TokenPosition>(engine_.kv.size());
  target_ = std::make_unique<session::TargetHandover>(target, target_log_, staged_, front, engine_);
  wire::HandoverRequestAcknowledge ack;
  ack.session = source.session;
  ack.attempt = attempt;
  ack.held = target_->held().ranges;
  enqueue(to_source_, std::move(ack));
  target_->advance();
  told_target();
}

void HandoverWorld::told_target() {
  if (target_ && !target_->source_lost() && to_source_.size() < 8) {
    enqueue(to_source_, target_->progress());
  }
}

void HandoverWorld::sample() {
  if (!source_decodes() || source_log_.size() >= kMostTokens) return;
  if (source_front_ + 1 < source_log_.size()) {  // still in its prompt
    source_->on_front(++source_front_);
    return;
  }
  source_log_.append(id_at(source_log_.size()), NodeId("a"));
  source_->on_tokens(wire::FinishReason::kNone);
  source_->on_front(++source_front_);
}

void HandoverWorld::pause(bool has_kv) {
  using State = session::SourceHandover::State;
  if (!source_ || synced_) return;
  if (source_->state() == State::kCancelling || source_->state() == State::kOver) return;
  pausing_ = false;
  synced_ = true;
  const auto finish = has_kv ? wire::FinishReason::kNone : wire::FinishReason::kStop;
  source_->on_paused(has_kv ? source_front_ : 0, finish, has_kv, Duration{0});
}

void HandoverWorld::export_next() {
  if (exports_.empty()) return;
  const kv::TokenRange range = exports_.front();
  exports_.pop_front();
  if (source_) source_->on_exported(range, rows_of(source_log_, range));
}

void HandoverWorld::rank_now(InputReader& input) {
  if (!std::exchange(ranking_, false) || !source_) return;
  std::vector<TokenPosition> order(source_front_);
  std::iota(order.begin(), order.end(), 0u);
  if (order.empty()) return;
  std::rotate(order.begin(), order.begin() + input.up_to(source_front_ - 1), order.end());
  source_->on_ranked(std::move(order));
}

bool HandoverWorld::deliver_to_target() {
  if (to_target_.empty()) return false;
  const wire::Message message = std::move(to_target_.front());
  to_target_.pop_front();
  if (!target_) return true;
  if (const auto* update = std::get_if<wire::TokenUpdate>(&message)) {
    if (update->attempt == target_->attempt()) (void)target_->on_tokens(*update);
  } else if (const auto* status = std::get_if<wire::SnStatusTransfer>(&message)) {
    if (status->attempt != target_->attempt() || target_->status_known()) return true;
    finished_ = finished_ || status->finish != wire::FinishReason::kNone;
    target_->on_status(*status);
  } else if (const auto* cancel = std::get_if<wire::HandoverCancel>(&message)) {
    if (cancel->attempt != target_->attempt()) return true;
    if (attached_) {
      claim();  // rule 6
    } else {
      enqueue(to_source_, wire::HandoverCancelAck{cancel->session, cancel->attempt});
      target_.reset();
    }
  }
  told_target();
  return true;
}

bool HandoverWorld::deliver_to_source() {
  if (to_source_.empty()) return false;
  const wire::Message message = std::move(to_source_.front());
  to_source_.pop_front();
  if (!source_) return true;
  if (const auto* ack = std::get_if<wire::HandoverRequestAcknowledge>(&message)) {
    if (ack->attempt == source_->attempt()) source_->on_acknowledged(*ack);
  } else if (const auto* progress = std::get_if<wire::PreparationProgress>(&message)) {
    if (progress->attempt == source_->attempt()) source_->on_progress(*progress);
  } else if (const auto* success = std::get_if<wire::HandoverSuccess>(&message)) {
    if (success->attempt != source_->attempt() || pausing_) return true;
    if (source_->state() == session::SourceHandover::State::kOver) return true;
    pausing_ = source_->claim(success->epoch);
  } else if (const auto* over = std::get_if<wire::HandoverCancelAck>(&message)) {
    if (over->attempt == source_->attempt()) source_->on_cancel_acknowledged();
  }
  return true;
}

bool HandoverWorld::deliver_kv(bool keep) {
  if (kv_.empty()) return false;
  auto [header, rows] = kv_.front();
  if (!keep) {
    kv_.pop_front();
    if (source_) source_->on_drained();
  }
  if (target_) {
    (void)target_->on_rows(header, std::move(rows));
    told_target();
  }
  return true;
}

void HandoverWorld::claim() {
  if (!target_ || target_->source_lost()) return;
  wire::HandoverSuccess success;
  success.session = SessionId("s");
  success.epoch = Epoch(epoch_);
  success.attempt = target_->attempt();
  enqueue(to_source_, std::move(success));
}

// The UE comes, with all ids that it has: what it has beyond this node's log is adopted, and where
// they differ its own win (rule 5).
void HandoverWorld::attach(InputReader& input) {
  if (!target_ || finished_) return;
  ++epoch_;
  if (input.one_in(4)) {
    const TokenPosition prompt = target_log_.prompt_tokens();
    const TokenPosition same = prompt + input.up_to(target_log_.size() - prompt);
    std::vector<TokenId> ids = target_log_.copy(prompt, same);
    for (std::uint32_t n = input.up_to(6); n > 0 && prompt + ids.size() < kMostTokens; --n) {
      const auto position = prompt + static_cast<TokenPosition>(ids.size());
      ids.push_back(input.one_in(4) ? 7 : id_at(position));
    }
    const TokenPosition agree = target_log_.agrees_until(prompt, ids);
    if (agree < std::min<std::size_t>(target_log_.size(), prompt + ids.size())) {
      honest_ = false;
      target_log_.truncate(agree);
      staged_.drop_from(agree);
      target_->on_log_cut(agree);
    }
    for (TokenPosition p = target_log_.size(); p < prompt + ids.size(); ++p) {
      // What nobody has sampled yet no UE can have.
      honest_ = honest_ && ids[p - prompt] == id_at(p) && p < source_log_.size();
      target_log_.append(ids[p - prompt], NodeId("a"));
    }
  }
  attached_ = true;
  target_->on_attach();
  claim();
  told_target();
}

void HandoverWorld::lose_link(bool resume, bool other_boot) {
  to_target_.clear();
  to_source_.clear();
  kv_.clear();
  if (!resume) return lose_source();
  if (!source_) return;
  using State = session::SourceHandover::State;
  const State state = source_->state();
  const bool early =
      state == State::kRequested || state == State::kPreparing || state == State::kCancelling;
  const bool holds = target_ && !other_boot && target_->attempt() == source_->attempt();
  if (early && (!holds || state == State::kCancelling)) {
    source_.reset();
  } else if (holds) {
    const wire::HeldAttempt held = target_->held();
    source_->on_resynchronized(&held);
  } else {
    source_->on_resynchronized(nullptr);
  }
  if (other_boot && target_ && attached_) lose_source();
  if (attached_) claim();
}

void HandoverWorld::lose_source() {
  source_.reset();
  if (target_ && attached_ && !target_->source_lost()) target_->on_source_lost();
}

// Messages that the codec lets through, and no honest peer sends.
void HandoverWorld::lie(InputReader& input) {
  honest_ = false;
  const auto position = [&] { return input.up_to(300); };
  switch (input.byte() % 5) {
    case 0: {
      if (!source_) return;
      wire::PreparationProgress progress;
      progress.front = position();
      progress.prefill_goal = position();
      progress.follows = input.one_in(2);
      source_->on_progress(progress);
      return;
    }
    case 1: {
      if (!source_) return;
      wire::HandoverRequestAcknowledge ack;
      const TokenPosition first = position();
      ack.held.push_back({first, first + 1 + position()});
      source_->on_acknowledged(ack);
      return;
    }
    case 2: {
      if (!target_) return;
      wire::TokenUpdate update;
      update.first = position();
      for (std::uint32_t n = input.up_to(5); n > 0; --n) {
        if (update.first + update.ids.size() < kMostTokens) update.ids.push_back(input.byte());
      }
      (void)target_->on_tokens(update);
      return;
    }
    case 3: {
      if (!target_) return;
      wire::KvBlock block;
      block.first = position();
      block.count = 1 + position();
      const TokenPosition end = block.first + block.count;
      block.lineage = Lineage(input.byte() % 2);
      const bool right = input.one_in(2) && end <= target_log_.size() && end <= source_log_.size();
      // Rows themselves are believed: only those that are the log's own come under its hash.
      if (right && target_log_.hash(end) != source_log_.hash(end)) return;
      block.token_hash = right ? source_log_.hash(end) : input.byte();
      const kv::Bytes rows = right ? rows_of(source_log_, {block.first, end})
                                   : kv::Bytes(block.count * kGeometry.bytes_per_token());
      (void)target_->on_rows(block, rows);
      return;
    }
    default: {
      if (!target_ || target_->status_known()) return;
      wire::SnStatusTransfer status;
      status.n = position();
      status.first = position();
      status.has_kv = input.one_in(2);
      for (std::uint32_t n = input.up_to(5); n > 0; --n) {
        if (status.first + status.ids.size() < kMostTokens) status.ids.push_back(input.byte());
      }
      target_->on_status(status);
    }
  }
}

void HandoverWorld::step(InputReader& input) {
  if (!complete_) choose(input);
  check_complete();
}

void HandoverWorld::choose(InputReader& input) {
  switch (input.byte() % 20) {
    case 0:
    case 1:
      sample();
      return;
    case 2:
    case 3:
      deliver_to_target();
      return;
    case 4:
    case 5:
      deliver_to_source();
      return;
    case 6:
    case 7:
      deliver_kv(false);
      return;
    case 8:
      deliver_kv(true);  // twice
      return;
    case 9:
      export_next();
      return;
    case 10:
    case 11: {
      const bool wrong = input.one_in(8);
      if (wrong) honest_ = false;
      const auto next = id_at(static_cast<TokenPosition>(engine_.kv.size()));
      engine_.go_on(1 + input.up_to(63), wrong ? 5 : next);
      told_target();
      return;
    }
    case 12:
      attach(input);
      return;
    case 13:
      if (pausing_ || input.one_in(4)) pause(!input.one_in(8));
      return;
    case 14:
      // Once frozen it is not the source's to cancel.
      if (source_ && !synced_ && !pausing_) source_->cancel(wire::Cause::kWithdrawn);
      return;
    case 15: {
      const bool resume = !input.one_in(4);
      lose_link(resume, input.one_in(4));
      return;
    }
    case 16:
      // Nothing came for long: whatever still comes then, the target goes on alone.
      if (target_ && attached_ && target_->status_known()) target_->on_source_lost();
      return;
    case 17:
      budget_ = input.one_in(2) ? 0 : 1 + input.byte();
      may_follow_ = input.one_in(2);
      id_age_ = std::chrono::milliseconds(input.byte());
      if (target_) target_->advance();
      return;
    case 18:
      rank_now(input);
      if (source_ && divided_) (void)source_->send_next();
      return;
    default:
      if (input.one_in(3)) {
        lie(input);
      } else if (!target_ && !engine_.busy() && source_decodes() && !attached_) {
        // Asked again: what an earlier attempt left counts as far as its ids are the source's.
        const TokenPosition same = source_log_.agrees_until(0, target_log_.ids());
        if (same < target_log_.size()) staged_.clear();
        target_log_ = source_log_;
        if (engine_.kv.size() > same) engine_.kv.resize(same);
        if (engine_.kv.size() >= source_log_.size()) engine_.kv.resize(source_log_.size() - 1);
        exports_.clear();
        to_target_.clear();
        to_source_.clear();
        kv_.clear();
        pausing_ = ranking_ = false;
        begin(input);
      }
  }
}

void HandoverWorld::end_well() {
  if (!target_ || complete_) return;  // cancelled or void, and nobody came; or over
  InputReader nothing(nullptr, 0);
  budget_ = 1000;
  if (!attached_) attach(nothing);
  if (finished_) return;  // only the tail of its log is left to deliver
  if (!source_ && !target_->source_lost()) target_->on_source_lost();
  for (int round = 0; round < 4000 && !complete_; ++round) {
    if (!go_on_well(nothing)) {
      if (!target_->status_known() && source_ && round < 2000) {
        claim();  // asked again
      } else {
        target_->on_source_lost();  // what node/ does after a stall
      }
    }
    check_complete();
    if (finished_) return;
  }
  require(complete_);
}

// One thing that is due. False when nothing is.
bool HandoverWorld::go_on_well(InputReader& nothing) {
  if (engine_.busy()) {
    engine_.go_on(64, id_at(static_cast<TokenPosition>(engine_.kv.size())));
    return true;
  }
  if (pausing_) {
    pause(true);
    return true;
  }
  rank_now(nothing);
  if (!exports_.empty()) {
    export_next();
    return true;
  }
  if (source_ && divided_ && source_->send_next()) return true;
  return deliver_to_source() || deliver_to_target() || deliver_kv(false);
}

// The session goes on from here, and the machine is done with.
void HandoverWorld::check_complete() {
  if (!target_ || target_->state() != session::TargetHandover::State::kComplete) return;
  complete_ = true;
  const TokenPosition known = target_log_.size() - 1;
  require(engine_.kv.size() >= known && engine_.kv.size() <= known + 2);  // two ahead
  for (TokenPosition p = 0; p < known; ++p) require(engine_.kv[p] == target_log_.hash(p + 1));
  require(target_->front() == engine_.kv.size());
  if (honest_ && exact_) require(!target_->counts().inexact);
}

}  // namespace pallas::fuzz
