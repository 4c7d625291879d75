#include <boost/asio/io_context.hpp>
#include <utility>

#include "net/tcp_connection.h"

namespace pallas::net {
namespace {

namespace asio = boost::asio;

class TcpListener final : public Listener {
 public:
  TcpListener(tcp::acceptor acceptor, const Clock& clock, const SocketOptions& options,
              Secure secure)
      : acceptor_(std::move(acceptor)),
        retry_(acceptor_.get_executor()),
        clock_(clock),
        options_(options),
        secure_(std::move(secure)) {}

  std::uint16_t port() const override {
    error_code error;
    return acceptor_.local_endpoint(error).port();
  }

  void start(std::function<void(std::shared_ptr<Connection>)> accepted) override {
    accepted_ = std::move(accepted);
    accept();
  }

 private:
  void accept() {
    acceptor_.async_accept(
        [this, alive = std::weak_ptr<bool>(alive_)](const error_code& error, tcp::socket socket) {
          if (alive.expired() || error == asio::error::operation_aborted) return;
          if (error) {  // out of descriptors, most likely: try again when some have gone
            retry_.expires_after(std::chrono::milliseconds(100));
            retry_.async_wait([this, alive](const error_code& cancelled) {
              if (!cancelled && !alive.expired()) accept();
            });
            return;
          }
          accept();
          take(std::move(socket));
        });
  }

  // A connection that cannot be secured is none.
  void take(tcp::socket socket) {
    std::unique_ptr<tls::Session> session;
    if (secure_) {
      auto made = secure_();
      if (!made) return;
      session = std::move(*made);
    }
    auto connection =
        std::make_shared<TcpConnection>(std::move(socket), clock_, options_, std::move(session));
    if (connection->adopt()) accepted_(std::move(connection));
  }

  tcp::acceptor acceptor_;
  asio::steady_timer retry_;
  const Clock& clock_;
  SocketOptions options_;
  Secure secure_;
  std::function<void(std::shared_ptr<Connection>)> accepted_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // ends with the listener
};

}  // namespace

Result<std::unique_ptr<Listener>> Listener::open(asio::io_context& io, const Clock& clock,
                                                 const std::string& address, std::uint16_t port,
                                                 const SocketOptions& options, Secure secure) {
  const std::string where = "peer address " + address + ":" + std::to_string(port);
  error_code error;
  const asio::ip::address parsed = asio::ip::make_address(address, error);
  if (error) return fail(Errc::kInvalidArgument, where + ": is not an IP address");
  const tcp::endpoint endpoint(parsed, port);
  tcp::acceptor acceptor(io);
  acceptor.open(endpoint.protocol(), error);
  // A restart must not wait for the last connections of the process before it.
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error == asio::error::address_in_use) {
    return fail(Errc::kAlreadyExists, where + ": the port is in use");
  }
  if (error) return fail(Errc::kIo, where + ": " + error.message());
  return std::unique_ptr<Listener>(
      std::make_unique<TcpListener>(std::move(acceptor), clock, options, std::move(secure)));
}

}  // namespace pallas::net
