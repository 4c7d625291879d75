#pragma once
// Thousands of clients of gNBs in one thread, as lean as they can be: plain sockets under epoll,
// since the load's generator must not be what is measured. Each follows one resumable session and
// checks every token: its index against the last, its id against what a simulated engine samples.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace pallas::app {

struct LoadSession {
  std::uint64_t seed = 0;   // of its request; the ids follow from it
  std::string body, event;  // its request, and the session's own first event: to attach with
  std::string id, resume_token;
  std::uint64_t epoch = 0;
  TokenIndex next = 0;              // it has all indices below
  std::vector<TimePoint> arrivals;  // of each index
  std::vector<TokenIndex> began;    // first index of each stream
  std::uint64_t repeated = 0, skipped = 0, wrong = 0;
  std::vector<TimePoint> asked, granted;  // of each stream
  std::string error;                      // why the stream ended, if it did too early
  bool finished = false;
};

struct LoadReply {
  int status = 0;  // 0: the connection broke
  bool retry_after = false;
};

class LoadClients {
 public:
  static Result<LoadClients> create();
  LoadClients(LoadClients&&) noexcept;
  LoadClients& operator=(LoadClients&&) = delete;
  ~LoadClients();

  // Opens a session with this completions body at the gNB on 127.0.0.1:`port`. Its number.
  std::size_t open(std::uint16_t port, std::uint64_t seed, const std::string& body);
  // The session's UE leaves its gNB and attaches at that one.
  void attach(std::size_t session, std::uint16_t port, const std::string& last_node);
  // One request with an answer in one piece.
  void post(std::uint16_t port, const std::string& target, const std::string& body,
            std::function<void(const LoadReply&)> done);
  // Reads what has come, waits at most so long for it.
  void poll(Duration longest);
  // Closes all streams.
  void close();

  const std::vector<LoadSession>& sessions() const { return sessions_; }
  std::uint64_t tokens() const { return tokens_; }
  std::size_t asking() const { return asking_; }  // post() without an answer yet

 private:
  explicit LoadClients(int epoll) : epoll_(epoll) {}

  struct Link {
    std::optional<std::size_t> session;          // a stream
    std::function<void(const LoadReply&)> done;  // or a request
    std::string out, in, events;
    bool headed = false, begun = false;
  };
  int start(std::uint16_t port, Link link);
  void drop(int fd);
  void on_readable(int fd);
  void flush(int fd, Link& link);
  bool take(Link& link);  // false: this link is over
  bool take_events(LoadSession& session, Link& link, std::string_view event);

  int epoll_ = -1;
  std::unordered_map<int, Link> links_;
  std::vector<LoadSession> sessions_;
  std::vector<int> stream_of_;  // its descriptor, -1: none
  std::uint64_t tokens_ = 0;
  std::size_t asking_ = 0;
};

}  // namespace pallas::app
