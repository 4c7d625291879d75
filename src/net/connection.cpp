#include "net/connection.h"

#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "net/tcp_connection.h"

namespace pallas::net {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds kLinger{200};
constexpr std::uint8_t kHello = 1;
constexpr std::uint8_t kErrorMessage = 4;  // instead of a Hello: the call is refused

using UnsentLow = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_NOTSENT_LOWAT>;

// How a TLS handshake begins, which is no frame.
bool begins_tls(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{22} && bytes[1] == std::byte{3};
}

}  // namespace

Error io_error(const std::string& what, const error_code& error) {
  if (error == asio::error::eof) return {Errc::kUnreachable, what + ": closed by the peer"};
  return {Errc::kUnreachable, what + ": " + error.message()};
}

TcpConnection::TcpConnection(tcp::socket socket, const Clock& clock, const SocketOptions& options,
                             std::unique_ptr<tls::Session> session)
    : socket_(std::move(socket)),
      resolver_(socket_.get_executor()),
      linger_(socket_.get_executor()),
      clock_(clock),
      options_(options),
      last_received_(clock.now()),
      session_(std::move(session)) {}

void TcpConnection::dial(const std::string& host, std::uint16_t port, wire::Channel channel) {
  dialled_ = true;
  remote_ = host + ":" + std::to_string(port);
  error_code error;
  const asio::ip::address address = asio::ip::make_address(host, error);
  if (!error) {
    const tcp::endpoint endpoint(address, port);
    socket_.open(endpoint.protocol(), error);
    // The send buffer has to be small before the connection grows it.
    set_channel(channel);
    socket_.async_connect(endpoint,
                          [this, self = shared_from_this()](const error_code& e) { connected(e); });
    return;
  }
  resolver_.async_resolve(
      host, std::to_string(port),
      [this, self = shared_from_this(), channel](const error_code& e,
                                                 const tcp::resolver::results_type& found) {
        if (handler_ == nullptr) return;
        if (e) return fail_with(io_error(remote_, e));
        asio::async_connect(socket_, found,
                            [this, self, channel](const error_code& failed, const tcp::endpoint&) {
                              if (!failed) set_channel(channel);
                              connected(failed);
                            });
      });
}

void TcpConnection::connected(const error_code& error) {
  if (handler_ == nullptr) return;
  if (error) return fail_with(io_error(remote_, error));
  connected_ = true;
  last_received_ = clock_.now();
  if (session_ == nullptr) return handler_->on_connected(*this);
  if (Status ok = secure(); !ok) return fail_with(ok.error());
  read_secured({}, [this] { handler_->on_connected(*this); });
}

Status TcpConnection::adopt() {
  connected_ = true;
  error_code error;
  const tcp::endpoint from = socket_.remote_endpoint(error);
  remote_ = error ? "unknown" : from.address().to_string() + ":" + std::to_string(from.port());
  set_channel(wire::Channel::kControl);
  return session_ == nullptr ? Status() : secure();
}

void TcpConnection::set_channel(wire::Channel channel) {
  error_code ignored;  // an option that the system lacks costs speed, not correctness
  socket_.set_option(tcp::no_delay(true), ignored);
  using UserTimeout = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_USER_TIMEOUT>;
  const auto timeout = std::chrono::duration_cast<std::chrono::milliseconds>(options_.user_timeout);
  socket_.set_option(UserTimeout(static_cast<int>(timeout.count())), ignored);
  const std::string& control = options_.congestion_control;
  if (!control.empty()) {
    // Asio has no option that is a text.
    (void)setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_CONGESTION, control.data(),
                     static_cast<socklen_t>(control.size()));
  }
  if (channel != wire::Channel::kData) return;
  socket_.set_option(asio::socket_base::send_buffer_size(options_.data_send_buffer), ignored);
  socket_.set_option(UnsentLow(options_.data_unsent_low), ignored);
}

void TcpConnection::set_unsent_low(std::size_t bytes) {
  error_code ignored;
  const int low = std::max(options_.data_unsent_low, static_cast<int>(bytes));
  socket_.set_option(UnsentLow(low), ignored);
}

std::string_view TcpConnection::awaited() const {
  if (!connected_) return "connection";
  return session_ != nullptr && !session_->established() ? "TLS handshake" : "Hello";
}

bool TcpConnection::proves(const NodeId& node) const {
  if (session_ == nullptr) return true;
  const auto& names = session_->peer_names();
  return std::find(names.begin(), names.end(), node.value) != names.end();
}

// --- reading: header, body, payload ---

void TcpConnection::read_frame() {
  read(asio::buffer(header_bytes_), [this] { on_header(); });
}

bool TcpConnection::has_unread() const {
  if (!is_open()) return false;
  if (session_ != nullptr && session_->has_unread()) return true;
  error_code error;
  return socket_.available(error) > 0 && !error;
}

template <class Next>
void TcpConnection::read(asio::mutable_buffer into, Next next) {
  if (session_ != nullptr) return read_secured(into, std::move(next));
  // The completion condition sees every partial read: a long payload shows that the peer lives.
  const auto until_full = [this](const error_code& error, std::size_t so_far) -> std::size_t {
    if (so_far > 0) last_received_ = clock_.now();
    return error ? 0 : kReadAtOnce;
  };
  asio::async_read(socket_, into, until_full,
                   [this, self = shared_from_this(), next, want = into.size()](
                       const error_code& error, std::size_t got) {
                     if (got > 0) last_received_ = clock_.now();
                     if (handler_ == nullptr) return;
                     if (error || got != want) return fail_with(io_error(remote_, error));
                     next();
                   });
}

void TcpConnection::on_header() {
  if (!greeted_ && session_ == nullptr && begins_tls(header_bytes_)) {
    return bad({Errc::kIncompatible,
                "the caller speaks TLS, and this node does not: start it with peer_cert, peer_key "
                "and peer_ca"});
  }
  auto header = wire::decode_header(header_bytes_);
  if (!header) return bad(header.error());
  header_ = *header;
  if (!greeted_ && header_.type != kHello && header_.type != kErrorMessage) {
    return bad({Errc::kOutOfOrder, "the first frame must be a Hello"});
  }
  body_.resize(header_.body_bytes);
  read(asio::buffer(body_), [this] { on_body(); });
}

void TcpConnection::on_body() {
  Result<wire::Message> message = wire::decode(header_, body_);
  if (body_.capacity() > kKeptBytes) body_ = {};
  if (!message) return bad(message.error());
  greeted_ = true;
  if (header_.payload_bytes == 0) return handler_->on_frame(*this, std::move(*message), {});
  block_ = std::get<wire::KvBlock>(std::move(*message));
  if (Status taken = handler_->on_payload(*this, block_); !taken) return bad(taken.error());
  payload_.resize(header_.payload_bytes);
  read(asio::buffer(payload_),
       [this] { handler_->on_frame(*this, std::move(block_), std::exchange(payload_, {})); });
}

// --- writing ---

void TcpConnection::send(kv::Bytes frame) {
  if (handler_ == nullptr) return;
  if (queued_.empty()) {
    queued_ = std::move(frame);
  } else {
    queued_.insert(queued_.end(), frame.begin(), frame.end());
  }
  write_next();
}

void TcpConnection::begin_kv(kv::Bytes head, kv::Bytes rows) {
  kv_head_ = std::move(head);
  kv_rows_ = std::move(rows);
  kv_at_ = 0;
  kv_open_ = true;
}

void TcpConnection::write_kv(std::size_t bytes, std::function<void()> written) {
  kv_wanted_ = bytes;
  kv_written_ = std::move(written);
  write_next();
}

std::size_t TcpConnection::unacknowledged() const {
  int bytes = 0;
  // The native handle of a const socket: ioctl changes nothing.
  const int fd = const_cast<tcp::socket&>(socket_).native_handle();
  if (!is_open() || ioctl(fd, SIOCOUTQ, &bytes) != 0 || bytes < 0) return 0;
  return static_cast<std::size_t>(bytes);
}

void TcpConnection::write_next() {
  if (write_in_flight_ || !is_open()) return;
  if (session_ != nullptr && session_->has_output()) {
    // Of the handshake, or an answer of TLS itself.
    return write(std::array<asio::const_buffer, 0>{}, [] {});
  }
  if (!queued_.empty() && !kv_open_) {
    writing_ = std::exchange(queued_, {});
    write(std::array{asio::const_buffer(asio::buffer(writing_))}, [this] { writing_.clear(); });
    return;
  }
  if (kv_written_ != nullptr) {
    const std::size_t bytes = std::min(kv_wanted_, kv_rows_.size() - kv_at_);
    const std::array buffers = {asio::const_buffer(asio::buffer(kv_head_)),
                                asio::const_buffer(kv_rows_.data() + kv_at_, bytes)};
    write(buffers, [this, bytes] {
      kv_head_.clear();
      kv_at_ += bytes;
      if (kv_at_ == kv_rows_.size()) {
        kv_rows_ = {};
        kv_open_ = false;
      }
      if (auto written = std::exchange(kv_written_, nullptr); handler_ != nullptr) written();
    });
    return;
  }
  if (refusing_) {
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    refusing_ = false;
    discard();
  }
}

template <class Buffers, class Then>
void TcpConnection::write(const Buffers& buffers, Then then) {
  write_in_flight_ = true;
  auto written = [this, self = shared_from_this(), then](const error_code& error, std::size_t) {
    write_in_flight_ = false;
    if (error) {
      if (handler_ != nullptr) fail_with(io_error(remote_, error));
      return;
    }
    then();
    write_next();
  };
  // Asio by itself gives the system 64 KiB a call.
  const auto until_written = [](const error_code& error, std::size_t) {
    return error ? 0 : kWriteAtOnce;
  };
  if (session_ == nullptr) {
    asio::async_write(socket_, buffers, until_written, std::move(written));
  } else if (Status sealed = seal(buffers); sealed) {
    asio::async_write(socket_, take_sealed(), until_written, std::move(written));
  } else {
    // Not from inside the call of whoever sends.
    asio::post(socket_.get_executor(), [this, self = shared_from_this(), why = sealed.error()] {
      if (handler_ != nullptr) return fail_with({why.code, remote_ + ": " + why.message});
      close_socket();
    });
  }
}

// Bytes that we leave unread would make the kernel reset the connection, and the peer would lose
// our last words.
void TcpConnection::discard() {
  socket_.async_read_some(asio::buffer(header_bytes_),
                          [this, self = shared_from_this()](const error_code& error, std::size_t) {
                            if (error) return close_socket();
                            discard();
                          });
}

// --- ending ---

void TcpConnection::close() {
  handler_ = nullptr;
  close_socket();
}

void TcpConnection::refuse(kv::Bytes last_frame) {
  handler_ = nullptr;
  // Inside a KvBlock no frame can be put; the owner then says it on the other connection.
  if (kv_open_ || !connected_) return close_socket();
  refusing_ = true;
  if (session_ != nullptr && !session_->peer_speaks_tls()) session_ = nullptr;
  if (session_ == nullptr || session_->established()) {
    queued_.insert(queued_.end(), last_frame.begin(), last_frame.end());
  }
  linger_.expires_after(kLinger);
  linger_.async_wait([this, self = shared_from_this()](const error_code&) { close_socket(); });
  write_next();
}

void TcpConnection::fail_with(const Error& error) {
  Handler* handler = std::exchange(handler_, nullptr);
  close_socket();
  handler->on_closed(*this, error);
}

void TcpConnection::bad(const Error& error) {
  if (handler_ != nullptr) handler_->on_bad_frame(*this, error);
}

void TcpConnection::close_socket() {
  error_code ignored;
  resolver_.cancel();
  linger_.cancel();
  socket_.close(ignored);
  kv_written_ = nullptr;
}

std::shared_ptr<Connection> Connection::dial(asio::io_context& io, const Clock& clock,
                                             const std::string& host, std::uint16_t port,
                                             wire::Channel channel, const SocketOptions& options,
                                             std::unique_ptr<tls::Session> session,
                                             Handler& handler) {
  auto connection =
      std::make_shared<TcpConnection>(tcp::socket(io), clock, options, std::move(session));
  connection->set_handler(handler);
  connection->dial(host, port, channel);
  return connection;
}

}  // namespace pallas::net
