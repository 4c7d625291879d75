// What the engine thread does with rows that are there: moves them, and ranks their positions.
#include <algorithm>
#include <string>
#include <utility>

#include "engine_llama/engine_loop.h"

namespace pallas::engine {

bool EngineLoop::move_rows(SlotId id, Slot& slot, Command& head) {
  KvRows& rows = decoder_.rows();
  auto* in = std::get_if<command::Attach>(&head.what);
  const kv::TokenRange whole = in != nullptr ? kv::TokenRange{in->first, in->first + in->count}
                                             : std::get<command::Export>(head.what).range;
  const std::uint64_t per_token = rows.geometry().bytes_per_token();

  if (!whole.empty()) {
    const auto affordable =
        static_cast<TokenPosition>(std::min<std::uint64_t>(bytes_left_ / per_token, whole.size()));
    const TokenPosition count = std::min(affordable, whole.size() - slot.done);
    if (count == 0) return false;
    const TokenPosition begin = whole.begin + slot.done;
    const kv::TokenRange part{begin, begin + count};
    Status status;
    if (in != nullptr) {
      status = rows.append(slot.stream, part, whole, in->rows);
    } else {
      if (slot.done == 0) slot.rows.resize(whole.size() * per_token);
      status = rows.copy_out(slot.stream, part, whole, slot.rows);
    }
    if (!status) {
      fail_slot(id, slot, status.error());
      return true;
    }
    if (in != nullptr) slot.front = part.end;
    bytes_left_ -= count * per_token;
    slot.done += count;
    if (slot.done < whole.size()) return false;
  }
  if (in != nullptr) {
    slot.rows_moved = true;
    emit(id, event::Attached{slot.front});
  } else {
    slot.rows_moved = slot.decoding.has_value();
    emit(id, event::Exported{whole, std::move(slot.rows)});
  }
  return true;
}

// A payload of scattered positions is moved run by run. A run's place in it is that of a range that
// begins as many positions below the run as the payload has before it.
bool EngineLoop::scatter_rows(SlotId id, Slot& slot, const command::Scatter& command) {
  KvRows& rows = decoder_.rows();
  const std::uint64_t per_token = rows.geometry().bytes_per_token();
  const TokenPosition total = command.positions.total();
  TokenPosition before = 0;  // positions of the payload below the run
  for (const kv::TokenRange& run : command.positions.ranges()) {
    while (slot.done < before + run.size()) {
      const auto affordable =
          static_cast<TokenPosition>(std::min<std::uint64_t>(bytes_left_ / per_token, total));
      const TokenPosition count = std::min(affordable, before + run.size() - slot.done);
      if (count == 0) return false;
      const TokenPosition begin = run.begin + (slot.done - before);
      const TokenPosition payload = begin - slot.done;
      if (const Status status = rows.append(slot.stream, {begin, begin + count},
                                            {payload, payload + total}, command.rows);
          !status) {
        fail_slot(id, slot, status.error());
        return true;
      }
      slot.front = begin + count;
      slot.done += count;
      bytes_left_ -= count * per_token;
    }
    before += run.size();
  }
  slot.rows_moved = true;
  emit(id, event::Attached{slot.front});
  return true;
}

bool EngineLoop::rank_positions(SlotId id, Slot& slot, const RankRequest& request) {
  const KvRows& rows = decoder_.rows();
  switch (request.ordering) {
    case Ordering::kSinksRecency:
      emit(id, event::Ranked{sinks_recency_scores(slot.front)});
      return true;
    case Ordering::kRandom:
      emit(id, event::Ranked{random_scores(slot.front, request.seed)});
      return true;
    case Ordering::kObservationWindow:
      return false;  // takes its turn among the chunks
    case Ordering::kKeyNorm:
    case Ordering::kKeyDiff:
      break;
  }
  if (!slot.ranks) slot.ranks.emplace(slot.front);
  const TokenPosition count = slot.ranks->count();  // the slot may decode on meanwhile
  const kv::Geometry& geometry = rows.geometry();
  std::vector<float> keys;
  for (; slot.done < geometry.layers && bytes_left_ > 0; ++slot.done) {
    for (std::uint32_t head = 0; head < rows.key_heads(); ++head) {
      rows.read_keys(slot.stream, slot.done, head, count, keys);
      const std::size_t dimension = count == 0 ? 1 : keys.size() / count;
      slot.ranks->add(request.ordering == Ordering::kKeyNorm ? key_norm_scores(keys, dimension)
                                                             : key_diff_scores(keys, dimension));
    }
    bytes_left_ -=
        std::min<std::uint64_t>(bytes_left_, std::uint64_t{count} * geometry.k_row_bytes);
  }
  if (slot.done < geometry.layers) return false;
  emit(id, event::Ranked{slot.ranks->mean()});
  return true;
}

Status EngineLoop::check_rank(const Slot& slot, const RankRequest& request) const {
  if (!decoder_.rows().holds(slot.stream, {0, slot.front})) {
    return fail(Errc::kOutOfOrder, "rank: the cache has holes");
  }
  if (request.ordering != Ordering::kObservationWindow) return {};
  if (auto status = check_window(request); !status) return status;
  return check_ids(slot, slot.front, request.window);
}

void EngineLoop::observe_window(SlotId id, Slot& slot) {
  const auto heads = decoder_.observe(
      slot.stream, slot.front, std::get<command::Rank>(slot.queue.front().what).request.window);
  if (!heads) return fail_slot(id, slot, heads.error());
  pop(slot);
  emit(id, event::Ranked{attention_scores(*heads)});
}

}  // namespace pallas::engine
