#pragma once
// Figures of `pallas bench handover`, from what its runs saw. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench_options.h"
#include "bench_record.h"
#include "distribution.h"

namespace pallas::app {

inline constexpr const char* kControl = "control";

// One user's one handover; in a control, the same place of a stream that stays.
struct HandoverRow {
  std::string scheme;  // its label, or kControl
  BenchSetting setting;
  double goodput_mbps = 0, available_s = 0;
  std::uint32_t round = 0;
  std::size_t mover = 0, hop = 0;
  HopRecord seen;
  // The longest interval at the same place of the control of this round.
  std::optional<double> control_gap_ms;
  // Ids up to the next handover are the control's; none without a control.
  std::optional<bool> ids_ok;
  // What the fraction of the KV that was there at the deadline is worth, in percent; of a control,
  // or where the target does not tell, none.
  std::optional<double> accuracy;
};

// Intervals of all users of one kind, in milliseconds, by where they lie: before the first
// preparation began, from a preparation's beginning to its handover, from a handover to the 8th
// token after it, and all others.
struct Intervals {
  std::vector<double> before, preparation, handover, after;

  void add(const Intervals& more);
  std::vector<double> during() const;  // preparation and handover
  std::vector<double> all() const;
};

// Where intervals are cut.
struct Cut {
  double begin_ms = 0;  // the preparation begins; executed_ms when there was none
  double executed_ms = 0;
};
// `cuts` and `at_ms` ascend.
Intervals cut_intervals(const std::vector<double>& at_ms, const std::vector<Cut>& cuts);

struct SchemeSummary {
  std::string scheme;
  BenchSetting setting;
  double goodput_mbps = 0, available_s = 0;
  std::size_t runs = 0;
  std::vector<HandoverRow> rows;
  Distribution sit, gap, control_gap;
  std::optional<double> step_ms;  // median interval of uncapped streams without a handover
  Distribution before, preparation, during, after;
  Distribution control;              // of the controls of the same rounds
  Distribution control_preparation;  // of these, in the times in which this scheme prepared
  Distribution residents_before, residents_during, residents_after;
  std::optional<double> worst_user_sit_ms;              // mean over groups of the group's longest
  Distribution fraction;                                // of the KV that was there at the deadline
  std::optional<double> accuracy, worst_user_accuracy;  // means, of all and of each group's least
  // Of handovers that began on a part of the KV: how much it was, how many tokens were decoded on
  // it, and when it was whole, in ms after the attach.
  Distribution part, part_tokens, part_complete_ms;
  double utility_threshold = 0;
  std::size_t below_threshold = 0;  // handovers with a smaller fraction
  // Sums over all handovers.
  std::uint64_t bytes = 0, recomputed = 0, sent = 0, replayed = 0, overlap = 0;
  double early_s = 0;
  std::size_t exact = 0, ids_ok = 0, prepared = 0;
  // Handovers of which the target has a report (a UE that is back before its session has followed
  // leaves none), and of these those that tell of an error.
  std::size_t reported = 0, failed = 0;
};

// One for each setting and scheme, and one for its control, in the plan's order; those of which
// nothing was measured are left out.
std::vector<SchemeSummary> summarize(const BenchPlan& plan, const BenchRecords& records);

// What must never be: tokens lost, repeated or contradicted, sessions that ended; other ids than
// the control's although every handover so far was exact.
std::vector<std::string> find_faults(const std::vector<SchemeSummary>& summaries,
                                     const BenchPlan& plan, const BenchRecords& records);

}  // namespace pallas::app
