#pragma once
// The clock of one gNB that can be stopped, as a process by SIGSTOP: what falls due meanwhile runs
// when it goes on, in order. Time itself does not stand still.

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "sim/virtual_clock.h"

namespace pallas::sim {

class GnbClock : public Clock {
 public:
  explicit GnbClock(VirtualClock& clock) : clock_(clock) {}

  TimePoint now() const override { return clock_.now(); }
  TimerId at(TimePoint when, std::function<void()> callback) override {
    auto entry = std::make_unique<Entry>(Entry{0, std::move(callback)});
    Entry& made = *entry;
    made.id = clock_.schedule(when, [this, entry = std::move(entry)]() mutable {
      if (stopped_) {
        due_.push_back(std::move(entry));
      } else {
        entry->callback();
      }
    });
    return made.id;
  }
  void cancel(TimerId timer) override {
    clock_.cancel(timer);
    // Only forgotten: the list may be running.
    for (auto& entry : due_) {
      if (entry != nullptr && entry->id == timer) entry.reset();
    }
  }

  void stop() { stopped_ = true; }
  void go_on() {
    stopped_ = false;
    for (std::size_t i = 0; i < due_.size(); ++i) {
      if (const auto entry = std::move(due_[i])) entry->callback();
    }
    due_.clear();
  }

 private:
  struct Entry {
    TimerId id = 0;
    std::function<void()> callback;
  };

  VirtualClock& clock_;
  bool stopped_ = false;
  std::vector<std::unique_ptr<Entry>> due_;
};

}  // namespace pallas::sim
