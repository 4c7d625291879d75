#include "listen_check.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace pallas::app {

Status check_can_listen(const std::string& setting, const std::string& host, std::uint16_t port) {
  namespace asio = boost::asio;
  const std::string name = setting + ": " + host + ":" + std::to_string(port);
  boost::system::error_code error;
  const auto address = asio::ip::make_address(host, error);
  if (error) return fail(Errc::kInvalidConfig, name + " is no numeric address");
  asio::io_context io;
  asio::ip::tcp::acceptor acceptor(io);
  const asio::ip::tcp::endpoint endpoint(address, port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(1, error);
  if (error == asio::error::address_in_use) return fail(Errc::kAlreadyExists, name + " is in use");
  if (error) return fail(Errc::kIo, name + ": " + error.message());
  return {};
}

}  // namespace pallas::app
