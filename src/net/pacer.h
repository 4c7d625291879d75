#pragma once
// Spaces what is sent so that it flows at a kv::RateTrace's rate. Pure: time comes in.

#include <optional>

#include "base/units.h"
#include "kv/rate_trace.h"

namespace pallas::net {

class Pacer {
 public:
  // Without a trace nothing waits. The trace begins at `origin`.
  Pacer(std::optional<kv::RateTrace> trace, TimePoint origin)
      : trace_(std::move(trace)), origin_(origin), ready_at_(origin) {}

  bool paces() const { return trace_.has_value(); }
  // The sender had nothing to send until now: time that passed unused is lost.
  void restart(TimePoint now) { ready_at_ = std::max(ready_at_, now); }
  // When the next bytes may leave.
  TimePoint ready_at() const { return ready_at_; }
  // `bytes` leave now. A sender that comes late, within kCatchUp, loses no rate by it.
  void spend(TimePoint now, std::uint64_t bytes) {
    if (!trace_) return;
    const TimePoint begin = std::max(ready_at_, now - kCatchUp);
    ready_at_ = origin_ + trace_->finish(begin - origin_, bytes);
  }

 private:
  // A busy thread's lateness; longer stalls do not turn into a burst.
  static constexpr Duration kCatchUp = std::chrono::milliseconds(50);

  std::optional<kv::RateTrace> trace_;
  TimePoint origin_;
  TimePoint ready_at_;
};

}  // namespace pallas::net
