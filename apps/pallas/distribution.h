#pragma once
// Order statistics of measured values.

#include <cstddef>
#include <optional>
#include <vector>

namespace pallas::app {

// Nearest rank: the smallest value that at least this part of all does not exceed. `sorted` is not
// empty, 0 <= part <= 1.
double nearest_rank(const std::vector<double>& sorted, double part);

// All absent when there is no value.
struct Distribution {
  std::size_t count = 0;
  std::optional<double> p50, p90, p95, p99, mean, max;
};
Distribution distribution(std::vector<double> values);

}  // namespace pallas::app
