// The simulated engine's loop: settle commands, transfers, a decode batch, a prefill chunk.

#include <algorithm>
#include <string>
#include <utility>

#include "base/random.h"
#include "sim/engine_impl.h"

namespace pallas::sim {
namespace {

// Transfers between two steps take no longer than this in sum, except for the last of them.
constexpr Duration kTransferBudget = std::chrono::milliseconds(3);
// A slot's id is its order of reservation, then its place in the pool.
constexpr unsigned kPlaceBits = 16;

bool takes_tokens(CommandKind kind) {
  return kind == CommandKind::kPrefill || kind == CommandKind::kReplay;
}
bool transfers(CommandKind kind) {
  return kind == CommandKind::kAttach || kind == CommandKind::kExport;
}

}  // namespace

// --- commands ---

Result<engine::SlotId> Engine::Impl::reserve(TokenPosition tokens) {
  if (tokens > info_.context_tokens) {
    return fail(Errc::kContextExceeded, std::to_string(tokens) + " tokens, the context holds " +
                                            std::to_string(info_.context_tokens));
  }
  if (free_slots() == 0) {
    return fail(Errc::kResourceExhausted,
                "all " + std::to_string(info_.slots) + " slots are taken");
  }
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint16_t>(pool_.size()));
    pool_.push_back(std::make_unique<EngineSlot>());
  }
  const std::uint16_t place = free_.back();
  free_.pop_back();
  ++live_;
  EngineSlot& slot = *pool_[place];
  slot = EngineSlot{};
  slot.id = (++reservations_ << kPlaceBits) | place;
  slot.reserved = tokens;
  return engine::SlotId(slot.id);
}

EngineSlot* Engine::Impl::find(std::uint64_t id) {
  const std::size_t place = id & ((1u << kPlaceBits) - 1);
  if (id == 0 || place >= pool_.size() || pool_[place]->id != id) return nullptr;
  return pool_[place].get();
}

void Engine::Impl::give(engine::SlotId id, EngineCommand command) {
  EngineSlot* const slot = find(id.value);
  if (slot == nullptr || slot->failed) return;
  slot->queue.push_back(std::move(command));
  if (!std::exchange(slot->listed, true)) pending_.push_back(slot->id);
  news_ = true;
  wake();
}

void Engine::Impl::abort(engine::SlotId id) {
  EngineSlot* const slot = find(id.value);
  if (slot == nullptr || slot->failed) return;
  std::erase_if(slot->queue,
                [](const EngineCommand& c) { return takes_tokens(c.kind) && c.in_flight == 0; });
  if (!slot->queue.empty() && slot->queue.front().in_flight > 0) {
    slot->queue.front().count = slot->queue.front().in_flight;
  }
  EngineCommand command;
  command.kind = CommandKind::kAbort;
  give(id, std::move(command));
}

void Engine::Impl::release(engine::SlotId id) {
  EngineSlot* const slot = find(id.value);
  if (slot == nullptr) return;
  stop_decoding(*slot);
  *slot = EngineSlot{};
  free_.push_back(static_cast<std::uint16_t>(id.value & ((1u << kPlaceBits) - 1)));
  --live_;
}

// --- the loop ---

void Engine::Impl::wake() {
  if (!busy_) arm(clock_.now());
}

void Engine::Impl::arm(TimePoint when) {
  clock_.cancel(timer_);
  timer_ = clock_.at(when, [this] {
    timer_ = 0;
    if (phase_ == Phase::kNone) {
      turn();
    } else {
      end_phase();
    }
  });
}

void Engine::Impl::run_phase(Phase phase, Seconds cost) {
  phase_ = phase;
  span_ = to_duration(cost);
  stats.busy += span_;
  arm(clock_.now() + span_);
}

void Engine::Impl::end_phase() {
  switch (std::exchange(phase_, Phase::kNone)) {
    case Phase::kNone:
    case Phase::kLoad:
      break;
    case Phase::kTransfer:
      finish_transfer();
      break;
    case Phase::kBatch:
      finish_batch(span_);
      if (begin_chunk()) return;  // before another step: neither starves the other
      break;
    case Phase::kChunk:
      finish_chunk(span_);
      break;
    case Phase::kFused:
      finish_batch(span_);
      finish_chunk(span_);
      break;
  }
  turn();
}

void Engine::Impl::turn() {
  busy_ = true;
  news_ = false;
  // The first command waits for the model.
  if (!std::exchange(loaded_, true) && model_.profile.load > Seconds(0)) {
    run_phase(Phase::kLoad, model_.profile.load);
    return;
  }
  // Event handlers give commands and take slots away, so only copies of ids are iterated.
  std::vector<std::uint64_t> work = std::move(pending_);
  pending_.clear();
  std::sort(work.begin(), work.end());
  for (const std::uint64_t id : work) {
    if (EngineSlot* const slot = find(id)) slot->listed = false;
    settle(id);
    EngineSlot* const slot = find(id);
    if (slot != nullptr && !slot->queue.empty() && !std::exchange(slot->listed, true)) {
      pending_.push_back(id);
    }
  }
  std::sort(pending_.begin(), pending_.end());
  if (begin_transfer()) return;
  transferred_ = Duration{0};
  if (begin_step() || begin_chunk()) return;
  if (begin_transfer()) return;  // no step wants its turn, so the budget begins anew
  busy_ = false;
  if (news_) {
    wake();
  } else {
    wait_for_due();
  }
}

// Runs the commands at the head of the queue that take no time.
void Engine::Impl::settle(std::uint64_t id) {
  for (EngineSlot* slot = find(id); slot != nullptr && !slot->queue.empty(); slot = find(id)) {
    EngineCommand& head = slot->queue.front();
    if (!std::exchange(head.begun, true)) {
      if (const Status valid = check(*slot, head); !valid) {
        fail_slot(*slot, valid.error());
        return;
      }
    }
    if (takes_tokens(head.kind) && head.count > 0) return;
    if (transfers(head.kind)) {
      const Seconds cost = head.kind == CommandKind::kExport ? model_.profile.export_per_token
                                                             : model_.profile.attach_per_token;
      if (cost.count() > 0) return;
      transfer_slot_ = id;
      finish_transfer();
      continue;
    }
    const EngineCommand command = std::move(head);
    slot->queue.erase(slot->queue.begin());
    const engine::SlotId named(id);
    switch (command.kind) {
      case CommandKind::kPrefill:
        events->on_prefilled(named, slot->front, Duration{0});
        break;
      case CommandKind::kReplay:
        events->on_replayed(named, slot->front, Duration{0});
        break;
      case CommandKind::kTruncate:
        slot->front = command.first;
        events->on_truncated(named, command.first);
        break;
      case CommandKind::kDecode:
        start_decoding(*slot, command.decode);
        break;
      case CommandKind::kPause:
      case CommandKind::kAbort:
        stop_decoding(*slot);
        events->on_paused(named, slot->front);
        break;
      case CommandKind::kRank:
        events->on_ranked(named, command.rank.ordering == engine::Ordering::kRandom
                                     ? engine::random_scores(slot->front, command.rank.seed)
                                     : engine::sinks_recency_scores(slot->front));
        break;
      case CommandKind::kScatter:
        break;  // refused
      case CommandKind::kAttach:
      case CommandKind::kExport:
        break;  // done above
    }
  }
}

void Engine::Impl::start_decoding(EngineSlot& slot, EngineDecoding decoding) {
  // KV came from elsewhere or was rebuilt if ids were generated that this slot did not decode.
  const bool moved = !slot.decoded && decoding.tokens > decoding.prompt_tokens;
  if (moved && model_.activation.count() > 0) {
    const Seconds step = model_.profile.decode_step(1, slot.front);
    decoding.not_before =
        clock_.now() + to_duration(std::max(model_.activation - step, Seconds(0)));
  }
  slot.decoded = true;
  slot.decoding = decoding;
  const TimePoint due = std::max(decoding.first, decoding.not_before);
  decoding_.insert(decoder(slot.id), Decoder{slot.id, due, &slot});
}

void Engine::Impl::stop_decoding(EngineSlot& slot) {
  if (!slot.decoding) return;
  slot.decoding.reset();
  const auto found = decoder(slot.id);
  if (found != decoding_.end() && found->id == slot.id) decoding_.erase(found);
}

// Where this slot is among those that decode, or would be.
std::vector<Engine::Impl::Decoder>::iterator Engine::Impl::decoder(std::uint64_t id) {
  return std::lower_bound(decoding_.begin(), decoding_.end(), id,
                          [](const Decoder& d, std::uint64_t wanted) { return d.id < wanted; });
}

void Engine::Impl::fail_slot(EngineSlot& slot, const Error& error) {
  slot.failed = true;
  stop_decoding(slot);
  slot.queue.clear();
  events->on_failed(engine::SlotId(slot.id), error);
}

bool Engine::Impl::begin_transfer() {
  if (transferred_ >= kTransferBudget) return false;
  for (const std::uint64_t id : pending_) {
    const EngineSlot* const slot = find(id);
    if (slot == nullptr || slot->queue.empty()) continue;
    const EngineCommand& head = slot->queue.front();
    if (!head.begun || !transfers(head.kind)) continue;
    transfer_slot_ = id;
    const bool out = head.kind == CommandKind::kExport;
    const double rows = out ? head.range.size() : static_cast<double>(head.count);
    run_phase(Phase::kTransfer,
              rows * (out ? model_.profile.export_per_token : model_.profile.attach_per_token));
    transferred_ += span_;
    return true;
  }
  return false;
}

void Engine::Impl::finish_transfer() {
  EngineSlot* const slot = find(transfer_slot_);
  if (slot == nullptr || slot->queue.empty()) return;
  const EngineCommand command = std::move(slot->queue.front());
  slot->queue.erase(slot->queue.begin());
  const engine::SlotId id(slot->id);
  if (command.kind == CommandKind::kAttach) {
    slot->front += static_cast<TokenPosition>(command.count);
    stats.attached_tokens += command.count;
    events->on_attached(id, slot->front);
  } else {
    stats.exported_tokens += command.range.size();
    events->on_exported(id, command.range,
                        kv::Bytes(command.range.size() * kStandInBytes, std::byte{}));
  }
}

// A decode batch, with a chunk in the same pass where the model fuses the two.
bool Engine::Impl::begin_step() {
  batch_.clear();
  replays_.clear();
  TokenPosition depth = 0;
  const TimePoint now = clock_.now();
  waiting_.clear();
  for (const Decoder& d : decoding_) {
    if (d.due > now) continue;
    batch_.push_back(d.id);
    depth = std::max(depth, d.slot->front);
    if (d.slot->decoding->awaited && d.slot->decoding->sampled == 0) waiting_.push_back(d.id);
  }
  for (const std::uint64_t id : pending_) {
    const EngineSlot* const slot = find(id);
    if (slot == nullptr || slot->queue.empty()) continue;
    const EngineCommand& head = slot->queue.front();
    if (!head.begun || head.kind != CommandKind::kReplay || slot->decoding) continue;
    replays_.push_back(id);
    depth = std::max(depth, slot->front);
  }
  if (model_.profile.step_first(waiting_.size(), batch_.size() + replays_.size(), depth)) {
    batch_ = waiting_;
    replays_.clear();
  }
  for (const std::uint64_t id : replays_) find(id)->queue.front().in_flight = 1;
  const auto size = static_cast<std::uint32_t>(batch_.size() + replays_.size());
  if (size == 0) return false;
  ++stats.steps;
  const Seconds cost = model_.profile.decode_step(size, depth);
  if (model_.fused_decode_share < 1) {
    if (EngineSlot* const slot = choose_chunk()) {
      const TokenPosition chunk = chunk_size(slot->queue.front());
      slot->queue.front().in_flight = chunk;
      run_phase(Phase::kFused, chunk_cost(*slot, chunk) + model_.fused_decode_share * cost);
      return true;
    }
  }
  run_phase(Phase::kBatch, cost);
  return true;
}

void Engine::Impl::finish_batch(Duration span) {
  const auto size = static_cast<std::uint32_t>(batch_.size() + replays_.size());
  for (const std::uint64_t id : batch_) decode_one(id, span, size);
  for (const std::uint64_t id : replays_) replay_one(id, span);
}

void Engine::Impl::decode_one(std::uint64_t id, Duration span, std::uint32_t batch) {
  EngineSlot* const slot = find(id);
  if (slot == nullptr || !slot->decoding) return;
  if (slot->front >= slot->reserved) {
    fail_slot(*slot,
              {Errc::kContextExceeded, "decoded to the end of the " +
                                           std::to_string(slot->reserved) + " positions reserved"});
    return;
  }
  EngineDecoding& d = *slot->decoding;
  ++slot->front;
  const auto index = static_cast<TokenIndex>(slot->front - d.prompt_tokens);
  engine::Sampled token;
  token.position = slot->front;
  token.end_of_generation = d.ends && index >= d.min_tokens;
  token.id = token.end_of_generation ? kEndToken : sampled_token(d.seed, index);
  token.limit = token.position >= d.last_position;
  token.step = span;
  token.batch = batch;
  if (d.digest) token.logits_digest = mix(d.seed, index) | 1;
  ++d.tokens;
  ++d.sampled;
  ++stats.sampled_tokens;
  if (d.observer != nullptr) d.observer->on_sampled(index, clock_.now());
  if (d.rate > 0) {
    decoder(id)->due = d.first + to_duration(Seconds(static_cast<double>(d.sampled) / d.rate));
  }
  if (token.end_of_generation || token.limit) stop_decoding(*slot);
  events->on_sampled(engine::SlotId(id), token);
}

void Engine::Impl::replay_one(std::uint64_t id, Duration span) {
  EngineSlot* const slot = find(id);
  if (slot == nullptr || slot->queue.empty()) return;
  EngineCommand& command = slot->queue.front();
  ++slot->front;
  command.first = slot->front;
  command.in_flight = 0;
  if (--command.count == 0) slot->queue.erase(slot->queue.begin());
  ++stats.replayed_tokens;
  events->on_replayed(engine::SlotId(id), slot->front, span);
}

// The slot whose prefill is next: the oldest, or the first one after the slot served last.
EngineSlot* Engine::Impl::choose_chunk() {
  EngineSlot* first = nullptr;
  for (const std::uint64_t id : pending_) {
    EngineSlot* const slot = find(id);
    if (slot == nullptr || slot->queue.empty()) continue;
    const EngineCommand& head = slot->queue.front();
    if (!head.begun || head.kind != CommandKind::kPrefill || slot->decoding) continue;
    if (first == nullptr) first = slot;
    if (model_.prefill_fcfs) break;
    if (id > chunk_slot_) {
      first = slot;
      break;
    }
  }
  if (first != nullptr) chunk_slot_ = first->id;
  return first;
}

bool Engine::Impl::begin_chunk() {
  EngineSlot* const slot = choose_chunk();
  if (slot == nullptr) return false;
  busy_ = true;
  const TokenPosition size = chunk_size(slot->queue.front());
  slot->queue.front().in_flight = size;
  run_phase(Phase::kChunk, chunk_cost(*slot, size));
  return true;
}

TokenPosition Engine::Impl::chunk_size(const EngineCommand& command) const {
  TokenPosition size = model_.profile.chunk_tokens;
  if (model_.chunk_beside_decode > 0 && !decoding_.empty()) {
    size = std::min(size, model_.chunk_beside_decode);
  }
  return static_cast<TokenPosition>(std::min<std::uint64_t>(size, command.count));
}

void Engine::Impl::finish_chunk(Duration span) {
  EngineSlot* const slot = find(chunk_slot_);
  if (slot == nullptr || slot->queue.empty()) return;
  EngineCommand& command = slot->queue.front();
  if (command.kind != CommandKind::kPrefill || command.in_flight == 0) return;
  const auto done = static_cast<TokenPosition>(std::exchange(command.in_flight, 0));
  slot->front += done;
  command.first = slot->front;
  command.count -= done;
  stats.prefilled_tokens += done;
  if (command.count == 0) slot->queue.erase(slot->queue.begin());
  const Seconds told = to_seconds(span) / model_.told_prefill_share;
  events->on_prefilled(engine::SlotId(slot->id), slot->front, to_duration(told));
}

void Engine::Impl::wait_for_due() {
  const auto earliest =
      std::min_element(decoding_.begin(), decoding_.end(),
                       [](const Decoder& a, const Decoder& b) { return a.due < b.due; });
  if (earliest != decoding_.end()) arm(earliest->due);
}

}  // namespace pallas::sim
