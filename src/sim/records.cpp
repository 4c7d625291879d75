#include "sim/records.h"

#include <algorithm>
#include <cmath>

namespace pallas::sim {

Summary summarize(std::vector<double> values) {
  Summary summary;
  if (values.empty()) return summary;
  std::sort(values.begin(), values.end());
  summary.count = values.size();
  double sum = 0;
  for (const double v : values) sum += v;
  summary.avg = sum / static_cast<double>(values.size());
  const auto percentile = [&](double q) {
    const double rank = q * static_cast<double>(values.size() - 1);
    const auto low = static_cast<std::size_t>(std::floor(rank));
    const std::size_t high = std::min(low + 1, values.size() - 1);
    return values[low] + (rank - static_cast<double>(low)) * (values[high] - values[low]);
  };
  summary.p50 = percentile(0.50);
  summary.p90 = percentile(0.90);
  summary.p99 = percentile(0.99);
  summary.worst = values.back();
  return summary;
}

std::vector<double> sits_ms(const std::vector<HandoverRecord>& records) {
  std::vector<double> sits;
  for (const HandoverRecord& r : records) {
    if (r.sit_ms) sits.push_back(*r.sit_ms);
  }
  return sits;
}

}  // namespace pallas::sim
