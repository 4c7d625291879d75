#include "bench_transfer_channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <sstream>

namespace pallas::app {

std::string Line::get(const std::string& key) const {
  const auto found = values.find(key);
  return found == values.end() ? "" : found->second;
}

std::uint64_t Line::number(const std::string& key) const {
  const auto digits = get(key);
  std::uint64_t value = 0;
  const auto* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, value);
  return parsed.ec == std::errc{} && parsed.ptr == end ? value : 0;
}

std::string to_text(const Line& line) {
  std::string text = line.verb;
  for (const auto& [key, value] : line.values) text += " " + key + "=" + value;
  if (!line.text.empty()) text += " " + line.text;
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

Line parse_line(const std::string& text) {
  Line line;
  std::istringstream words(text);
  words >> line.verb;
  if (line.verb == "error") {
    std::getline(words >> std::ws, line.text);
    return line;
  }
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    if (equals != std::string::npos) line.values[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return line;
}

LineChannel::~LineChannel() {
  if (fd_ >= 0) close(fd_);
}

Status LineChannel::send(const Line& line) {
  const auto text = to_text(line) + "\n";
  for (std::size_t sent = 0; sent < text.size();) {
    const auto n = ::send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(Errc::kUnreachable, std::strerror(errno));
    sent += static_cast<std::size_t>(n);
  }
  return {};
}

Result<Line> LineChannel::receive(std::optional<Duration> limit) {
  using Steady = std::chrono::steady_clock;
  const auto deadline = Steady::now() + limit.value_or(Duration::zero());
  for (;;) {
    if (const auto end = buffer_.find('\n'); end != std::string::npos) {
      Line line = parse_line(buffer_.substr(0, end));
      buffer_.erase(0, end + 1);
      if (line.verb == "error") return fail(Errc::kEngine, line.text);
      return line;
    }
    int wait_ms = -1;
    if (limit) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Steady::now());
      if (left.count() <= 0) return fail(Errc::kTimeout, "no answer in time");
      wait_ms = static_cast<int>(left.count());
    }
    pollfd readable{fd_, POLLIN, 0};
    const int ready = poll(&readable, 1, wait_ms);
    if (ready < 0 && errno != EINTR) return fail(Errc::kIo, std::strerror(errno));
    if (ready <= 0) continue;
    std::array<char, 4096> part;
    const auto n = read(fd_, part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail(Errc::kUnreachable, "it ended");
    buffer_.append(part.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace pallas::app
