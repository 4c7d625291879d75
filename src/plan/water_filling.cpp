#include "plan/water_filling.h"

#include <algorithm>
#include <cmath>

namespace pallas::plan {
namespace {

// y_i*(lambda) = max(x_i, W_i(lambda)).
std::vector<double> fractions_at(const std::vector<Receiver>& receivers, double price) {
  std::vector<double> y;
  y.reserve(receivers.size());
  for (const auto& r : receivers) {
    y.push_back(std::max(r.received, r.utility.at_slope(price * r.gigabits)));
  }
  return y;
}

// g(lambda), in Gbit.
double spent(const std::vector<Receiver>& receivers, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < receivers.size(); ++i) {
    sum += receivers[i].gigabits * (y[i] - receivers[i].received);
  }
  return sum;
}

}  // namespace

double least_budget(const std::vector<Receiver>& receivers) {
  double sum = 0;
  for (const auto& r : receivers) {
    sum += r.gigabits * std::max(0.0, r.utility.threshold - r.received);
  }
  return sum;
}

Filling water_fill(const std::vector<Receiver>& receivers, double budget) {
  Filling filling;
  if (receivers.empty()) return filling;
  const auto& first = receivers.front();
  double low = first.utility.slope(1) / first.gigabits;     // at or below it everybody is complete
  double high = first.utility.steepest() / first.gigabits;  // at or above it all are at tau
  for (const auto& r : receivers) {
    low = std::min(low, r.utility.slope(1) / r.gigabits);
    high = std::max(high, r.utility.steepest() / r.gigabits);
  }
  // A slope that underflowed to 0 has no logarithm.
  low = std::max(low, 1e-300);
  std::vector<double> more = fractions_at(receivers, low);
  double more_spent = spent(receivers, more);
  if (more_spent <= budget) {
    filling.fraction = std::move(more);
    filling.used = more_spent;
    return filling;
  }
  std::vector<double> less = fractions_at(receivers, high);
  double less_spent = spent(receivers, less);
  // lambda spans many orders of magnitude, so its logarithm is halved.
  for (int k = 0; k < 80; ++k) {
    const double middle = std::sqrt(low) * std::sqrt(high);
    std::vector<double> y = fractions_at(receivers, middle);
    const double sum = spent(receivers, y);
    if (sum > budget) {
      low = middle;
      more = std::move(y);
      more_spent = sum;
    } else {
      high = middle;
      less = std::move(y);
      less_spent = sum;
    }
  }
  // W has a vertical tangent at the threshold, so no lambda that a double can hold need spend the
  // budget to its last digits; the point between the two neighbours that does is chosen.
  const double gap = more_spent - less_spent;
  const double share = gap > 0 ? std::clamp((budget - less_spent) / gap, 0.0, 1.0) : 0;
  filling.fraction = std::move(less);
  for (std::size_t i = 0; i < receivers.size(); ++i) {
    filling.fraction[i] += share * (more[i] - filling.fraction[i]);
  }
  filling.price = high;
  filling.used = spent(receivers, filling.fraction);
  return filling;
}

}  // namespace pallas::plan
