#pragma once
// Plays a FaultScript: real nodes on virtual time, what the script does to them, UEs that follow
// their sessions, and Invariants over all of it. The same script gives the same run.

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/fault_script.h"
#include "sim/fault_trace.h"
#include "sim/invariants.h"

namespace pallas::sim {

// A fault at the very moment at which a session first enters a state, in place of a time.
struct FaultTrigger {
  enum class Victim : std::uint8_t { kSource, kTarget, kLink };
  StateChange::Table table = StateChange::Table::kRole;
  int state = 0;
  FaultKind kind = FaultKind::kKill;  // kKill, kPause or kCut
  Victim victim = Victim::kSource;
  Duration span{0};
};

struct FaultOptions {
  bool trace = false;
  std::optional<FaultTrigger> trigger;
};

struct FaultOutcome {
  std::vector<Violation> violations;
  std::vector<TraceLine> trace;                       // if asked for
  std::array<std::uint64_t, kFaultKinds> injected{};  // that had an effect
  std::uint64_t handovers = 0;                        // claims
  std::uint64_t tokens = 0;                           // at UEs
  std::uint64_t events = 0;                           // of the clock
  Duration span{0};                                   // virtual
  bool triggered = false;
  FaultCoverage coverage;
};

FaultOutcome run(const FaultScript& script, const FaultOptions& options = {});

// The script without what the first violation does not need, found by leaving out events as long as
// a violation of the same kind stays, in at most `most` runs.
FaultScript shrink(const FaultScript& script, int most = 400);

}  // namespace pallas::sim
