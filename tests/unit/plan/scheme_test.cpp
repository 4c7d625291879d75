// What each scheme puts into its plan (docs/schemes.md).

#include "plan/scheme.h"

#include <limits>

#include "inputs.h"

namespace pallas::plan {
namespace {

using kv::SendOrder;
constexpr TokenPosition kNoEnd = std::numeric_limits<TokenPosition>::max();

TEST(Schemes, are_listed_in_the_order_of_the_docs) {
  EXPECT_EQ(scheme_names(),
            (std::vector<std::string_view>{"detour", "full-copy", "recompute", "ctho", "partial",
                                           "pallas", "pallas-no-rc", "pallas-no-sm", "two-front"}));
  for (const auto name : scheme_names()) {
    const auto scheme = make_scheme(name);
    ASSERT_TRUE(scheme);
    EXPECT_EQ((*scheme)->name(), name);
    EXPECT_TRUE((*scheme)->summary().ends_with("."));
  }
}

TEST(Schemes, an_unknown_name_is_answered_with_the_list) {
  const auto scheme = make_scheme("teleport");
  ASSERT_FALSE(scheme);
  EXPECT_EQ(scheme.error().code, Errc::kInvalidArgument);
  EXPECT_NE(scheme.error().message.find("'teleport'"), std::string::npos);
  EXPECT_NE(scheme.error().message.find("pallas-no-sm, two-front"), std::string::npos);
}

TEST(Schemes, those_at_the_handover_wait_for_the_fact) {
  for (const auto name : {"detour", "full-copy", "recompute", "ctho", "partial"}) {
    PlanInput input = demo();
    input.remaining = Seconds(0);  // predicted for now, but the UE has not left
    const Decision before = decide(name, input);
    EXPECT_FALSE(before.trigger) << name;
    EXPECT_EQ(before.window, Seconds(0)) << name;
    EXPECT_TRUE(decide(name, at_handover(demo())).trigger) << name;
  }
}

TEST(Detour, relays_and_moves_nothing) {
  const Decision d = decide("detour", at_handover(demo()));
  EXPECT_TRUE(d.plan.relay);
  EXPECT_EQ(d.plan.recompute_end, 0u);
  EXPECT_EQ(d.plan.order, SendOrder::kNothing);
  EXPECT_EQ(d.expected_bytes, 0);
  EXPECT_NEAR(d.expected_sit.count(), 0.04, 1e-12);
}

TEST(FullCopy, sends_all_oldest_first) {
  const Decision d = decide("full-copy", at_handover(demo()));
  EXPECT_FALSE(d.plan.relay);
  EXPECT_EQ(d.plan.recompute_end, 0u);
  EXPECT_EQ(d.plan.order, SendOrder::kOldestFirst);
  EXPECT_EQ(d.plan.send_begin, 0u);
  EXPECT_EQ(d.expected_bytes, 1000 * 23'040.0);
  EXPECT_NEAR(d.expected_sit.count(), 0.02 + 1000 * 23'040 * 8 / 50e6, 1e-9);
}

TEST(Recompute, prefills_all_and_sends_nothing) {
  PlanInput input = at_handover(demo());
  const Decision d = decide("recompute", input);
  EXPECT_EQ(d.plan.recompute_end, 1000u);
  EXPECT_EQ(d.plan.order, SendOrder::kNothing);
  EXPECT_NEAR(d.expected_sit.count(), 0.02 + 1000 / 270.0, 1e-9);
  input.recompute_prompt_only = true;
  EXPECT_EQ(decide("recompute", input).plan.recompute_end, 800u);
}

TEST(Ctho, divides_the_context_at_a_block) {
  const Decision d = decide("ctho", at_handover(demo()));
  EXPECT_EQ(d.plan.recompute_end % 16, 0u);
  EXPECT_NEAR(d.plan.recompute_end, 1000 * 270 / (270 + 271.3), 16);
  EXPECT_EQ(d.plan.send_begin, d.plan.recompute_end);
  EXPECT_EQ(d.plan.order, SendOrder::kOldestFirst);
  EXPECT_FALSE(d.plan.meet);
}

TEST(Pallas, triggers_at_its_window_with_the_split_of_that_moment) {
  PlanInput input = qwen_14b();
  const Decision early = decide("pallas", input);
  EXPECT_FALSE(early.trigger);
  EXPECT_NEAR(early.window.count(), (3000 + 88) / (1848.4 + 22), 1e-9);
  EXPECT_NEAR(early.look_again.count(), 4 - early.window.count(), 1e-9);
  EXPECT_NEAR(early.expected_sit.count(), 0.2276, 1e-9);
  input.context = 3052;
  input.remaining = early.window;
  const Decision now = decide("pallas", input);
  EXPECT_TRUE(now.trigger);
  EXPECT_EQ(now.look_again, Seconds(0));
  EXPECT_EQ(now.plan.recompute_end, 3040u);
  EXPECT_EQ(now.plan.send_begin, 3040u);
  EXPECT_EQ(now.plan.order, SendOrder::kOldestFirst);
  EXPECT_FALSE(now.plan.meet);
  EXPECT_FALSE(now.plan.partial_ranges);
  EXPECT_EQ(now.plan.expected_in_s, early.window.count());
}

TEST(Pallas, recovers_as_ctho_when_the_ue_leaves_unprepared) {
  const Decision pallas = decide("pallas", at_handover(demo()));
  const Decision ctho = decide("ctho", at_handover(demo()));
  EXPECT_TRUE(pallas.trigger);
  EXPECT_EQ(pallas.plan.recompute_end, ctho.plan.recompute_end);
  EXPECT_EQ(pallas.expected_sit, ctho.expected_sit);
  EXPECT_EQ(pallas.plan.scheme, "pallas");
}

TEST(Pallas, splits_at_the_prompt_under_exact) {
  PlanInput input = demo();
  input.recompute_prompt_only = true;
  input.prompt = 805;
  input.remaining = Seconds(0.5);
  const Decision d = decide("pallas", input);
  EXPECT_TRUE(d.trigger);
  EXPECT_EQ(d.plan.recompute_end, 800u);
  EXPECT_EQ(d.plan.send_begin, 800u);
}

TEST(Pallas, with_less_than_a_block_everything_is_sent) {
  PlanInput input = demo();
  input.context = input.prompt = 15;
  input.remaining = Seconds(0.01);
  const Decision d = decide("pallas", input);
  EXPECT_EQ(d.plan.recompute_end, 0u);
  EXPECT_EQ(d.plan.send_begin, 0u);
}

TEST(PallasAblations, share_the_window_and_leave_a_half_out) {
  PlanInput input = demo();
  input.remaining = Seconds(1);
  const Decision full = decide("pallas", input);
  const Decision no_rc = decide("pallas-no-rc", input);
  const Decision no_sm = decide("pallas-no-sm", input);
  EXPECT_EQ(no_rc.window, full.window);
  EXPECT_EQ(no_sm.window, full.window);
  EXPECT_EQ(no_rc.plan.recompute_end, 0u);
  EXPECT_EQ(no_rc.plan.order, SendOrder::kOldestFirst);
  EXPECT_EQ(no_rc.plan.send_begin, 0u);
  EXPECT_EQ(no_sm.plan.recompute_end, full.plan.recompute_end);
  EXPECT_EQ(no_sm.plan.order, SendOrder::kNothing);
  EXPECT_GT(no_rc.expected_sit, full.expected_sit);
  EXPECT_GT(no_sm.expected_sit, full.expected_sit);
}

TEST(PallasAblations, forecasts_follow_their_formulas) {
  PlanInput input = qwen_14b();
  input.remaining = Seconds(1);
  const double w = decide("pallas", input).window.count();
  EXPECT_NEAR(decide("pallas-no-rc", input).expected_sit.count(),
              0.2276 + 3022 * 163'840 / 37.5e6 - w, 1e-9);
  const double history = (3022 - 22 * w) / 1848.4;
  EXPECT_NEAR(decide("pallas-no-sm", input).expected_sit.count(),
              0.2276 + std::max(0.0, history - w) + 22 * w / 1848.4, 1e-9);
}

TEST(TwoFront, fills_its_plan) {
  PlanInput input = demo();
  const double r_t = 50e6 / 8 / 23'040;
  const Decision before = decide("two-front", input);
  EXPECT_FALSE(before.trigger);
  EXPECT_NEAR(before.window.count(), 1100 / (270 + r_t) + 0.3, 1e-9);
  input.remaining = before.window;
  input.context = 1042;
  input.remaining = Seconds(2.3);
  const Decision d = decide("two-front", input);
  EXPECT_TRUE(d.trigger);
  EXPECT_EQ(d.plan.recompute_end, kNoEnd);
  EXPECT_EQ(d.plan.order, SendOrder::kHighestFirst);
  EXPECT_EQ(d.plan.send_begin, 0u);
  EXPECT_TRUE(d.plan.meet);
  EXPECT_TRUE(d.plan.partial_ranges);
  EXPECT_NEAR(d.expected_sit.count(), 0.02, 1e-9);
  EXPECT_GT(d.expected_early, Seconds(0));
  EXPECT_GT(d.expected_bytes, 300 * 23'040.0);
  EXPECT_LT(d.expected_bytes, 800 * 23'040.0);
}

TEST(TwoFront, ends_its_front_at_the_prompt_under_exact) {
  PlanInput input = demo();
  input.recompute_prompt_only = true;
  EXPECT_EQ(decide("two-front", input).plan.recompute_end, 800u);
}

TEST(TwoFront, is_the_same_plan_at_the_handover) {
  const Decision d = decide("two-front", at_handover(demo()));
  EXPECT_TRUE(d.trigger);
  EXPECT_EQ(d.plan.recompute_end, kNoEnd);
  EXPECT_EQ(d.plan.order, SendOrder::kHighestFirst);
  EXPECT_EQ(d.plan.expected_in_s, 0);
  const double r_t = 50e6 / 8 / 23'040;
  EXPECT_NEAR(d.expected_sit.count(), 0.02 + 1000 / (270 + r_t), 1e-9);
}

TEST(TwoFront, starts_as_early_as_allowed_when_no_window_suffices) {
  PlanInput input = demo();
  input.goodput.reset();
  input.recompute_prompt_only = true;  // the link has to bring the rest, and nobody knows it
  EXPECT_EQ(decide("two-front", input).window, input.t_max);
  EXPECT_TRUE(decide("two-front", input).trigger);
  input = demo();
  input.prefill_rate = TokensPerSecond(5);
  input.goodput = BytesPerSecond(10 * 23'040);
  EXPECT_EQ(decide("two-front", input).window, input.t_max);
}

TEST(TwoFront, without_an_estimate_the_window_is_that_of_the_target_alone_and_both_fronts_run) {
  PlanInput input = demo();
  input.goodput.reset();
  const Decision d = decide("two-front", input);
  EXPECT_NEAR(d.window.count(), 1100 / 270.0 + 0.3, 1e-9);
  EXPECT_EQ(d.plan.order, SendOrder::kHighestFirst);
}

TEST(TwoFront, a_share_of_the_window_is_added_for_rates_that_vary) {
  PlanInput input = demo();
  const double fixed = decide("two-front", input).window.count();
  input.margin_share = 0.15;
  EXPECT_NEAR(decide("two-front", input).window.count() - 0.3, 1.15 * (fixed - 0.3), 1e-9);
  input.t_max = Seconds(1);
  EXPECT_EQ(decide("two-front", input).window.count(), 1);
}

TEST(TwoFront, a_link_faster_than_needed_leaves_the_margin) {
  PlanInput input = demo();
  input.context = 100;
  input.goodput = BytesPerSecond::from_mbps(100'000);
  const Decision d = decide("two-front", input);
  EXPECT_NEAR(d.window.count(), 0.3, 0.01);
  EXPECT_EQ(d.plan.recompute_end, 0u);  // the link does it alone
  EXPECT_EQ(d.plan.order, SendOrder::kHighestFirst);
}

TEST(TwoFront, a_hopeless_link_is_left_alone) {
  PlanInput input = demo();
  input.goodput = BytesPerSecond(23'040);  // a token a second
  const Decision d = decide("two-front", input);
  EXPECT_EQ(d.plan.order, SendOrder::kNothing);
  EXPECT_EQ(d.plan.recompute_end, kNoEnd);
  EXPECT_FALSE(d.plan.meet);
  EXPECT_EQ(d.expected_bytes, 0);
}

TEST(TwoFront, with_less_than_a_block_single_tokens_may_travel) {
  PlanInput input = demo();
  input.context = input.prompt = 5;
  input.decode_rate = TokensPerSecond(0);
  input.remaining = Seconds(0.1);
  const Decision d = decide("two-front", input);
  EXPECT_TRUE(d.trigger);
  EXPECT_TRUE(d.plan.partial_ranges);
  EXPECT_NEAR(d.window.count(), 0.3 + 5 / 541.3, 1e-3);
}

TEST(TwoFront, never_prepares_longer_than_t_max) {
  PlanInput input = demo();
  input.context = 100'000;
  input.remaining = Seconds(60);
  EXPECT_EQ(decide("two-front", input).window, input.t_max);
  EXPECT_NEAR(decide("two-front", input).look_again.count(), 55, 1e-9);
}

}  // namespace
}  // namespace pallas::plan
