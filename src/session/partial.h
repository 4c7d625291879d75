#pragma once
// What both ends of a partial handover agree on.

#include "base/units.h"

namespace pallas::session {

// Always sent, and what a deadline waits for: every query leans on the first positions, and the
// latest text is what is being talked about.
inline constexpr TokenPosition kSinkPositions = 4;
inline constexpr TokenPosition kRecentBlocks = 2;

}  // namespace pallas::session
