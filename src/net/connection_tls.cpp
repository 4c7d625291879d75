// How a TcpConnection reads and writes under TLS.

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "net/tcp_connection.h"

namespace pallas::net {
namespace asio = boost::asio;

namespace {

constexpr std::string_view kHowTo = "peer_cert, peer_key and peer_ca";

}  // namespace

Status TcpConnection::secure() {
  error_code error;
  socket_.native_non_blocking(true, error);
  if (error) return fail(Errc::kIo, remote_ + ": " + error.message());
  return session_->attach(socket_.native_handle());
}

void TcpConnection::read_secured(asio::mutable_buffer into, std::function<void()> next) {
  into_ = {static_cast<std::byte*>(into.data()), into.size()};
  got_ = 0;
  next_ = std::move(next);
  if (!pumping_) schedule_reads();
}

void TcpConnection::schedule_reads() {
  asio::post(socket_.get_executor(), [this, self = shared_from_this()] { pump_reads(); });
}

void TcpConnection::pump_reads() {
  std::size_t left = kReadAtOnce;  // then others have a turn
  pumping_ = true;
  while (handler_ != nullptr && next_ != nullptr) {
    if (!session_->established()) {
      const auto done = session_->handshake();
      write_next();
      if (!done) {
        on_broken(done.error());
        break;
      }
      if (!*done) {
        wait_readable();
        break;
      }
    } else if (got_ == into_.size()) {
      // It asks for more, or ends everything.
      std::exchange(next_, nullptr)();
    } else if (left == 0) {
      schedule_reads();
      break;
    } else {
      const auto part = into_.subspan(got_, std::min(left, into_.size() - got_));
      const auto got = session_->read(part);
      // The peer may have asked for an answer of TLS itself.
      if (session_->has_output()) write_next();
      if (!got) {
        on_broken(got.error());
        break;
      }
      if (*got == 0) {
        wait_readable();
        break;
      }
      got_ += *got;
      left -= *got;
      last_received_ = clock_.now();
    }
  }
  pumping_ = false;
}

void TcpConnection::wait_readable() {
  socket_.async_wait(tcp::socket::wait_read,
                     [this, self = shared_from_this()](const error_code& error) {
                       if (handler_ == nullptr) return;
                       if (error) return fail_with(io_error(remote_, error));
                       // Also a part of a record shows that the peer lives.
                       last_received_ = clock_.now();
                       pump_reads();
                     });
}

void TcpConnection::on_broken(const Error& error) {
  if (error.code == Errc::kUnreachable) {
    return fail_with({error.code, remote_ + ": " + error.message});
  }
  if (session_->peer_speaks_tls()) return bad(error);
  bad({error.code,
       dialled_
           ? "the peer speaks no TLS: start it with " + std::string(kHowTo) +
                 ", or this node without"
           : "the caller speaks no TLS, and this node takes peers over TLS only: start it with " +
                 std::string(kHowTo)});
}

asio::const_buffer TcpConnection::take_sealed() {
  sealed_.clear();
  if (sealed_.capacity() > kKeptSealed) sealed_ = {};
  session_->take_output(sealed_);
  return asio::buffer(sealed_);
}

}  // namespace pallas::net
