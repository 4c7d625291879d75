#pragma once
// How accurate a target answers that has a part of a session's KV, the most important entries first
// (ImpactHO, arXiv 2608.10545): an S-shaped curve over the fraction received. Above its threshold
// it is strictly concave; the allocator (plan/allocator.h) never leaves that region.

#include "base/result.h"

namespace pallas::plan {

enum class UtilityShape {
  kAlgebraic,  // A(y) = M/2 (1 + k (y - tau) / sqrt(1 + k^2 (y - tau)^2)), equation 6
  kLogistic,   // A(y) = M / (1 + exp(-k (y - tau)))
};

struct Utility {
  UtilityShape shape = UtilityShape::kAlgebraic;
  double full = 94.134298;   // M > 0: accuracy that the curve tends to, in %
  double steepness = 28;     // k > 0
  double threshold = 0.065;  // tau in (0, 1): where it is steepest

  double value(double y) const;  // A(y), in %
  double slope(double y) const;  // A'(y), equation 7
  double steepest() const;       // A'(tau), its largest value
  // W: the y in [threshold, 1] that has this slope, equations 12 and 13; the nearer end where none
  // has.
  double at_slope(double slope) const;
};

// kInvalidArgument, naming the field, for values that are not finite or out of range.
Status check(const Utility& utility);

// The least concave function above a utility on [0, 1]: the chord from (0, A(0)) to the tangent
// point, the curve itself from there on.
class ConcaveEnvelope {
 public:
  explicit ConcaveEnvelope(const Utility& utility);
  double tangent() const { return tangent_; }  // y_c: A'(y_c) y_c = A(y_c) - A(0)
  double value(double y) const;
  double slope(double y) const;
  // The largest y in [0, 1] whose slope is at least this.
  double at_slope(double slope) const;

 private:
  Utility utility_;
  double tangent_ = 0;
  double chord_ = 0;  // slope of the chord
};

}  // namespace pallas::plan
