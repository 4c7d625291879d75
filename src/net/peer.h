#pragma once
// One peer: its two connections, from dialling to the end of the link, and what travels on them.

#include "net/kv_sender.h"
#include "net/peer_links.h"

namespace pallas::net {

// Ok when a peer that says this Hello can be talked to; else the reason, naming the field.
Status check_hello(const wire::Hello& hello);
// An ErrorMessage about a connection, as a frame.
kv::Bytes error_frame(const Error& error);

class Peer final : private Connection::Handler {
 public:
  // `config` and the other references outlive the peer. Without `credentials` links are plain.
  Peer(boost::asio::io_context& io, Clock& clock, const PeerLinksConfig& config,
       const tls::Credentials* credentials, PeerConfig peer);
  ~Peer() override;

  void start(node::PeerEvents& events);
  // Ok when a connection with this Hello of the peer fits now; else why not.
  Status may_call(const wire::Hello& hello) const;
  // A connection that this peer dialled; its Hello passed check_hello() and may_call().
  void accept(std::shared_ptr<Connection> connection, wire::Hello hello);

  bool is_up() const { return state_ == State::kUp; }
  void send(const wire::Message& message);
  void send_kv(wire::KvBlock header, kv::Bytes rows);
  void discard_kv(const Attempt& attempt) { stats_.kv_frames_discarded += kv_.discard(attempt); }
  std::uint64_t kv_backlog() const { return kv_.backlog(); }
  std::optional<BytesPerSecond> goodput() const { return kv_.goodput().estimate(); }
  PeerStats stats() const;

 private:
  //             dial                Hello both ways      dial data        Hello both ways
  //   kDown ----------> kDialing ------------------> kJoining ------------------> kUp
  //     |                                               ^                          |
  //     |          the peer's control Hello             |   anything breaks, or    |
  //     +-----------------------------------------------+   dead_after of silence  |
  //     ^                                                                          |
  //     +--------------------------------------------------------------------------+
  // Each step but kDown and kUp ends by the handshake time.
  enum class State { kDown, kDialing, kJoining, kUp };

  // Of each pair the smaller name dials.
  bool we_dial() const { return links_.name < config_.name; }

  // Connection::Handler
  void on_connected(Connection& connection) override;
  Status on_payload(Connection& connection, const wire::KvBlock& block) override;
  void on_frame(Connection& connection, wire::Message message, kv::Bytes payload) override;
  void on_bad_frame(Connection& connection, const Error& error) override;
  void on_closed(Connection& connection, const Error& error) override;

  void dial(wire::Channel channel);
  void await_handshake(wire::Channel channel);
  void say_hello(Connection& connection, wire::Channel channel);
  void on_hello(Connection& connection, wire::Hello hello);
  void on_control(wire::Message message);
  void on_keep_alive(const wire::KeepAlive& message);
  void on_kv(const wire::KvBlock& block, kv::Bytes rows);
  void go_up();
  // Ends the link or the try; `tell` sends the reason to the peer first.
  void go_down(const Error& reason, bool tell = false);
  void transmit(const wire::Message& message);
  void keep_alive();
  void watch();
  TimePoint last_received() const;
  void log(const std::string& line) const;

  boost::asio::io_context& io_;
  Clock& clock_;
  const PeerLinksConfig& links_;
  const tls::Credentials* credentials_;
  PeerConfig config_;
  node::PeerEvents* events_ = nullptr;

  State state_ = State::kDown;
  std::shared_ptr<Connection> control_;
  std::shared_ptr<Connection> data_;
  wire::Hello hello_;                 // the peer's, of this control connection
  std::uint64_t receive_credit_ = 0;  // what the peer may still send
  std::uint64_t ping_ = 0;            // sequence of the last keep-alive
  TimePoint ping_sent_{};
  Duration backoff_;
  std::string last_failure_;  // logged once, not at every try
  PeerStats stats_;

  KvSender kv_;
  Timer redial_timer_;
  Timer handshake_timer_;
  Timer keep_alive_timer_;
  Timer watch_timer_;
  Timer overflow_timer_;
};

}  // namespace pallas::net
