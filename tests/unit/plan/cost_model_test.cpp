// The equations on the numbers of the Pallas paper (arXiv 2608.16477).

#include "plan/cost_model.h"

#include "inputs.h"
#include "kv/geometry.h"

namespace pallas::plan {
namespace {

// Figure 6 has a history of 3,000 tokens whatever the window: a session that does not grow.
PlanInput figure_6(double step) {
  PlanInput input = qwen_14b();
  input.decode_rate = TokensPerSecond(0);
  input.remaining = Seconds(5);
  input.step = Seconds(step);
  return input;
}

TEST(CostModel, equation_1_gives_the_papers_bytes_per_token) {
  const auto bytes = [](std::uint32_t layers) {
    return kv::Geometry{layers, 8 * 128 * 2, 8 * 128 * 2}.bytes_per_token();
  };
  EXPECT_EQ(bytes(32), 131'072u);  // Llama-3-8B
  EXPECT_EQ(bytes(40), 163'840u);  // Qwen3-14B
  EXPECT_EQ(bytes(64), 262'144u);  // Qwen3-32B
  EXPECT_EQ(kv_bytes(qwen_14b(), 1000), 163'840'000);
}

TEST(CostModel, figure_6_window_sit_and_early) {
  const PlanInput input = figure_6(0.04);
  const Seconds window = pallas_window_by_grid(input);
  EXPECT_NEAR(window.count(), 1.64, 1e-9);
  const WindowCost cost = window_cost(input, window);
  EXPECT_NEAR(cost.history.count(), 1.623, 1e-3);
  EXPECT_NEAR(cost.sit.count(), 0.2276, 1e-9);
  EXPECT_NEAR(cost.early.count(), 0.0170, 1e-4);
  EXPECT_NEAR(cost.objective, 0.8 * cost.sit.count() + 0.2 * cost.early.count(), 1e-12);
  EXPECT_NEAR(pallas_window(input).count(), 1.62302, 1e-5);
}

TEST(CostModel, other_grid_steps_move_the_window_as_recorded) {
  EXPECT_NEAR(pallas_window_by_grid(figure_6(0.01)).count(), 1.63, 1e-9);
  EXPECT_NEAR(pallas_window_by_grid(figure_6(0.02)).count(), 1.62, 1e-9);
  EXPECT_NEAR(pallas_window_by_grid(figure_6(0.2)).count(), 1.60, 1e-9);
}

TEST(CostModel, figure_2_idle_time_at_a_window_of_4_s) {
  PlanInput input = figure_6(0.2);
  EXPECT_NEAR(window_cost(input, Seconds(4)).early.count(), 2.38, 0.01);
}

TEST(CostModel, the_residual_starts_where_the_link_is_slower_than_the_decoder) {
  // 41.8, 28.8 and 31.4 Mbps for 8B, 14B, 32B.
  struct Model {
    std::uint64_t bytes;
    double decode, mbps;
  };
  for (const auto& [bytes, decode, mbps] :
       {Model{131'072, 39.84, 41.8}, Model{163'840, 21.98, 28.8}, Model{262'144, 15, 31.4}}) {
    PlanInput input = qwen_14b();
    input.kv_bytes_per_token = bytes;
    input.decode_rate = TokensPerSecond(decode);
    input.goodput = BytesPerSecond::from_mbps(mbps + 0.1);
    EXPECT_EQ(window_cost(input, Seconds(1.5)).residual.count(), 0);
    input.goodput = BytesPerSecond::from_mbps(mbps - 0.1);
    EXPECT_GT(window_cost(input, Seconds(1.5)).residual.count(), 0);
  }
}

TEST(CostModel, the_closed_form_counts_load_and_slow_links) {
  PlanInput input = qwen_14b();
  input.context = 1000;
  input.prefill_rate = TokensPerSecond(1000);
  input.decode_rate = TokensPerSecond(20);
  input.remaining = Seconds(4);
  input.load = Seconds(0.5);
  input.kv_bytes_per_token = 1000;
  input.goodput = BytesPerSecond(1'000'000);
  EXPECT_NEAR(pallas_window(input).count(), (1080 + 500) / 1020.0, 1e-12);
  input.goodput = BytesPerSecond(10'000);  // half of what the decoder makes
  EXPECT_NEAR(pallas_window(input).count(), (1080 + 500) / 2020.0, 1e-12);
  input.t_max = Seconds(0.5);
  EXPECT_EQ(pallas_window(input), Seconds(0.5));
  input.remaining = Seconds(0.2);
  EXPECT_EQ(pallas_window(input), Seconds(0.2));
}

TEST(CostModel, the_ends_of_alpha) {
  PlanInput input = figure_6(0.01);
  input.alpha = 0;
  EXPECT_EQ(pallas_window(input), Seconds(0));
  EXPECT_EQ(pallas_window_by_grid(input), Seconds(0));
  input.alpha = 1;  // a plateau to the right of the kink: its smallest point
  EXPECT_NEAR(pallas_window(input).count(), 1.62302, 1e-5);
  EXPECT_NEAR(pallas_window_by_grid(input).count(), 1.63, 1e-9);
}

TEST(CostModel, an_off_grid_limit_is_part_of_the_grid) {
  // Otherwise a handover nearer than the optimum, between two grid points, would never trigger.
  PlanInput input = figure_6(0.2);
  input.remaining = Seconds(1.37);
  EXPECT_EQ(pallas_window_by_grid(input), Seconds(1.37));
}

TEST(CostModel, under_exact_the_generated_part_counts_for_the_link) {
  PlanInput input = qwen_14b();
  input.recompute_prompt_only = true;
  input.remaining = Seconds(0);
  input.decode_rate = TokensPerSecond(0);
  const WindowCost cost = window_cost(input, Seconds(0));
  EXPECT_EQ(cost.history_tokens, 2000);
  EXPECT_NEAR(cost.residual.count(), 1000 * 163'840 / 37.5e6, 1e-9);
}

TEST(CostModel, equation_10_bounds_waste) {
  EXPECT_EQ(waste_bound(Seconds(5), Seconds(1), Seconds(2)), Seconds(4));
  EXPECT_EQ(waste_bound(Seconds(5), Seconds(1), Seconds(7)), Seconds(0));
}

TEST(CostModel, times_without_an_end_are_capped) {
  EXPECT_EQ(bounded(std::numeric_limits<double>::infinity()), kForever);
  EXPECT_EQ(bounded(std::numeric_limits<double>::quiet_NaN()), kForever);
  EXPECT_EQ(bounded(-1), Seconds(0));
}

TEST(CostModel, rebuilding_replays_what_must_not_be_prefilled) {
  PlanInput input = at_handover(qwen_14b());
  EXPECT_NEAR(rebuild_time(input, 3000).count(), 3000 / 1848.4, 1e-9);
  input.recompute_prompt_only = true;
  EXPECT_NEAR(rebuild_time(input, 3000).count(), 2000 / 1848.4 + 1000 / 22.0, 1e-9);
}

}  // namespace
}  // namespace pallas::plan
