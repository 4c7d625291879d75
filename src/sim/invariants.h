#pragma once
// What must hold at every moment of a run, whatever goes wrong (docs/protocol.md, design.md 8):
// checked after every event, over all sessions of all gNBs.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/fake_engine.h"
#include "sim/fault_coverage.h"
#include "sim/fault_script.h"
#include "sim/fault_ue.h"
#include "sim/world.h"

namespace pallas::sim {

struct Violation {
  TimePoint at{};
  std::string what;
  int ue = -1;   // -1: of no session
  int gnb = -1;  // -1: of no gNB
};

// A change of state that somebody waits for.
struct StateChange {
  enum class Table : std::uint8_t { kRole, kSource, kTarget };
  Table table = Table::kRole;
  int state = 0;
  int gnb = 0;
  int ue = 0;
};

class Invariants : public WorldObserver {
 public:
  explicit Invariants(const FaultScript& script);

  // The world is made after its observer.
  void watch(World& world) { world_ = &world; }
  // After each event of the clock.
  void after_event();
  // Something was wrong, as seen from outside.
  void fail(int gnb, int ue, std::string what);

  // What the run says about itself. A link is clean while it is up, and neither stalled nor slow.
  void link_clean(int from, int to, bool clean);
  void node_disturbed(int gnb);  // paused, awake again, or its engine is not what it was
  void set_healed(TimePoint when) { healed_ = when; }
  // Every session is over, and all clocks of loans have run out.
  void check_nothing_left();

  const std::vector<Violation>& violations() const { return violations_; }
  const FaultCoverage& coverage() const { return coverage_; }
  std::uint64_t handovers() const { return handovers_; }
  std::function<void(const StateChange&)> on_change;        // a session entered a state
  std::function<void(int gnb, int ue, std::string)> trace;  // if set: one line each

  // WorldObserver.
  void before(int gnb, const SessionId& session, std::string_view what,
              const wire::Message* message) override;
  void after(int gnb, const SessionId& session, std::string_view what,
             const wire::Message* message) override;
  void on_emitted(int gnb, const Ue& ue, const node::TokenEvent& token) override;
  void on_sent(int from, int to, const wire::Message& message) override;

 private:
  // One session at one gNB, as last seen.
  struct Seen {
    std::uint64_t pass = 0;  // of after_event(), when it was there
    int role = kNoRole;
    Epoch epoch;
    int source = kNoState, target = kNoState;
    Attempt incoming;
    NodeId incoming_from;
    TimePoint named{};          // a frame named the incoming attempt
    std::uint64_t touched = 0;  // the pass in which the node was told something about it
    TimePoint alone_since{};    // computes or waits without a UE
    TimePoint lent_since{};     // decodes for a relay that is none
    bool attached = false;      // since then nothing was written
    Attempt told_attempt;       // of the source here: whom it told
    TokenPosition told = 0;     // how many ids
    int role_before = kNoRole;  // of the call that runs
    bool stale_attach = false;  // likewise
    int frozen_for = -1;        // likewise: it was frozen, and whose the session was
    std::uint64_t fenced = 0;   // likewise: gNBs that were sent StaleEpoch, a bit each
  };
  // One UE's session, over all gNBs.
  struct Whole {
    std::map<Epoch, int> emitters;
    TimePoint two_since{};  // two gNBs decode it
  };

  Seen& seen(int gnb, int ue) {
    return seen_[static_cast<std::size_t>(gnb) * ues_ + static_cast<std::size_t>(ue)];
  }
  int ue_of(const SessionId& session) const;
  bool clean_for(int x, int y, Duration span) const;
  bool undisturbed_for(int gnb, Duration span) const;
  FaultUe& ue(int place) const;
  int index_of(const NodeId& name) const;
  void note_states(int gnb, int place, const node::Session* s, Seen& r);
  void check_session(int gnb, int place, const node::Session& s, Seen& r);
  void check_clocks(int gnb, int place, const node::Session& s);
  void check_alone(int gnb, int place, const node::Session& s, Seen& r);
  void check_gone(int gnb, int place, Seen& r, int role);
  void check_whole(int place);
  void check_ue(int place);

  const FaultScript& script_;
  World* world_ = nullptr;
  std::size_t ues_;
  std::vector<Seen> seen_;
  std::vector<Whole> whole_;
  std::vector<TimePoint> clean_since_;   // of each direction; {}: it is not
  std::vector<TimePoint> disturbed_at_;  // of each gNB
  std::vector<std::uint64_t> misused_;   // of each engine
  std::optional<TimePoint> healed_;
  std::uint64_t pass_ = 1;
  std::uint64_t handovers_ = 0;
  FaultCoverage coverage_;
  std::vector<Violation> violations_;
};

}  // namespace pallas::sim
