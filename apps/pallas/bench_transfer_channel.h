#pragma once
// How the two ends of a transfer are told what to do: lines over a pair of connected sockets. The
// helper in Python speaks the same (bench/nixl_transfer.py).
//
//   parent                          end
//   -                               ready KEY=VALUE...      what it is; or `error`
//   open path=P block=BYTES ...     opened [at=ADDRESS]     the target first: where it can be
//   reached run bytes=N                     started, then done ...  the target answers `started`
//   before the
//                                                           source is asked; `done` has begin_ns,
//                                                           end_ns (monotonic) and cpu_s
//   check                           checked [hash=H]        of the rows in the KV cache
//   close                           closed
//
// Instead of any answer `error`, whose rest of the line is a sentence.

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/units.h"

namespace pallas::app {

struct Line {
  std::string verb;
  std::map<std::string, std::string> values;  // without spaces
  std::string text;                           // of an error

  std::string get(const std::string& key) const;       // "" if absent
  std::uint64_t number(const std::string& key) const;  // 0 if absent or malformed
};
std::string to_text(const Line& line);  // without its end
Line parse_line(const std::string& text);

// One end of the pair; owns the descriptor.
class LineChannel {
 public:
  explicit LineChannel(int fd) : fd_(fd) {}
  ~LineChannel();
  LineChannel(LineChannel&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  LineChannel& operator=(LineChannel&&) = delete;

  int fd() const { return fd_; }
  bool has_line() const { return buffer_.find('\n') != std::string::npos; }
  Status send(const Line& line);
  // kTimeout after `limit` (none: no limit), kUnreachable when the other end is gone. A line
  // `error` becomes an error with its text.
  Result<Line> receive(std::optional<Duration> limit);

 private:
  int fd_;
  std::string buffer_;
};

}  // namespace pallas::app
