#pragma once
// ctHO (arXiv 2603.28018) for one user: at the handover the target recomputes [0, L) while
// the source sends [L, n); the later of the two decides.

#include "base/units.h"
#include "plan/scheme.h"

namespace pallas::plan {

// The fluid optimum: prefill of L tokens takes a L + b seconds, the link carries `link` tokens/s.
struct FluidSplit {
  double recompute = 0;  // L*
  double seconds = 0;    // D*
};
FluidSplit fluid_split(double tokens, double seconds_per_token, double overhead_s, double link);

// The optimum over whole blocks, or the whole context where the target may recompute all of it. The
// model's load counts for every split, since the target decodes afterwards. While the link is not
// known everything that may be recomputed is.
struct BlockSplit {
  TokenPosition recompute = 0;  // L*
  Seconds time{0};              // from the handover until all is there, without T_0
};
// `tokens`: positions at the handover, >= 0.
BlockSplit block_split(const PlanInput& input, double tokens);

}  // namespace pallas::plan
