#pragma once
// What the rules of plan/allocator.h are made of, and the transfers that ImpactHO is compared with
// which share nothing: one handover after the other.

#include <cstddef>
#include <vector>

#include "base/units.h"
#include "plan/water_filling.h"

namespace pallas::plan {

// `who` share the budget in equal numbers of bits; each stops when it is complete and the others
// share what it leaves. Fractions of all receivers.
std::vector<double> equal_bits(const std::vector<Receiver>& receivers,
                               const std::vector<std::size_t>& who, double budget);
// Of `who`, the one whose accuracy gains most takes what it can, what it leaves goes to the next.
std::vector<double> winner_takes_all(const std::vector<Receiver>& receivers,
                                     const std::vector<std::size_t>& who, double budget);

// A handover in a queue: it comes at `arrival` and occupies the machine for `service`.
struct QueuedHandover {
  Seconds arrival{0};
  Seconds service{0};
};
// From each arrival to its end, first come first served. Arrivals ascend. With service = prefill
// time this is ImpactHO's re-prefill baseline, with ctHO's D* its hybrid.
std::vector<Seconds> first_come_first_served(const std::vector<QueuedHandover>& queue);

}  // namespace pallas::plan
