#pragma once
// How the engine thread reaches the node's thread.

#include <functional>
#include <memory>

namespace pallas::engine {

// Something to run once on the node's thread.
class Task {
 public:
  virtual ~Task() = default;
  virtual void run() = 0;
};

// Hands a task to the node's thread, in order, and returns at once. Called on the engine thread
// (and on the node's thread for commands that fail at once); it must not run the task itself.
// With Asio: [&io](auto task) { asio::post(io, [t = std::move(task)] { t->run(); }); }
using Post = std::function<void(std::unique_ptr<Task>)>;

}  // namespace pallas::engine
