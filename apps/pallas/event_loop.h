#pragma once
// Runs an io_context until something has come true, so that a program that does one thing after
// another reads so.

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/units.h"

namespace boost::asio {
class io_context;
}

namespace pallas::app {

class EventLoop {
 public:
  // SIGINT and SIGTERM interrupt every wait while this lives.
  explicit EventLoop(boost::asio::io_context& io);
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  boost::asio::io_context& io() { return io_; }
  bool interrupted() const;
  // kTimeout, naming `what`, after `limit`; kCancelled when interrupted.
  Status wait(const std::function<bool()>& done, Duration limit, const std::string& what);

 private:
  class Signals;
  boost::asio::io_context& io_;
  std::unique_ptr<Signals> signals_;
};

}  // namespace pallas::app
