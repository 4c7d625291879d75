#include "net/asio_clock.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <unordered_map>
#include <vector>

namespace pallas::net {

// All timers in one ordered map over a single steady_timer, armed for the first of them. A
// cancelled timer costs a map erase and no system call; the steady_timer then finds nothing due and
// goes on.
class AsioClock::Impl {
 public:
  explicit Impl(boost::asio::io_context& io) : timer_(io) {}

  TimerId add(TimePoint when, std::function<void()> callback, const std::shared_ptr<Impl>& self) {
    const TimerId id = next_id_++;
    entries_.emplace(std::pair(when, id), std::move(callback));
    times_.emplace(id, when);
    arm(self);
    return id;
  }

  void cancel(TimerId id) {
    const auto found = times_.find(id);
    if (found == times_.end()) return;
    entries_.erase({found->second, id});
    times_.erase(found);
  }

  void close() {
    closed_ = true;
    entries_.clear();
    times_.clear();
    timer_.cancel();
  }

  std::size_t pending() const { return entries_.size(); }

  static TimePoint now() { return TimePoint(std::chrono::steady_clock::now().time_since_epoch()); }

 private:
  void arm(const std::shared_ptr<Impl>& self) {
    if (closed_ || running_ || entries_.empty()) return;
    const TimePoint first = entries_.begin()->first.first;
    if (armed_ && armed_for_ <= first) return;
    armed_ = true;
    armed_for_ = first;
    // Setting the expiry cancels the wait in flight, if any: its handler sees an error.
    timer_.expires_at(std::chrono::steady_clock::time_point(first.time_since_epoch()));
    timer_.async_wait([weak = std::weak_ptr<Impl>(self),
                       generation = ++generation_](const boost::system::error_code& error) {
      const std::shared_ptr<Impl> impl = weak.lock();
      if (error || impl == nullptr || impl->generation_ != generation) return;
      impl->fire(impl);
    });
  }

  void fire(const std::shared_ptr<Impl>& self) {
    armed_ = false;
    running_ = true;
    // Only what is due now: a timer set by a callback waits for the next round.
    const auto end = entries_.upper_bound({now(), next_id_});
    std::vector<std::pair<TimePoint, TimerId>> due;
    for (auto entry = entries_.begin(); entry != end; ++entry) due.push_back(entry->first);
    for (const auto& key : due) {
      const auto entry = entries_.find(key);
      if (entry == entries_.end()) continue;  // cancelled by one before it
      std::function<void()> callback = std::move(entry->second);
      times_.erase(key.second);
      entries_.erase(entry);
      callback();
    }
    running_ = false;
    arm(self);
  }

  boost::asio::steady_timer timer_;
  std::map<std::pair<TimePoint, TimerId>, std::function<void()>> entries_;
  std::unordered_map<TimerId, TimePoint> times_;
  TimerId next_id_ = 1;
  std::uint64_t generation_ = 0;
  TimePoint armed_for_{};
  bool armed_ = false;
  bool running_ = false;
  bool closed_ = false;
};

AsioClock::AsioClock(boost::asio::io_context& io) : impl_(std::make_shared<Impl>(io)) {}

AsioClock::~AsioClock() {
  impl_->close();
}

TimePoint AsioClock::now() const {
  return Impl::now();
}

TimerId AsioClock::at(TimePoint when, std::function<void()> callback) {
  return impl_->add(when, std::move(callback), impl_);
}

void AsioClock::cancel(TimerId timer) {
  impl_->cancel(timer);
}

std::size_t AsioClock::pending() const {
  return impl_->pending();
}

}  // namespace pallas::net
