// Algorithm 1 against the closed form: each checks the other.

#include <rapidcheck/gtest.h>

#include "generators.h"
#include "plan/cost_model.h"

namespace pallas::plan {
namespace {

constexpr int kCasesPerRun = 100;  // RapidCheck runs a property 100 times

RC_GTEST_PROP(PallasWindow, grid_and_closed_form_agree_within_a_step_on_10000_cases, ()) {
  for (int k = 0; k < kCasesPerRun; ++k) {
    const PlanInput input = any_input();
    RC_ASSERT(check(input).has_value());
    const Seconds grid = pallas_window_by_grid(input);
    const Seconds closed = pallas_window(input);
    RC_LOG() << "grid " << grid.count() << " closed " << closed.count() << '\n';
    RC_ASSERT(std::abs((grid - closed).count()) <= input.step.count() * (1 + 1e-9));
    // And no grid point is better than the closed form.
    const double best = window_cost(input, grid).objective;
    RC_ASSERT(window_cost(input, closed).objective <= best + 1e-9);
  }
}

RC_GTEST_PROP(PallasWindow, alpha_does_not_move_the_closed_form, ()) {
  PlanInput input = any_input();
  const Seconds before = pallas_window(input);
  input.alpha = even(0.05, 1);
  RC_ASSERT(pallas_window(input) == before);
  RC_ASSERT(window_cost(input, before).objective <=
            window_cost(input, pallas_window_by_grid(input)).objective + 1e-9);
}

RC_GTEST_PROP(PallasWindow, it_lies_between_0_and_the_limit, ()) {
  PlanInput input = any_input();
  input.recompute_prompt_only = *rc::gen::arbitrary<bool>();
  for (const Seconds window : {pallas_window(input), pallas_window_by_grid(input)}) {
    RC_ASSERT(window >= Seconds(0));
    RC_ASSERT(window <= window_limit(input));
  }
}

}  // namespace
}  // namespace pallas::plan
