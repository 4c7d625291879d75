#include "load_clients.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <utility>

#include "sim/engine.h"

namespace pallas::app {
namespace {

TimePoint now() {
  return TimePoint(std::chrono::steady_clock::now().time_since_epoch());
}

std::string request(const std::string& method, const std::string& target,
                    const std::string& headers, const std::string& body) {
  return fmt::format(
      "{} {} HTTP/1.1\r\nHost: gnb\r\nContent-Type: application/json\r\n{}"
      "Content-Length: {}\r\n\r\n{}",
      method, target, headers, body.size(), body);
}

// The number after `name` in `text`.
std::optional<std::uint64_t> number_after(std::string_view text, std::string_view name) {
  const auto at = text.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  std::uint64_t value = 0;
  const char* const begin = text.data() + at + name.size();
  const auto read = std::from_chars(begin, text.data() + text.size(), value);
  if (read.ec != std::errc()) return std::nullopt;
  return value;
}

// The string after `name` (which ends with its opening quote) up to the next quote.
std::string text_after(std::string_view text, std::string_view name) {
  const auto at = text.find(name);
  if (at == std::string_view::npos) return {};
  const auto rest = text.substr(at + name.size());
  return std::string(rest.substr(0, rest.find('"')));
}

// With all that the UE has, as the UE library does: the target may not have heard of the last ids.
std::string attach_body(const LoadSession& session, std::uint64_t epoch,
                        const std::string& last_node) {
  std::string ids;
  for (TokenIndex i = 0; i < session.next; ++i) {
    ids += (i == 0 ? "" : ",") + std::to_string(sim::sampled_token(session.seed, i));
  }
  return fmt::format(R"({{"epoch":{},"next_index":{},"last_node":"{}","endpoint":"completions",)"
                     R"("request":{},"session":{},"ids":[{}],"sampled_by":[["{}",{}]]}})",
                     epoch, session.next, last_node, session.body, session.event, ids, last_node,
                     session.next);
}

}  // namespace

Result<LoadClients> LoadClients::create() {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) return fail(Errc::kIo, std::string("epoll: ") + std::strerror(errno));
  return LoadClients(epoll);
}

LoadClients::LoadClients(LoadClients&& other) noexcept
    : epoll_(std::exchange(other.epoll_, -1)),
      links_(std::move(other.links_)),
      sessions_(std::move(other.sessions_)),
      stream_of_(std::move(other.stream_of_)),
      tokens_(other.tokens_),
      asking_(other.asking_) {}

LoadClients::~LoadClients() {
  if (epoll_ < 0) return;
  close();
  ::close(epoll_);
}

int LoadClients::start(std::uint16_t port, Link link) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 && errno != EINPROGRESS) {
    ::close(fd);
    return -1;
  }
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT;
  event.data.fd = fd;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  links_.insert_or_assign(fd, std::move(link));
  return fd;
}

std::size_t LoadClients::open(std::uint16_t port, std::uint64_t seed, const std::string& body) {
  const std::size_t number = sessions_.size();
  LoadSession session;
  session.seed = seed;
  session.body = body;
  session.began.push_back(0);
  session.asked.push_back(now());
  Link link;
  link.session = number;
  link.out = request("POST", "/v1/completions",
                     fmt::format("Pallas-Resume: 1\r\nPallas-UE: ue-{}\r\n", number), body);
  const int fd = start(port, std::move(link));
  if (fd < 0) session.error = std::string("connect: ") + std::strerror(errno);
  sessions_.push_back(std::move(session));
  stream_of_.push_back(fd);
  return number;
}

void LoadClients::attach(std::size_t number, std::uint16_t port, const std::string& last_node) {
  LoadSession& session = sessions_[number];
  if (stream_of_[number] >= 0) drop(stream_of_[number]);
  session.began.push_back(session.next);
  session.asked.push_back(now());
  session.error.clear();
  Link link;
  link.session = number;
  link.out = request("POST", "/v1/sessions/" + session.id + "/attach",
                     fmt::format("Pallas-Resume: 1\r\nPallas-UE: ue-{}\r\n"
                                 "Pallas-Resume-Token: {}\r\n",
                                 number, session.resume_token),
                     attach_body(session, ++session.epoch, last_node));
  stream_of_[number] = start(port, std::move(link));
  if (stream_of_[number] < 0) session.error = std::string("connect: ") + std::strerror(errno);
}

void LoadClients::post(std::uint16_t port, const std::string& target, const std::string& body,
                       std::function<void(const LoadReply&)> done) {
  Link link;
  link.done = std::move(done);
  link.out = request("POST", target, "Connection: close\r\n", body);
  ++asking_;
  const auto answer = link.done;
  if (start(port, std::move(link)) >= 0) return;
  --asking_;
  answer(LoadReply{});
}

void LoadClients::drop(int fd) {
  const auto found = links_.find(fd);
  if (found == links_.end()) return;
  if (found->second.session) stream_of_[*found->second.session] = -1;
  links_.erase(found);
  ::close(fd);  // which also takes it out of the epoll
}

void LoadClients::close() {
  while (!links_.empty()) drop(links_.begin()->first);
}

void LoadClients::flush(int fd, Link& link) {
  while (!link.out.empty()) {
    const ssize_t sent = send(fd, link.out.data(), link.out.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    link.out.erase(0, static_cast<std::size_t>(sent));
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
}

void LoadClients::poll(Duration longest) {
  std::array<epoll_event, 512> events{};
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(longest).count();
  const int count =
      epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), static_cast<int>(ms));
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events.at(static_cast<std::size_t>(i));
    const auto found = links_.find(event.data.fd);
    if (found == links_.end()) continue;
    if ((event.events & EPOLLOUT) != 0) flush(event.data.fd, found->second);
    if ((event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) on_readable(event.data.fd);
  }
}

void LoadClients::on_readable(int fd) {
  Link& link = links_.at(fd);
  std::array<char, 64u << 10> buffer{};
  const ssize_t got = recv(fd, buffer.data(), buffer.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) {
    link.in.append(buffer.data(), static_cast<std::size_t>(got));
    if (take(link)) return;
  } else if (link.session) {
    LoadSession& session = sessions_[*link.session];
    if (!session.finished && session.error.empty()) session.error = "the stream broke off";
  }
  if (link.done) {
    --asking_;
    LoadReply reply;
    if (link.headed) {
      reply.status = static_cast<int>(number_after(link.in, "HTTP/1.1 ").value_or(0));
      reply.retry_after = link.in.find("\r\nRetry-After: ") != std::string::npos;
    }
    const auto done = std::move(link.done);
    drop(fd);
    done(reply);
    return;
  }
  drop(fd);
}

bool LoadClients::take(Link& link) {
  if (!link.headed) {
    const auto end = link.in.find("\r\n\r\n");
    if (end == std::string::npos) return true;
    link.headed = true;
    if (link.done) return true;  // read to its end
    LoadSession& session = sessions_[*link.session];
    if (!link.in.starts_with("HTTP/1.1 200 ")) {
      session.error = "refused: " + link.in.substr(9, 3) + link.in.substr(end + 4, 200);
      return false;
    }
    link.in.erase(0, end + 4);
  }
  if (link.done) return true;
  // Chunks; each holds whole events.
  LoadSession& session = sessions_[*link.session];
  std::size_t at = 0;
  bool goes_on = true;
  while (goes_on) {
    const auto line = link.in.find("\r\n", at);
    if (line == std::string::npos) break;
    std::size_t size = 0;
    std::from_chars(link.in.data() + at, link.in.data() + line, size, 16);
    if (link.in.size() < line + 2 + size + 2) break;
    std::string_view events(link.in.data() + line + 2, size);
    if (size == 0) goes_on = false;
    while (!events.empty() && goes_on) {
      const auto end = events.find("\n\n");
      const auto event = events.substr(0, end);
      goes_on = take_events(session, link, event);
      events.remove_prefix(end == std::string_view::npos ? events.size() : end + 2);
    }
    at = line + 2 + size + 2;
  }
  link.in.erase(0, at);
  return goes_on;
}

bool LoadClients::take_events(LoadSession& session, Link& link, std::string_view event) {
  if (event.starts_with("id: ")) {
    const auto ours = event.find("\"pallas\":");
    const auto tail = ours == std::string_view::npos ? std::string_view() : event.substr(ours);
    const auto index = number_after(tail, "\"i\":"), id = number_after(tail, "\"id\":");
    if (!index || !id) {
      session.error = "a token event without index or id";
      return false;
    }
    if (*index < session.next) {
      ++session.repeated;
      return true;
    }
    if (*index > session.next) ++session.skipped;
    const auto wanted = sim::sampled_token(session.seed, static_cast<TokenIndex>(*index));
    if (*id != static_cast<std::uint64_t>(wanted)) ++session.wrong;
    session.arrivals.push_back(now());
    session.next = static_cast<TokenIndex>(*index) + 1;
    ++tokens_;
    return true;
  }
  if (event.starts_with("event: pallas.session")) {
    session.granted.push_back(now());
    const auto data = event.find("data: ");
    if (session.event.empty() && data != std::string_view::npos) {
      session.event = event.substr(data + 6);
    }
    session.id = text_after(event, "\"session\":\"");
    if (auto token = text_after(event, "\"resume_token\":\""); !token.empty()) {
      session.resume_token = std::move(token);
    }
    session.epoch = std::max(session.epoch, number_after(event, "\"epoch\":").value_or(0));
    link.begun = true;
    return true;
  }
  if (event.starts_with("data: [DONE]")) {
    session.finished = true;
    return false;
  }
  if (event.starts_with("data: {\"error\"") || event.starts_with("event: pallas.moved")) {
    session.error = std::string(event.substr(0, 200));
    return false;
  }
  return true;
}

}  // namespace pallas::app
