#pragma once
// The curve of a model and an importance order from measured points.

#include <vector>

#include "base/result.h"
#include "plan/utility.h"

namespace pallas::plan {

struct AccuracyPoint {
  double fraction = 0;  // of the KV that the target has, [0, 1]
  double accuracy = 0;  // measured, in %
};

struct UtilityFit {
  Utility utility;
  double r_squared = 0;  // 1 - residual / total sum of squares
  int iterations = 0;
};

// Nonlinear least squares by Levenberg-Marquardt over (M, k, tau), from several starting points,
// the best of them. kInvalidArgument for fewer than four points, fractions outside [0, 1], values
// that are not finite, or accuracies that are all equal.
Result<UtilityFit> fit_utility(const std::vector<AccuracyPoint>& points, UtilityShape shape);

}  // namespace pallas::plan
