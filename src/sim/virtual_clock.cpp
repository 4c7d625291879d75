#include "sim/virtual_clock.h"

#include <algorithm>

namespace pallas::sim {
namespace {

constexpr std::size_t kChildren = 4;
// Below this many keys the cancelled ones do not matter.
constexpr std::size_t kCompactFrom = 256;

constexpr TimerId id_of(std::uint32_t slot, std::uint32_t use) {
  return (TimerId{use} << 32) | slot;  // use >= 1, so it is never 0
}

}  // namespace

TimerId VirtualClock::schedule(TimePoint when, Callback callback) {
  std::uint32_t slot = 0;
  if (free_.empty()) {
    slot = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  slots_[slot].callback = std::move(callback);
  heap_.push_back({std::max(when, now_), ++order_, slot, slots_[slot].use});
  ++live_;
  sift_up(heap_.size() - 1);
  return id_of(slot, slots_[slot].use);
}

void VirtualClock::cancel(TimerId timer) {
  const auto slot = static_cast<std::uint32_t>(timer);
  if (slot >= slots_.size() || slots_[slot].use != static_cast<std::uint32_t>(timer >> 32)) return;
  free_slot(slot);
  --live_;
  if (heap_.size() > kCompactFrom && heap_.size() > 2 * live_) compact();
}

void VirtualClock::free_slot(std::uint32_t slot) {
  Slot& s = slots_[slot];
  if (++s.use == 0) s.use = 1;
  free_.push_back(slot);
  // Last: what it captured may cancel or schedule as it goes.
  const Callback dropped = std::move(s.callback);
}

bool VirtualClock::run_next() {
  const Key* const top = earliest();
  if (top == nullptr) return false;
  now_ = top->when;
  // Taken out before it runs: the callback may cancel or schedule anything.
  const std::uint32_t slot = top->slot;
  Callback callback = std::move(slots_[slot].callback);
  if (++slots_[slot].use == 0) slots_[slot].use = 1;
  free_.push_back(slot);
  pop();
  --live_;
  ++events_run_;
  callback();
  return true;
}

void VirtualClock::run_until(TimePoint when) {
  for (const Key* next = earliest(); next != nullptr && next->when <= when; next = earliest()) {
    run_next();
  }
  now_ = std::max(now_, when);
}

bool VirtualClock::run_until(const std::function<bool()>& done, Duration limit) {
  const TimePoint end = now_ + limit;
  while (!done()) {
    const Key* const next = earliest();
    if (next == nullptr || next->when > end) return false;
    run_next();
  }
  return true;
}

bool VirtualClock::run_until_idle(Duration limit) {
  const TimePoint end = now_ + limit;
  for (const Key* next = earliest(); next != nullptr; next = earliest()) {
    if (next->when > end) return false;
    run_next();
  }
  return true;
}

const VirtualClock::Key* VirtualClock::earliest() {
  while (!heap_.empty() && stale(heap_.front())) pop();
  return heap_.empty() ? nullptr : heap_.data();
}

void VirtualClock::pop() {
  heap_.front() = heap_.back();
  heap_.pop_back();
  if (!heap_.empty()) sift_down(0);
}

void VirtualClock::sift_up(std::size_t at) {
  const Key key = heap_[at];
  while (at > 0) {
    const std::size_t parent = (at - 1) / kChildren;
    if (!key.before(heap_[parent])) break;
    heap_[at] = heap_[parent];
    at = parent;
  }
  heap_[at] = key;
}

void VirtualClock::sift_down(std::size_t at) {
  const Key key = heap_[at];
  const std::size_t size = heap_.size();
  for (;;) {
    const std::size_t first = at * kChildren + 1;
    if (first >= size) break;
    const std::size_t last = std::min(first + kChildren, size);
    std::size_t least = first;
    for (std::size_t child = first + 1; child < last; ++child) {
      if (heap_[child].before(heap_[least])) least = child;
    }
    if (!heap_[least].before(key)) break;
    heap_[at] = heap_[least];
    at = least;
  }
  heap_[at] = key;
}

// Keys are told apart by (when, order) alone, so the heap's shape changes no order of events.
void VirtualClock::compact() {
  std::erase_if(heap_, [this](const Key& key) { return stale(key); });
  if (heap_.size() < 2) return;
  for (std::size_t at = (heap_.size() - 2) / kChildren + 1; at-- > 0;) sift_down(at);
}

}  // namespace pallas::sim
