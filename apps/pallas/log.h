#pragma once
// The program's log. An event is a fixed phrase with named values, so that a line can be searched
// and, as JSON, be read by a program. Prompts, texts, tokens and keys are never given to it.

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace pallas::app {

enum class LogLevel { kTrace, kDebug, kInfo, kWarning, kError };

class Log {
 public:
  using Values = std::vector<std::pair<std::string_view, std::string>>;

  // Level and format as in gnb.toml, checked before; `file` empty: standard error. kIo when it
  // cannot be written.
  static Result<std::unique_ptr<Log>> open(const std::string& level, const std::string& format,
                                           const std::string& file);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void write(LogLevel level, std::string_view event, const Values& values = {});

 private:
  class Impl;
  explicit Log(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pallas::app
