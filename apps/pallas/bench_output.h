#pragma once
// What `pallas bench handover` found, as text, JSON, CSV and figures. Pure.

#include <string>
#include <vector>

#include "bench_statistics.h"
#include "experiment.h"

namespace pallas::app {

// A table for each setting: medians, P95 and ratios to two-front (or the first scheme) and to the
// control.
std::string summary_table(const std::vector<SchemeSummary>& summaries);
// A list with one object for each setting and scheme; the controls are rows, too.
std::string summary_json(const std::vector<SchemeSummary>& summaries);
// One line a handover.
std::string handovers_csv(const std::vector<SchemeSummary>& summaries);
// Gaps as distributions for each setting, and for each dimension with several values SIT and gap
// over it.
std::vector<experiments::Figure> bench_figures(const std::vector<SchemeSummary>& summaries);

}  // namespace pallas::app
