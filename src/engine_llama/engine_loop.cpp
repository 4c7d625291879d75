#include "engine_llama/engine_loop.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

namespace pallas::engine {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

template <class T>
T* head_as(std::deque<Command>& queue) {
  return queue.empty() ? nullptr : std::get_if<T>(&queue.front().what);
}
template <class T>
const T* head_as(const std::deque<Command>& queue) {
  return queue.empty() ? nullptr : std::get_if<T>(&queue.front().what);
}

// Does the head of the queue wait for a call of its own?
bool wants_chunk(const std::deque<Command>& queue) {
  if (head_as<command::Prefill>(queue) != nullptr) return true;
  const auto* rank = head_as<command::Rank>(queue);
  return rank != nullptr && rank->request.ordering == Ordering::kObservationWindow;
}

Failure not_at_front(const char* what, std::uint64_t at, TokenPosition front) {
  return fail(Errc::kOutOfOrder, std::string(what) + " at position " + std::to_string(at) +
                                     ", the front is " + std::to_string(front));
}

// A batch of more tokens than this costs no less for each: let a chunk that must be short still
// make progress.
constexpr TokenPosition kSmallestChunk = 8;

// In which the node has heard of a token or of rows and said what is next: much less than a step.
constexpr Duration kReaction = std::chrono::microseconds(300);
// Of a handover's end: the last rows, and the command to decode.
constexpr int kMostReactions = 3;

}  // namespace

TimePoint EngineLoop::Decoding::due() const {
  if (params.max_token_rate.value <= 0) return first_due;
  return first_due +
         to_duration(Seconds(static_cast<double>(sampled) / params.max_token_rate.value));
}

EngineLoop::EngineLoop(const LlamaModel& model, Decoder& decoder, LoopConfig config,
                       Mailbox& mailbox, Emit emit)
    : model_(model),
      decoder_(decoder),
      config_(std::move(config)),
      mailbox_(mailbox),
      emit_(std::move(emit)),
      stream_taken_(decoder.streams(), false) {}

void EngineLoop::run() {
  for (;;) {
    const bool wait = !has_work();
    if (!mailbox_.take(incoming_, wait, next_due())) return;
    take_commands();
    bytes_left_ =
        std::max(config_.transfer_bytes_per_step, decoder_.rows().geometry().bytes_per_token());
    settle_all();
    await_commands();
    decode_batch();
    flush();  // tokens do not wait for a chunk
    await_commands();
    prefill_chunk();
    flush();
  }
}

void EngineLoop::settle_all() {
  for (auto& [id, slot] : slots_) settle(id, slot);
  flush();
}

// Whoever takes rows out of a session that decodes wants the newest as soon as it is told of it,
// and a session whose rows have come wants to decode. If the next step began at once, they would
// wait until its end.
// Sessions that take one step a command ask for the next one after another: the first to ask would
// have a step alone, and the others would wait for it.
void EngineLoop::await_commands() {
  int singly = 0;
  for (const auto& [id, slot] : slots_) singly += slot.steps_singly ? 1 : 0;
  bool decoding = false;
  for (int round = 0; round < kMostReactions + singly; ++round) {
    bool expected = false;
    decoding = false;
    for (auto& [id, slot] : slots_) {
      decoding = decoding || slot.decoding;
      expected = std::exchange(slot.rows_moved, false) || slot.steps_singly || expected;
    }
    if (!decoding || !expected) break;
    if (!mailbox_.take(incoming_, true, steady_now() + kReaction) || incoming_.empty()) break;
    take_commands();
    settle_all();
  }
  if (!decoding) return;
  for (auto& [id, slot] : slots_) slot.steps_singly = false;  // who has not asked by now waits
}

void EngineLoop::take_commands() {
  for (Command& command : incoming_) accept(std::move(command));
  incoming_.clear();
}

void EngineLoop::accept(Command command) {
  if (const auto* open = std::get_if<command::Open>(&command.what)) {
    // The node counts slots, so a stream is free: releases come before.
    const auto free = std::find(stream_taken_.begin(), stream_taken_.end(), false);
    *free = true;
    Slot slot;
    slot.stream = static_cast<std::uint32_t>(free - stream_taken_.begin());
    slot.reserved = open->reserved;
    slots_.emplace(command.slot, std::move(slot));
    return;
  }
  const auto found = slots_.find(command.slot);
  if (found == slots_.end()) return;
  Slot& slot = found->second;
  if (std::holds_alternative<command::Release>(command.what)) {
    decoder_.truncate(slot.stream, 0);
    stream_taken_[slot.stream] = false;
    slots_.erase(found);
    return;
  }
  if (slot.failed) return;
  if (std::holds_alternative<command::Abort>(command.what)) {
    const auto computes = [](const Command& c) {
      return std::holds_alternative<command::Prefill>(c.what) ||
             std::holds_alternative<command::Replay>(c.what);
    };
    if (!slot.queue.empty() && computes(slot.queue.front())) pop(slot);
    std::erase_if(slot.queue, computes);
  }
  slot.queue.push_back(std::move(command));
}

void EngineLoop::settle(SlotId id, Slot& slot) {
  while (!slot.failed && !slot.queue.empty()) {
    Command& head = slot.queue.front();
    if (!slot.begun) {
      if (const Status valid = check(slot, head); !valid) return fail_slot(id, slot, valid.error());
      slot.begun = true;
    }
    bool finished = true;
    std::visit(Overloaded{
                   [&](command::Prefill& c) {
                     finished = c.ids.empty();
                     if (finished) emit(id, event::Prefilled{slot.front, Duration{0}});
                   },
                   [&](command::Replay& c) {
                     finished = c.ids.empty();
                     if (finished) emit(id, event::Replayed{slot.front, Duration{0}});
                   },
                   [&](command::Attach&) { finished = move_rows(id, slot, head); },
                   [&](command::Scatter& c) { finished = scatter_rows(id, slot, c); },
                   [&](command::Export&) { finished = move_rows(id, slot, head); },
                   [&](command::Rank& c) { finished = rank_positions(id, slot, c.request); },
                   [&](command::Truncate& c) {
                     decoder_.truncate(slot.stream, c.front);
                     slot.front = c.front;
                     emit(id, event::Truncated{slot.front});
                   },
                   [&](command::Decode& c) {
                     if (const Status status = begin_decode(slot, c); !status) {
                       fail_slot(id, slot, status.error());
                     }
                   },
                   [&](command::Pause&) {
                     slot.decoding.reset();
                     emit(id, event::Paused{slot.front});
                   },
                   [&](command::Abort&) { emit(id, event::Paused{slot.front}); },
                   [&](command::Open&) {},
                   [&](command::Release&) {},
               },
               head.what);
    if (slot.failed || !finished) return;
    pop(slot);
  }
}

Status EngineLoop::check(const Slot& slot, const Command& command) const {
  const bool while_decoding = std::holds_alternative<command::Pause>(command.what) ||
                              std::holds_alternative<command::Export>(command.what) ||
                              std::holds_alternative<command::Rank>(command.what);
  if (slot.decoding && !while_decoding) return fail(Errc::kOutOfOrder, "the slot decodes");
  const TokenPosition front = slot.front;
  return std::visit(
      Overloaded{
          [&](const command::Prefill& c) -> Status {
            if (c.first != front) return not_at_front("prefill", c.first, front);
            return check_ids(slot, c.first, c.ids);
          },
          [&](const command::Replay& c) -> Status {
            if (c.first != front) return not_at_front("replay", c.first, front);
            return check_ids(slot, c.first, c.ids);
          },
          [&](const command::Attach& c) -> Status {
            if (c.first != front) return not_at_front("attach", c.first, front);
            if (c.count > slot.reserved - front) {
              return fail(Errc::kContextExceeded, "attach of " + std::to_string(c.count) +
                                                      " positions at " + std::to_string(front) +
                                                      " exceeds the reservation");
            }
            return decoder_.rows().check(c.rows, c.count);
          },
          [&](const command::Scatter& c) -> Status {
            const auto& ranges = c.positions.ranges();
            if (!ranges.empty() && ranges.front().begin < front) {
              return not_at_front("attach", ranges.front().begin, front);
            }
            if (!ranges.empty() && ranges.back().end > slot.reserved) {
              return fail(Errc::kContextExceeded, "attach up to position " +
                                                      std::to_string(ranges.back().end) +
                                                      " exceeds the reservation");
            }
            return decoder_.rows().check(c.rows, c.positions.total());
          },
          [&](const command::Rank& c) -> Status { return check_rank(slot, c.request); },
          [&](const command::Export& c) -> Status {
            if (!c.range.empty() && c.range.end > front) {
              return fail(Errc::kOutOfOrder, "export up to " + std::to_string(c.range.end) +
                                                 ", the front is " + std::to_string(front));
            }
            return {};
          },
          [&](const command::Truncate& c) -> Status {
            if (c.front > front) return not_at_front("truncate", c.front, front);
            if (c.front > 0 && !decoder_.rows().holds(slot.stream, {c.front - 1, c.front})) {
              return fail(Errc::kOutOfOrder,
                          "truncate to " + std::to_string(c.front) + ", which follows a hole");
            }
            return {};
          },
          [](const auto&) -> Status { return {}; },
      },
      command.what);
}

Status EngineLoop::check_ids(const Slot& slot, TokenPosition first,
                             const std::vector<TokenId>& ids) const {
  for (const TokenId id : ids) {
    if (id < 0 || id >= decoder_.vocabulary_size()) {
      return fail(Errc::kInvalidArgument,
                  "token id " + std::to_string(id) + " is outside the vocabulary");
    }
  }
  if (ids.size() > slot.reserved - first) {
    return fail(Errc::kContextExceeded, std::to_string(ids.size()) + " tokens at " +
                                            std::to_string(first) + " exceed the reservation of " +
                                            std::to_string(slot.reserved));
  }
  return {};
}

Status EngineLoop::begin_decode(Slot& slot, command::Decode& command) {
  DecodeParams& p = command.params;
  if (p.tokens.empty()) return fail(Errc::kInvalidArgument, "decode without tokens");
  if (p.tokens.size() != slot.front + std::size_t{1}) {
    return not_at_front("decode with its last token", p.tokens.size() - 1, slot.front);
  }
  if (p.prompt_tokens > p.tokens.size()) {
    return fail(Errc::kInvalidArgument, "prompt_tokens is above the number of tokens");
  }
  if (p.last_position < p.tokens.size()) {
    return fail(Errc::kInvalidArgument, "last_position is below the first token to sample");
  }
  if (!(p.max_token_rate.value >= 0) || !std::isfinite(p.max_token_rate.value)) {
    return fail(Errc::kInvalidArgument, "max_token_rate is not a rate");
  }
  for (const TokenId id : p.tokens) {
    if (id < 0 || id >= decoder_.vocabulary_size()) {
      return fail(Errc::kInvalidArgument,
                  "token id " + std::to_string(id) + " is outside the vocabulary");
    }
  }
  slot.steps_singly = false;
  auto sampler = sampler_for(slot, p);
  if (!sampler) return tl::unexpected(sampler.error());
  slot.decoding.emplace(Decoding{std::move(p), std::move(*sampler), command.first_due});
  return {};
}

// A sampler's state follows from the ids. Whoever decodes one token a command asks for the same ids
// and the one just sampled, which the last sampler has taken in already.
Result<TokenSampler> EngineLoop::sampler_for(Slot& slot, const DecodeParams& params) const {
  auto ended = std::exchange(slot.ended, std::nullopt);
  const bool goes_on = ended && ended->params.prompt_tokens == params.prompt_tokens &&
                       ended->params.sampling == params.sampling &&
                       ended->params.tokens == params.tokens;
  if (goes_on) return std::move(ended->sampler);
  return TokenSampler::make(model_.vocab(), params.sampling, params.tokens, params.prompt_tokens);
}

void EngineLoop::pop(Slot& slot) {
  slot.queue.pop_front();
  slot.begun = false;
  slot.done = 0;
  slot.rows = {};
  slot.ranks.reset();
}

void EngineLoop::fail_slot(SlotId id, Slot& slot, Error error) {
  slot.failed = true;
  slot.decoding.reset();
  slot.ended.reset();
  slot.queue.clear();
  slot.rows = {};
  emit(id, event::Failed{std::move(error)});
}

void EngineLoop::decode_batch() {
  struct Member {
    SlotId id;
    Slot* slot;
    bool samples;  // or replays
    Decoder::StepToken token;
  };
  std::vector<Member> members;
  const TimePoint begin = steady_now();
  for (auto& [id, slot] : slots_) {
    if (slot.failed) continue;
    if (slot.decoding && slot.decoding->due() <= begin) {
      if (slot.front >= slot.reserved) {
        fail_slot(
            id, slot,
            {Errc::kContextExceeded,
             "decoded to the end of the " + std::to_string(slot.reserved) + " positions reserved"});
        continue;
      }
      const TokenId input = slot.decoding->params.tokens.back();
      members.push_back({id, &slot, true, {slot.stream, slot.front, input, true}});
    } else if (const auto* replay = head_as<command::Replay>(slot.queue);
               replay != nullptr && slot.begun) {
      const TokenId input = replay->ids[slot.done];
      members.push_back({id, &slot, false, {slot.stream, slot.front, input, false}});
    }
  }
  if (members.empty()) return;
  // Who has just come from another node waits since its last step there.
  const auto waits = [](const Member& m) {
    return m.samples && m.slot->decoding->params.awaited && m.slot->decoding->sampled == 0;
  };
  const auto waiting =
      static_cast<std::size_t>(std::count_if(members.begin(), members.end(), waits));
  if (config_.profile.step_first(waiting, members.size(), members.front().slot->front)) {
    std::erase_if(members, std::not_fn(waits));
  }

  // llama.cpp computes neighbouring streams together only in ascending order.
  std::sort(members.begin(), members.end(),
            [](const Member& a, const Member& b) { return a.token.stream < b.token.stream; });
  std::vector<Decoder::StepToken> tokens;
  for (const Member& m : members) tokens.push_back(m.token);
  if (const Status status = decoder_.step(tokens); !status) {
    for (const Member& m : members) fail_slot(m.id, *m.slot, status.error());
    return;
  }

  std::vector<std::pair<SlotId, Sampled>> sampled;
  for (std::size_t row = 0; row < members.size(); ++row) {
    const Member& m = members[row];
    m.slot->front += 1;
    if (!m.samples) continue;
    const Result<Sampled> token = sample(*m.slot, row);
    if (token) {
      sampled.emplace_back(m.id, *token);
    } else {
      fail_slot(m.id, *m.slot, token.error());
    }
  }
  const Duration step = steady_now() - begin;
  for (auto& [id, token] : sampled) {
    token.step = step;
    token.batch = static_cast<std::uint32_t>(members.size());
    emit(id, token);
  }
  for (const Member& m : members) {
    if (m.samples) continue;
    Slot& slot = *m.slot;
    slot.done += 1;
    if (slot.done == head_as<command::Replay>(slot.queue)->ids.size()) pop(slot);
    emit(m.id, event::Replayed{slot.front, step});
  }
}

Result<Sampled> EngineLoop::sample(Slot& slot, std::size_t row) {
  Decoding& decoding = *slot.decoding;
  DecodeParams& params = decoding.params;
  const std::span<const float> logits = decoder_.logits(row);
  Sampled token;
  token.position = slot.front;
  const auto id = decoding.sampler.sample(logits, token.position - params.prompt_tokens);
  if (!id) return tl::unexpected(id.error());
  token.id = *id;
  token.end_of_generation = decoding.sampler.is_end(token.id);
  token.limit = token.position >= params.last_position;
  if (params.digest_logits) token.logits_digest = XXH3_64bits(logits.data(), logits.size_bytes());
  params.tokens.push_back(token.id);
  decoding.sampled += 1;
  if (token.limit && !token.end_of_generation) {
    slot.steps_singly = decoding.sampled == 1;
    slot.ended = std::move(slot.decoding);
  }
  if (token.end_of_generation || token.limit) slot.decoding.reset();
  return token;
}

void EngineLoop::prefill_chunk() {
  // The first one after the slot served last, round the circle.
  Slot* chosen = nullptr;
  SlotId id;
  const auto choose_from = [&](auto at, auto end) {
    for (; at != end && chosen == nullptr; ++at) {
      Slot& slot = at->second;
      if (slot.failed || !slot.begun || !wants_chunk(slot.queue)) continue;
      chosen = &slot;
      id = at->first;
    }
  };
  choose_from(slots_.upper_bound(last_prefilled_), slots_.end());
  choose_from(slots_.begin(), slots_.end());
  if (chosen == nullptr) return;
  Slot& slot = *chosen;
  last_prefilled_ = id;
  if (head_as<command::Rank>(slot.queue) != nullptr) return observe_window(id, slot);
  const std::vector<TokenId>& ids = head_as<command::Prefill>(slot.queue)->ids;
  const TokenPosition size = chunk_size(slot, ids.size() - slot.done);

  const TimePoint before = steady_now();
  const Status status =
      decoder_.prefill(slot.stream, slot.front, std::span(ids).subspan(slot.done, size));
  if (!status) return fail_slot(id, slot, status.error());
  const Duration busy = steady_now() - before;
  const double expected = config_.profile.prefill_time(slot.front, slot.front + size).count();
  if (expected > 0 && size >= kSmallestChunk) {
    const double ratio = std::clamp(to_seconds(busy).count() / expected, 0.2, 5.0);
    chunk_cost_ += 0.2 * (ratio - chunk_cost_);
  }
  slot.front += size;
  slot.done += size;
  if (slot.done == ids.size()) pop(slot);
  emit(id, event::Prefilled{slot.front, busy});
}

TokenPosition EngineLoop::chunk_size(const Slot& slot, std::size_t remaining) const {
  auto size = static_cast<TokenPosition>(std::min<std::size_t>(config_.chunk_tokens, remaining));
  const std::optional<TimePoint> due = next_due();
  if (!due) return size;
  const Duration limit = std::max(config_.step_budget, *due - steady_now());
  while (size > kSmallestChunk &&
         config_.profile.prefill_time(slot.front, slot.front + size).count() * chunk_cost_ >
             to_seconds(limit).count()) {
    size = std::max(size / 2, kSmallestChunk);
  }
  return size;
}

std::optional<TimePoint> EngineLoop::next_due() const {
  std::optional<TimePoint> earliest;
  for (const auto& [id, slot] : slots_) {
    if (!slot.decoding) continue;
    const TimePoint due = slot.decoding->due();
    if (!earliest || due < *earliest) earliest = due;
  }
  return earliest;
}

// Anything in a queue is at work: what can be done at once was done.
bool EngineLoop::has_work() const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [](const auto& entry) { return !entry.second.queue.empty(); });
}

void EngineLoop::emit(SlotId id, decltype(Event::what) what) {
  events_.push_back({id, std::move(what)});
}

void EngineLoop::flush() {
  if (!events_.empty()) emit_(std::exchange(events_, {}));
}

}  // namespace pallas::engine
