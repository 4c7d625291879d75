#include "plan/ctho_split.h"

#include <algorithm>
#include <cmath>

#include "plan/cost_model.h"
#include "plan/schemes.h"

namespace pallas::plan {

FluidSplit fluid_split(double tokens, double seconds_per_token, double overhead_s, double link) {
  FluidSplit split;
  split.recompute =
      std::clamp((tokens - overhead_s * link) / (1 + seconds_per_token * link), 0.0, tokens);
  // No batch is launched for nothing.
  const double prefill =
      split.recompute > 0 ? seconds_per_token * split.recompute + overhead_s : 0.0;
  split.seconds = std::max(prefill, (tokens - split.recompute) / link);
  return split;
}

BlockSplit block_split(const PlanInput& input, double tokens) {
  const Work work = work_of(input);
  const double limit = std::min(tokens, work.recomputable);
  const double block = input.block_tokens;
  const double highest = std::floor(limit / block) * block;
  if (!work.link_known) {
    const double recompute = limit < tokens ? highest : tokens;
    return {to_position(recompute), rebuild_time(input, tokens)};
  }
  const auto time = [&](double recompute) {
    return std::max(work.load + recompute / work.prefill, (tokens - recompute) / work.link);
  };
  // Prefill grows with L and sending shrinks, so the best block stands next to where they cross.
  const double crossing =
      (tokens - work.load * work.link) * work.prefill / (work.prefill + work.link);
  const double below = std::clamp(std::floor(crossing / block) * block, 0.0, highest);
  double best = below;
  for (const double candidate :
       {std::min(below + block, highest), limit < tokens ? best : tokens}) {
    if (time(candidate) < time(best)) best = candidate;
  }
  return {to_position(best), bounded(time(best))};
}

}  // namespace pallas::plan
