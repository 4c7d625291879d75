#include "engine/fake_engine.h"

#include <algorithm>
#include <string>
#include <utility>

namespace pallas::engine {
namespace {

// Classes of computation, as FakeKv::compute takes them. Two that are proven equal are one.
constexpr std::uint64_t kSingleStepClass = 0;
constexpr std::uint64_t kChunkClass = 1;

// Transfers between two steps take no longer than this in sum, except for the last of them.
constexpr Duration kTransferBudget = std::chrono::milliseconds(3);

bool takes_tokens(FakeEngine::CommandKind kind) {
  return kind == FakeEngine::CommandKind::kPrefill || kind == FakeEngine::CommandKind::kReplay;
}
bool transfers(FakeEngine::CommandKind kind) {
  return kind == FakeEngine::CommandKind::kAttach || kind == FakeEngine::CommandKind::kScatter ||
         kind == FakeEngine::CommandKind::kExport;
}

TimePoint due(const DecodeParams& params, TimePoint first_due, std::uint64_t sampled) {
  if (params.max_token_rate.value <= 0) return first_due;
  return first_due + to_duration(Seconds(sampled / params.max_token_rate.value));
}

}  // namespace

FakeEngine::FakeEngine(Clock& clock, FakeEngineConfig config)
    : clock_(clock),
      config_(std::move(config)),
      weights_(HashInput().add(config_.info.compatibility.model_hash).digest()),
      timer_(clock) {}

// --- commands ---

Result<SlotId> FakeEngine::reserve(TokenPosition tokens) {
  if (tokens > info().context_tokens) {
    return fail(Errc::kContextExceeded, std::to_string(tokens) + " tokens, the context holds " +
                                            std::to_string(info().context_tokens));
  }
  if (free_slots() == 0) {
    return fail(Errc::kResourceExhausted,
                "all " + std::to_string(info().slots) + " slots are taken");
  }
  const SlotId id(++last_slot_);
  slots_.emplace(id, std::make_unique<Slot>(tokens, FakeKv(info().geometry, weights_)));
  ++stats_.reservations;
  return id;
}

std::uint32_t FakeEngine::free_slots() const {
  if (refuse_reservations_ || slots_.size() >= info().slots) return 0;
  return info().slots - static_cast<std::uint32_t>(slots_.size());
}

void FakeEngine::prefill(SlotId slot, TokenPosition first, std::vector<TokenId> tokens) {
  Command command;
  command.kind = CommandKind::kPrefill;
  command.first = first;
  command.tokens = std::move(tokens);
  give(slot, std::move(command));
}

void FakeEngine::replay(SlotId slot, TokenPosition first, std::vector<TokenId> tokens) {
  Command command;
  command.kind = CommandKind::kReplay;
  command.first = first;
  command.tokens = std::move(tokens);
  give(slot, std::move(command));
}

void FakeEngine::abort(SlotId id) {
  Slot* slot = find(id);
  if (slot == nullptr) return;
  std::erase_if(slot->queue, [](const Command& command) {
    return takes_tokens(command.kind) && command.in_flight == 0;
  });
  if (!slot->queue.empty() && slot->queue.front().in_flight > 0) {
    Command& running = slot->queue.front();
    running.tokens.resize(running.done + running.in_flight);
  }
  Command command;
  command.kind = CommandKind::kAbort;
  give(id, std::move(command));
}

void FakeEngine::attach_kv(SlotId slot, TokenPosition first, TokenPosition count, kv::Bytes rows) {
  Command command;
  command.kind = CommandKind::kAttach;
  command.first = first;
  command.count = count;
  command.rows = std::move(rows);
  give(slot, std::move(command));
}

void FakeEngine::attach_scattered(SlotId slot, kv::Coverage positions, kv::Bytes rows) {
  Command command;
  command.kind = CommandKind::kScatter;
  command.count = positions.total();
  command.positions = std::move(positions);
  command.rows = std::move(rows);
  give(slot, std::move(command));
}

void FakeEngine::export_kv(SlotId slot, kv::TokenRange range) {
  Command command;
  command.kind = CommandKind::kExport;
  command.range = range;
  give(slot, std::move(command));
}

void FakeEngine::truncate(SlotId slot, TokenPosition front) {
  Command command;
  command.kind = CommandKind::kTruncate;
  command.first = front;
  give(slot, std::move(command));
}

void FakeEngine::rank(SlotId slot, RankRequest request) {
  Command command;
  command.kind = CommandKind::kRank;
  command.rank = std::move(request);
  give(slot, std::move(command));
}

void FakeEngine::decode(SlotId slot, DecodeParams params) {
  Command command;
  command.kind = CommandKind::kDecode;
  command.decode = std::move(params);
  give(slot, std::move(command));
}

void FakeEngine::pause(SlotId slot) {
  Command command;
  command.kind = CommandKind::kPause;
  give(slot, std::move(command));
}

void FakeEngine::release(SlotId slot) {
  if (slots_.erase(slot) > 0) ++stats_.releases;
}

void FakeEngine::give(SlotId id, Command command) {
  Slot* slot = find(id);
  if (slot == nullptr || slot->failed) return;
  command.given = clock_.now();
  slot->queue.push_back(std::move(command));
  news_ = true;
  wake();
}

FakeEngine::Slot* FakeEngine::find(SlotId slot) {
  const auto found = slots_.find(slot);
  return found == slots_.end() ? nullptr : found->second.get();
}

std::vector<SlotId> FakeEngine::slot_ids() const {
  std::vector<SlotId> ids;
  ids.reserve(slots_.size());
  for (const auto& entry : slots_) ids.push_back(entry.first);
  return ids;
}

// --- the loop ---

void FakeEngine::wake() {
  if (!busy_ && answering_) timer_.arm(Duration{0}, [this] { turn(); });
}

void FakeEngine::run_phase(Seconds cost, std::function<void(Duration)> done) {
  const Duration span = to_duration(cost * slow_factor_);
  stats_.busy += span;
  if (slow_factor_ > 1) slowed_until_ = clock_.now() + span;
  timer_.arm(span, [this, span, done = std::move(done)] {
    if (answering_) {
      done(span);
    } else {
      held_ = [span, done] { done(span); };
    }
  });
}

void FakeEngine::turn() {
  if (!answering_) return;
  busy_ = true;
  news_ = false;
  // The first command pays for loading the model.
  if (!std::exchange(loaded_, true) && info().profile.load > Seconds(0)) {
    run_phase(info().profile.load, [this](Duration) { turn(); });
    return;
  }
  // Event handlers give commands and take slots away, so nothing is iterated but copies of ids.
  for (const SlotId id : slot_ids()) settle(id);
  if (begin_transfer()) return;
  transferred_ = Duration{0};
  if (begin_batch() || begin_chunk()) return;
  if (begin_transfer()) return;  // no step wants its turn, so the budget begins anew
  busy_ = false;
  if (news_) {
    wake();
  } else {
    wait_for_due();
  }
}

void FakeEngine::settle(SlotId id) {
  for (Slot* slot = find(id); slot != nullptr && !slot->queue.empty() && answering_;
       slot = find(id)) {
    Command& head = slot->queue.front();
    if (!head.begun) {
      head.begun = true;
      std::optional<Error>& planned = fail_next_[static_cast<std::size_t>(head.kind)];
      if (planned) {
        const Error error = *planned;
        planned.reset();
        return fail_slot(id, error);
      }
      if (const Status valid = check(*slot, head); !valid) {
        ++stats_.misused;
        return fail_slot(id, valid.error());
      }
    }
    if (transfers(head.kind) || (takes_tokens(head.kind) && !head.tokens.empty())) return;

    Command command = std::move(head);
    slot->queue.pop_front();
    const TokenPosition reached = slot->kv.front();
    switch (command.kind) {
      case CommandKind::kPrefill:
        events_->on_prefilled(id, reached, Duration{0});
        break;
      case CommandKind::kReplay:
        events_->on_replayed(id, reached, Duration{0});
        break;
      case CommandKind::kTruncate:
        slot->kv.truncate(command.first);
        events_->on_truncated(id, command.first);
        break;
      case CommandKind::kRank:
        events_->on_ranked(id, slot->kv.rank(command.rank));
        break;
      case CommandKind::kDecode: {
        const TimePoint first_due = command.given + command.decode.first_due;
        slot->decoding = Decoding{std::move(command.decode), first_due};
        break;
      }
      case CommandKind::kPause:
      case CommandKind::kAbort:
        slot->decoding.reset();
        events_->on_paused(id, reached);
        break;
      case CommandKind::kAttach:
      case CommandKind::kScatter:
      case CommandKind::kExport:
        break;  // returned above
    }
  }
}

bool FakeEngine::begin_transfer() {
  if (transferred_ >= kTransferBudget) return false;
  for (const auto& [id, slot] : slots_) {
    if (slot->queue.empty() || !slot->queue.front().begun) continue;
    const Command& head = slot->queue.front();
    if (!transfers(head.kind)) continue;
    const bool out = head.kind == CommandKind::kExport;
    const Seconds per_token =
        out ? info().profile.export_per_token : info().profile.attach_per_token;
    const TokenPosition count = out ? head.range.size() : head.count;
    run_phase(per_token * count, [this, slot_id = id](Duration span) {
      transferred_ += span;
      finish_transfer(slot_id);
    });
    return true;
  }
  return false;
}

void FakeEngine::finish_transfer(SlotId id) {
  if (Slot* slot = find(id); slot != nullptr) {
    Command command = std::move(slot->queue.front());
    slot->queue.pop_front();
    if (command.kind == CommandKind::kExport) {
      stats_.exported_tokens += command.range.size();
      events_->on_exported(id, command.range, slot->kv.read(command.range));
    } else {
      if (command.kind == CommandKind::kAttach) {
        slot->kv.append(command.count, command.rows);
      } else {
        slot->kv.append_scattered(command.positions, command.rows);
      }
      stats_.attached_tokens += command.count;
      events_->on_attached(id, slot->kv.front());
    }
  }
  turn();
}

bool FakeEngine::begin_batch() {
  Batch batch;
  TokenPosition depth = 0;
  for (const auto& [id, slot] : slots_) {
    const auto& decoding = slot->decoding;
    if (decoding && due(decoding->params, decoding->first_due, decoding->sampled) <= clock_.now()) {
      batch.decoding.push_back(id);
    } else if (!slot->queue.empty() && slot->queue.front().begun &&
               slot->queue.front().kind == CommandKind::kReplay) {
      batch.replaying.push_back(id);
      slot->queue.front().in_flight = 1;
    } else {
      continue;
    }
    depth = std::max(depth, slot->kv.front());
  }
  batch.size = static_cast<std::uint32_t>(batch.decoding.size() + batch.replaying.size());
  if (batch.size == 0) return false;
  ++stats_.steps;
  const double share = batch.decoding.empty() ? config_.replay_share : 1;
  const Seconds cost = info().profile.decode_step(batch.size, depth) * share;
  run_phase(cost, [this, batch = std::move(batch)](Duration span) mutable {
    batch.step = span;
    finish_batch(std::move(batch));
  });
  return true;
}

void FakeEngine::finish_batch(Batch batch) {
  for (auto* part : {&batch.decoding, &batch.replaying}) {
    while (!part->empty()) {
      if (!answering_) {
        held_ = [this, batch] { finish_batch(batch); };
        return;
      }
      const SlotId id = part->front();
      part->pop_front();
      if (part == &batch.decoding) {
        decode_one(id, batch.step, batch.size);
      } else {
        replay_one(id, batch.step);
      }
    }
  }
  if (!begin_chunk()) turn();
}

void FakeEngine::decode_one(SlotId id, Duration step, std::uint32_t batch) {
  Slot* slot = find(id);
  if (slot == nullptr || !slot->decoding) return;
  if (slot->kv.front() >= slot->reserved) {
    ++stats_.misused;
    return fail_slot(
        id, {Errc::kContextExceeded, "decoded to the end of the " + std::to_string(slot->reserved) +
                                         " positions reserved"});
  }
  DecodeParams& params = slot->decoding->params;
  slot->kv.compute(params.tokens.back(), kSingleStepClass);
  const std::uint64_t logits = HashInput().add(weights_).add(slot->kv.digest()).digest();

  Sampled token;
  token.position = slot->kv.front();
  token.id = fake_sample(params, logits + (wrong_ ? 1 : 0), config_.end_probability);
  token.end_of_generation = token.id == fake_id::kEnd;
  token.limit = token.position >= params.last_position;
  token.step = step;
  token.batch = batch;
  if (params.digest_logits) token.logits_digest = logits;
  params.tokens.push_back(token.id);
  ++slot->decoding->sampled;
  ++stats_.sampled_tokens;
  if (token.end_of_generation || token.limit) slot->decoding.reset();
  events_->on_sampled(id, token);
}

void FakeEngine::replay_one(SlotId id, Duration step) {
  Slot* slot = find(id);
  if (slot == nullptr || slot->queue.empty()) return;
  Command& command = slot->queue.front();
  slot->kv.compute(command.tokens[command.done], kSingleStepClass);
  command.in_flight = 0;
  if (++command.done == command.tokens.size()) slot->queue.pop_front();
  ++stats_.replayed_tokens;
  events_->on_replayed(id, slot->kv.front(), step);
}

bool FakeEngine::begin_chunk() {
  // The first one after the slot served last, round the circle.
  std::vector<SlotId> ids = slot_ids();
  std::rotate(ids.begin(), std::upper_bound(ids.begin(), ids.end(), last_prefilled_), ids.end());
  for (const SlotId id : ids) {
    Slot& slot = *find(id);
    if (slot.queue.empty() || !slot.queue.front().begun ||
        slot.queue.front().kind != CommandKind::kPrefill) {
      continue;
    }
    Command& command = slot.queue.front();
    const TokenPosition front = slot.kv.front();
    const TokenPosition size = chunk_size(slot, command);
    command.in_flight = size;
    last_prefilled_ = id;
    run_phase(info().profile.prefill_time(front, front + size),
              [this, id](Duration span) { finish_chunk(id, span); });
    return true;
  }
  return false;
}

TokenPosition FakeEngine::chunk_size(const Slot& slot, const Command& command) const {
  auto size = static_cast<TokenPosition>(
      std::min<std::size_t>(std::max<TokenPosition>(info().profile.chunk_tokens, 1),
                            command.tokens.size() - command.done));
  const bool beside_decode = std::any_of(slots_.begin(), slots_.end(), [](const auto& entry) {
    return entry.second->decoding.has_value();
  });
  const Duration limit = config_.chunk_time_beside_decode;
  const TokenPosition front = slot.kv.front();
  while (beside_decode && limit > Duration{0} && size > 1 &&
         to_duration(info().profile.prefill_time(front, front + size) * slow_factor_) > limit) {
    size /= 2;
  }
  return size;
}

void FakeEngine::finish_chunk(SlotId id, Duration busy) {
  if (Slot* slot = find(id); slot != nullptr && !slot->queue.empty()) {
    Command& command = slot->queue.front();
    const std::uint64_t compute_class = chunk_class(slot->kv.front());
    for (; command.in_flight > 0; --command.in_flight) {
      slot->kv.compute(command.tokens[command.done++], compute_class);
      ++stats_.prefilled_tokens;
    }
    if (command.done == command.tokens.size()) slot->queue.pop_front();
    events_->on_prefilled(id, slot->kv.front(), busy);
  }
  turn();
}

void FakeEngine::wait_for_due() {
  std::optional<TimePoint> earliest;
  for (const auto& entry : slots_) {
    const auto& decoding = entry.second->decoding;
    if (!decoding) continue;
    const TimePoint when = due(decoding->params, decoding->first_due, decoding->sampled);
    if (!earliest || when < *earliest) earliest = when;
  }
  if (earliest) timer_.arm_at(*earliest, [this] { turn(); });
}

void FakeEngine::fail_slot(SlotId id, Error error) {
  Slot* slot = find(id);
  slot->failed = true;
  slot->decoding.reset();
  slot->queue.clear();
  ++stats_.failures;
  last_failure_ = error.message;
  events_->on_failed(id, error);
}

std::uint64_t FakeEngine::chunk_class(TokenPosition chunk_begin) const {
  const Capabilities& can = info().capabilities;
  if (can.exact_chunked_generated) return kSingleStepClass;
  return can.exact_chunked_prompt ? kChunkClass : kChunkClass + chunk_begin;
}

std::vector<TokenId> fake_continuation(const FakeEngineConfig& config, DecodeParams params,
                                       std::uint32_t tokens) {
  const std::uint64_t weights = HashInput().add(config.info.compatibility.model_hash).digest();
  const bool one_class = config.info.capabilities.exact_chunked_generated;
  FakeKv kv(config.info.geometry, weights);
  std::vector<TokenId> generated;
  for (std::size_t p = 0; p + 1 < params.tokens.size(); ++p) {
    kv.compute(params.tokens[p], one_class ? kSingleStepClass : kChunkClass);
  }
  while (generated.size() < tokens) {
    kv.compute(params.tokens.back(), kSingleStepClass);
    const std::uint64_t logits = HashInput().add(weights).add(kv.digest()).digest();
    generated.push_back(fake_sample(params, logits, config.end_probability));
    params.tokens.push_back(generated.back());
    if (generated.back() == fake_id::kEnd) break;
  }
  return generated;
}

// --- faults and tests ---

void FakeEngine::fail_next(CommandKind kind, Error error) {
  fail_next_[static_cast<std::size_t>(kind)] = std::move(error);
}

void FakeEngine::resume_answering() {
  answering_ = true;
  if (held_) {
    timer_.arm(Duration{0}, std::exchange(held_, nullptr));
  } else {
    wake();
  }
}

std::optional<TokenPosition> FakeEngine::front(SlotId slot) const {
  const auto found = slots_.find(slot);
  if (found == slots_.end()) return std::nullopt;
  return found->second->kv.front();
}

bool FakeEngine::consistent() const {
  if (slots_.size() > info().slots) return false;
  if (stats_.reservations - stats_.releases != slots_.size()) return false;
  return std::all_of(slots_.begin(), slots_.end(), [](const auto& entry) {
    const Slot& slot = *entry.second;
    if (slot.failed && (slot.decoding || !slot.queue.empty())) return false;
    return slot.kv.front() <= slot.reserved && slot.kv.consistent();
  });
}

}  // namespace pallas::engine
