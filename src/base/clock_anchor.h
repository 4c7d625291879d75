#pragma once
// The border between the monotonic clock, which everything goes by, and the date, which two
// machines have in common. Read at borders only (http/wall_clock.h).

#include <chrono>
#include <cstdint>
#include <string>

#include "base/units.h"

namespace pallas {

constexpr std::int64_t to_us(Duration d) {
  return std::chrono::duration_cast<std::chrono::microseconds>(d).count();
}

// One instant by both clocks.
struct ClockAnchor {
  // Programs that say the same share the monotonic clock: the host's boot. Empty: not known.
  std::string id;
  TimePoint monotonic{};
  std::int64_t unix_us = 0;

  // The date of another instant: right while nobody sets the date in between.
  std::int64_t unix_us_at(TimePoint at) const { return unix_us + to_us(at - monotonic); }
};

}  // namespace pallas
