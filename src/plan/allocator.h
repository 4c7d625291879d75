#pragma once
// Who receives how much in the next slot: ImpactHO's online allocator (its Algorithm 1) and the
// rules that it is compared with. Each is a function of what the receivers have now.

#include <string_view>
#include <vector>

#include "plan/water_filling.h"

namespace pallas::plan {

// All rules give, for each receiver, the fraction that it has after the slot: never below
// `received`, never above 1, together at most `budget` Gbit (>= 0) more.

// Water-filling where the budget lifts everybody to the threshold, Equalized Bytes where it does
// not.
std::vector<double> allocate_two_regime(const std::vector<Receiver>& receivers, double budget);

// Equalized Bytes: the same number of bits for each receiver below its threshold, the others
// nothing; what a complete one leaves goes to the rest of them.
std::vector<double> allocate_equalized_bytes(const std::vector<Receiver>& receivers, double budget);
// The same number of bits for each; what a complete one leaves goes to the others.
std::vector<double> allocate_equal(const std::vector<Receiver>& receivers, double budget);
// Cascading winner takes all: the one whose accuracy gains most by the slot takes what it can,
// what it leaves goes to the next.
std::vector<double> allocate_winner_takes_all(const std::vector<Receiver>& receivers,
                                              double budget);
// Proportional fair, max sum log(L_i y_i): one water level of bits received.
std::vector<double> allocate_proportional(const std::vector<Receiver>& receivers, double budget);

// For comparison: the two-regime allocator with winner-takes-all below B_min, among those that are
// below their thresholds.
std::vector<double> allocate_winner_fallback(const std::vector<Receiver>& receivers, double budget);

struct AllocationRule {
  std::string_view name;
  std::string_view summary;
  std::vector<double> (*allocate)(const std::vector<Receiver>&, double);
};
const std::vector<AllocationRule>& allocation_rules();

}  // namespace pallas::plan
