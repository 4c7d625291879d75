#include "plan/partial.h"

#include <cmath>

#include "inputs.h"

namespace pallas::plan {
namespace {

PlanInput leaving() {
  PlanInput input = at_handover(demo());
  input.may_be_partial = true;
  return input;
}

TEST(Partial, sends_by_importance_and_decodes_with_the_fraction) {
  PlanInput input = leaving();
  input.partial_deadline = Seconds(0.75);
  const Decision d = decide("partial", input);
  EXPECT_EQ(d.plan.order, kv::SendOrder::kByImportance);
  EXPECT_EQ(d.plan.partial_fraction, 0.4);
  EXPECT_EQ(d.plan.partial_deadline_s, 0.75);
  EXPECT_EQ(d.plan.recompute_end, 0u);
  EXPECT_FALSE(d.plan.relay);
  EXPECT_EQ(d.expected_bytes, 1000 * 23'040.0);  // the rest follows
}

TEST(Partial, where_it_may_not_be_is_ctho) {
  PlanInput input = leaving();
  input.may_be_partial = false;
  Decision d = decide("partial", input);
  EXPECT_FALSE(d.plan.partial());
  EXPECT_EQ(d.plan.scheme, "partial");
  d.plan.scheme = "ctho";
  EXPECT_EQ(d.plan, decide("ctho", input).plan);
}

TEST(Partial, interrupts_for_the_fraction_the_deadline_or_the_load) {
  PlanInput input = leaving();  // 50 Mbps: 271.3 tokens/s
  const double rate = 50e6 / 8 / 23'040;
  EXPECT_NEAR(partial_interruption(input).count(), 0.02 + 400 / rate, 1e-9);
  input.partial_deadline = Seconds(0.5);
  EXPECT_NEAR(partial_interruption(input).count(), 0.52, 1e-9);
  input.partial_deadline = Seconds(0.01);  // 36 positions are always sent
  EXPECT_NEAR(partial_interruption(input).count(), 0.02 + 36 / rate, 1e-9);
  input.load = Seconds(3);
  EXPECT_NEAR(partial_interruption(input).count(), 3.02, 1e-9);
  input.goodput.reset();
  EXPECT_TRUE(std::isfinite(partial_interruption(input).count()));
}

TEST(Partial, rescues_where_ctho_is_over_the_limit_and_it_is_below) {
  PlanInput input = leaving();
  input.goodput = BytesPerSecond::from_mbps(200);
  const double ctho = ctho_interruption(input).count();
  const double part = partial_interruption(input).count();
  ASSERT_LT(part, ctho);
  EXPECT_TRUE(partial_rescues(input, Seconds((part + ctho) / 2)));
  EXPECT_FALSE(partial_rescues(input, Seconds(ctho)));
  EXPECT_FALSE(partial_rescues(input, Seconds(part)));
  PlanInput unknown = input;
  unknown.goodput.reset();
  EXPECT_FALSE(partial_rescues(unknown, Seconds((part + ctho) / 2)));
  input.may_be_partial = false;
  EXPECT_FALSE(partial_rescues(input, Seconds((part + ctho) / 2)));
}

TEST(Partial, breaks_even_with_ctho_at_a_goodput_of_its_own) {
  // f = 0.4 at 270 tokens/s: r_t = 180 tokens/s.
  EXPECT_NEAR(partial_break_even(0.4, 23'040, TokensPerSecond(270)).mbps(), 33.1776, 1e-9);
  EXPECT_TRUE(std::isinf(partial_break_even(1, 23'040, TokensPerSecond(270)).value));
}

}  // namespace
}  // namespace pallas::plan
