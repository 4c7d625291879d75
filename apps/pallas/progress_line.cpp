#include "progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace pallas::app {

ProgressLine::ProgressLine(std::string_view name)
    : name_(name), shown_(isatty(STDERR_FILENO) == 1) {}

void ProgressLine::show(double done, std::string_view what) {
  if (!shown_) return;
  const int percent = std::clamp(static_cast<int>(100 * done), 0, 100);
  fmt::print(stderr, "\r\033[K{} {:3d} %  {}", name_, percent, what);
  std::fflush(stderr);
  dirty_ = true;
}

void ProgressLine::clear() {
  if (dirty_) fmt::print(stderr, "\r\033[K");
  dirty_ = false;
}

void ProgressLog::say(double done, std::string_view what) {
  if (!plain_ && line_.shown()) {
    line_.show(done, what);
  } else {
    fmt::print(stderr, "{:3.0f} %  {}\n", 100 * done, what);
  }
}

}  // namespace pallas::app
