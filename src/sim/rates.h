#pragma once
// How fast a link is over time, as a piecewise constant function: fixed, drawn anew from a
// truncated normal distribution, or a trace.

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>

#include "base/random.h"
#include "base/units.h"
#include "kv/rate_trace.h"

namespace pallas::sim {

struct FixedRate {
  BytesPerSecond rate = BytesPerSecond::from_mbps(300);
};
// N(mean, sd) without what lies below `floor`. With a period each link draws anew at each of its
// multiples; without, at each handover (Network::draw), and is at the mean before the first.
struct DrawnRate {
  BytesPerSecond mean = BytesPerSecond::from_mbps(300);
  BytesPerSecond sd = BytesPerSecond::from_mbps(50);
  BytesPerSecond floor = BytesPerSecond::from_mbps(150);
  Duration period{0};
};
struct TracedRate {
  kv::RateTrace trace;
  bool shift = true;  // each link begins at an own place of the trace, drawn from the seed
};
using RateSettings = std::variant<FixedRate, DrawnRate, TracedRate>;

// Fails with kInvalidArgument, naming the field.
Status check(const RateSettings& settings);

// The rate of one link. `key` names the link.
class RateProcess {
 public:
  RateProcess(const RateSettings& settings, std::uint64_t seed, std::uint64_t key);

  BytesPerSecond at(TimePoint now) const;
  // When the rate may change next, strictly after `now`; none: it stays.
  std::optional<TimePoint> next_change(TimePoint now) const;
  // Takes this rate from now on, whatever the settings say.
  void set(BytesPerSecond rate) { override_ = rate; }
  // DrawnRate without a period: the draw of that name. No effect on others.
  void draw(std::uint64_t name);

 private:
  const RateSettings* settings_;
  std::uint64_t seed_;
  Duration shift_{0};
  std::optional<BytesPerSecond> override_;
};

}  // namespace pallas::sim
