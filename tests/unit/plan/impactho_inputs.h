#pragma once
// Receivers as the paper has them: Qwen3-8B with 4K, 8K and 16K tokens.

#include <vector>

#include "plan/water_filling.h"

namespace pallas::plan {

inline constexpr double kGigabits4k = 4.831838, kGigabits8k = 9.663676, kGigabits16k = 19.327353;

inline std::vector<Receiver> three_receivers(double x4k, double x8k, double x16k) {
  return {{kGigabits4k, x4k, {}}, {kGigabits8k, x8k, {}}, {kGigabits16k, x16k, {}}};
}

}  // namespace pallas::plan
