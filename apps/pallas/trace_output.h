#pragma once
// A handover's time line as a file for Perfetto or chrome://tracing, and as a table. Pure.

#include <string>

#include "trace_timeline.h"

namespace pallas::app {

// Trace event format: a process each for source, target and UE; threads for protocol, link and
// engine; slices "X", instants "i", arrows "s" and "f"; times in microseconds from the first event.
std::string chrome_trace(const TraceTimeline& timeline);
// A line a phase, in order of time.
std::string phase_table(const TraceTimeline& timeline);

}  // namespace pallas::app
