#pragma once
// A Clock whose time moves only when its owner says so. Events that fall on the same instant run in
// the order in which they were scheduled, so a run is a function of its inputs.
//
// A heap of (instant, order) over slots that hold the callbacks; a cancelled timer leaves its key
// in the heap until it comes up or the heap is mostly such keys. One thread.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "sim/callback.h"

namespace pallas::sim {

class VirtualClock : public Clock {
 public:
  TimePoint now() const override { return now_; }
  // A time in the past runs at the present instant, after what is scheduled there already.
  TimerId at(TimePoint when, std::function<void()> callback) override {
    return schedule(when, Callback(std::move(callback)));
  }
  void cancel(TimerId timer) override;
  // As at(), for callables that need no allocation (sim/callback.h).
  TimerId schedule(TimePoint when, Callback callback);
  TimerId schedule_after(Duration delay, Callback callback) {
    return schedule(now_ + delay, std::move(callback));
  }

  // Runs the earliest event, moving time to it. False when there is none.
  bool run_next();
  // Runs everything due up to and including `when`, then stands at `when`.
  void run_until(TimePoint when);
  void run_for(Duration span) { run_until(now_ + span); }
  // Runs events until `done` holds (checked before the first and after each). False when it does
  // not hold within `limit` of virtual time or no event is left.
  bool run_until(const std::function<bool()>& done, Duration limit);
  // Runs until no event is left. False when some are left after `limit` of virtual time.
  bool run_until_idle(Duration limit);

  std::size_t pending() const { return live_; }
  std::uint64_t events_run() const { return events_run_; }

 private:
  struct Key {
    TimePoint when;
    std::uint64_t order;  // ascends, so it breaks ties
    std::uint32_t slot;
    std::uint32_t use;  // of the slot; another one: this timer was cancelled
    bool before(const Key& other) const {
      return when != other.when ? when < other.when : order < other.order;
    }
  };
  struct Slot {
    Callback callback;
    std::uint32_t use = 1;
  };

  bool stale(const Key& key) const { return slots_[key.slot].use != key.use; }
  // Drops cancelled keys from the top; null when nothing is left.
  const Key* earliest();
  void free_slot(std::uint32_t slot);
  void pop();
  void sift_up(std::size_t at);
  void sift_down(std::size_t at);
  void compact();

  TimePoint now_{};
  std::uint64_t order_ = 0;
  std::uint64_t events_run_ = 0;
  std::size_t live_ = 0;
  std::vector<Key> heap_;  // four children a node
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
};

}  // namespace pallas::sim
