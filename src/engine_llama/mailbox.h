#pragma once
// Commands from the node's thread to the engine thread: the only place of the project with a mutex.

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

#include "base/units.h"
#include "engine_llama/messages.h"

namespace pallas::engine {

class Mailbox {
 public:
  explicit Mailbox(std::size_t capacity) : capacity_(capacity) {}

  // Node's thread. False when full, unless `always`: what frees resources is never turned away.
  [[nodiscard]] bool push(Command command, bool always);
  // Any thread: wakes the engine thread, whose take() then answers false for good.
  void close();

  // Engine thread. Moves what has come to the end of `out`. With nothing there it waits for a
  // command until `until` (none: without end); `wait` false: not at all. False once closed.
  bool take(std::vector<Command>& out, bool wait, std::optional<TimePoint> until);

 private:
  const std::size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Command> commands_;
  bool closed_ = false;
};

// The real time behind every TimePoint of the engine.
TimePoint steady_now();

}  // namespace pallas::engine
