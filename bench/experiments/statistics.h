#pragma once
// What the experiments say about many values.

#include <algorithm>
#include <cmath>
#include <vector>

namespace pallas::experiments {

// 0 for none.
inline double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// `share` in [0, 1], linear between the two nearest of the ordered values; 0 for none.
inline double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

inline double largest(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

// Share of the values for which `holds`, in [0, 1].
template <class Predicate>
double share_of(const std::vector<double>& values, Predicate holds) {
  if (values.empty()) return 0;
  return static_cast<double>(std::count_if(values.begin(), values.end(), holds)) /
         static_cast<double>(values.size());
}

}  // namespace pallas::experiments
