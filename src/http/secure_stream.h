#pragma once
// A connected socket, under TLS or not, for Asio's and Beast's operations (AsyncReadStream and
// AsyncWriteStream). Includes Asio: for sources that speak HTTP over sockets only. HTTP carries
// little, so asio::ssl will do here; peer links have a way of their own (tls/session.h).

#include <openssl/ssl.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <memory>
#include <utility>

#include "base/result.h"

namespace pallas::http {

class SecureStream {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using executor_type = Socket::executor_type;

  explicit SecureStream(Socket socket) : socket_(std::move(socket)) {}
  SecureStream(const SecureStream&) = delete;
  SecureStream& operator=(const SecureStream&) = delete;

  // From now on under TLS, after handshake(). Takes `ssl` over.
  void secure(SSL* ssl) {
    tls_ = std::make_unique<boost::asio::ssl::stream<Socket&>>(socket_, ssl);
  }
  bool is_secure() const { return tls_ != nullptr; }
  SSL* native_tls() { return tls_->native_handle(); }

  Socket& socket() { return socket_; }
  executor_type get_executor() { return socket_.get_executor(); }

  template <class Handler>
  void handshake(bool as_server, Handler&& handler) {
    using Stream = boost::asio::ssl::stream_base;
    tls_->async_handshake(as_server ? Stream::server : Stream::client,
                          std::forward<Handler>(handler));
  }
  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) {
      tls_->async_read_some(buffers, std::forward<Handler>(handler));
    } else {
      socket_.async_read_some(buffers, std::forward<Handler>(handler));
    }
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) {
      tls_->async_write_some(buffers, std::forward<Handler>(handler));
    } else {
      socket_.async_write_some(buffers, std::forward<Handler>(handler));
    }
  }

 private:
  Socket socket_;
  std::unique_ptr<boost::asio::ssl::stream<Socket&>> tls_;
};

}  // namespace pallas::http
