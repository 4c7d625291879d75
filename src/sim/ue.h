#pragma once
// A simulated UE: one session that it follows from gNB to gNB. It judges what it receives (each
// index once and in order, epochs that only grow) and measures its handovers as tokens come in.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "node/node.h"
#include "session/handover_meter.h"
#include "sim/engine.h"
#include "sim/records.h"

namespace pallas::sim {

struct UeSettings {
  std::string name{};  // unique in its World; empty: "ue-<n>"
  TokenPosition prompt_tokens = 1000;
  std::uint32_t max_tokens = 0;  // 0: as many as the context holds
  double max_token_rate = 0;     // tokens/s, 0: as fast as the engine goes
  wire::Consistency consistency = wire::Consistency::kFast;
  std::function<void(wire::SessionParams&)> adjust{};  // last word on the request
};

struct Arrival {
  TimePoint at{};
  TimePoint sampled{};         // {} where the engine does not tell
  std::uint32_t by = 0;        // gNB whose engine sampled it (World::names())
  std::uint32_t handover = 0;  // handovers of this UE before it
};

class Ue : public SampleObserver {
 public:
  Ue() = default;
  ~Ue() override = default;
  Ue(const Ue&) = delete;
  Ue& operator=(const Ue&) = delete;

  // --- the session, as UE and tests see it ---
  std::size_t place = 0;  // in World::ues()
  UeId id;
  SessionId session;
  std::string resume_token = "secret";
  Epoch epoch;            // highest seen or tried
  NodeId at;              // attached there, or tried to be
  NodeId served_by;       // attached there last
  node::StreamId stream;  // 0: none
  wire::SessionParams params;
  TokenPosition prompt_tokens = 0;
  bool brings_context = true;  // an attach carries request and ids
  std::optional<node::FinishEvent> finished;
  std::optional<Error> failed;
  int finishes = 0;
  int keep_alives = 0;
  NodeId announced;
  bool closed = false;    // the stream ended because the session goes on elsewhere
  NodeId closed_for;      // there, as the gNB said
  std::vector<int> path;  // gNBs attached to, in order

  TokenIndex received() const { return received_; }
  // Sentences about broken promises; empty in a sound run.
  const std::vector<std::string>& breaches() const { return breaches_; }
  const std::vector<HandoverRecord>& handovers() const { return handovers_; }  // until taken
  // The last handover is over: the target's 8th token came, or the 8th relayed one.
  bool settled() const { return !during_; }
  const TokenTimes& times() const { return times_; }                  // of the whole session
  const std::vector<Arrival>& arrivals() const { return arrivals_; }  // empty unless kept

  // --- called by World ---
  // A token arrives; `by` is the gNB whose engine sampled it.
  virtual void on_token(const NodeId& emitter, int by, const node::TokenEvent& token,
                        TimePoint now);
  virtual void on_finish(const node::FinishEvent& event);
  virtual std::vector<TokenId> prompt() const;
  virtual node::UeContext context(const std::vector<std::string>& names) const;
  void on_sampled(TokenIndex index, TimePoint when) override;
  // The UE leaves for gNB `target` now.
  void begin_handover(HandoverRecord record, TimePoint now, int target);
  HandoverRecord& last_handover() { return handovers_.back(); }
  // The run is over: completes the last record and takes all of them out.
  std::vector<HandoverRecord> take_handovers();

  bool keep_arrivals = false;
  bool ids_are_known = false;  // they are sim::Engine's, so each is checked

 private:
  // Sampling times of the last tokens, by index: relayed ones arrive some indices late.
  static constexpr std::size_t kSampledKept = 64;

  void measure(TimePoint now, int by);
  void close_stretch();
  TokenId expected_id(TokenIndex index) const;
  void breach(std::string what);

  TokenIndex received_ = 0;
  Epoch last_epoch_;
  std::optional<TimePoint> last_arrival_;
  std::array<TimePoint, kSampledKept> sampled_at_{};
  TokenIndex sampled_end_ = 0;                             // indices below it were sampled
  std::vector<std::pair<int, std::uint32_t>> sampled_by_;  // run-length
  TokenTimes times_;
  TokenTimes stretch_;  // since the last boundary between before, during and after
  std::optional<session::HandoverMeter> meter_;  // of the last handover
  bool during_ = false;
  int target_ = -1;
  std::vector<HandoverRecord> handovers_;
  std::vector<Arrival> arrivals_;
  std::vector<std::string> breaches_;
};

}  // namespace pallas::sim
