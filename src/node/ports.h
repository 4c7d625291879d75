#pragma once
// The ports of one gNB. Node (node/node.h) is single-threaded and sees the world through these, the
// engine::Engine and the Clock; the daemon gives it real ones, tests and simulator virtual ones.
// All calls happen on the node's thread; none calls back into the node before it returns.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "wire/messages.h"

namespace pallas::node {

// Messages to the other gNBs, by name. Two classes: control overtakes KV.
class PeerLink {
 public:
  virtual ~PeerLink() = default;
  // Dropped when the link is down; the node learns of that by on_peer_down.
  virtual void send(const NodeId& peer, wire::Message message) = 0;
  // The payload is moved, never copied. Fills header.payload_bytes and header.checksum.
  virtual void send_kv(const NodeId& peer, wire::KvBlock header, kv::Bytes rows) = 0;
  // KV bytes handed over but not yet written; the node keeps this small (kv/link_ahead.h), so that
  // what is sent next is chosen late. Node::on_kv_drained says when it fell.
  virtual std::uint64_t kv_backlog(const NodeId& peer) const = 0;
  virtual bool is_up(const NodeId& peer) const = 0;
  // Goodput as measured on this link (rule 17); none before the first sample.
  virtual std::optional<BytesPerSecond> goodput(const NodeId& peer) const = 0;
  // Takes back KV of this attempt that is queued and not yet begun on the wire.
  virtual void discard_kv(const NodeId& peer, const Attempt& attempt) = 0;
};

// What the peer links tell the node.
struct PeerHello {  // from net, after both sides' Hello
  NodeId node;
  BootId boot;
  wire::Compatibility compatibility;
  std::vector<wire::HeldAttempt> held;
  bool holes = false;       // wire::Hello
  std::uint32_t minor = 0;  // of its protocol version
};

class PeerEvents {
 public:
  virtual ~PeerEvents() = default;
  // Both connections of a peer stand and both Hellos agree (checked: version, expected name).
  virtual void on_peer_up(const PeerHello& hello) = 0;
  virtual void on_peer_down(const NodeId& peer) = 0;
  virtual void on_message(const NodeId& peer, wire::Message message) = 0;
  // `rows` has header.payload_bytes bytes and their checksum was verified.
  virtual void on_kv(const NodeId& peer, const wire::KvBlock& header, kv::Bytes rows) = 0;
  // kv_backlog(peer) fell: there is room for a block.
  virtual void on_kv_drained(const NodeId& peer) = 0;
  // What this node holds of attempts of that peer, for the next Hello (rule 12).
  virtual std::vector<wire::HeldAttempt> held_from(const NodeId& peer) const = 0;
};

// One attached client stream (an SSE connection, or a non-streaming request). Numbered by http.
using StreamId = Strong<struct StreamIdTag, std::uint64_t>;

struct TokenEvent {
  Epoch epoch;
  TokenIndex index = 0;
  TokenId id = 0;
  std::string text;  // complete UTF-8; may be empty (half a character, a possible stop string)
  NodeId by;         // whose engine sampled it
};

struct FinishEvent {
  wire::FinishReason reason = wire::FinishReason::kStop;
  std::string text;  // held-back text that turned out not to be a stop string
  TokenPosition prompt_tokens = 0;
  TokenIndex completion_tokens = 0;
};

class UeLink {
 public:
  virtual ~UeLink() = default;
  virtual void deliver(StreamId stream, const TokenEvent& token) = 0;
  // The end of the session: finish reason, usage if asked for, [DONE]; the stream closes.
  virtual void finish(StreamId stream, const FinishEvent& event) = 0;
  // An error event, then the stream closes.
  virtual void fail(StreamId stream, const Error& error) = 0;
  // The next gNB is being prepared: the UE may open its connection there. Empty node: withdrawn.
  virtual void announce(StreamId stream, const NodeId& next) = 0;
  // A comment line that shows the stream is alive.
  virtual void keep_alive(StreamId stream) = 0;
  // Ends the stream without [DONE]: the session goes on elsewhere (`next`, may be empty).
  virtual void close(StreamId stream, const NodeId& next) = 0;
};

}  // namespace pallas::node
