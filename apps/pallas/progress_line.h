#pragma once
// How far something is, on standard error.

#include <string>
#include <string_view>

namespace pallas::app {

// One line on a terminal that is written over; elsewhere nothing.
class ProgressLine {
 public:
  explicit ProgressLine(std::string_view name);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // `done` in [0, 1].
  void show(double done, std::string_view what);
  void clear();
  bool shown() const { return shown_; }

 private:
  std::string name_;
  bool shown_;
  bool dirty_ = false;
};

// The same for what takes hours: elsewhere than on a terminal, or with `plain`, a line each time.
class ProgressLog {
 public:
  ProgressLog(std::string_view name, bool plain) : plain_(plain), line_(name) {}
  void say(double done, std::string_view what);
  void clear() { line_.clear(); }

 private:
  bool plain_;
  ProgressLine line_;
};

}  // namespace pallas::app
