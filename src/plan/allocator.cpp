#include "plan/allocator.h"

#include <algorithm>

#include "plan/allocation_baselines.h"

namespace pallas::plan {
namespace {

std::vector<std::size_t> starved(const std::vector<Receiver>& receivers) {
  std::vector<std::size_t> who;
  for (std::size_t i = 0; i < receivers.size(); ++i) {
    if (receivers[i].starved()) who.push_back(i);
  }
  return who;
}

}  // namespace

std::vector<double> allocate_two_regime(const std::vector<Receiver>& receivers, double budget) {
  if (budget < least_budget(receivers)) return allocate_equalized_bytes(receivers, budget);
  return water_fill(receivers, budget).fraction;
}

std::vector<double> allocate_equalized_bytes(const std::vector<Receiver>& receivers,
                                             double budget) {
  return equal_bits(receivers, starved(receivers), budget);
}

std::vector<double> allocate_winner_fallback(const std::vector<Receiver>& receivers,
                                             double budget) {
  if (budget < least_budget(receivers)) {
    return winner_takes_all(receivers, starved(receivers), budget);
  }
  return water_fill(receivers, budget).fraction;
}

const std::vector<AllocationRule>& allocation_rules() {
  static const std::vector<AllocationRule> kRules{
      {"two-regime", "water-filling, Equalized Bytes below B_min", allocate_two_regime},
      {"equal", "the same number of bits for each", allocate_equal},
      {"winner-takes-all", "the largest gain in a slot first", allocate_winner_takes_all},
      {"proportional", "one water level of bits received", allocate_proportional},
      {"winner-fallback", "water-filling, winner takes all below B_min", allocate_winner_fallback},
  };
  return kRules;
}

}  // namespace pallas::plan
