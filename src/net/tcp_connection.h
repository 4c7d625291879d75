#pragma once
// The one kind of Connection: a TCP socket, with a TLS session above it or without. Includes Asio:
// for connection.cpp, connection_tls.cpp and listener.cpp only.
//
// Without TLS, Asio reads and writes. Under TLS the session reads the socket itself as often as it
// is readable, and what it sealed is written by Asio, a whole segment at a time.

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <span>
#include <vector>

#include "net/connection.h"

namespace pallas::net {

using boost::asio::ip::tcp;
using boost::system::error_code;

class TcpConnection final : public Connection {
 public:
  // Without `session` the connection is plain.
  TcpConnection(tcp::socket socket, const Clock& clock, const SocketOptions& options,
                std::unique_ptr<tls::Session> session);

  void dial(const std::string& host, std::uint16_t port, wire::Channel channel);
  // The socket was accepted. An error says why it cannot be used.
  Status adopt();

  void set_handler(Handler& handler) override { handler_ = &handler; }
  void set_channel(wire::Channel channel) override;
  std::string remote() const override { return remote_; }
  std::string_view awaited() const override;
  bool proves(const NodeId& node) const override;

  void read_frame() override;
  TimePoint last_received() const override { return last_received_; }
  bool has_unread() const override;

  void send(kv::Bytes frame) override;
  std::size_t queued_bytes() const override { return queued_.size() + writing_.size(); }
  void begin_kv(kv::Bytes head, kv::Bytes rows) override;
  void write_kv(std::size_t bytes, std::function<void()> written) override;
  void set_unsent_low(std::size_t bytes) override;
  std::size_t unacknowledged() const override;

  void close() override;
  void refuse(kv::Bytes last_frame) override;
  bool is_open() const override { return socket_.is_open(); }

 private:
  void connected(const error_code& error);

  // Calls `next` when `into` is full, never from inside this call.
  template <class Next>
  void read(boost::asio::mutable_buffer into, Next next);
  void on_header();
  void on_body();

  void write_next();
  template <class Buffers, class Then>
  void write(const Buffers& buffers, Then then);
  void discard();

  // --- under TLS (connection_tls.cpp) ---
  Status secure();
  void read_secured(boost::asio::mutable_buffer into, std::function<void()> next);
  void schedule_reads();
  void pump_reads();
  void wait_readable();
  void on_broken(const Error& error);
  // Seals all `buffers` and writes them as one.
  template <class Buffers>
  Status seal(const Buffers& buffers) {
    for (const boost::asio::const_buffer part : buffers) {
      const std::span bytes(static_cast<const std::byte*>(part.data()), part.size());
      if (Status done = session_->write(bytes); !done) return done;
    }
    return {};
  }
  boost::asio::const_buffer take_sealed();

  // The handler is told at most once, and last.
  void fail_with(const Error& error);
  void bad(const Error& error);
  void close_socket();

  static constexpr std::size_t kKeptBytes = 64u << 10;  // larger buffers are given back
  static constexpr std::size_t kKeptSealed = 1u << 20;
  static constexpr std::size_t kReadAtOnce = 256u << 10;
  static constexpr std::size_t kWriteAtOnce = 1u << 20;

  tcp::socket socket_;
  tcp::resolver resolver_;
  boost::asio::steady_timer linger_;
  const Clock& clock_;
  SocketOptions options_;
  Handler* handler_ = nullptr;
  std::string remote_;
  TimePoint last_received_;
  bool dialled_ = false;
  bool connected_ = false;
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

  std::unique_ptr<tls::Session> session_;  // null: plain
  std::span<std::byte> into_;              // what is being read, of which
  std::size_t got_ = 0;                    // so much has come
  std::function<void()> next_;             // null: nothing is being read
  bool pumping_ = false;
  std::vector<std::byte> sealed_;  // being written
};

// "<what>: <why>", as an Error of a connection that broke.
Error io_error(const std::string& what, const boost::system::error_code& error);

}  // namespace pallas::net
