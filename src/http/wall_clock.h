#pragma once
// Dates for reports of several hosts that are to be put side by side.

#include "base/clock_anchor.h"
#include "http/json_writer.h"

namespace pallas::http {

ClockAnchor read_clock_anchor();

// The member "clock": {"id", "monotonic_us", "unix_us"} of the instant `zero`, from which a
// report's times count.
void write_clock(JsonWriter& json, const ClockAnchor& anchor, TimePoint zero);

}  // namespace pallas::http
