// Theorem 1: the filling satisfies the conditions of Karush, Kuhn and Tucker and spends the budget;
// every rule keeps what receivers have and spends no more than there is; nobody beats the bound.

#include <rapidcheck/gtest.h>

#include <algorithm>

#include "generators.h"
#include "plan/allocator.h"
#include "plan/clairvoyant.h"

namespace pallas::plan {
namespace {

Utility any_utility() {
  Utility utility;
  utility.shape = *rc::gen::element(UtilityShape::kAlgebraic, UtilityShape::kLogistic);
  utility.full = even(10, 100);
  utility.steepness = scaled(2, 100);
  utility.threshold = even(0.01, 0.6);
  return utility;
}

std::vector<Receiver> any_receivers() {
  std::vector<Receiver> receivers(whole<std::size_t>(1, 12));
  for (auto& r : receivers) {
    r.gigabits = scaled(0.1, 50);
    r.received = *rc::gen::element(0.0, 1.0) == 0 ? even(0, 1) : 0;
    r.utility = any_utility();
  }
  return receivers;
}

double total(const std::vector<Receiver>& receivers) {
  double sum = 0;
  for (const auto& r : receivers) sum += r.gigabits * (1 - r.received);
  return sum;
}

double accuracy(const std::vector<Receiver>& receivers, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += receivers[i].utility.value(y[i]);
  return sum;
}

RC_GTEST_PROP(WaterFilling, spends_the_budget_where_marginal_values_are_equal, ()) {
  for (int round = 0; round < 20; ++round) {
    const auto receivers = any_receivers();
    const double least = least_budget(receivers);
    const double budget = least + even(0, 1) * (total(receivers) - least);
    const Filling filling = water_fill(receivers, budget);
    RC_ASSERT(std::abs(filling.used - budget) <= 1e-9 * budget + 1e-12);
    for (std::size_t i = 0; i < receivers.size(); ++i) {
      const Receiver& r = receivers[i];
      const double y = filling.fraction[i];
      RC_ASSERT(y >= std::max(r.received, r.utility.threshold) - 1e-15);
      RC_ASSERT(y <= 1);
      if (filling.price == 0) continue;  // everybody is complete
      const double worth = r.utility.slope(y) / r.gigabits;
      // Next to the threshold the slope is flat in y, so it is compared, not y.
      const double tolerance = 1e-6 * r.utility.steepest() / r.gigabits;
      const bool at_floor = y <= std::max(r.received, r.utility.threshold) + 1e-9;
      const bool at_end = y >= 1 - 1e-9;
      if (!at_floor) RC_ASSERT(worth >= filling.price * (1 - 1e-6) - tolerance);
      if (!at_end) RC_ASSERT(worth <= filling.price * (1 + 1e-6) + tolerance);
    }
  }
}

RC_GTEST_PROP(WaterFilling, no_exchange_between_two_receivers_gains, ()) {
  const auto receivers = any_receivers();
  const double least = least_budget(receivers);
  const auto y = water_fill(receivers, least + even(0, 1) * (total(receivers) - least)).fraction;
  const double best = accuracy(receivers, y);
  for (std::size_t a = 0; a < y.size(); ++a) {
    for (std::size_t b = 0; b < y.size(); ++b) {
      if (a == b) continue;
      const double floor = std::max(receivers[a].received, receivers[a].utility.threshold);
      const double bits = even(0, 1) * std::min((y[a] - floor) * receivers[a].gigabits,
                                                (1 - y[b]) * receivers[b].gigabits);
      auto other = y;
      other[a] -= bits / receivers[a].gigabits;
      other[b] += bits / receivers[b].gigabits;
      RC_ASSERT(accuracy(receivers, other) <= best + 1e-6);
    }
  }
}

RC_GTEST_PROP(Allocator, every_rule_keeps_what_there_is_and_spends_what_it_may, ()) {
  const auto receivers = any_receivers();
  const double budget = even(0, 1.2) * total(receivers);
  for (const auto& rule : allocation_rules()) {
    const auto y = rule.allocate(receivers, budget);
    double spent = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      RC_ASSERT(y[i] >= receivers[i].received - 1e-12);
      RC_ASSERT(y[i] <= 1);
      spent += receivers[i].gigabits * (y[i] - receivers[i].received);
    }
    RC_ASSERT(spent <= budget * (1 + 1e-9) + 1e-9);
    if (rule.name == "equal" || rule.name == "proportional" || rule.name == "winner-takes-all") {
      RC_ASSERT(spent >= std::min(budget, total(receivers)) * (1 - 1e-6) - 1e-9);
    }
  }
}

RC_GTEST_PROP(Clairvoyant, no_rule_exceeds_the_bound, ()) {
  const std::size_t slots = whole<std::size_t>(1, 8);
  std::vector<ScheduledTransfer> transfers(whole<std::size_t>(1, 10));
  for (auto& t : transfers) {
    t.gigabits = scaled(0.5, 20);
    t.begin = whole<std::size_t>(0, slots);
    t.end = whole<std::size_t>(t.begin + 1, slots + 1);
    t.utility = any_utility();
  }
  const double budget = scaled(0.1, 20);
  const ClairvoyantBound bound = clairvoyant_bound(transfers, budget);
  for (const auto& rule : allocation_rules()) {
    std::vector<double> x(transfers.size(), 0.0);
    for (std::size_t s = 0; s < slots; ++s) {
      std::vector<Receiver> present;
      std::vector<std::size_t> who;
      for (std::size_t i = 0; i < transfers.size(); ++i) {
        if (s < transfers[i].begin || s >= transfers[i].end) continue;
        present.push_back({transfers[i].gigabits, x[i], transfers[i].utility});
        who.push_back(i);
      }
      const auto y = rule.allocate(present, budget);
      for (std::size_t k = 0; k < who.size(); ++k) x[who[k]] = y[k];
    }
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += transfers[i].utility.value(x[i]);
    RC_ASSERT(sum <= bound.upper * (1 + 1e-9));
  }
}

}  // namespace
}  // namespace pallas::plan
