#pragma once
// What every scenario must come to.

#include "virtual_gnbs.h"

namespace pallas::test {

// So far: each token once, in order and never contradicted; nothing failed.
void expect_clean(VirtualGnbs& world, const VirtualUe& ue);
// Runs the session to its end: besides, the ids are those of one gNB without a handover.
void expect_whole(VirtualGnbs& world, VirtualUe& ue);
// After every clock has run out nothing of the session is left but logs.
void expect_nothing_left(VirtualGnbs& world);

}  // namespace pallas::test
