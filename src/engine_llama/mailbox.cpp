#include "engine_llama/mailbox.h"

#include <chrono>
#include <iterator>

namespace pallas::engine {

TimePoint steady_now() {
  return TimePoint(
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

bool Mailbox::push(Command command, bool always) {
  {
    const std::lock_guard lock(mutex_);
    if (!always && commands_.size() >= capacity_) return false;
    commands_.push_back(std::move(command));
  }
  changed_.notify_one();
  return true;
}

void Mailbox::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_one();
}

bool Mailbox::take(std::vector<Command>& out, bool wait, std::optional<TimePoint> until) {
  std::unique_lock lock(mutex_);
  const auto something = [this] { return closed_ || !commands_.empty(); };
  if (wait && until) {
    changed_.wait_until(lock, std::chrono::steady_clock::time_point(until->time_since_epoch()),
                        something);
  } else if (wait) {
    changed_.wait(lock, something);
  }
  if (closed_) return false;
  std::move(commands_.begin(), commands_.end(), std::back_inserter(out));
  commands_.clear();
  return true;
}

}  // namespace pallas::engine
