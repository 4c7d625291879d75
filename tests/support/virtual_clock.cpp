#include "virtual_clock.h"

#include <algorithm>

namespace pallas::test {

TimerId VirtualClock::at(TimePoint when, std::function<void()> callback) {
  const TimerId id = ++last_id_;
  when = std::max(when, now_);
  events_.emplace(Key{when, id}, std::move(callback));
  when_.emplace(id, when);
  return id;
}

void VirtualClock::cancel(TimerId timer) {
  const auto found = when_.find(timer);
  if (found == when_.end()) return;
  events_.erase(Key{found->second, timer});
  when_.erase(found);
}

bool VirtualClock::run_next() {
  if (events_.empty()) return false;
  // Taken out before it runs: the callback may cancel or schedule anything.
  auto event = events_.extract(events_.begin());
  now_ = event.key().first;
  when_.erase(event.key().second);
  ++events_run_;
  event.mapped()();
  return true;
}

void VirtualClock::run_until(TimePoint when) {
  while (!events_.empty() && events_.begin()->first.first <= when) run_next();
  now_ = std::max(now_, when);
}

bool VirtualClock::run_until(const std::function<bool()>& done, Duration limit) {
  const TimePoint end = now_ + limit;
  while (!done()) {
    if (events_.empty() || events_.begin()->first.first > end) return false;
    run_next();
  }
  return true;
}

bool VirtualClock::run_until_idle(Duration limit) {
  const TimePoint end = now_ + limit;
  while (!events_.empty()) {
    if (events_.begin()->first.first > end) return false;
    run_next();
  }
  return true;
}

}  // namespace pallas::test
