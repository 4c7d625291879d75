#pragma once
// SIT and gap of one handover (design: docs/glossary.md), token by token: the one definition for
// the UE program and the simulator.

#include <algorithm>
#include <optional>

#include "base/units.h"

namespace pallas::session {

// The gap reaches to this many tokens of the target's engine.
inline constexpr int kGapTokens = 8;

class HandoverMeter {
 public:
  // `last_before`: arrival of the last token before the execution, if there was one.
  HandoverMeter(TimePoint executed, std::optional<TimePoint> last_before)
      : executed_(executed), last_(last_before) {}

  // The next token as it arrived. `own`: the target's engine sampled it.
  void add(TimePoint at, bool own) {
    if (last_) {
      const double interval = to_ms(at - *last_);
      own_.interval(interval);
      any_.interval(interval);
    }
    last_ = at;
    any_.token(to_ms(at - executed_));
    if (own) own_.token(to_ms(at - executed_));
  }

  // Absent while no token came.
  std::optional<double> sit_ms() const { return chosen().sit; }
  std::optional<double> gap_ms() const { return chosen().gap; }
  // Tokens came, but the target's engine sampled none of them.
  bool relayed() const { return own_.tokens == 0 && any_.tokens > 0; }
  // Later tokens change nothing, unless it stays relayed.
  bool settled() const { return own_.tokens >= kGapTokens; }
  bool settled_relayed() const { return any_.tokens >= kGapTokens; }

 private:
  // Over the tokens that count: those of the target, or all of them for a relay.
  struct Count {
    std::optional<double> sit, gap;
    int tokens = 0;
    void interval(double ms) {
      if (tokens < kGapTokens) gap = std::max(gap.value_or(0), ms);
    }
    void token(double since_execution_ms) {
      if (tokens++ == 0) sit = since_execution_ms;
    }
  };
  const Count& chosen() const { return relayed() ? any_ : own_; }

  TimePoint executed_;
  std::optional<TimePoint> last_;
  Count own_, any_;
};

}  // namespace pallas::session
