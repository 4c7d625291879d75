#pragma once
// What a simulated run yields: one record a handover, one a preparation, and summaries of them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace pallas::sim {

// Intervals, without their single values.
struct Intervals {
  std::uint64_t count = 0;
  double sum_ms = 0;
  double max_ms = 0;
  void add(double ms) {
    ++count;
    sum_ms += ms;
    if (ms > max_ms) max_ms = ms;
  }
  void add(const Intervals& other) {
    count += other.count;
    sum_ms += other.sum_ms;
    if (other.max_ms > max_ms) max_ms = other.max_ms;
  }
  double avg_ms() const { return count == 0 ? 0 : sum_ms / static_cast<double>(count); }
};

// Inter-token times of one stretch of a stream, in two measures.
struct TokenTimes {
  Intervals arrival;  // between successive arrivals at the UE
  // From the sampling of the token before to the arrival: a decode step and the way to the UE, what
  // the paper's Detour row counts. Empty where the engine does not tell (engine::FakeEngine).
  Intervals latency;
};

// One preparation: one attempt of a source for one target.
struct PreparationRecord {
  std::string ue, source, target;
  std::string scheme;
  double requested_s = 0;  // simulated time of HandoverRequest (the trigger)
  double expected_s = 0;   // when the handover was predicted then
  double window_s = 0;     // T_w as planned
  enum class End : std::uint8_t { kOpen, kClaimed, kCancelled, kRefused, kExpired };
  End end = End::kOpen;
  double ended_s = 0;                // of the end; the cancel as it leaves the source
  std::optional<double> freed_s;     // the target acknowledged the cancel
  std::optional<double> prefix_s;    // the target had prefilled all that the plan asks of it
  std::optional<std::size_t> moved;  // index of the handover that it ended before or with
};

struct HandoverRecord {
  std::string ue, source, target;
  std::string scheme;
  std::uint64_t epoch = 0;
  double at_s = 0;               // simulated time of the execution
  TokenPosition context = 0;     // ids of the session at the execution, prompt included
  std::uint32_t concurrent = 0;  // other handovers to the same target within the last second
  bool failed = false;           // no token came before the next one or the end
  bool prepared = false, exact = false, relay = false;
  std::string recovery;  // node::HandoverReport's

  // At the UE (docs/glossary.md).
  std::optional<double> sit_ms, gap_ms;
  TokenTimes before;  // since the previous handover's 8th token, or the session's first
  TokenTimes during;  // from the last token before it to the 8th token of the target
  TokenTimes after;   // from there to the next handover or the end

  // Preparation.
  std::optional<double> window_s;     // planned T_w
  std::optional<double> lead_s;       // from the trigger to the execution
  std::optional<double> early_s;      // T_early: what the plan asked for was ready this much before
  std::optional<double> available_s;  // T_avail, if the target was predicted at all
  std::optional<double> early_error_s;  // E_early of the prediction that triggered
  double waste_s = 0;                   // T_waste: longest preparation in vain since the last one
  double expected_sit_s = 0;

  // Work. Bytes are the real model's.
  double bytes = 0;
  TokenPosition tokens_total = 0, recomputed = 0, replayed = 0, received = 0, overlap = 0;
  TokenPosition residual = 0;
  std::string error;
};

struct Summary {
  std::size_t count = 0;
  double avg = 0, p50 = 0, p90 = 0, p99 = 0, worst = 0;
};
// Percentiles interpolate linearly between order statistics. All zero for no values.
Summary summarize(std::vector<double> values);
// SIT in ms of the records that have one.
std::vector<double> sits_ms(const std::vector<HandoverRecord>& records);

}  // namespace pallas::sim
