#pragma once
// The cost model of Pallas: equations 1 to 10, and the window by Algorithm 1 and in closed form.
// Inputs have passed check(); all times that come back are finite.

#include "base/units.h"
#include "plan/scheme.h"

namespace pallas::plan {

// A PlanInput in tokens and seconds.
struct Work {
  double tokens = 0;        // N: positions with KV at the handover, K_curr + r_d T_rem
  double recomputable = 0;  // how many of the first positions the target may recompute at all
  double prefill = 0;       // r_p
  double decode = 0;        // r_d
  double link = 0;          // r_t = B / s_KV; 0 while B is not known
  bool link_known = false;
  double remaining = 0;  // T_rem
  double load = 0;       // T_load
};
Work work_of(const PlanInput& input);

// Longest time that any forecast says; keeps hopeless rates finite.
inline constexpr Seconds kForever{1e9};
// `seconds`, at least 0 and at most kForever; not a number counts as forever.
Seconds bounded(double seconds);

// S_KV(tokens), equation 1.
double kv_bytes(const PlanInput& input, double tokens);

// What one window costs, equations 3 to 9.
struct WindowCost {
  double history_tokens = 0;  // L_hist: the target prefills them; the source sends the others
  Seconds history{0};         // T_hist
  Seconds residual{0};        // T_res
  Seconds sit{0};             // T_SIT
  Seconds early{0};           // T_early
  double objective = 0;       // J, seconds
};
// Under recompute_prompt_only the target prefills prompt positions only, and the source sends all
// others besides those of the window: T_res then has them too. A link that is not known is taken to
// keep up.
WindowCost window_cost(const PlanInput& input, Seconds window);

// T_limit = min(T_max, T_rem).
Seconds window_limit(const PlanInput& input);
// Algorithm 1: the first best of {0, step, 2 step, ..., T_limit}. Of the expected objective where
// the prediction says how good it is (plan/uncertainty.h).
Seconds pallas_window_by_grid(const PlanInput& input);
// The same optimum in closed form, O(1). Under recompute_prompt_only
// the objective has more kinks, and this is the grid.
Seconds pallas_window(const PlanInput& input);

// One control cycle for one session, without allocating: what the scheme `pallas` would do.
struct WindowDecision {
  Seconds window{0};
  bool trigger = false;
};
WindowDecision decide_window(const PlanInput& input);

// Equation 10: bound on the time for which a target prepares in vain.
Seconds waste_bound(Seconds t_max, Seconds early_error, Seconds available);

// Time for the target to rebuild the first `tokens` positions by itself: prefill as far as allowed,
// then one by one at the pace at which the source decodes.
Seconds rebuild_time(const PlanInput& input, double tokens);
// Time to send `tokens` positions; none while the link is not known.
std::optional<Seconds> send_time(const PlanInput& input, double tokens);

}  // namespace pallas::plan
