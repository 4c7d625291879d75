#pragma once
// A conversation in a terminal: lines in, answers out as they come, with the gNB that produced each
// part. Reads and writes through functions, so that it runs without a terminal.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ue/follower.h"

namespace pallas::ue {

struct ChatOptions {
  std::string model;   // as GET /v1/models names it
  std::string system;  // system prompt; empty: none
  std::uint32_t max_tokens = 512;
  double temperature = 0.8;
  bool colour = false;  // ANSI colours, one a gNB, instead of none
  bool json = false;    // one JSON object an answer and nothing else
};

// Lines are questions, or one of /cell NAME, /handovers, /reset, /quit. /cell acts in the middle of
// an answer; further questions wait for its end.
class TerminalChat {
 public:
  // `follower` outlives it. `done` is called once: after /quit, or when the input ended and the
  // last answer with it; true if no answer failed.
  TerminalChat(Follower& follower, ChatOptions options, std::function<void(std::string_view)> write,
               std::function<void(bool)> done);
  ~TerminalChat();
  TerminalChat(const TerminalChat&) = delete;
  TerminalChat& operator=(const TerminalChat&) = delete;

  void greet();
  void on_line(std::string line);
  void on_end_of_input();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Splits what is read from a descriptor into lines, without blocking the io_context. A regular file
// is read at once.
class LineReader {
 public:
  LineReader(boost::asio::io_context& io, int descriptor, std::function<void(std::string)> on_line,
             std::function<void()> on_end);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace pallas::ue
