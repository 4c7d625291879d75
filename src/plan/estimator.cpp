#include "plan/estimator.h"

#include <cmath>

namespace pallas::plan {

void Ewma::sample(double value) {
  if (!std::isfinite(value) || value <= 0) return;
  value_ = value_ ? *value_ + weight_ * (value - *value_) : value;
}

void Ewma::sample_lower_bound(double value) {
  // Without an estimate there is nothing to raise: a bound may lie far below the truth, and "not
  // known" makes the planner more careful than a wrong number would.
  if (value_ && value > *value_) sample(value);
}

}  // namespace pallas::plan
