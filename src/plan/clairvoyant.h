#pragma once
// What an allocator could reach that knows every arrival beforehand: an upper bound for the sum of
// accuracies over a horizon.
//
// Each curve is replaced by its concave envelope, which only raises it. What is left,
//
//   max sum_i E_i(theta_i),  L_i theta_i = sum of z_{i,s} over i's slots,  sum_i z_{i,s} <= budget,
//
// is concave. Its Lagrangian dual for prices p_s >= 0 of the slots is
//
//   D(p) = sum_s p_s budget + sum_i max_{0 <= theta <= 1} [E_i(theta) - theta L_i min_{s of i} p_s]
//
// and every D(p) is an upper bound (weak duality), however the prices were found. They come from
// filling slot after slot, again and again, with what the others leave.

#include <cstddef>
#include <vector>

#include "plan/utility.h"

namespace pallas::plan {

struct ScheduledTransfer {
  double gigabits = 0;    // L_i > 0
  std::size_t begin = 0;  // the slots [begin, end) in which it may receive; not empty
  std::size_t end = 0;
  Utility utility;
};

struct ClairvoyantBound {
  double upper = 0;    // D(p) >= the best sum of accuracies, in %
  double reached = 0;  // sum of the envelopes of the schedule found; upper - reached is the gap
  int sweeps = 0;
};

// `budget` in Gbit a slot, > 0. Ends when the gap is below `gap` of the bound or after
// `max_sweeps`.
ClairvoyantBound clairvoyant_bound(const std::vector<ScheduledTransfer>& transfers, double budget,
                                   double gap = 1e-4, int max_sweeps = 200);

}  // namespace pallas::plan
