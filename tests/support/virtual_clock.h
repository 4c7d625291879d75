#pragma once
// The simulator's clock under the name that tests use.

#include "sim/virtual_clock.h"

namespace pallas::test {

using VirtualClock = sim::VirtualClock;

}  // namespace pallas::test
