#include "http/server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <map>
#include <vector>

#include "http/connection.h"
#include "http/random.h"

namespace pallas::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// Above the limit a client is still told so; above this many more it is not.
constexpr std::size_t kRefusalsAtOnce = 64;
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);

std::int64_t wall_clock_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

class Server::Impl : public ConnectionHost, public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& io, Clock& clock, const engine::TextCodec& text, ServerOptions options)
      : io_(io),
        clock_(clock),
        options_(std::move(options)),
        acceptor_(io),
        accept_pause_(clock),
        api_(text, clock, options_.api, [this](std::function<void()> task) { post(task); }) {}

  Status listen() {
    error_code error;
    const auto host = options_.address == "localhost" ? "127.0.0.1" : options_.address;
    const auto address = asio::ip::make_address(host, error);
    if (error) {
      return fail(Errc::kInvalidConfig, "http address '" + options_.address + "' is no IP address");
    }
    const tcp::endpoint endpoint(address, options_.port);
    const auto name = options_.address + ":" + std::to_string(options_.port);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error == asio::error::address_in_use) {
      return fail(Errc::kAlreadyExists, "http port " + name + " is in use");
    }
    if (error) return fail(Errc::kIo, "http port " + name + ": " + error.message());
    port_ = acceptor_.local_endpoint(error).port();
    accept();
    return {};
  }

  void stop_accepting() {
    accept_pause_.cancel();
    error_code ignored;
    acceptor_.close(ignored);
  }

  void close_all() {
    stop_accepting();
    for (const auto& [key, connection] : connections_) connection->cut();
  }

  // For the end of the server: nothing of it is used after this.
  void leave_all() {
    stop_accepting();
    for (const auto& [key, connection] : connections_) connection->leave();
    connections_.clear();
  }

  // --- ConnectionHost ---
  Api& api() override { return api_; }
  Clock& clock() override { return clock_; }
  const ServerOptions& options() const override { return options_; }
  void post(std::function<void()> task) override {
    asio::post(io_, [weak = weak_from_this(), call = std::move(task)] {
      if (const auto self = weak.lock()) call();
    });
  }
  void on_closed(Connection& connection) override {
    connections_.erase(&connection);
    api_.stats().connections_open = connections_.size();
  }

  std::uint16_t port() const { return port_; }

 private:
  void accept() {
    acceptor_.async_accept([weak = weak_from_this()](const error_code& error, tcp::socket socket) {
      if (const auto self = weak.lock()) self->on_accepted(error, std::move(socket));
    });
  }

  void on_accepted(const error_code& error, tcp::socket socket) {
    if (!acceptor_.is_open()) return;
    if (error) {
      // Out of descriptors, as a rule: trying again at once would spin.
      accept_pause_.arm(kAcceptPause, [this] { accept(); });
      return;
    }
    const bool full = connections_.size() >= options_.max_connections;
    ++(full ? api_.stats().connections_refused : api_.stats().connections_accepted);
    if (connections_.size() < options_.max_connections + kRefusalsAtOnce) {
      auto connection = std::make_shared<Connection>(std::move(socket), *this);
      auto& taken = *connection;
      connections_.emplace(&taken, std::move(connection));
      api_.stats().connections_open = connections_.size();
      if (full) {
        taken.start_refusing();
      } else {
        taken.start();
      }
    }
    accept();
  }

  asio::io_context& io_;
  Clock& clock_;
  ServerOptions options_;
  tcp::acceptor acceptor_;
  Timer accept_pause_;
  std::uint16_t port_ = 0;
  Api api_;
  std::map<Connection*, std::shared_ptr<Connection>> connections_;
};

Result<std::unique_ptr<Server>> Server::create(asio::io_context& io, Clock& clock,
                                               const engine::TextCodec& text,
                                               ServerOptions options) {
  if (!options.api.random) options.api.random = system_random;
  if (!options.api.unix_time) options.api.unix_time = wall_clock_s;
  auto impl = std::make_shared<Impl>(io, clock, text, std::move(options));
  if (auto listening = impl->listen(); !listening) return tl::unexpected(listening.error());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() {
  impl_->leave_all();
}

std::uint16_t Server::port() const {
  return impl_->port();
}
node::UeLink& Server::ue_link() {
  return impl_->api().ue_link();
}
void Server::set_backend(Backend* backend) {
  impl_->api().set_backend(backend);
}
void Server::set_metrics(MetricSource source) {
  impl_->api().set_metrics(std::move(source));
}
void Server::stop_accepting() {
  impl_->stop_accepting();
}
void Server::close() {
  impl_->close_all();
}

}  // namespace pallas::http
