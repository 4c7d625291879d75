#pragma once
// The real PeerLink: a gNB's links to the other gNBs (docs/protocol-framing.md, "Connections"),
// over TLS 1.3 where it has a certificate, else over plain TCP.
//
// Two connections a peer, so that control overtakes KV. Of each pair of nodes the one whose name is
// smaller dials, again and again with back-off; the other accepts. A link is up when both
// connections stand and both Hellos were checked; when either breaks, both go.

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "kv/rate_trace.h"
#include "net/connection.h"
#include "node/ports.h"
#include "tls/credentials.h"

namespace pallas::net {

struct PeerConfig {
  NodeId name;
  std::string host;  // of its peer port; used only if we dial (our name is the smaller)
  std::uint16_t port = 0;
  std::optional<kv::RateTrace> pacing;  // of KV payload sent to it; none: as fast as it goes
  std::optional<BytesPerSecond> initial_goodput;  // until one is measured
};

struct PeerLinksConfig {
  NodeId name;
  BootId boot;
  wire::Compatibility compatibility;
  bool holes = false;                         // wire::Hello
  std::uint32_t minor = wire::kMinorVersion;  // as of which it speaks, or of an older peer's
  std::string listen_address = "127.0.0.1";   // a numeric IP address
  std::uint16_t listen_port = 0;              // 0: any free port, see PeerLinks::port()
  std::vector<PeerConfig> peers;

  Duration keep_alive{std::chrono::milliseconds(250)};
  Duration dead_after{std::chrono::seconds(1)};  // a silent peer is down, its link is dialled anew
  Duration handshake{std::chrono::seconds(1)};   // for each step from dialling to Hello
  Duration backoff_min{std::chrono::milliseconds(50)};
  Duration backoff_max{std::chrono::seconds(1)};

  std::uint64_t credit_window = 4u << 20;  // KV payload that a peer may have under way to us
  std::uint64_t block_bytes =
      512u << 10;  // of KV: PeerEvents::on_kv_drained comes when there is room for one
  std::size_t max_control_backlog = 32u << 20;  // bytes that a peer leaves unread before it is cut
  SocketOptions sockets;
  // Own certificate, key and authority. With them every connection, dialled or accepted, is under
  // TLS with a certificate from both ends, and a peer's must be made out to its name.
  std::optional<tls::Files> tls;
  Duration refresh{std::chrono::seconds(1)};  // how often these files are looked at
  // One line for an operator: links up and down, refusals. May be empty.
  std::function<void(const std::string&)> log;
};

struct PeerStats {
  NodeId peer;
  bool up = false;
  std::uint64_t connects = 0;  // times that the link came up
  std::uint64_t control_frames_sent = 0, control_frames_received = 0;
  std::uint64_t control_bytes_sent = 0, control_bytes_received = 0;
  std::uint64_t kv_frames_sent = 0, kv_frames_received = 0;
  std::uint64_t kv_bytes_sent = 0, kv_bytes_received = 0;  // payload
  std::uint64_t kv_frames_discarded = 0;                   // taken back, or lost with the link
  std::uint64_t checksum_errors = 0;
  std::uint64_t protocol_errors = 0;    // frames that were refused, either side
  std::uint64_t messages_not_sent = 0;  // beyond a limit, or while the link was down
  std::uint64_t kv_backlog_bytes = 0;
  std::uint64_t send_credit_bytes = 0;
  std::optional<Duration> rtt;  // of the last keep-alive
  std::optional<BytesPerSecond> goodput;
  std::optional<Duration> goodput_age;  // since it was last measured
};

class PeerLinks final : public node::PeerLink {
 public:
  // Listens at once, so that a port in use is known before anything starts. Errors: kAlreadyExists
  // (the port), kInvalidConfig (a name twice, or our own; a certificate that would not do),
  // kInvalidArgument, kIo. `io` and `clock` outlive it; all calls on the io_context's thread.
  static Result<std::unique_ptr<PeerLinks>> create(boost::asio::io_context& io, Clock& clock,
                                                   PeerLinksConfig config);
  ~PeerLinks() override;  // closes every link without further events

  // Accepts and dials from now on. `events` outlives this object or its io_context's run; it is
  // never called from inside a call to PeerLinks.
  void start(node::PeerEvents& events);

  std::uint16_t port() const;
  std::vector<PeerStats> stats() const;  // by name
  // Calls from nobody we know, without a certificate that is accepted, or without a valid Hello.
  std::uint64_t refused_calls() const;
  // When the own certificate ends, in seconds since 1970; none without TLS.
  std::optional<std::int64_t> certificate_ends_unix_s() const;

  // node::PeerLink. An unknown peer is a link that is down.
  void send(const NodeId& peer, wire::Message message) override;
  void send_kv(const NodeId& peer, wire::KvBlock header, kv::Bytes rows) override;
  std::uint64_t kv_backlog(const NodeId& peer) const override;
  bool is_up(const NodeId& peer) const override;
  std::optional<BytesPerSecond> goodput(const NodeId& peer) const override;
  void discard_kv(const NodeId& peer, const Attempt& attempt) override;

 private:
  class Impl;
  explicit PeerLinks(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pallas::net
