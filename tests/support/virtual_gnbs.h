#pragma once
// Several gNBs, their links and UEs on virtual time: node/ unchanged behind virtual ports. Messages
// go through the codec, so whatever a node sends is also something a peer accepts.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/fake_engine.h"
#include "engine/fake_text.h"
#include "node/node.h"
#include "session/transcript.h"
#include "virtual_clock.h"

namespace pallas::test {

class VirtualGnbs;

// A client that follows its session: one epoch an attachment, tokens into a Transcript.
struct VirtualUe {
  UeId id;
  SessionId session;
  std::string resume_token = "secret";
  Epoch epoch;            // highest seen or tried
  NodeId at;              // attached there
  node::StreamId stream;  // 0: none
  wire::SessionParams params;
  std::vector<TokenId> prompt;
  session::Transcript transcript;
  std::string text;
  std::vector<std::pair<NodeId, std::uint32_t>> sampled_by;
  std::optional<node::FinishEvent> finished;
  std::optional<Error> failed;
  int finishes = 0;
  int keep_alives = 0;
  NodeId announced;
  bool closed = false;
  // What an attach brings along.
  bool brings_context = true;
};

struct LinkSettings {
  Duration latency{std::chrono::microseconds(200)};
  BytesPerSecond rate = BytesPerSecond(64'000);  // 2,000 of FakeEngine's rows a second
};

class VirtualGnbs {
 public:
  struct Options {
    std::vector<std::string> names = {"a", "b", "c"};
    std::string scheme = "two-front";
    engine::FakeEngineConfig engine{};
    LinkSettings link{};
    std::function<void(node::NodeConfig&)> configure{};  // last word on each node's settings
  };
  explicit VirtualGnbs(Options options);
  ~VirtualGnbs();

  VirtualClock clock;

  node::Node& node(const std::string& name);
  engine::FakeEngine& engine(const std::string& name);
  bool alive(const std::string& name) const;

  // --- UEs ---
  // Opens a session at `gnb` with a prompt of `prompt_tokens`; cell names are "cell-<gnb>".
  VirtualUe& open(const std::string& gnb, TokenPosition prompt_tokens,
                  const std::function<void(wire::SessionParams&)>& adjust = {});
  Status attach(VirtualUe& ue, const std::string& gnb);
  void leave(VirtualUe& ue);  // the stream's connection is gone
  // RAN events at the gNBs of source and target.
  void predict(VirtualUe& ue, const std::string& serving, const std::string& target, Duration in);
  void withdraw(VirtualUe& ue, const std::string& serving);
  void ran(VirtualUe& ue, mobility::HandoverPhase phase, const std::string& source,
           const std::string& target);
  // Execution and attach at once, `prediction` ahead if not zero.
  void hand_over(VirtualUe& ue, const std::string& source, const std::string& target,
                 Duration prediction);
  // The ids of the same request at one gNB without a handover.
  std::vector<TokenId> reference(const VirtualUe& ue, std::size_t tokens);

  // --- faults ---
  void cut(const std::string& x, const std::string& y);  // both see the link go down
  void join(const std::string& x, const std::string& y);
  void kill(const std::string& name);
  void restart(const std::string& name);
  // Delays every control message of this type (index in wire::Message) by `extra`.
  void delay_messages(std::size_t type, Duration extra) { extra_delay_[type] = extra; }
  void set_rate(const std::string& from, const std::string& to, BytesPerSecond rate);

  const std::vector<std::string>& codec_faults() const { return codec_faults_; }
  // Names of messages from x to y so far, KvBlock included, oldest first.
  std::vector<std::string> messages(const std::string& from, const std::string& to) const;
  std::size_t count(const std::string& from, const std::string& to, const std::string& name) const;

 private:
  struct Gnb;
  struct Link;  // one direction
  class Peers;
  class Ues;

  Gnb& gnb(const std::string& name);
  Link& link(const std::string& from, const std::string& to);
  void boot(Gnb& g);
  void deliver(const std::string& from, const std::string& to, wire::Message message);
  void pump(Link& l);

  Options options_;
  std::map<std::string, std::unique_ptr<Gnb>> gnbs_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Link>> links_;
  std::vector<std::unique_ptr<VirtualUe>> ues_;
  std::map<std::size_t, Duration> extra_delay_;
  std::vector<std::string> codec_faults_;
  std::uint64_t next_boot_ = 1;
  std::uint64_t next_stream_ = 0;
  std::uint64_t next_seq_ = 0;
};

}  // namespace pallas::test
