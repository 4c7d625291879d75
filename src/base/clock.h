#pragma once
// The port through which all domain code sees time. One thread; callbacks run on that thread.

#include <cstdint>
#include <functional>

#include "base/units.h"

namespace pallas {

using TimerId = std::uint64_t;  // 0 is never a timer

class Clock {
 public:
  virtual ~Clock() = default;

  virtual TimePoint now() const = 0;
  // Calls `callback` once, at `when` or as soon after it as the thread is free, never from inside
  // this call.
  virtual TimerId at(TimePoint when, std::function<void()> callback) = 0;
  // No effect on a timer that has fired or was cancelled.
  virtual void cancel(TimerId timer) = 0;

  TimerId after(Duration delay, std::function<void()> callback) {
    return at(now() + delay, std::move(callback));
  }
};

// A timer that is cancelled with its owner and re-armed in place.
class Timer {
 public:
  explicit Timer(Clock& clock) : clock_(&clock) {}
  ~Timer() { cancel(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void arm_at(TimePoint when, std::function<void()> callback) {
    cancel();
    when_ = when;
    // Kept here and not with the clock: what the clock is given is small, so arming does not
    // allocate for it.
    callback_ = std::move(callback);
    id_ = clock_->at(when, [this] {
      id_ = 0;
      const auto run = std::move(callback_);  // it may re-arm or destroy this timer
      run();
    });
  }
  void arm(Duration delay, std::function<void()> callback) {
    arm_at(clock_->now() + delay, std::move(callback));
  }
  void cancel() {
    if (id_ == 0) return;
    clock_->cancel(std::exchange(id_, 0));
    callback_ = nullptr;  // and what it holds
  }
  bool armed() const { return id_ != 0; }
  TimePoint when() const { return when_; }

 private:
  Clock* clock_;
  TimerId id_ = 0;
  TimePoint when_{};
  std::function<void()> callback_;
};

}  // namespace pallas
