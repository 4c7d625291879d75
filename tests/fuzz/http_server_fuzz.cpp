// libFuzzer target over an HTTP connection and every route behind it. The first byte says who may
// call and how the bytes come: raw, or the body of a request to one of the routes. Whatever comes,
// each answer is HTTP, nobody without a key reaches the node, and the connection ends with its
// client.

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "fakes.h"
#include "http/connection.h"
#include "input_reader.h"
#include "sim/virtual_clock.h"

namespace {

using namespace pallas;
using fuzz::InputReader;
using fuzz::require;

constexpr const char* kKey = "red-key-0123456789";

// A server's end of one connection, without a listener.
class Host : public http::ConnectionHost {
 public:
  explicit Host(http::ServerOptions options)
      : options_(std::move(options)),
        api_(codec_, clock_, options_.api,
             [this](std::function<void()> task) { post(std::move(task)); }) {
    api_.set_backend(&backend);
  }
  ~Host() override {
    if (connection_) connection_->leave();
    settle();
  }
  http::Api& api() override { return api_; }
  Clock& clock() override { return clock_; }
  const http::ServerOptions& options() const override { return options_; }
  void post(std::function<void()> task) override { boost::asio::post(io_, std::move(task)); }
  void on_closed(http::Connection&) override { connection_.reset(); }

  // Takes over `fd`, a stream socket.
  void connect(int fd, http::Audience audience) {
    boost::asio::ip::tcp::socket socket(io_);
    socket.assign(boost::asio::ip::tcp::v4(), fd);
    connection_ = std::make_shared<http::Connection>(std::move(socket), *this, audience, nullptr);
    connection_->start();
  }
  // Runs what is ready now.
  void settle() {
    do {
      io_.restart();
    } while (io_.poll() > 0);
  }
  void pass(Duration time) { clock_.run_for(time); }
  bool connected() const { return connection_ != nullptr; }
  std::size_t streams() {
    http::KeptAnswer answer;
    http::HttpRequest request{"GET", "/metrics", "", {}, ""};
    if (!options_.api.operator_key.empty()) {
      request.headers.emplace_back("Authorization", "Bearer " + options_.api.operator_key);
    }
    api_.handle(request, answer, http::Audience::kOperators);
    return api_.stats().streams_open;
  }

  http::FakeBackend backend;

 private:
  http::ByteCodec codec_;
  boost::asio::io_context io_{1};
  sim::VirtualClock clock_;
  http::ServerOptions options_;
  http::Api api_;
  std::shared_ptr<http::Connection> connection_;
};

constexpr std::array<const char*, 9> kRoutes = {
    "POST /v1/chat/completions",
    "POST /v1/completions",
    "POST /v1/sessions/1cbb4aa5ced9fe72ced7486048b22b5a/attach",
    "GET /v1/sessions/1cbb4aa5ced9fe72ced7486048b22b5a/events",
    "DELETE /v1/sessions/1cbb4aa5ced9fe72ced7486048b22b5a",
    "POST /v1/predictions",
    "POST /v1/handovers",
    "POST /v1/positions",
    "GET /v1/handovers",
};

// One request with the rest of the input as its body; its header's values are the input's too.
std::string request_of(InputReader& input, bool with_key) {
  const std::uint8_t choice = input.byte();
  const std::uint8_t more = input.byte();
  std::string head = std::string(kRoutes.at(choice % kRoutes.size())) + " HTTP/1.1\r\nHost: x\r\n";
  if (with_key) head += std::string("Authorization: Bearer ") + kKey + "\r\n";
  if (more & 1) head += "Pallas-Resume: 1\r\n";
  if (more & 2) head += "Pallas-Resume-Token: secret\r\n";
  if (more & 4) head += "Pallas-UE: ue-1\r\n";
  const auto number = [&] { return std::to_string(input.up_to(0xffff)); };
  if (more & 8) head += "Last-Event-ID: " + number() + "." + number() + "\r\n";
  if (more & 16) head += "Pallas-Epoch: " + number() + "\r\n";
  const std::string body(input.rest());
  return head + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

void talk(InputReader& input) {
  const std::uint8_t how = input.byte();
  const bool keys = how & 1, with_key = how & 2, raw = how & 4;
  http::ServerOptions options;
  options.max_header_bytes = 4096;
  options.max_body_bytes = 32u << 10;
  options.api.random = http::counting_random();
  options.api.unix_time = [] { return std::int64_t{1700000000}; };
  if (keys) {
    options.api.keys = *http::ApiKeys::parse(std::string("red ") + kKey + "\n");
    options.api.operator_key = "operators-key-0123456789";
  }
  Host host(std::move(options));
  std::array<int, 2> ends{};
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0);
  host.connect(ends[0], (how & 8) ? http::Audience::kClients : http::Audience::kEverybody);

  const std::size_t piece = (how & 16) ? 1 + input.byte() : 1u << 16;
  const std::string sent = raw ? std::string(input.rest()) : request_of(input, with_key);
  for (std::size_t at = 0; at < sent.size(); at += piece) {
    const std::size_t bytes = std::min(piece, sent.size() - at);
    if (::send(ends[1], sent.data() + at, bytes, MSG_NOSIGNAL) < 0) break;
    host.settle();
  }
  std::string answer;
  std::array<char, 4096> got{};
  for (ssize_t n = 0; (n = ::recv(ends[1], got.data(), got.size(), 0)) > 0;) {
    answer.append(got.data(), static_cast<std::size_t>(n));
    host.settle();
  }
  require(answer.empty() || answer.starts_with("HTTP/1.1 "));
  auto& node = host.backend;
  const std::size_t begun = node.opened.size() + node.attached.size();
  // In raw bytes the fuzzer would have to guess the key.
  if (keys && (!with_key || raw) && sent.find(kKey) == std::string::npos) {
    require(begun == 0 && node.stopped.empty());
    require(node.predictions.empty() && node.positions.empty() && node.handover_events.empty());
  }
  host.settle();
  if (how & 32) host.pass(std::chrono::minutes(3));
  host.settle();
  ::close(ends[1]);
  host.settle();
  // What was being drained has its own time.
  host.pass(std::chrono::minutes(3));
  host.settle();
  require(!host.connected());
  require(host.streams() == 0);
  require(node.closed.size() == begun);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  InputReader input(data, size);
  if (!input.empty()) talk(input);
  return 0;
}
