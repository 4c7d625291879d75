#include "ue/local_server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http.hpp>
#include <deque>
#include <map>
#include <optional>
#include <set>

namespace pallas::ue {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

std::string hex(std::size_t value) {
  std::string digits;
  do {
    digits.insert(digits.begin(), "0123456789abcdef"[value % 16]);
    value /= 16;
  } while (value != 0);
  return digits;
}

asio::ip::address numeric_address(const std::string& host, error_code& ec) {
  return asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, ec);
}

}  // namespace

bool is_loopback(const Address& address) {
  error_code ec;
  const asio::ip::address ip = numeric_address(address.host, ec);
  return !ec && ip.is_loopback();
}

std::string_view IncomingRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (boost::beast::iequals(key, name)) return value;
  }
  return {};
}

std::string_view IncomingRequest::path() const {
  return std::string_view(target).substr(0, target.find('?'));
}

class LocalServer::Impl {
 public:
  class Connection;

  Impl(asio::io_context& context, Handlers callbacks, Limits bounds)
      : io(context),
        handlers(std::move(callbacks)),
        limits(bounds),
        acceptor(context),
        pause(context) {}
  ~Impl();

  Status open(const Address& address);
  void accept();

  asio::io_context& io;
  Handlers handlers;
  Limits limits;
  tcp::acceptor acceptor;
  asio::steady_timer pause;
  std::set<std::shared_ptr<Connection>> connections;
  std::map<Exchange, Connection*> exchanges;
  Exchange last = 0;
  // Handlers of the acceptor that run after this is gone find it expired.
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);
};

// Reads a request, lets the handler answer, reads the next. Handlers of Asio share its ownership;
// `server_` is null once it is closed.
class LocalServer::Impl::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Impl& server, tcp::socket socket)
      : server_(&server), socket_(std::move(socket)), deadline_(server.io) {
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
  }

  void read() {
    parser_.emplace();
    parser_->body_limit(server_->limits.body_bytes);
    arm_deadline();
    http::async_read(socket_, buffer_, *parser_,
                     [self = shared_from_this()](error_code ec, std::size_t) {
                       if (self->server_ == nullptr) return;
                       self->deadline_.cancel();
                       if (ec) return self->on_bad_request(ec);
                       self->on_request();
                     });
  }

  // Without telling the handler.
  void close() {
    if (server_ == nullptr) return;
    Impl* server = std::exchange(server_, nullptr);
    error_code ignored;
    deadline_.cancel();
    socket_.close(ignored);
    if (exchange_ != 0) server->exchanges.erase(exchange_);
    server->connections.erase(shared_from_this());
  }

  void lose() {
    if (server_ == nullptr) return;
    Impl* server = server_;
    const Exchange lost = exchange_;
    close();
    if (lost != 0) server->handlers.on_gone(lost);
  }

  void reply(int status, std::string_view type, std::string_view body) {
    std::string text = head(status, type);
    if (status != 204) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    text += "\r\n";
    if (!head_only_) text += body;
    send(std::move(text));
    finish();
  }

  void begin(std::string_view type) {
    chunked_ = version_ >= 11;
    if (!chunked_) keep_alive_ = false;  // its end is the end of the connection
    std::string text = head(200, type);
    text += "Cache-Control: no-cache\r\n";
    if (chunked_) text += "Transfer-Encoding: chunked\r\n";
    send(text + "\r\n");
  }

  void write(std::string_view bytes) {
    if (bytes.empty()) return;  // an empty chunk would be the last
    std::string text = chunked_ ? hex(bytes.size()) + "\r\n" : std::string();
    text += bytes;
    if (chunked_) text += "\r\n";
    send(std::move(text));
  }

  void end() {
    if (chunked_) send("0\r\n\r\n");
    finish();
  }

 private:
  void on_bad_request(error_code ec) {
    if (ec == http::error::end_of_stream ||
        ec.category() != make_error_code(http::error()).category()) {
      return close();  // the client is gone
    }
    keep_alive_ = false;
    const bool large = ec == http::error::body_limit || ec == http::error::header_limit;
    reply(large ? 413 : 400, "text/plain",
          large ? "the request is too large\n" : "the request is not HTTP\n");
  }

  void on_request() {
    auto& message = parser_->get();
    keep_alive_ = message.keep_alive();
    version_ = message.version();
    head_only_ = message.method() == http::verb::head;
    chunked_ = false;
    IncomingRequest request;
    request.method = std::string(message.method_string());
    request.target = std::string(message.target());
    for (const auto& field : message) {
      request.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    }
    request.body = std::move(message.body());
    exchange_ = ++server_->last;
    server_->exchanges[exchange_] = this;
    watch(exchange_);
    const auto self = shared_from_this();  // the handler may cut this connection
    server_->handlers.on_request(exchange_, request);
  }

  // Notices a client that leaves while its answer is being made.
  void watch(Exchange exchange) {
    socket_.async_wait(
        tcp::socket::wait_read, [self = shared_from_this(), exchange](error_code ec) {
          if (self->server_ == nullptr || self->exchange_ != exchange) return;
          error_code failed;
          const bool pipelined = !ec && self->socket_.available(failed) > 0 && !failed;
          if (!pipelined) self->lose();
        });
  }

  std::string head(int status, std::string_view type) const {
    std::string text = "HTTP/1.1 " + std::to_string(status) + " ";
    text += http::obsolete_reason(static_cast<http::status>(status));
    text += "\r\nServer: pallas-ue\r\n";
    if (!type.empty()) text += "Content-Type: " + std::string(type) + "\r\n";
    text += keep_alive_ ? "Connection: keep-alive\r\n" : "Connection: close\r\n";
    return text;
  }

  void send(std::string text) {
    if (unsent_ > server_->limits.unsent_bytes) {
      // Later: the handler may be in the middle of something.
      asio::post(socket_.get_executor(), [self = shared_from_this()] { self->lose(); });
      return;
    }
    unsent_ += text.size();
    out_.push_back(std::move(text));
    if (out_.size() == 1) pump();
  }

  void pump() {
    asio::async_write(socket_, asio::buffer(out_.front()),
                      [self = shared_from_this()](error_code ec, std::size_t) {
                        if (self->server_ == nullptr) return;
                        if (ec) return self->lose();
                        self->unsent_ -= self->out_.front().size();
                        self->out_.pop_front();
                        if (!self->out_.empty()) return self->pump();
                        if (std::exchange(self->answered_, false)) self->next();
                      });
  }

  // The answer is complete; what is left is to write it.
  void finish() {
    if (server_ == nullptr) return;
    if (exchange_ != 0) server_->exchanges.erase(std::exchange(exchange_, 0));
    answered_ = true;
    if (!out_.empty()) return;
    asio::post(socket_.get_executor(), [self = shared_from_this()] {
      if (self->server_ != nullptr && std::exchange(self->answered_, false)) self->next();
    });
  }

  void next() {
    if (keep_alive_) return read();
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    close();
  }

  void arm_deadline() {
    deadline_.expires_after(server_->limits.idle);
    deadline_.async_wait([weak = weak_from_this()](error_code ec) {
      const auto self = weak.lock();
      if (ec || !self || self->server_ == nullptr || self->exchange_ != 0) return;
      self->close();
    });
  }

  Impl* server_;
  tcp::socket socket_;
  asio::steady_timer deadline_;
  boost::beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  Exchange exchange_ = 0;
  unsigned version_ = 11;
  bool keep_alive_ = true;
  bool head_only_ = false;
  bool chunked_ = false;
  bool answered_ = false;
  std::deque<std::string> out_;  // the first is being written
  std::size_t unsent_ = 0;
};

LocalServer::Impl::~Impl() {
  const auto open_ones = connections;
  for (const auto& connection : open_ones) connection->close();
}

Status LocalServer::Impl::open(const Address& address) {
  error_code ec;
  const asio::ip::address ip = numeric_address(address.host, ec);
  if (ec) {
    return fail(Errc::kInvalidArgument,
                "listen: '" + address.host + "' is not a numeric address of this machine");
  }
  const tcp::endpoint endpoint(ip, address.port);
  acceptor.open(endpoint.protocol(), ec);
  if (!ec) acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
  if (!ec) acceptor.bind(endpoint, ec);
  if (!ec) acceptor.listen(asio::socket_base::max_listen_connections, ec);
  if (ec == asio::error::address_in_use) {
    return fail(Errc::kAlreadyExists, "listen: " + address.text() + " is in use");
  }
  if (ec) return fail(Errc::kIo, "listen: " + address.text() + ": " + ec.message());
  accept();
  return {};
}

void LocalServer::Impl::accept() {
  const std::weak_ptr<bool> here = alive;
  acceptor.async_accept([this, here](error_code ec, tcp::socket socket) {
    if (here.expired() || ec == asio::error::operation_aborted) return;
    if (ec) {
      // Out of descriptors, most likely: connections that end free some.
      pause.expires_after(std::chrono::milliseconds(100));
      pause.async_wait([this, here](error_code stopped) {
        if (!stopped && !here.expired()) accept();
      });
      return;
    }
    if (connections.size() < limits.connections) {
      auto connection = std::make_shared<Connection>(*this, std::move(socket));
      connections.insert(connection);
      connection->read();
    }
    accept();
  });
}

LocalServer::LocalServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

LocalServer::~LocalServer() = default;

Result<std::unique_ptr<LocalServer>> LocalServer::listen(asio::io_context& io,
                                                         const Address& address, Handlers handlers,
                                                         Limits limits) {
  auto impl = std::make_unique<Impl>(io, std::move(handlers), limits);
  if (Status status = impl->open(address); !status) return tl::unexpected(status.error());
  return std::unique_ptr<LocalServer>(new LocalServer(std::move(impl)));
}

std::uint16_t LocalServer::port() const {
  error_code ignored;
  return impl_->acceptor.local_endpoint(ignored).port();
}

void LocalServer::reply(Exchange exchange, int status, std::string_view content_type,
                        std::string_view body) {
  const auto it = impl_->exchanges.find(exchange);
  if (it != impl_->exchanges.end()) it->second->reply(status, content_type, body);
}

void LocalServer::begin_stream(Exchange exchange, std::string_view content_type) {
  const auto it = impl_->exchanges.find(exchange);
  if (it != impl_->exchanges.end()) it->second->begin(content_type);
}

void LocalServer::write(Exchange exchange, std::string_view bytes) {
  const auto it = impl_->exchanges.find(exchange);
  if (it != impl_->exchanges.end()) it->second->write(bytes);
}

void LocalServer::end(Exchange exchange) {
  const auto it = impl_->exchanges.find(exchange);
  if (it != impl_->exchanges.end()) it->second->end();
}

void LocalServer::cut(Exchange exchange) {
  const auto it = impl_->exchanges.find(exchange);
  if (it != impl_->exchanges.end()) it->second->close();
}

}  // namespace pallas::ue
