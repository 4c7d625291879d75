#pragma once
// Rates as they are now: exponentially weighted moving averages of measured samples.

#include <optional>

#include "base/units.h"

namespace pallas::plan {

class Ewma {
 public:
  // `weight` of a new sample, (0, 1].
  explicit Ewma(double weight) : weight_(weight) {}
  void sample(double value);  // ignored unless finite and > 0
  // A sample that can only raise the estimate (rule 17: the sender's queue was empty meanwhile).
  // Ignored while there is no estimate.
  void sample_lower_bound(double value);
  std::optional<double> value() const { return value_; }
  void reset(double value) { value_ = value; }

 private:
  double weight_;
  std::optional<double> value_;
};

}  // namespace pallas::plan
