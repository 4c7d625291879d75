#pragma once
// The real Clock: monotonic time and timers on one io_context.

#include <memory>

#include "base/clock.h"

namespace boost::asio {
class io_context;
}

namespace pallas::net {

// Used on the io_context's thread only. Timers that have not fired are forgotten with the clock; it
// may go before or after the io_context stops running, but not after the io_context itself is gone.
class AsioClock final : public Clock {
 public:
  explicit AsioClock(boost::asio::io_context& io);
  ~AsioClock() override;
  AsioClock(const AsioClock&) = delete;
  AsioClock& operator=(const AsioClock&) = delete;

  TimePoint now() const override;
  TimerId at(TimePoint when, std::function<void()> callback) override;
  void cancel(TimerId timer) override;

  std::size_t pending() const;  // timers that wait

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // shared with the one wait in flight, which may end after the clock
};

}  // namespace pallas::net
