#include "sim/fault_script.h"

#include <algorithm>
#include <cstdio>

#include "base/random.h"
#include "plan/scheme.h"

namespace pallas::sim {
namespace {

using namespace std::chrono_literals;

// Of 8 runs, how many have no fault in them: there Eq. 10 holds and nothing may be refused.
constexpr std::uint64_t kSoundOfEight = 1;
constexpr std::uint64_t kEngineCommands = 10;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  bool chance(double p) { return random_.uniform() < p; }
  int below(int n) { return static_cast<int>(random_.below(static_cast<std::uint64_t>(n))); }
  int between(int low, int high) { return low + below(high - low + 1); }
  double uniform(double low, double high) { return random_.uniform(low, high); }
  // Whole microseconds, so that a printed time is the time.
  Duration time(double low_s, double high_s) {
    return std::chrono::microseconds(static_cast<std::int64_t>(uniform(low_s, high_s) * 1e6));
  }
  template <std::size_t N>
  Duration one_of(const Duration (&values)[N]) {
    return values[below(static_cast<int>(N))];
  }
  int other(int than, int n) {
    const int drawn = below(n - 1);
    return drawn < than ? drawn : drawn + 1;
  }

 private:
  Random random_;
};

void draw_engine(Draw& draw, FaultScript& script) {
  engine::EngineInfo& info = script.engine.info;
  info.slots = static_cast<std::uint32_t>(draw.between(2, 5));
  info.context_tokens = 2048;
  info.compatibility.context_tokens = info.context_tokens;
  info.capabilities.exact_chunked_generated = draw.chance(0.6);
  if (draw.chance(0.2)) info.profile.load = Seconds(draw.uniform(0.1, 1));
  if (draw.chance(0.3)) script.engine.end_probability = 0.01;
  if (draw.chance(0.3)) script.engine.replay_share = 0.7;
}

void draw_node(Draw& draw, FaultScript& script) {
  node::NodeConfig& n = script.node;
  const auto schemes = plan::scheme_names();
  // Half of the runs have the default; the others are shared out.
  if (draw.chance(0.5)) {
    script.scheme = schemes[static_cast<std::size_t>(draw.below(static_cast<int>(schemes.size())))];
  }
  n.shadow = static_cast<node::Shadow>(draw.below(3));
  if (draw.chance(0.25)) {
    n.link_sharing = static_cast<plan::LinkSharing>(
        draw.below(static_cast<int>(plan::kLinkSharingNames.size())));
  }
  n.preparation_spacing = draw.chance(0.5) ? 1 : 6;
  if (draw.chance(0.2)) n.fallback = NodeId("gnb-" + std::to_string(draw.below(script.gnbs)));
  if (draw.chance(0.2)) n.mirrors = {NodeId("gnb-" + std::to_string(draw.below(script.gnbs)))};
  n.mirror_on_prediction = draw.chance(0.7);
  if (script.scheme == "partial") {
    n.partial_fraction = draw.uniform(0.2, 0.9);
    if (draw.chance(0.5)) n.partial_deadline = draw.time(0.05, 0.6);
  } else if (draw.chance(0.1)) {
    n.partial_fallback = 200ms;
  }
  n.t_max = draw.time(1, 5);
  n.lease = draw.time(0.8, 2);
  n.frozen = draw.time(1, 3);
  n.retain = draw.time(0.5, 2);
  n.flap = draw.time(0.2, 1);
  n.grace = draw.time(2.2, 3.5);
  n.resume = 30s;
  n.repeat = 150ms;
  n.peer_answer = draw.time(0.3, 1);
  n.keep_alive = 500ms;
  n.report_phases = draw.chance(0.2);
  n.max_handover_reports = 20;
  if (draw.chance(0.1)) n.max_staged_bytes = 4096;  // of rows of 32 bytes
  if (draw.chance(0.05)) n.max_sessions = 2;
}

void draw_network(Draw& draw, FaultScript& script) {
  NetworkSettings& network = script.network;
  network.control_latency = draw.time(0.0001, 0.02);
  network.data_latency = draw.chance(0.5) ? network.control_latency : draw.time(0.0001, 0.02);
  // Rows a second, of 32 bytes: from slower than a decoder to nearly at once.
  const double rows[] = {40, 200, 1000, 5000};
  network.rate = FixedRate{BytesPerSecond(32 * rows[draw.below(4)])};
  network.sight = draw.chance(0.5) ? GoodputSight::kCurrent : GoodputSight::kMeter;
  if (draw.chance(0.5)) script.radio_latency = draw.time(0.0005, 0.03);
  script.check_codec = draw.chance(0.25);
}

void draw_ues(Draw& draw, FaultScript& script) {
  const int count = draw.chance(0.5) ? 1 : draw.between(2, 3);
  const double span = to_seconds(script.faults_end).count();
  for (int i = 0; i < count; ++i) {
    FaultUeSettings ue;
    ue.opens_at = i == 0 ? Duration{0} : draw.time(0, span * 0.6);
    ue.gnb = draw.below(script.gnbs);
    ue.prompt =
        static_cast<TokenPosition>(draw.chance(0.2) ? draw.between(1, 20) : draw.between(20, 300));
    ue.max_tokens =
        static_cast<std::uint32_t>(draw.chance(0.1) ? draw.between(1, 10) : draw.between(40, 260));
    if (draw.chance(0.8)) {
      ue.rate = draw.chance(0.15) ? draw.uniform(0.5, 2) : draw.uniform(5, 25);
    }
    ue.consistency = static_cast<wire::Consistency>(draw.below(3));
    ue.greedy = draw.chance(0.3);
    ue.brings_context = draw.chance(0.8);
    script.ues.push_back(ue);
  }
}

// One UE's way: trips from cell to cell with what the radio says about them, right or wrong.
void draw_trips(Draw& draw, FaultScript& script, int ue) {
  int cell = script.ues[static_cast<std::size_t>(ue)].gnb;
  Duration now = script.ues[static_cast<std::size_t>(ue)].opens_at;
  const auto add = [&](Duration at, FaultKind kind, int b, Duration span = {},
                       Duration delay = {}) {
    FaultEvent event;
    event.at = std::max(at, Duration{0});
    event.kind = kind;
    event.ue = ue;
    event.a = cell;
    event.b = b;
    event.span = span;
    event.delay = delay;
    if (event.at < script.faults_end) script.events.push_back(event);
  };
  while (true) {
    const Duration stay = draw.chance(0.25) ? draw.time(0.01, 0.6) : draw.time(0.6, 6);
    const Duration leaves = now + stay;
    if (leaves >= script.faults_end) break;
    const int next = draw.other(cell, script.gnbs);
    const int wrong = draw.below(script.gnbs);
    // What is foretold.
    const Duration ahead = std::min(stay, draw.time(0.05, 4));
    const double kind = draw.uniform(0, 1);
    if (kind < 0.45) {
      const Duration error = draw.chance(0.5) ? Duration{0} : draw.time(-0.5, 0.5);
      add(leaves - ahead, FaultKind::kPredict, next, std::max(ahead + error, Duration{0}),
          ahead + 2s);
    } else if (kind < 0.6) {  // wrong, perhaps put right later
      add(leaves - ahead, FaultKind::kPredict, wrong, ahead, ahead + draw.time(0.1, 3));
      if (draw.chance(0.5)) add(leaves - ahead / 3, FaultKind::kPredict, next, ahead / 3, 3s);
    } else if (kind < 0.8) {  // flapping
      const int times = draw.between(2, 5);
      for (int i = 0; i < times; ++i) {
        const Duration left = ahead * (times - i) / times;
        const double what = draw.uniform(0, 1);
        if (what < 0.35) {
          add(leaves - left, FaultKind::kWithdraw, next);
        } else {
          add(leaves - left, FaultKind::kPredict, what < 0.75 ? next : wrong, left,
              left + draw.time(0.1, 2));
        }
      }
    }
    // What happens.
    const double how = draw.uniform(0, 1);
    const Duration gap = draw.chance(0.6) ? draw.time(0, 0.05) : draw.time(0.05, 1.2);
    if (how < 0.08) {  // it does not go
      add(leaves, FaultKind::kExecute, next);
      add(leaves + gap, draw.chance(0.5) ? FaultKind::kReject : FaultKind::kCallOff, next);
    } else if (how < 0.14) {  // lost, and found again where it was or there
      const int found = draw.chance(0.5) ? cell : next;
      if (draw.chance(0.5)) add(leaves, FaultKind::kExecute, next);
      add(leaves + gap, FaultKind::kReestablish, found);
      add(leaves + gap + draw.time(0, 0.01), FaultKind::kArrive, found);
      cell = found;
    } else if (how < 0.2) {  // it only goes
      add(leaves, FaultKind::kLeave, next);
      const int found = draw.below(script.gnbs);
      add(leaves + draw.time(0.1, 4), FaultKind::kArrive, found);
      cell = found;
    } else if (how < 0.28) {  // it arrives unannounced
      add(leaves, FaultKind::kArrive, next);
      cell = next;
    } else {
      const int arrives = draw.chance(0.9) ? next : draw.below(script.gnbs);
      add(leaves, FaultKind::kExecute, next);
      if (draw.chance(0.1)) add(leaves + gap / 2, FaultKind::kComplete, next);
      add(leaves + gap, FaultKind::kArrive, arrives);
      if (draw.chance(0.75)) add(leaves + gap + draw.time(0, 0.1), FaultKind::kComplete, next);
      if (draw.chance(0.15)) {  // back within the handover
        add(leaves + gap + draw.time(0, 0.3), FaultKind::kArrive, cell);
      } else {
        cell = arrives;
      }
    }
    now = leaves + gap;
  }
  if (draw.chance(0.12)) {
    FaultEvent stop;
    stop.at = draw.time(0, to_seconds(script.faults_end).count());
    stop.kind = FaultKind::kStop;
    stop.ue = ue;
    stop.b = draw.below(script.gnbs);
    script.events.push_back(stop);
  }
}

void draw_fault(Draw& draw, FaultScript& script) {
  FaultEvent e;
  e.at = draw.time(0, to_seconds(script.faults_end).count());
  e.a = draw.below(script.gnbs);
  e.b = draw.other(e.a, script.gnbs);
  const double kind = draw.uniform(0, 1);
  if (kind < 0.22) {
    e.kind = FaultKind::kCut;
    e.span = draw.chance(0.6) ? draw.time(0.005, 0.5) : draw.time(0.5, 6);
    e.delay = draw.chance(0.5) ? Duration{0} : draw.time(0, to_seconds(e.span).count());
  } else if (kind < 0.34) {
    e.kind = FaultKind::kStall;
    e.span = draw.chance(0.6) ? draw.time(0.01, 0.6) : draw.time(0.6, 4);
  } else if (kind < 0.42) {
    e.kind = FaultKind::kSlow;
    e.span = draw.time(0.2, 4);
    e.delay = draw.time(0.01, 0.4);
    e.factor = draw.uniform(0.02, 0.5);
  } else if (kind < 0.54) {
    e.kind = FaultKind::kCopy;
    e.count = draw.between(1, 12);
    e.delay = draw.chance(0.5) ? draw.time(0, 0.1) : draw.time(0.1, 8);
  } else if (kind < 0.58) {
    e.kind = FaultKind::kForeign;
    e.count = draw.between(1, 12);
    e.delay = draw.time(0, 0.5);
  } else if (kind < 0.70) {
    e.kind = FaultKind::kKill;
    e.span = draw.time(0.05, 4);
  } else if (kind < 0.80) {
    e.kind = FaultKind::kPause;
    e.span = draw.chance(0.5) ? draw.time(0.01, 0.8) : draw.time(0.8, 6);
    e.count = draw.below(2);
  } else if (kind < 0.87) {
    e.kind = FaultKind::kRefuse;
    e.span = draw.time(0.2, 5);
  } else if (kind < 0.93) {
    e.kind = FaultKind::kDrag;
    e.span = draw.time(0.2, 4);
    e.factor = draw.uniform(1.5, 12);
  } else if (kind < 0.97) {
    e.kind = FaultKind::kBreak;
    e.count = draw.below(static_cast<int>(kEngineCommands));
  } else {
    e.kind = FaultKind::kSilence;
    e.span = draw.time(0.1, 3);
  }
  script.events.push_back(e);
}

std::string gnb(int index) {
  return "gnb-" + std::to_string(index);
}

}  // namespace

bool FaultScript::one_text() const {
  return engine.info.capabilities.exact_chunked_generated && scheme != "partial" &&
         node.partial_fallback == Duration{0};
}

std::uint64_t seed_of_run(std::uint64_t campaign, std::uint64_t index) {
  // Short enough to type.
  return index == 0 ? campaign : mix(mix(campaign, "faults"), index) >> 16;
}

FaultScript draw_faults(std::uint64_t seed) {
  FaultScript script;
  script.seed = seed;
  Draw draw(mix(seed, "fault script"));
  script.gnbs = draw.between(2, 5);
  script.faulty = draw.below(8) >= static_cast<int>(kSoundOfEight);
  script.faults_end = draw.time(4, 16);
  script.settle = 14s;
  draw_engine(draw, script);
  draw_node(draw, script);
  draw_network(draw, script);
  draw_ues(draw, script);
  for (int ue = 0; ue < static_cast<int>(script.ues.size()); ++ue) draw_trips(draw, script, ue);
  if (script.faulty) {
    const int faults = draw.between(1, 14);
    for (int i = 0; i < faults; ++i) draw_fault(draw, script);
  }
  // Frozen by a claim that was lost, extended once by rule 8, and the flaps of a last move.
  script.drain = 2 * script.node.lease + script.node.frozen + script.node.retain +
                 script.node.grace + script.node.flap + script.node.t_max + 2s;
  std::stable_sort(script.events.begin(), script.events.end(),
                   [](const FaultEvent& a, const FaultEvent& b) { return a.at < b.at; });
  return script;
}

std::string describe(const FaultEvent& e) {
  const auto ms = [](Duration d) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3f ms", to_ms(d));
    return std::string(text.data());
  };
  const auto times = [](double factor) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.2f", factor);
    return std::string(text.data());
  };
  const std::string what(to_string(e.kind));
  const std::string ue = "ue-" + std::to_string(e.ue + 1);
  const std::string a = gnb(e.a), b = gnb(e.b);
  switch (e.kind) {
    case FaultKind::kPredict:
      return what + " " + ue + " to " + b + " in " + ms(e.span) + ", for " + ms(e.delay);
    case FaultKind::kWithdraw:
    case FaultKind::kLeave:
      return what + " " + ue;
    case FaultKind::kExecute:
    case FaultKind::kComplete:
    case FaultKind::kReject:
    case FaultKind::kCallOff:
    case FaultKind::kReestablish:
    case FaultKind::kArrive:
    case FaultKind::kStop:
      return what + " " + ue + " at " + b;
    case FaultKind::kCut:
      return what + " " + a + " and " + b + " for " + ms(e.span) + ", " + b + " sees it " +
             ms(e.delay) + " later";
    case FaultKind::kStall:
      return what + " " + a + " to " + b + " for " + ms(e.span);
    case FaultKind::kSlow:
      return what + " " + a + " to " + b + " for " + ms(e.span) + ": " + ms(e.delay) +
             " more, rate x " + times(e.factor);
    case FaultKind::kCopy:
    case FaultKind::kForeign:
      return what + " " + std::to_string(e.count) + " frames " + a + " to " + b + " " +
             ms(e.delay) + " later";
    case FaultKind::kKill:
    case FaultKind::kPause:
    case FaultKind::kRefuse:
    case FaultKind::kSilence:
      return what + " " + a + " for " + ms(e.span);
    case FaultKind::kDrag:
      return what + " " + a + " x " + times(e.factor) + " for " + ms(e.span);
    case FaultKind::kBreak:
      return what + " " + a + " at its next command of kind " + std::to_string(e.count);
  }
  return what;
}

}  // namespace pallas::sim
