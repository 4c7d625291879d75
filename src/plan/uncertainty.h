#pragma once
// Windows for a prediction that says how good it is: the handover comes at t ~ N(T_rem, sigma), and
// at the predicted target with the given confidence. docs/uncertainty.md derives what is here.

#include "base/units.h"
#include "plan/scheme.h"

namespace pallas::plan {

// Does `input` say anything that the papers' rule does not know? Never at the handover itself.
bool is_uncertain(const PlanInput& input);

// The standard normal distribution. `q` outside (0, 1) gives an infinity.
double normal_cdf(double z);
double normal_quantile(double q);
// E[(X - from)^+] for X ~ N(mean, sigma), sigma >= 0.
double expected_above(double mean, double sigma, double from);

// What a second costs near the moment R at which everything is ready.
struct ReadySlopes {
  double late = 1;   // seconds of interruption for a second that the handover comes before R
  double shift = 1;  // seconds by which R moves when the start moves by one; >= 1
};
// The probability of a handover before R at which the expected objective is least. At 1 and above
// preparing never pays.
double best_late_probability(double alpha, double confidence, ReadySlopes slopes);
// How much earlier than for an exact prediction to start; negative: later. Minus infinity when
// preparing never pays, infinity when nothing speaks against it.
double head_start(const PlanInput& input, ReadySlopes slopes);

struct ExpectedCost {
  Seconds sit{0};        // with T_0, when the target is right
  Seconds early{0};      // T_early, when the target is right
  Seconds waste{0};      // T_waste, when it is wrong
  double objective = 0;  // p (alpha sit + (1 - alpha) early) + (1 - p) (1 - alpha) waste
};

// Pallas: the window that makes the expected objective least, in [0, T_limit]. Closed form, but
// bisection where the link is slower than the decoder. Not under recompute_prompt_only.
Seconds expected_pallas_window(const PlanInput& input);
// What a planned window leads to; any input.
ExpectedCost expected_pallas_cost(const PlanInput& input, Seconds window);

}  // namespace pallas::plan
