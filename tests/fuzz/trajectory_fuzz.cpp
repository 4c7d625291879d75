// libFuzzer target over trajectory files: what is accepted is in order and finite, and its
// crossings end.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "mobility/trajectory.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pallas;
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  const auto all = mobility::parse_trajectories(in);
  if (!all) return 0;
  for (const auto& trajectory : *all) {
    if (trajectory.samples.empty()) std::abort();
    for (std::size_t i = 0; i < trajectory.samples.size(); ++i) {
      const auto& sample = trajectory.samples[i];
      if (!std::isfinite(sample.position.x_m) || !std::isfinite(sample.position.y_m)) std::abort();
      if (i > 0 && !(trajectory.samples[i - 1].t < sample.t)) std::abort();
    }
    if (!trajectory.at(trajectory.begin())) std::abort();
  }
  return 0;
}
