#pragma once
// A Clock whose time moves only when a test says so. Events that fall on the same instant run in
// the order in which they were scheduled, so a run is a function of its inputs.

#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/clock.h"

namespace pallas::test {

class VirtualClock : public Clock {
 public:
  TimePoint now() const override { return now_; }
  // A time in the past runs at the present instant, after what is scheduled there already.
  TimerId at(TimePoint when, std::function<void()> callback) override;
  void cancel(TimerId timer) override;

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

  std::size_t pending() const { return events_.size(); }
  std::uint64_t events_run() const { return events_run_; }

 private:
  using Key = std::pair<TimePoint, TimerId>;  // ids ascend, so they break ties

  TimePoint now_{};
  TimerId last_id_ = 0;
  std::uint64_t events_run_ = 0;
  std::map<Key, std::function<void()>> events_;
  std::unordered_map<TimerId, TimePoint> when_;
};

}  // namespace pallas::test
