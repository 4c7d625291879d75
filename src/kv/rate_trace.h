#pragma once
// How fast a link is over time: a fixed rate, or a goodput trace (CSV `t_ms,mbps`; each rate holds
// until the next line, the last as long as the line before it did; then the trace begins again).

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace pallas::kv {

class RateTrace {
 public:
  // `rate` > 0 and finite, else kInvalidArgument.
  static Result<RateTrace> constant(BytesPerSecond rate);
  // An optional heading, then at least one line; times ascend, rates are >= 0 and one is positive.
  // Times lie within a year, rates are at most 1e9 Mbit/s. kParse with the line's number otherwise.
  // Empty lines and lines that begin with # are skipped. A heading that names a column
  // `throughput_mbps` (5Gophers) instead means one line a second, of which only that column counts.
  static Result<RateTrace> parse(std::string_view csv);

  BytesPerSecond at(Duration since_start) const;
  // When the rate changes next, strictly after `since_start`; none for a constant one.
  std::optional<Duration> next_change(Duration since_start) const;
  Duration period() const { return to_duration(Seconds(period_s_)); }
  // When `bytes` are through that begin to flow at `begin` (both since the trace's start); a
  // century later at the most.
  Duration finish(Duration begin, std::uint64_t bytes) const;

 private:
  struct Step {
    double begin_s = 0;
    double end_s = 0;
    double bytes_per_s = 0;
  };
  explicit RateTrace(std::vector<Step> steps);
  static Result<RateTrace> of_steps(std::vector<Step> steps);
  static Result<RateTrace> parse_seconds(std::string_view csv, std::size_t column,
                                         std::size_t heading_line);
  std::size_t step_at(double in_period_s) const;

  std::vector<Step> steps_;  // back to back from 0
  double period_s_ = 0;
  double bytes_per_period_ = 0;
};

}  // namespace pallas::kv
