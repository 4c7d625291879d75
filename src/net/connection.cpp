#include "net/connection.h"

#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <utility>

namespace pallas::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::milliseconds kLinger{200};
constexpr std::uint8_t kHello = 1;
constexpr std::uint8_t kErrorMessage = 4;  // instead of a Hello: the call is refused

Error io_error(const std::string& what, const error_code& error) {
  if (error == asio::error::eof) return {Errc::kUnreachable, what + ": closed by the peer"};
  return {Errc::kUnreachable, what + ": " + error.message()};
}

class TcpConnection final : public Connection {
 public:
  TcpConnection(tcp::socket socket, const Clock& clock, const SocketOptions& options)
      : socket_(std::move(socket)),
        resolver_(socket_.get_executor()),
        linger_(socket_.get_executor()),
        clock_(clock),
        options_(options),
        last_received_(clock.now()) {}

  void dial(const std::string& host, std::uint16_t port, wire::Channel channel) {
    remote_ = host + ":" + std::to_string(port);
    error_code error;
    const asio::ip::address address = asio::ip::make_address(host, error);
    if (!error) {
      const tcp::endpoint endpoint(address, port);
      socket_.open(endpoint.protocol(), error);
      // The send buffer has to be small before the connection grows it.
      set_channel(channel);
      socket_.async_connect(
          endpoint, [this, self = shared_from_this()](const error_code& e) { connected(e); });
      return;
    }
    resolver_.async_resolve(host, std::to_string(port),
                            [this, self = shared_from_this(), channel](
                                const error_code& e, const tcp::resolver::results_type& found) {
                              if (handler_ == nullptr) return;
                              if (e) return fail_with(io_error(remote_, e));
                              asio::async_connect(socket_, found,
                                                  [this, self, channel](const error_code& failed,
                                                                        const tcp::endpoint&) {
                                                    if (!failed) set_channel(channel);
                                                    connected(failed);
                                                  });
                            });
  }

  void adopt() {
    error_code error;
    const tcp::endpoint from = socket_.remote_endpoint(error);
    remote_ = error ? "unknown" : from.address().to_string() + ":" + std::to_string(from.port());
    set_channel(wire::Channel::kControl);
  }

  void set_handler(Handler& handler) override { handler_ = &handler; }

  void set_channel(wire::Channel channel) override {
    error_code ignored;  // an option that the system lacks costs speed, not correctness
    socket_.set_option(tcp::no_delay(true), ignored);
    using UserTimeout = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_USER_TIMEOUT>;
    const auto timeout =
        std::chrono::duration_cast<std::chrono::milliseconds>(options_.user_timeout);
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

  void set_unsent_low(std::size_t bytes) override {
    error_code ignored;
    const int low = std::max(options_.data_unsent_low, static_cast<int>(bytes));
    socket_.set_option(UnsentLow(low), ignored);
  }

  std::string remote() const override { return remote_; }

  // --- reading: header, body, payload ---

  void read_frame() override {
    read(asio::buffer(header_bytes_), [this] { on_header(); });
  }

  TimePoint last_received() const override { return last_received_; }

  bool has_unread() const override {
    error_code error;
    return is_open() && socket_.available(error) > 0 && !error;
  }

  // --- writing ---

  void send(kv::Bytes frame) override {
    if (handler_ == nullptr) return;
    if (queued_.empty()) {
      queued_ = std::move(frame);
    } else {
      queued_.insert(queued_.end(), frame.begin(), frame.end());
    }
    write_next();
  }

  std::size_t queued_bytes() const override { return queued_.size() + writing_.size(); }

  void begin_kv(kv::Bytes head, kv::Bytes rows) override {
    kv_head_ = std::move(head);
    kv_rows_ = std::move(rows);
    kv_at_ = 0;
    kv_open_ = true;
  }

  void write_kv(std::size_t bytes, std::function<void()> written) override {
    kv_wanted_ = bytes;
    kv_written_ = std::move(written);
    write_next();
  }

  std::size_t unacknowledged() const override {
    int bytes = 0;
    // The native handle of a const socket: ioctl changes nothing.
    const int fd = const_cast<tcp::socket&>(socket_).native_handle();
    if (!is_open() || ioctl(fd, SIOCOUTQ, &bytes) != 0 || bytes < 0) return 0;
    return static_cast<std::size_t>(bytes);
  }

  // --- ending ---

  void close() override {
    handler_ = nullptr;
    close_socket();
  }

  void refuse(kv::Bytes last_frame) override {
    handler_ = nullptr;
    // Inside a KvBlock no frame can be put; the owner then says it on the other connection.
    if (kv_open_) return close_socket();
    refusing_ = true;
    queued_.insert(queued_.end(), last_frame.begin(), last_frame.end());
    linger_.expires_after(kLinger);
    linger_.async_wait([this, self = shared_from_this()](const error_code&) { close_socket(); });
    write_next();
  }

  bool is_open() const override { return socket_.is_open(); }

 private:
  void connected(const error_code& error) {
    if (handler_ == nullptr) return;
    if (error) return fail_with(io_error(remote_, error));
    last_received_ = clock_.now();
    handler_->on_connected(*this);
  }

  template <class Next>
  void read(asio::mutable_buffer into, Next next) {
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

  void on_header() {
    auto header = wire::decode_header(header_bytes_);
    if (!header) return bad(header.error());
    header_ = *header;
    if (!greeted_ && header_.type != kHello && header_.type != kErrorMessage) {
      return bad({Errc::kOutOfOrder, "the first frame must be a Hello"});
    }
    body_.resize(header_.body_bytes);
    read(asio::buffer(body_), [this] { on_body(); });
  }

  void on_body() {
    Result<wire::Message> message = wire::decode(header_, body_);
    if (body_.capacity() > kKeptBody) body_ = {};
    if (!message) return bad(message.error());
    greeted_ = true;
    if (header_.payload_bytes == 0) return handler_->on_frame(*this, std::move(*message), {});
    block_ = std::get<wire::KvBlock>(std::move(*message));
    if (Status taken = handler_->on_payload(*this, block_); !taken) return bad(taken.error());
    payload_.resize(header_.payload_bytes);
    read(asio::buffer(payload_),
         [this] { handler_->on_frame(*this, std::move(block_), std::exchange(payload_, {})); });
  }

  void write_next() {
    if (write_in_flight_ || !is_open()) return;
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
  void write(const Buffers& buffers, Then then) {
    write_in_flight_ = true;
    asio::async_write(
        socket_, buffers,
        [this, self = shared_from_this(), then](const error_code& error, std::size_t) {
          write_in_flight_ = false;
          if (error) {
            if (handler_ != nullptr) fail_with(io_error(remote_, error));
            return;
          }
          then();
          write_next();
        });
  }

  // Bytes that we leave unread would make the kernel reset the connection, and the peer would lose
  // our last words.
  void discard() {
    socket_.async_read_some(asio::buffer(header_bytes_), [this, self = shared_from_this()](
                                                             const error_code& error, std::size_t) {
      if (error) return close_socket();
      discard();
    });
  }

  // The handler is told at most once, and last.
  void fail_with(const Error& error) {
    Handler* handler = std::exchange(handler_, nullptr);
    close_socket();
    handler->on_closed(*this, error);
  }

  void bad(const Error& error) {
    if (handler_ != nullptr) handler_->on_bad_frame(*this, error);
  }

  void close_socket() {
    error_code ignored;
    resolver_.cancel();
    linger_.cancel();
    socket_.close(ignored);
    kv_written_ = nullptr;
  }

  using UnsentLow = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_NOTSENT_LOWAT>;

  static constexpr std::size_t kKeptBody = 64u << 10;
  static constexpr std::size_t kReadAtOnce = 256u << 10;

  tcp::socket socket_;
  tcp::resolver resolver_;
  asio::steady_timer linger_;
  const Clock& clock_;
  SocketOptions options_;
  Handler* handler_ = nullptr;
  std::string remote_;
  TimePoint last_received_;
  bool greeted_ = false;
  bool refusing_ = false;

  std::array<std::byte, wire::kHeaderBytes> header_bytes_{};
  wire::FrameHeader header_;
  kv::Bytes body_;
  wire::KvBlock block_;
  kv::Bytes payload_;

  bool write_in_flight_ = false;
  kv::Bytes queued_;   // frames to write next
  kv::Bytes writing_;  // frames being written
  bool kv_open_ = false;
  kv::Bytes kv_head_;
  kv::Bytes kv_rows_;
  std::size_t kv_at_ = 0;
  std::size_t kv_wanted_ = 0;
  std::function<void()> kv_written_;
};

class TcpListener final : public Listener {
 public:
  TcpListener(tcp::acceptor acceptor, const Clock& clock, const SocketOptions& options)
      : acceptor_(std::move(acceptor)),
        retry_(acceptor_.get_executor()),
        clock_(clock),
        options_(options) {}

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
          auto connection = std::make_shared<TcpConnection>(std::move(socket), clock_, options_);
          connection->adopt();
          accept();
          accepted_(std::move(connection));
        });
  }

  tcp::acceptor acceptor_;
  asio::steady_timer retry_;
  const Clock& clock_;
  SocketOptions options_;
  std::function<void(std::shared_ptr<Connection>)> accepted_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // ends with the listener
};

}  // namespace

std::shared_ptr<Connection> Connection::dial(asio::io_context& io, const Clock& clock,
                                             const std::string& host, std::uint16_t port,
                                             wire::Channel channel, const SocketOptions& options,
                                             Handler& handler) {
  auto connection = std::make_shared<TcpConnection>(tcp::socket(io), clock, options);
  connection->set_handler(handler);
  connection->dial(host, port, channel);
  return connection;
}

Result<std::unique_ptr<Listener>> Listener::open(asio::io_context& io, const Clock& clock,
                                                 const std::string& address, std::uint16_t port,
                                                 const SocketOptions& options) {
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
      std::make_unique<TcpListener>(std::move(acceptor), clock, options));
}

}  // namespace pallas::net
