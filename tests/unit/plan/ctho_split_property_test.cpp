// The closed forms of ctHO against brute force.

#include <rapidcheck/gtest.h>

#include "generators.h"
#include "plan/ctho_split.h"

namespace pallas::plan {
namespace {

double time_of(const PlanInput& input, double tokens, double recompute) {
  const double link = input.goodput->value / static_cast<double>(input.kv_bytes_per_token);
  return std::max(input.load.count() + recompute / input.prefill_rate.value,
                  (tokens - recompute) / link);
}

RC_GTEST_PROP(CthoSplit, no_division_at_a_block_is_faster, ()) {
  for (int k = 0; k < 20; ++k) {
    PlanInput input = any_input();
    input.recompute_prompt_only = *rc::gen::arbitrary<bool>();
    const TokenPosition limit = input.recompute_prompt_only ? input.prompt : input.context;
    double best = time_of(input, input.context, 0);
    for (TokenPosition L = 0; L <= limit; L += input.block_tokens) {
      best = std::min(best, time_of(input, input.context, L));
    }
    if (limit == input.context) {
      best = std::min(best, time_of(input, input.context, input.context));
    }
    const BlockSplit split = block_split(input, input.context);
    RC_ASSERT(std::abs(split.time.count() - best) <= 1e-9 * (1 + best));
    RC_ASSERT(split.recompute <= limit);
    RC_ASSERT(split.recompute % input.block_tokens == 0 || split.recompute == input.context);
    RC_ASSERT(std::abs(time_of(input, input.context, split.recompute) - best) <= 1e-9 * (1 + best));
  }
}

RC_GTEST_PROP(CthoSplit, blocks_cost_at_most_one_block_over_the_flow, ()) {
  PlanInput input = any_input();
  input.load = Seconds(0);
  const double link = input.goodput->value / static_cast<double>(input.kv_bytes_per_token);
  const FluidSplit fluid = fluid_split(input.context, 1 / input.prefill_rate.value, 0, link);
  const BlockSplit blocks = block_split(input, input.context);
  RC_ASSERT(blocks.time.count() >= fluid.seconds * (1 - 1e-9));
  RC_ASSERT(blocks.time.count() <=
            fluid.seconds * (1 + 1e-9) + input.block_tokens / input.prefill_rate.value);
}

RC_GTEST_PROP(CthoSplit, the_fluid_optimum_beats_every_other_length, ()) {
  const double n = even(1, 20'000), a = 1 / scaled(50, 10'000), b = even(0, 0.5),
               link = scaled(1, 10'000);
  const FluidSplit split = fluid_split(n, a, b, link);
  for (int k = 0; k <= 100; ++k) {
    const double L = n * k / 100;
    const double d = std::max(L > 0 ? a * L + b : 0, (n - L) / link);
    RC_ASSERT(split.seconds <= d * (1 + 1e-9));
  }
}

}  // namespace
}  // namespace pallas::plan
