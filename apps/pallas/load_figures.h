#pragma once
// What a load run came to, from the arrivals of its tokens.

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "load_clients.h"

namespace pallas::app {

struct Quantiles {
  std::size_t count = 0;
  double p50 = 0, p99 = 0, max = 0;
};
Quantiles quantiles(std::vector<double> values);

// How late the tokens of this session came that arrived in [from, to), in ms: against a clock of
// `rate` tokens/s that was right for its most punctual token of that stream.
void add_lateness(const LoadSession& session, double rate, TimePoint from, TimePoint to,
                  std::vector<double>& ms);

// From the last token before the second stream to the first after it, less what lies between any
// two tokens, in ms; none without both.
std::optional<double> added_gap_ms(const LoadSession& session, double rate);

struct LoadFigures {
  std::string when;  // of the measurement, for records
  std::uint32_t sessions = 0, handovers = 0;
  double rate = 0, seconds = 0;
  // Of all streams.
  std::uint64_t tokens = 0, expected = 0;
  std::uint64_t lost = 0, repeated = 0, wrong = 0, broken = 0;
  std::string first_error;
  std::uint64_t handovers_done = 0;
  std::uint64_t refusals_asked = 0, refusals_in_order = 0;
  // Of the gNB: shares of a core, bytes.
  double cpu_before = 0, cpu_handovers = 0, cpu_after = 0;
  std::uint64_t rss_empty = 0, rss_full = 0;
  double bytes_per_session = 0;
  Quantiles late_before, late_handovers, late_after;  // ms
  Quantiles gap, attach;                              // ms

  // Nothing lost, repeated, wrong or broken, and every refusal had its reason and its time.
  bool good() const {
    return lost + repeated + wrong + broken == 0 && handovers_done == handovers &&
           refusals_in_order == refusals_asked;
  }
};
std::string to_json(const LoadFigures& figures);
std::string to_text(const LoadFigures& figures);

}  // namespace pallas::app
