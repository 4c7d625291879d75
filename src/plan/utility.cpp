#include "plan/utility.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace pallas::plan {

double Utility::value(double y) const {
  const double u = steepness * (y - threshold);
  switch (shape) {
    case UtilityShape::kAlgebraic:
      return full / 2 * (1 + u / std::sqrt(1 + u * u));
    case UtilityShape::kLogistic:
      return full / (1 + std::exp(-u));
  }
  return 0;
}

double Utility::slope(double y) const {
  const double u = steepness * (y - threshold);
  switch (shape) {
    case UtilityShape::kAlgebraic:
      return full * steepness / (2 * std::pow(1 + u * u, 1.5));
    case UtilityShape::kLogistic: {
      // The form that does not overflow far from the threshold.
      const double e = std::exp(-std::abs(u));
      return full * steepness * e / ((1 + e) * (1 + e));
    }
  }
  return 0;
}

double Utility::steepest() const {
  return slope(threshold);
}

double Utility::at_slope(double wanted) const {
  if (wanted >= steepest()) return threshold;
  if (wanted <= slope(1)) return 1;
  double above = 0;  // k (y - tau); rounding may take either root slightly below 0
  switch (shape) {
    case UtilityShape::kAlgebraic:
      above = std::sqrt(std::max(0.0, std::pow(full * steepness / (2 * wanted), 2.0 / 3.0) - 1));
      break;
    case UtilityShape::kLogistic:
      above = std::acosh(std::max(1.0, full * steepness / (2 * wanted) - 1));
      break;
  }
  return std::clamp(threshold + above / steepness, threshold, 1.0);
}

Status check(const Utility& utility) {
  const auto wrong = [](const char* field, const char* range) {
    return fail(Errc::kInvalidArgument, std::string("utility: ") + field + " must be " + range);
  };
  if (!(utility.full > 0) || !std::isfinite(utility.full)) return wrong("full", "above 0");
  if (!(utility.steepness > 0) || !std::isfinite(utility.steepness)) {
    return wrong("steepness", "above 0");
  }
  if (!(utility.threshold > 0 && utility.threshold < 1)) {
    return wrong("threshold", "between 0 and 1");
  }
  return {};
}

ConcaveEnvelope::ConcaveEnvelope(const Utility& utility) : utility_(utility) {
  const double base = utility.value(0);
  // A'(y) y - (A(y) - A(0)) is above 0 at the threshold (the curve was convex up to there) and
  // falls afterwards.
  const auto excess = [&](double y) { return utility.slope(y) * y - (utility.value(y) - base); };
  double low = utility.threshold, high = 1;
  if (excess(high) > 0) {
    tangent_ = 1;  // so flat that the chord spans everything
  } else {
    for (int k = 0; k < 100; ++k) {
      const double middle = (low + high) / 2;
      (excess(middle) > 0 ? low : high) = middle;
    }
    tangent_ = high;
  }
  chord_ = (utility.value(tangent_) - base) / tangent_;
}

double ConcaveEnvelope::value(double y) const {
  if (y >= tangent_) return utility_.value(std::min(y, 1.0));
  return utility_.value(0) + chord_ * y;
}

double ConcaveEnvelope::slope(double y) const {
  return y >= tangent_ ? utility_.slope(y) : chord_;
}

double ConcaveEnvelope::at_slope(double wanted) const {
  if (wanted > chord_) return 0;
  return std::max(tangent_, utility_.at_slope(wanted));
}

}  // namespace pallas::plan
