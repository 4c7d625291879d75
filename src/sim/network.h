#pragma once
// The links between gNBs on virtual time: each direction of a pair carries control messages, which
// only have a latency, and KV, which queues and flows at the link's rate. Control overtakes KV.
//
// KV rows travel as stand-ins (sim/engine.h); `byte_scale` says how many real bytes one of theirs
// stands for. Rates and bytes in the settings and in what is told about runs are real ones; the
// goodput that a node sees is divided by the scale, so its plans are those of the real model.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/ports.h"
#include "sim/rates.h"
#include "sim/virtual_clock.h"
#include "wire/messages.h"

namespace pallas::sim {

// Which transfers at the same time share a capacity, equally (processor sharing).
enum class Sharing : std::uint8_t {
  kNone,     // each link has its own rate
  kEgress,   // all links out of one gNB share `shared`
  kIngress,  // all links into one gNB share `shared`
  kTotal     // all links share `shared`
};

// What a node is told about the goodput of a link (rule 17).
enum class GoodputSight : std::uint8_t {
  kMeter,    // what a meter at the sender makes of what flows; `first_estimate` until then
  kCurrent,  // the link's rate now (of the link itself, without what others take)
  kFirst     // always `first_estimate`
};

struct NetworkSettings {
  Duration control_latency{std::chrono::microseconds(200)};
  Duration data_latency{std::chrono::microseconds(200)};
  RateSettings rate = FixedRate{};
  Sharing sharing = Sharing::kNone;
  RateSettings shared = FixedRate{};  // the shared capacity; `rate` then caps each link
  GoodputSight sight = GoodputSight::kMeter;
  std::optional<BytesPerSecond> first_estimate;  // none: nodes do not know it at first
  // A relayed token takes this long a hop instead of control_latency (the papers' Detour); how many
  // hops there are between two gNBs says World.
  std::optional<Duration> relay_hop_latency;
};
// Fails with kInvalidArgument, naming the field: negative latencies, rates that are not positive.
Status check(const NetworkSettings& settings);

// Who gets what arrives.
class NetworkListener {
 public:
  virtual ~NetworkListener() = default;
  virtual void on_message(int from, int to, wire::Message&& message) = 0;
  virtual void on_kv(int from, int to, const wire::KvBlock& header, kv::Bytes rows) = 0;
  virtual void on_kv_drained(int from, int to) = 0;
  // Each message as it leaves.
  virtual void on_sent(int from, int to, const wire::Message& message) = 0;
  virtual void on_kv_sent(int from, int to, const wire::KvBlock& header) = 0;
  // Hops of a relayed token from its owner to the gNB that has the UE; 0: it is not relayed.
  virtual int relay_hops(int from, int to, const wire::TokenUpdate& update) = 0;
};

class Network {
 public:
  struct Stats {
    std::uint64_t messages = 0, kv_blocks = 0;
    double kv_bytes = 0;  // real bytes, delivered
  };

  // gNBs are 0 .. gnbs-1. `block_bytes`: stand-in bytes of a block, for on_kv_drained.
  Network(VirtualClock& clock, NetworkSettings settings, int gnbs, double byte_scale,
          std::uint64_t block_bytes, std::uint64_t seed, NetworkListener& listener);
  ~Network();

  // --- what a node's PeerLink needs ---
  void send(int from, int to, wire::Message&& message);
  void send_kv(int from, int to, wire::KvBlock header, kv::Bytes rows);
  std::uint64_t kv_backlog(int from, int to) const;
  bool is_up(int from, int to) const;
  std::optional<BytesPerSecond> goodput(int from, int to) const;
  void discard_kv(int from, int to, const Attempt& attempt);

  // --- settings while it runs ---
  // Both directions; frames under way are lost.
  void set_up(int x, int y, bool up);
  void set_rate(int from, int to, BytesPerSecond rate);
  void set_control_latency(int from, int to, Duration latency);
  // Delays every control message of this type (its index in wire::Message) by `extra`.
  void delay_messages(std::size_t type, Duration extra);
  // Frames from `from` to `to` wait, as on a way that loses packets; afterwards they go on in
  // order. A link that goes down meanwhile loses them.
  void set_stalled(int from, int to, bool stalled);
  // Of the next `count` frames from `from` to `to` a second one arrives `delay` later, also over a
  // connection that was made in the meantime. `foreign`: rows come as of other ids, with a content
  // that fits nothing.
  struct Copies {
    int count = 0;
    Duration delay{0};
    bool foreign = false;
  };
  void copy_next(int from, int to, const Copies& copies);
  // A new draw for a DrawnRate without a period; the same `name` gives the same rate on any link.
  void draw(int from, int to, std::uint64_t name);
  // Encodes and decodes each message on its way; faults are kept as sentences.
  void check_codec(bool on);

  BytesPerSecond rate(int from, int to) const;  // now, of the link itself
  const std::vector<std::string>& codec_faults() const;
  const Stats& stats() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pallas::sim
