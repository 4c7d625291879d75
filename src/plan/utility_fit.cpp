#include "plan/utility_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace pallas::plan {
namespace {

// Parameters that keep their signs by construction: log M, log k, tau.
using Parameters = std::array<double, 3>;

Utility utility_of(const Parameters& p, UtilityShape shape) {
  return Utility{shape, std::exp(p[0]), std::exp(p[1]), p[2]};
}

// dA/dp: with u = k (y - tau), A' = k da/du, so the derivatives by log k and tau follow from A'.
std::array<double, 3> gradient(const Utility& utility, double y) {
  const double slope = utility.slope(y);
  return {utility.value(y), slope * (y - utility.threshold), -slope};
}

double squared_error(const std::vector<AccuracyPoint>& points, const Utility& utility) {
  double sum = 0;
  for (const auto& point : points) {
    const double error = point.accuracy - utility.value(point.fraction);
    sum += error * error;
  }
  return sum;
}

// Cramer's rule; none where the matrix is singular.
std::optional<Parameters> solve(const std::array<std::array<double, 3>, 3>& m,
                                const Parameters& b) {
  const auto determinant = [](const std::array<std::array<double, 3>, 3>& a) {
    return a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) -
           a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0]) +
           a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]);
  };
  const double whole = determinant(m);
  if (whole == 0 || !std::isfinite(whole)) return std::nullopt;
  Parameters x{};
  for (std::size_t column = 0; column < 3; ++column) {
    auto replaced = m;
    for (std::size_t row = 0; row < 3; ++row) replaced[row][column] = b[row];
    x[column] = determinant(replaced) / whole;
    if (!std::isfinite(x[column])) return std::nullopt;
  }
  return x;
}

struct Descent {
  Parameters parameters{};
  double error = 0;
  int iterations = 0;
};

Descent descend(const std::vector<AccuracyPoint>& points, UtilityShape shape, Parameters start) {
  Descent state{start, squared_error(points, utility_of(start, shape)), 0};
  double damping = 1e-3;
  while (state.iterations < 200 && damping < 1e12) {
    ++state.iterations;
    const Utility now = utility_of(state.parameters, shape);
    std::array<std::array<double, 3>, 3> normal{};
    Parameters right{};
    for (const auto& point : points) {
      const auto g = gradient(now, point.fraction);
      const double error = point.accuracy - now.value(point.fraction);
      for (std::size_t i = 0; i < 3; ++i) {
        right[i] += g[i] * error;
        for (std::size_t j = 0; j < 3; ++j) normal[i][j] += g[i] * g[j];
      }
    }
    for (std::size_t i = 0; i < 3; ++i) normal[i][i] *= 1 + damping;
    const auto step = solve(normal, right);
    if (!step) {
      damping *= 10;
      continue;
    }
    Parameters next = state.parameters;
    for (std::size_t i = 0; i < 3; ++i) next[i] += (*step)[i];
    next[2] = std::clamp(next[2], 1e-6, 1 - 1e-6);
    const double error = squared_error(points, utility_of(next, shape));
    if (!(error < state.error)) {
      damping *= 10;
      continue;
    }
    const bool settled = state.error - error <= 1e-14 * state.error;
    state.parameters = next;
    state.error = error;
    damping = std::max(damping / 10, 1e-12);
    if (settled) break;
  }
  return state;
}

Status check(const std::vector<AccuracyPoint>& points) {
  if (points.size() < 4) return fail(Errc::kInvalidArgument, "points: at least four are needed");
  bool differ = false;
  for (const auto& point : points) {
    if (!(point.fraction >= 0 && point.fraction <= 1)) {
      return fail(Errc::kInvalidArgument, "points: a fraction is outside [0, 1]");
    }
    if (!std::isfinite(point.accuracy)) {
      return fail(Errc::kInvalidArgument, "points: an accuracy is not finite");
    }
    differ |= point.accuracy != points.front().accuracy;
  }
  if (!differ) return fail(Errc::kInvalidArgument, "points: all accuracies are equal");
  return {};
}

}  // namespace

Result<UtilityFit> fit_utility(const std::vector<AccuracyPoint>& points, UtilityShape shape) {
  if (auto status = check(points); !status) return Failure(status.error());
  double highest = points.front().accuracy, mean = 0;
  for (const auto& point : points) {
    highest = std::max(highest, point.accuracy);
    mean += point.accuracy / static_cast<double>(points.size());
  }
  // Threshold: where the accuracy first passes half of its highest value.
  auto ascending = points;
  std::sort(ascending.begin(), ascending.end(),
            [](const auto& a, const auto& b) { return a.fraction < b.fraction; });
  double half = 0.5;
  for (const auto& point : ascending) {
    if (point.accuracy < highest / 2) continue;
    half = std::clamp(point.fraction, 1e-3, 1 - 1e-3);
    break;
  }
  const double top = std::max(highest, 1e-9);
  std::optional<Descent> best;
  for (const double steepness : {3.0, 30.0, 100.0}) {
    const Descent found = descend(points, shape, {std::log(top), std::log(steepness), half});
    if (!best || found.error < best->error) best = found;
  }
  double total = 0;
  for (const auto& point : points) total += (point.accuracy - mean) * (point.accuracy - mean);
  return UtilityFit{utility_of(best->parameters, shape), 1 - best->error / total, best->iterations};
}

}  // namespace pallas::plan
