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

// Above the limit a client is told so; so many at once, and the others wait at the listener.
constexpr std::size_t kRefusalsAtOnce = 256;
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
        watch_({options_.keys ? options_.keys->path : ""}),
        refresh_timer_(clock),
        api_(text, clock, options_.api, [this](std::function<void()> task) { post(task); }) {
    api_.set_unsent([this] { return unsent_bytes(); });
  }

  Status open() {
    if (options_.tls) {
      auto loaded = tls::Credentials::load(*options_.tls, "");
      if (!loaded) return Failure(loaded.error());
      credentials_ = std::move(*loaded);
    }
    if (options_.keys) {
      auto keys = read_keys(*options_.keys);
      if (!keys) return Failure(keys.error());
      api_.set_keys(std::move(*keys));
    }
    const auto audience = options_.operators ? Audience::kClients : Audience::kEverybody;
    if (auto s = listen({options_.address, options_.port}, audience); !s) return s;
    if (options_.operators) {
      if (auto s = listen(*options_.operators, Audience::kOperators); !s) return s;
    }
    if (options_.tls || options_.keys) look_again();
    return {};
  }

  void stop_accepting() {
    for (const auto& listener : listeners_) {
      listener->pause.cancel();
      error_code ignored;
      listener->acceptor.close(ignored);
    }
  }

  void close_all() {
    stop_accepting();
    for (const auto& [key, connection] : connections_) connection->cut();
  }

  // For the end of the server: nothing of it is used after this.
  void leave_all() {
    stop_accepting();
    refresh_timer_.cancel();
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

  std::size_t unsent_bytes() const {
    std::size_t bytes = 0;
    for (const auto& [key, connection] : connections_) bytes += connection->unsent_bytes();
    return bytes;
  }
  bool idle() const { return api_.open_streams() == 0 && unsent_bytes() == 0; }

  std::uint16_t port() const { return listeners_.front()->port; }
  std::optional<std::uint16_t> operators_port() const {
    if (listeners_.size() < 2) return std::nullopt;
    return listeners_.back()->port;
  }

 private:
  struct Listening {
    Listening(asio::io_context& io, Clock& clock, Audience whom)
        : acceptor(io), pause(clock), audience(whom) {}
    tcp::acceptor acceptor;
    Timer pause;
    Audience audience;
    std::uint16_t port = 0;
  };

  Status listen(const ListenOptions& at, Audience audience) {
    error_code error;
    const auto host = at.address == "localhost" ? "127.0.0.1" : at.address;
    const auto address = asio::ip::make_address(host, error);
    if (error) {
      return fail(Errc::kInvalidConfig, "http address '" + at.address + "' is no IP address");
    }
    const tcp::endpoint endpoint(address, at.port);
    const auto name = at.address + ":" + std::to_string(at.port);
    auto listener = std::make_unique<Listening>(io_, clock_, audience);
    auto& acceptor = listener->acceptor;
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error == asio::error::address_in_use) {
      return fail(Errc::kAlreadyExists, "http port " + name + " is in use");
    }
    if (error) return fail(Errc::kIo, "http port " + name + ": " + error.message());
    listener->port = acceptor.local_endpoint(error).port();
    listeners_.push_back(std::move(listener));
    accept(*listeners_.back());
    return {};
  }

  // A listener stays as long as the server.
  void accept(Listening& at) {
    at.acceptor.async_accept(
        [weak = weak_from_this(), &at](const error_code& error, tcp::socket socket) {
          if (const auto self = weak.lock()) self->on_accepted(at, error, std::move(socket));
        });
  }

  void on_accepted(Listening& at, const error_code& error, tcp::socket socket) {
    if (!at.acceptor.is_open()) return;
    if (error) {
      // Out of descriptors, as a rule: trying again at once would spin.
      at.pause.arm(kAcceptPause, [this, &at] { accept(at); });
      return;
    }
    // An operator comes through whatever clients do.
    const bool full =
        connections_.size() >= options_.max_connections && at.audience != Audience::kOperators;
    ++(full ? api_.stats().connections_refused : api_.stats().connections_accepted);
    take(std::move(socket), at.audience, full);
    if (connections_.size() < options_.max_connections + kRefusalsAtOnce) return accept(at);
    at.pause.arm(kAcceptPause, [this, &at] { accept_again(at); });
  }

  void accept_again(Listening& at) {
    if (connections_.size() < options_.max_connections + kRefusalsAtOnce) return accept(at);
    at.pause.arm(kAcceptPause, [this, &at] { accept_again(at); });
  }

  void take(tcp::socket socket, Audience audience, bool full) {
    SSL* const tls = credentials_ ? SSL_new(credentials_->context()) : nullptr;
    if (credentials_ && tls == nullptr) return;  // without memory; never in the clear instead
    auto connection = std::make_shared<Connection>(std::move(socket), *this, audience, tls);
    auto& taken = *connection;
    connections_.emplace(&taken, std::move(connection));
    api_.stats().connections_open = connections_.size();
    if (full) {
      taken.start_refusing();
    } else {
      taken.start();
    }
  }

  void log(const std::string& line) const {
    if (options_.log) options_.log(line);
  }

  void look_again() {
    if (credentials_) {
      const auto changed = credentials_->refresh();
      if (!changed) log("certificates stay as they were: " + changed.error().message);
      if (changed && *changed) log("certificates were read again; new connections use them");
    }
    if (options_.keys && watch_.changed()) {
      auto keys = read_keys(*options_.keys);
      if (keys) api_.set_keys(std::move(*keys));
      log(keys ? "API keys were read again"
               : "API keys stay as they were: " + keys.error().message);
    }
    refresh_timer_.arm(options_.refresh, [this] { look_again(); });
  }

  asio::io_context& io_;
  Clock& clock_;
  ServerOptions options_;
  tls::FileWatch watch_;  // of the keys
  Timer refresh_timer_;
  Api api_;
  std::unique_ptr<tls::Credentials> credentials_;
  std::vector<std::unique_ptr<Listening>> listeners_;
  std::map<Connection*, std::shared_ptr<Connection>> connections_;
};

Result<std::unique_ptr<Server>> Server::create(asio::io_context& io, Clock& clock,
                                               const engine::TextCodec& text,
                                               ServerOptions options) {
  if (!options.api.random) options.api.random = system_random;
  if (!options.api.unix_time) options.api.unix_time = wall_clock_s;
  auto impl = std::make_shared<Impl>(io, clock, text, std::move(options));
  if (auto listening = impl->open(); !listening) return tl::unexpected(listening.error());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() {
  impl_->leave_all();
}

std::uint16_t Server::port() const {
  return impl_->port();
}
std::optional<std::uint16_t> Server::operators_port() const {
  return impl_->operators_port();
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
void Server::set_drain(DrainHandler drain) {
  impl_->api().set_drain(std::move(drain));
}
bool Server::idle() const {
  return impl_->idle();
}
void Server::stop_accepting() {
  impl_->stop_accepting();
}
void Server::close() {
  impl_->close_all();
}

}  // namespace pallas::http
