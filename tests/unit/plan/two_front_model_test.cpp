#include "plan/two_front_model.h"

#include "inputs.h"
#include "plan/cost_model.h"

namespace pallas::plan {
namespace {

constexpr Fronts kBoth{};

PlanInput simple(double r_p, double r_t, double r_d) {
  PlanInput input;
  input.context = 1000;
  input.prompt = 600;
  input.kv_bytes_per_token = 1000;
  input.prefill_rate = TokensPerSecond(r_p);
  input.decode_rate = TokensPerSecond(r_d);
  if (r_t > 0) input.goodput = BytesPerSecond(r_t * 1000);
  input.remaining = Seconds(4);
  return input;
}

TEST(TwoFrontWindow, is_the_whole_context_over_both_rates) {
  EXPECT_NEAR(two_front_window(simple(300, 200, 25), kBoth)->count(), 1100 / 500.0, 1e-12);
}

TEST(TwoFrontWindow, counts_the_models_load_for_the_targets_front_only) {
  PlanInput input = simple(300, 200, 25);
  input.load = Seconds(1);
  EXPECT_NEAR(two_front_window(input, kBoth)->count(), (1100 + 300) / 500.0, 1e-12);
}

TEST(TwoFrontWindow, is_never_shorter_than_the_load) {
  PlanInput input = simple(300, 2000, 25);  // all is sent in 0.55 s
  input.load = Seconds(3);
  EXPECT_EQ(two_front_window(input, kBoth), Seconds(3));
}

TEST(TwoFrontWindow, does_not_exist_when_the_context_outgrows_both_fronts) {
  EXPECT_FALSE(two_front_window(simple(10, 14, 25), kBoth));
  EXPECT_FALSE(two_front_window(simple(10, 15, 25), kBoth));
  EXPECT_TRUE(two_front_window(simple(10, 16, 25), kBoth));
}

TEST(TwoFrontWindow, under_exact_is_that_of_the_slower_of_two_constraints) {
  PlanInput input = simple(300, 200, 25);
  input.recompute_prompt_only = true;
  // Positions above the prompt over the link: 500 / 200 s; all over both: 1100 / 500 s.
  EXPECT_NEAR(two_front_window(input, kBoth)->count(), 2.5, 1e-12);
  input.prompt = 1000;  // 100 / 200 s; all over both
  EXPECT_NEAR(two_front_window(input, kBoth)->count(), 2.2, 1e-12);
}

TEST(TwoFrontWindow, under_exact_needs_a_link_faster_than_the_decoder) {
  PlanInput input = simple(3000, 24, 25);
  EXPECT_TRUE(two_front_window(input, kBoth));
  input.recompute_prompt_only = true;
  EXPECT_FALSE(two_front_window(input, kBoth));
  input.goodput.reset();
  EXPECT_FALSE(two_front_window(input, kBoth));
}

TEST(TwoFrontWindow, an_unknown_link_counts_as_none) {
  EXPECT_NEAR(two_front_window(simple(300, 0, 25), kBoth)->count(), 1100 / 300.0, 1e-12);
}

TEST(TwoFrontWindow, an_empty_session_needs_none) {
  PlanInput input = simple(300, 200, 0);
  input.context = 0;
  EXPECT_EQ(two_front_window(input, kBoth), Seconds(0));
}

TEST(TwoFrontForecast, leaves_nothing_at_its_window_and_the_delay_when_late) {
  PlanInput input = simple(300, 200, 25);
  const Seconds window = *two_front_window(input, kBoth);
  EXPECT_NEAR(forecast_two_front(input, kBoth, window).clear.count(), 0, 1e-12);
  for (const double late : {0.1, 0.5, 2.2}) {
    const auto forecast = forecast_two_front(input, kBoth, window - Seconds(late));
    EXPECT_NEAR(forecast.clear.count(), late, 1e-9);
    EXPECT_NEAR(forecast.uncovered, late * 500, 1e-6);
    EXPECT_EQ(forecast.early, Seconds(0));
  }
}

TEST(TwoFrontForecast, started_early_the_fronts_meet_early) {
  PlanInput input = simple(300, 200, 25);
  // 3 s before: 1025 tokens, and the fronts gain 475 tokens/s on the decoder.
  const auto forecast = forecast_two_front(input, kBoth, Seconds(3));
  EXPECT_NEAR(forecast.early.count(), 3 - 1025 / 475.0, 1e-9);
  EXPECT_NEAR(forecast.recomputed, 300 * 1025 / 475.0, 1e-9);
  EXPECT_NEAR(forecast.sent, 1100 - forecast.recomputed, 1e-9);
}

TEST(TwoFrontForecast, under_exact_a_slow_link_leaves_its_share_of_the_generated_part) {
  PlanInput input = simple(3000, 20, 25);
  input.context = 600;  // the prompt alone: generation starts with the window
  input.recompute_prompt_only = true;
  const auto forecast = forecast_two_front(input, kBoth, Seconds(4));
  EXPECT_NEAR(forecast.link_only, 100 * (1 - 20 / 25.0), 1e-9);
  EXPECT_NEAR(forecast.clear.count(), 20 / 25.0, 1e-9);  // replayed: faster than 20 / 20 s
}

TEST(TwoFrontForecast, slow_links_leave_a_residual_to_pallas_and_none_to_two_front) {
  PlanInput input = qwen_14b();
  input.kv_bytes_per_token = 262'144;  // 32B at 20 Mbps: 9.5 tokens/s against 15
  input.decode_rate = TokensPerSecond(15);
  input.prefill_rate = TokensPerSecond(1808);
  input.goodput = BytesPerSecond::from_mbps(20);
  const Seconds pallas = pallas_window(input);
  EXPECT_GT(window_cost(input, pallas).residual.count(), 0.5);
  const Seconds window = *two_front_window(input, kBoth);
  EXPECT_NEAR(forecast_two_front(input, kBoth, window).clear.count(), 0, 1e-9);
}

TEST(ChooseFronts, both_run_in_the_papers_settings_and_in_the_demo) {
  EXPECT_EQ(choose_fronts(qwen_14b()), kBoth);
  EXPECT_EQ(choose_fronts(demo()), kBoth);
  PlanInput llama = qwen_14b();
  llama.kv_bytes_per_token = 131'072;
  llama.prefill_rate = TokensPerSecond(6526);
  EXPECT_EQ(choose_fronts(llama), kBoth);
}

TEST(ChooseFronts, a_link_far_faster_than_the_target_sends_alone) {
  EXPECT_EQ(choose_fronts(simple(100, 6300, 25)), kBoth);
  EXPECT_EQ(choose_fronts(simple(100, 6301, 25)), (Fronts{.recompute = false, .send = true}));
}

TEST(ChooseFronts, a_target_far_faster_than_the_link_recomputes_alone) {
  const Fronts alone{.recompute = true, .send = false};
  EXPECT_EQ(choose_fronts(simple(6300, 100, 25)), kBoth);
  EXPECT_EQ(choose_fronts(simple(6301, 100, 25)), alone);
  PlanInput input = simple(100, 3, 25);  // 15 tokens in 5 s: not one block
  EXPECT_EQ(choose_fronts(input), alone);
  input.recompute_prompt_only = true;  // nobody else may bring the generated part
  EXPECT_EQ(choose_fronts(input), kBoth);
}

TEST(ChooseFronts, a_front_that_is_needed_stays) {
  EXPECT_EQ(choose_fronts(simple(20, 3, 21)), kBoth);   // the target alone would fall behind
  EXPECT_EQ(choose_fronts(simple(100, 0, 25)), kBoth);  // nothing is known about the link yet
}

}  // namespace
}  // namespace pallas::plan
