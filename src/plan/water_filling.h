#pragma once
// Sharing a slot of a link between handovers so that the sum of their accuracies is largest
// (ImpactHO, Theorem 1): served users end where an additional bit is worth the same to each.

#include <vector>

#include "plan/utility.h"

namespace pallas::plan {

// One handover that receives KV over the shared link.
struct Receiver {
  double gigabits = 0;  // L_i: all of its KV, > 0
  double received = 0;  // x_i: the fraction that it has, [0, 1]
  Utility utility;

  bool starved() const { return received < utility.threshold; }
};

// B_min of a slot in Gbit (Lemma 1): what lifts everybody to the threshold.
double least_budget(const std::vector<Receiver>& receivers);

struct Filling {
  std::vector<double> fraction;  // y_i*, in the order of the receivers
  double price = 0;              // lambda*: accuracy of one more Gbit; 0: all is sent
  double used = 0;               // Gbit
};

// max sum A_i(y_i) with sum L_i (y_i - x_i) <= budget and max(x_i, tau_i) <= y_i <= 1. `budget` in
// Gbit, at least least_budget(). Spends the budget, unless everybody is complete with less.
Filling water_fill(const std::vector<Receiver>& receivers, double budget);

}  // namespace pallas::plan
