#include "event_loop.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <csignal>

namespace pallas::app {

class EventLoop::Signals {
 public:
  explicit Signals(boost::asio::io_context& io) : set_(io, SIGINT, SIGTERM) {
    set_.async_wait([this](const boost::system::error_code& error, int) {
      if (!error) interrupted_ = true;
    });
  }
  bool interrupted() const { return interrupted_; }

 private:
  boost::asio::signal_set set_;
  bool interrupted_ = false;
};

EventLoop::EventLoop(boost::asio::io_context& io)
    : io_(io), signals_(std::make_unique<Signals>(io)) {}
EventLoop::~EventLoop() {
  signals_.reset();
  // The handler of the wait that this cancelled.
  io_.restart();
  io_.poll();
}

bool EventLoop::interrupted() const {
  return signals_->interrupted();
}

Status EventLoop::wait(const std::function<bool()>& done, Duration limit, const std::string& what) {
  const auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::duration_cast<std::chrono::steady_clock::duration>(limit);
  while (!done()) {
    if (signals_->interrupted()) return fail(Errc::kCancelled, "interrupted");
    if (std::chrono::steady_clock::now() >= deadline) {
      return fail(Errc::kTimeout,
                  what + " did not happen in " + std::to_string(to_ms(limit) / 1000) + " s");
    }
    io_.restart();
    io_.run_one_for(std::chrono::milliseconds(50));
  }
  return {};
}

}  // namespace pallas::app
