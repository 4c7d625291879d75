#pragma once
// A small sim::World for tests of the protocol: gNBs "a", "b", "c" with FakeEngines, whose ids show
// any KV row that is wrong, and UEs that keep all they receive. Messages go through the codec, so
// whatever a node sends is also something a peer accepts.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/fake_engine.h"
#include "engine/fake_text.h"
#include "node/node.h"
#include "session/transcript.h"
#include "sim/world.h"
#include "virtual_clock.h"

namespace pallas::test {

// A client that follows its session: one epoch an attachment, tokens into a Transcript.
struct VirtualUe : public sim::Ue {
  session::Transcript transcript;
  std::string text;
  std::vector<TokenId> prompt_ids;  // empty: they follow from its number

  // The longest interval from the last token before that attachment up to the 8th after it.
  Duration gap_at(Epoch attachment) const;

  void on_token(const NodeId& emitter, int by, const node::TokenEvent& token,
                TimePoint now) override;
  void on_finish(const node::FinishEvent& event) override;
  std::vector<TokenId> prompt() const override;
  node::UeContext context(const std::vector<std::string>& names) const override;
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

 private:
  Options options_;
  sim::World world_;

 public:
  VirtualClock& clock;

  node::Node& node(const std::string& name) { return world_.node(name); }
  engine::FakeEngine& engine(const std::string& name);
  bool alive(const std::string& name) const { return world_.alive(name); }

  // --- UEs ---
  // Opens a session at `gnb` with a prompt of `prompt_tokens`; cell names are "cell-<gnb>".
  VirtualUe& open(const std::string& gnb, TokenPosition prompt_tokens,
                  const std::function<void(wire::SessionParams&)>& adjust = {});
  Status attach(VirtualUe& ue, const std::string& gnb) { return world_.attach(ue, gnb); }
  void leave(VirtualUe& ue) { world_.leave(ue); }  // the stream's connection is gone
  // RAN events at the gNBs of source and target.
  void predict(VirtualUe& ue, const std::string& serving, const std::string& target, Duration in);
  void withdraw(VirtualUe& ue, const std::string& serving);
  void ran(VirtualUe& ue, mobility::HandoverPhase phase, const std::string& source,
           const std::string& target) {
    world_.ran(ue, phase, source, target);
  }
  // Execution and attach at once, `prediction` ahead if not zero.
  void hand_over(VirtualUe& ue, const std::string& source, const std::string& target,
                 Duration prediction);
  // The ids of the same request at one gNB without a handover.
  std::vector<TokenId> reference(const VirtualUe& ue, std::size_t tokens);
  // The same where the first `known` ids were those that the UE got: what a gNB with all the KV
  // goes on with.
  std::vector<TokenId> reference_after(const VirtualUe& ue, std::size_t known, std::size_t tokens);

  // --- faults ---
  void cut(const std::string& x, const std::string& y) { world_.cut(x, y); }
  void join(const std::string& x, const std::string& y) { world_.join(x, y); }
  void kill(const std::string& name) { world_.kill(name); }
  void restart(const std::string& name) { world_.restart(name); }
  // Delays every control message of this type (index in wire::Message) by `extra`.
  void delay_messages(std::size_t type, Duration extra) {
    world_.network().delay_messages(type, extra);
  }
  // The next `count` control messages come once more, so much later.
  void repeat_messages(const std::string& from, const std::string& to, int count, Duration later) {
    world_.network().copy_next(world_.index(from), world_.index(to), {count, later, false});
  }
  void set_rate(const std::string& from, const std::string& to, BytesPerSecond rate) {
    world_.network().set_rate(world_.index(from), world_.index(to), rate);
  }

  const std::vector<std::string>& codec_faults() { return world_.network().codec_faults(); }
  // Names of messages from x to y so far, KvBlock included, oldest first.
  std::vector<std::string> messages(const std::string& from, const std::string& to) const;
  // How many of them a peer of that minor version would not know.
  std::size_t newer(const std::string& from, const std::string& to, std::uint32_t minor) const;
  // Of the last HandoverPreparationFailure that anybody sent.
  const std::string& last_reason() const { return last_reason_; }
  std::size_t count(const std::string& from, const std::string& to, const std::string& name) const;

 private:
  std::map<std::pair<int, int>, std::vector<std::string>> log_;
  std::map<std::pair<int, int>, std::vector<std::uint32_t>> minors_;
  std::string last_reason_;
};

}  // namespace pallas::test
