#include "distribution.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pallas::app {

double nearest_rank(const std::vector<double>& sorted, double part) {
  const auto n = static_cast<std::size_t>(std::ceil(part * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(n, 1) - 1];
}

Distribution distribution(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {values.size(),
          nearest_rank(values, 0.5),
          nearest_rank(values, 0.9),
          nearest_rank(values, 0.95),
          nearest_rank(values, 0.99),
          sum / static_cast<double>(values.size()),
          values.back()};
}

}  // namespace pallas::app
