#pragma once
// One TCP connection that carries frames (wire/codec.h), as they are or under TLS. It knows bytes
// and frames, nothing of peers; its owner (Peer, or PeerLinks while nobody knows who called) is
// told through Handler.
//
// Ownership: shared, since the operations of the event loop that are in flight hold it too. After
// close() or refuse() the handler is never called again, whatever is still in flight.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "tls/session.h"
#include "wire/codec.h"

namespace boost::asio {
class io_context;
}

namespace pallas::net {

struct SocketOptions {
  int data_send_buffer = 256 << 10;  // SO_SNDBUF of data connections: what is sent late stays ours
  int data_unsent_low = 32 << 10;    // TCP_NOTSENT_LOWAT of data connections
  std::string congestion_control;    // TCP's, by name; empty, or unknown there: the system's
  Duration user_timeout = std::chrono::seconds(5);  // unacknowledged bytes break a connection after
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void on_connected(Connection& connection) = 0;
    // Between a KvBlock's body and its payload: an error refuses it before anything is allocated.
    virtual Status on_payload(Connection& connection, const wire::KvBlock& block) = 0;
    // One frame for each read_frame(). `payload` has the announced size, its checksum is not
    // checked.
    virtual void on_frame(Connection& connection, wire::Message message, kv::Bytes payload) = 0;
    // The peer broke the format, or TLS, or may not be who it is; the stream cannot be read any
    // further. refuse() and close() are what is left.
    virtual void on_bad_frame(Connection& connection, const Error& error) = 0;
    // The connection ended: by the peer, or by the network. Also when dialling failed.
    virtual void on_closed(Connection& connection, const Error& error) = 0;
  };

  // Dials host:port; on_connected, on_bad_frame or on_closed follows. With a `session` the
  // connection is under TLS, and on_connected comes when the peer's certificate was accepted.
  static std::shared_ptr<Connection> dial(boost::asio::io_context& io, const Clock& clock,
                                          const std::string& host, std::uint16_t port,
                                          wire::Channel channel, const SocketOptions& options,
                                          std::unique_ptr<tls::Session> session, Handler& handler);
  virtual ~Connection() = default;

  virtual void set_handler(Handler& handler) = 0;
  // Socket options of a data connection, known only from its Hello when it was accepted.
  virtual void set_channel(wire::Channel channel) = 0;
  virtual std::string remote() const = 0;  // "127.0.0.1:4711"
  // What the peer owes until its first frame: "connection", "TLS handshake" or "Hello".
  virtual std::string_view awaited() const = 0;
  // Whether the peer's certificate is made out to `node`; without TLS anybody is believed.
  virtual bool proves(const NodeId& node) const = 0;

  // Reads one frame. The first of a connection must be a Hello, or the ErrorMessage that refuses
  // it. Under TLS nothing of the peer is read as a frame before its certificate was accepted.
  virtual void read_frame() = 0;
  virtual TimePoint last_received() const = 0;  // when bytes last came
  virtual bool has_unread() const = 0;          // bytes wait in the kernel: it is we who are late

  // Queues a whole frame; queued frames leave together.
  virtual void send(kv::Bytes frame) = 0;
  virtual std::size_t queued_bytes() const = 0;

  // Begins a KvBlock: `head` is its header and body. At most one at a time; frames given to send()
  // meanwhile wait for its end.
  virtual void begin_kv(kv::Bytes head, kv::Bytes rows) = 0;
  // Writes the next `bytes` of the rows (head first), from where they lie; `written` follows, never
  // from inside this call. One at a time.
  virtual void write_kv(std::size_t bytes, std::function<void()> written) = 0;
  // How much of the rows may wait in the kernel unsent: SocketOptions::data_unsent_low, or this if
  // it is more.
  virtual void set_unsent_low(std::size_t bytes) = 0;
  virtual std::size_t unacknowledged() const = 0;  // bytes in the kernel's send queue

  virtual void close() = 0;
  // Sends a last frame, then closes such that the peer can read it. Under TLS a peer that was not
  // accepted gets an alert instead, and one that speaks no TLS gets the frame as it is.
  virtual void refuse(kv::Bytes last_frame) = 0;
  virtual bool is_open() const = 0;
};

// Accepts connections on one port.
class Listener {
 public:
  // Makes the TLS session of a connection that came.
  using Secure = std::function<Result<std::unique_ptr<tls::Session>>()>;
  // kAlreadyExists or kIo naming address and port. Without `secure` connections are not under TLS.
  static Result<std::unique_ptr<Listener>> open(boost::asio::io_context& io, const Clock& clock,
                                                const std::string& address, std::uint16_t port,
                                                const SocketOptions& options, Secure secure);
  virtual ~Listener() = default;
  virtual std::uint16_t port() const = 0;
  virtual void start(std::function<void(std::shared_ptr<Connection>)> accepted) = 0;
};

}  // namespace pallas::net
