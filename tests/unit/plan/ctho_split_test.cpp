#include "plan/ctho_split.h"

#include "inputs.h"

namespace pallas::plan {
namespace {

// Qwen3-32B at 300 Mbps: N = 4096, r_p = 1948, R = 143.0511 tokens/s.
constexpr double kTokens = 4096, kPrefill = 1948, kLink = 143.0511;

TEST(CthoSplit, the_single_user_test_vector) {
  const FluidSplit split = fluid_split(kTokens, 1 / kPrefill, 0, kLink);
  EXPECT_NEAR(split.recompute, 3815.79, 0.005);
  EXPECT_NEAR(split.seconds, 1.958823, 1e-6);
}

TEST(CthoSplit, the_whole_goes_over_a_link_faster_than_the_overhead) {
  // L* = 0 iff N / R <= b.
  EXPECT_EQ(fluid_split(1000, 1e-3, 1.0, 1000).recompute, 0);
  EXPECT_EQ(fluid_split(1000, 1e-3, 1.0, 1000).seconds, 1);
  EXPECT_GT(fluid_split(1000, 1e-3, 0.9, 1000).recompute, 0);
}

TEST(CthoSplit, blocks_stand_next_to_the_fluid_optimum) {
  PlanInput input = at_handover(qwen_14b());
  input.context = 4096;
  input.prefill_rate = TokensPerSecond(kPrefill);
  input.kv_bytes_per_token = 262'144;
  input.goodput = BytesPerSecond(kLink * 262'144);
  const BlockSplit split = block_split(input, 4096);
  EXPECT_TRUE(split.recompute == 3808 || split.recompute == 3824) << split.recompute;
  EXPECT_GE(split.time.count(), 1.958823 - 1e-6);
  EXPECT_LE(split.time.count(), 1.958823 + 16 / kPrefill);
}

TEST(CthoSplit, a_hopeless_link_gets_nothing_not_even_the_last_block) {
  PlanInput input = at_handover(qwen_14b());
  input.context = 1001;
  input.goodput = BytesPerSecond(1000);
  EXPECT_EQ(block_split(input, 1001).recompute, 1001u);
  input.goodput.reset();
  EXPECT_EQ(block_split(input, 1001).recompute, 1001u);
}

TEST(CthoSplit, generated_positions_are_left_to_the_link_under_exact) {
  PlanInput input = at_handover(qwen_14b());
  input.prompt = 500;
  input.recompute_prompt_only = true;
  EXPECT_EQ(block_split(input, 3000).recompute, 496u);
}

TEST(CthoSplit, the_models_load_counts_for_every_split) {
  PlanInput input = at_handover(qwen_14b());
  input.context = 100;
  input.load = Seconds(10);
  const BlockSplit split = block_split(input, 100);
  EXPECT_EQ(split.recompute, 0u);
  EXPECT_EQ(split.time, Seconds(10));
}

}  // namespace
}  // namespace pallas::plan
