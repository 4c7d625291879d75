#pragma once
// One random run with faults, written down before it begins: the gNBs, their settings and engines,
// the UEs, and every event with its time. All of it follows from one seed. A script without some of
// its events is a script too, which is how a failure is made small.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/fake_engine.h"
#include "node/config.h"
#include "sim/network.h"

namespace pallas::sim {

enum class FaultKind : std::uint8_t {
  // What UEs and radio do, in any order.
  kPredict,      // ue leaves for gNB b `span` from now; good for `delay`
  kWithdraw,     // of the prediction
  kExecute,      // RAN execution towards b
  kComplete,     // RAN completed
  kReject,       // RAN rejected
  kCallOff,      // RAN cancelled
  kReestablish,  // RAN reestablished at b
  kArrive,       // the UE attaches at b, from wherever it is
  kLeave,        // it goes without a word
  kStop,         // DELETE at b
  // Faults. Those with a span end by themselves.
  kCut,      // the link a-b breaks for `span`, b sees it `delay` later
  kStall,    // frames a to b wait for `span`
  kSlow,     // frames a to b take `delay` longer and flow at `factor` of the rate, for `span`
  kCopy,     // the next `count` frames a to b come again `delay` later
  kForeign,  // as kCopy; rows come as of other ids
  kKill,     // a dies and begins anew after `span`
  kPause,    // a stands still for `span`
  kRefuse,   // a's engine takes nobody in for `span`
  kDrag,     // a's engine takes `factor` times as long for `span`
  kBreak,    // a's engine fails with the next command of kind `count`
  kSilence,  // a's engine says nothing for `span`
};
inline constexpr std::size_t kFaultKinds = 21;
inline constexpr std::array<std::string_view, kFaultKinds> kFaultNames = {
    "predict", "withdraw", "execute", "complete", "reject", "call off", "reestablish",
    "arrive",  "leave",    "stop",    "cut",      "stall",  "slow",     "copy",
    "foreign", "kill",     "pause",   "refuse",   "drag",   "break",    "silence"};
constexpr std::string_view to_string(FaultKind kind) {
  return kFaultNames.at(static_cast<std::size_t>(kind));
}
constexpr bool is_fault(FaultKind kind) {
  return kind >= FaultKind::kCut;
}

struct FaultEvent {
  Duration at{0};
  FaultKind kind = FaultKind::kCut;
  int a = 0, b = 0;  // gNBs
  int ue = 0;
  Duration span{0};
  Duration delay{0};
  double factor = 1;
  int count = 0;
};
std::string describe(const FaultEvent& event);

struct FaultUeSettings {
  Duration opens_at{0};
  int gnb = 0;
  TokenPosition prompt = 100;
  std::uint32_t max_tokens = 100;
  double rate = 0;  // max_token_rate
  wire::Consistency consistency = wire::Consistency::kPreferExact;
  bool greedy = false;
  bool brings_context = true;  // otherwise only where the gNB asks for it
};

struct FaultScript {
  std::uint64_t seed = 0;
  int gnbs = 3;
  std::string scheme = "two-front";
  engine::FakeEngineConfig engine;
  node::NodeConfig node;  // of every gNB
  NetworkSettings network;
  Duration radio_latency{0};
  bool check_codec = false;
  bool faulty = true;  // otherwise only UEs and radio
  std::vector<FaultUeSettings> ues;
  std::vector<FaultEvent> events;  // by time
  Duration faults_end{0};          // nothing goes wrong from here on
  Duration settle{0};              // then every live session makes progress within this time
  Duration drain{0};  // and after the last session ended, everything is free after this

  // The ids of every session are known, however its KV was rebuilt.
  bool one_text() const;
};

FaultScript draw_faults(std::uint64_t seed);
// The seed of run `index` of a campaign; run 0 is the campaign's own seed, so that one run with a
// run's seed is that run.
std::uint64_t seed_of_run(std::uint64_t campaign, std::uint64_t index);

}  // namespace pallas::sim
