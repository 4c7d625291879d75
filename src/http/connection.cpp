#include "http/connection.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/error.hpp>
#include <charconv>

namespace pallas::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;

constexpr std::size_t kMaxDrainBytes = 32u << 20;
constexpr Duration kDrainTime = std::chrono::seconds(2);
// Small, so that what a slow client has not read is ours to see, not hidden in the kernel.
constexpr int kSendBufferBytes = 256 << 10;
// A client that vanished without a word (a phone that lost its network) acknowledges nothing.
constexpr unsigned kUnacknowledgedMs = 20'000;

std::string chunk_of(std::string_view bytes) {
  std::array<char, 16> size{};
  const auto end = std::to_chars(size.data(), size.data() + size.size(), bytes.size(), 16).ptr;
  std::string out(size.data(), end);
  return out.append("\r\n").append(bytes).append("\r\n");
}

std::string status_line(int status) {
  return "HTTP/1.1 " + std::to_string(status) + " " + std::string(reason_phrase(status)) + "\r\n";
}

std::string text_of(beast::string_view text) {
  return {text.data(), text.size()};
}

// "a?b" into a (decoded) and b.
void split_target(std::string_view target, HttpRequest& out) {
  const auto mark = target.find('?');
  out.path = percent_decode(target.substr(0, mark));
  if (mark != std::string_view::npos) out.query = target.substr(mark + 1);
}

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket, ConnectionHost& host, Audience audience,
                       SSL* tls)
    : stream_(std::move(socket)),
      host_(&host),
      audience_(audience),
      read_timer_(host.clock()),
      write_timer_(host.clock()) {
  error_code ignored;
  auto& raw = stream_.socket();
  raw.non_blocking(true, ignored);
  raw.set_option(asio::ip::tcp::no_delay(true), ignored);
  raw.set_option(asio::socket_base::send_buffer_size(kSendBufferBytes), ignored);
  ::setsockopt(raw.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnacknowledgedMs,
               sizeof kUnacknowledgedMs);
  if (tls != nullptr) stream_.secure(tls);
}

void Connection::start() {
  reset_parser();
  if (stream_.is_secure()) return shake_hands();
  watch_reading(false);
  read();
}

// A client that does not come through is no client: nothing is said to it but TLS's own alert.
void Connection::shake_hands() {
  read_timer_.arm(host_->options().request_timeout, [this] {
    const auto self = shared_from_this();
    ++host_->api().stats().timeouts;
    cut();
  });
  stream_.handshake(true, [self = shared_from_this()](const error_code& error) {
    if (self->state_ == State::kClosed) return;
    if (error) return self->cut();
    if (self->refusing_) return self->refuse();
    self->watch_reading(false);
    self->read();
  });
}

void Connection::start_refusing() {
  refusing_ = true;
  if (stream_.is_secure()) return shake_hands();
  refuse();
}

void Connection::refuse() {
  state_ = State::kAnswering;
  read();
  respond(error_response(
      {503, "The gNB has too many connections.", "", "too_many_connections", std::nullopt}));
}

void Connection::leave() {
  cut();
  host_ = nullptr;
}

void Connection::cut() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  read_timer_.cancel();
  write_timer_.cancel();
  error_code ignored;
  stream_.socket().close(ignored);
  // Not now: this may run inside a call of the node. The connection stays until then.
  host_->post([self = shared_from_this()] {
    if (self->host_ == nullptr) return;
    if (self->events_) self->host_->api().on_disconnected(*std::exchange(self->events_, {}));
    self->host_->on_closed(*self);
  });
}

// --- input ---

void Connection::read() {
  if (reading_ || state_ == State::kClosed) return;
  reading_ = true;
  stream_.async_read_some(asio::buffer(arriving_),
                          [self = shared_from_this()](const error_code& error, std::size_t bytes) {
                            self->reading_ = false;
                            if (self->state_ != State::kClosed) self->on_read(error, bytes);
                          });
}

void Connection::on_read(const error_code& error, std::size_t bytes) {
  if (error == asio::error::eof || error == asio::ssl::error::stream_truncated) {
    return on_end_of_input();
  }
  if (error) return cut();
  input_.append(arriving_.data(), bytes);
  switch (state_) {
    case State::kReading:
      parse();
      break;
    case State::kAnswering:
      if (input_.size() > host_->options().max_header_bytes) return cut();
      break;
    case State::kDraining:
      drained_bytes_ += bytes;
      input_.clear();
      if (drained_bytes_ > kMaxDrainBytes) return cut();
      break;
    case State::kClosed:
      return;
  }
  read();
}

void Connection::on_end_of_input() {
  // Who closes while its answer is being made has gone; who closes after it may still be reading.
  const bool writing = !writing_.empty() || !queue_.empty();
  if (events_ || !writing) return cut();
  close_when_written_ = true;
}

void Connection::reset_parser() {
  parser_.emplace();
  parser_->eager(true);
  parser_->header_limit(static_cast<std::uint32_t>(host_->options().max_header_bytes));
  parser_->body_limit(host_->options().max_body_bytes);
  header_checked_ = false;
  request_begun_ = false;
}

void Connection::parse() {
  while (state_ == State::kReading && !input_.empty()) {
    if (!std::exchange(request_begun_, true)) watch_reading(true);
    error_code error;
    const auto used = parser_->put(asio::buffer(input_), error);
    input_.erase(0, used);
    const bool starved = error == beast::http::error::need_more;
    if (error && !starved) return refuse_request(error);
    if (parser_->is_header_done() && !header_checked_ && !check_header()) return;
    if (parser_->is_done()) return dispatch();
    if (starved || used == 0) return;
  }
}

bool Connection::check_header() {
  header_checked_ = true;
  const auto& request = parser_->get();
  const auto expect = request.find(beast::http::field::expect);
  if (expect == request.end()) return true;
  if (!beast::iequals(expect->value(), "100-continue")) {
    keep_alive_ = false;
    state_ = State::kAnswering;
    respond(error_response({417, "Only 'Expect: 100-continue' is understood.", "Expect",
                            "expectation_failed", std::nullopt}));
    return false;
  }
  if (!parser_->is_done() && request.version() >= 11) send("HTTP/1.1 100 Continue\r\n\r\n");
  return true;
}

void Connection::refuse_request(const error_code& error) {
  ApiError answer{400, "The request is not valid HTTP/1.1.", "", "bad_request", std::nullopt};
  if (error == beast::http::error::header_limit) {
    answer = {
        431, "The header is above " + std::to_string(host_->options().max_header_bytes) + " bytes.",
        "", "header_too_large", std::nullopt};
  } else if (error == beast::http::error::body_limit) {
    answer = {413,
              "The body is above " + std::to_string(host_->options().max_body_bytes) + " bytes.",
              "", "body_too_large", std::nullopt};
  }
  keep_alive_ = false;
  state_ = State::kAnswering;
  ++host_->api().stats().requests;
  respond(error_response(answer));
}

void Connection::dispatch() {
  read_timer_.cancel();
  // A body in an encoding that is not known here has no end that could be found.
  const auto& head = parser_->get();
  if (head.find(beast::http::field::transfer_encoding) != head.end() && !head.chunked()) {
    keep_alive_ = false;
    state_ = State::kAnswering;
    ++host_->api().stats().requests;
    return respond(error_response({501, "Only 'Transfer-Encoding: chunked' is supported.", "",
                                   "unsupported_encoding", std::nullopt}));
  }
  auto message = parser_->release();
  HttpRequest request;
  request.method = text_of(message.method_string());
  split_target(text_of(message.target()), request);
  for (const auto& field : message) {
    request.headers.emplace_back(text_of(field.name_string()), text_of(field.value()));
  }
  request.body = std::move(message.body());
  keep_alive_ = message.keep_alive();
  chunked_ = message.version() >= 11;
  head_ = message.method() == beast::http::verb::head;
  state_ = State::kAnswering;
  reset_parser();
  ++host_->api().stats().requests;
  // A stream that ended within the call has answered already; what remains is an old number.
  const auto stream = host_->api().handle(request, *this, audience_);
  if (state_ == State::kAnswering || state_ == State::kClosed) events_ = stream;
}

void Connection::watch_reading(bool begun) {
  const auto& options = host_->options();
  read_timer_.arm(begun ? options.request_timeout : options.idle_timeout, [this] { on_timeout(); });
}

void Connection::on_timeout() {
  const auto self = shared_from_this();
  if (state_ != State::kReading || !request_begun_) return cut();
  ++host_->api().stats().timeouts;
  keep_alive_ = false;
  state_ = State::kAnswering;
  respond(error_response(
      {408, "The request did not come whole in time.", "", "request_timeout", std::nullopt}));
}

// --- output ---

void Connection::respond(HttpResponse response) {
  if (state_ != State::kAnswering) return;
  auto& stats = host_->api().stats();
  ++(response.status < 400 ? stats.responses_2xx
                           : (response.status < 500 ? stats.responses_4xx : stats.responses_5xx));
  std::string out = status_line(response.status);
  if (response.status != 204) {
    out += "Content-Type: " + response.content_type + "\r\n";
    out += "Content-Length: " + std::to_string(response.body.size()) + "\r\n";
  }
  for (const auto& [name, value] : response.headers) out += name + ": " + value + "\r\n";
  out += keep_alive_ ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  if (!head_ && response.status != 204) out += response.body;
  send(out);
  finish_answer();
}

void Connection::begin_events() {
  if (state_ != State::kAnswering) return;
  ++host_->api().stats().responses_2xx;
  keep_alive_ = keep_alive_ && chunked_;  // HTTP/1.0: the end of the connection is the end
  std::string out = status_line(200);
  out += "Content-Type: text/event-stream\r\nCache-Control: no-cache\r\nX-Accel-Buffering: no\r\n";
  if (chunked_) out += "Transfer-Encoding: chunked\r\n";
  out += keep_alive_ ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  send(out);
}

void Connection::write(std::string_view events) {
  if (state_ != State::kAnswering || events.empty()) return;
  if (queue_.size() + writing_.size() + events.size() > host_->options().max_stream_queue_bytes) {
    ++host_->api().stats().slow_readers_closed;
    return cut();
  }
  send(chunked_ ? chunk_of(events) : std::string(events));
}

void Connection::end() {
  if (state_ != State::kAnswering) return;
  if (chunked_) send("0\r\n\r\n");
  finish_answer();
}

void Connection::send(std::string_view bytes) {
  queue_ += bytes;
  flush();
}

void Connection::flush() {
  if (state_ == State::kClosed || !writing_.empty() || queue_.empty()) return;
  writing_.swap(queue_);
  written_ = 0;
  write_some();
}

void Connection::write_some() {
  write_timer_.arm(host_->options().write_timeout, [this] {
    const auto self = shared_from_this();
    ++host_->api().stats().slow_readers_closed;
    cut();
  });
  // The first attempt is made within this call, so a token is on its way before it returns.
  stream_.async_write_some(asio::buffer(writing_) + written_,
                           [self = shared_from_this()](const error_code& error, std::size_t bytes) {
                             if (self->state_ != State::kClosed) self->on_written(error, bytes);
                           });
}

void Connection::on_written(const error_code& error, std::size_t bytes) {
  write_timer_.cancel();
  if (error) return cut();
  written_ += bytes;
  if (written_ < writing_.size()) return write_some();
  writing_.clear();
  written_ = 0;
  if (!queue_.empty()) return flush();
  if (close_when_written_) return cut();
  if (state_ == State::kDraining) {
    // Closing with input unread would take the answer back from the client: first end our side.
    error_code ignored;
    stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  }
}

void Connection::finish_answer() {
  events_.reset();
  if (!keep_alive_) return drain();
  state_ = State::kReading;
  watch_reading(false);
  // Not from here: this may run inside a call of the node, and parsing may call it again.
  if (!input_.empty()) {
    host_->post([self = shared_from_this()] {
      if (self->state_ == State::kReading) self->parse();
    });
  }
}

void Connection::drain() {
  state_ = State::kDraining;
  input_.clear();
  read_timer_.arm(kDrainTime, [this] {
    const auto self = shared_from_this();
    cut();
  });
}

}  // namespace pallas::http
