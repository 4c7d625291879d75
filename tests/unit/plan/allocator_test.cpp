// The two-regime allocator and what it is compared with, on the test vectors of the reference.

#include "plan/allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "impactho_inputs.h"
#include "plan/allocation_baselines.h"
#include "plan/clairvoyant.h"

namespace pallas::plan {
namespace {

double spent(const std::vector<Receiver>& receivers, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    sum += receivers[i].gigabits * (y[i] - receivers[i].received);
  }
  return sum;
}

TEST(WaterFilling, needs_at_least_what_lifts_everybody_to_the_threshold) {
  EXPECT_NEAR(least_budget(three_receivers(0, 0.1, 0.3)), 0.314069, 5e-7);
}

TEST(WaterFilling, ends_where_another_bit_is_worth_the_same_to_each) {
  const auto receivers = three_receivers(0, 0.1, 0.3);
  const Filling filling = water_fill(receivers, 2);
  EXPECT_NEAR(filling.fraction[0], 0.228325, 5e-7);
  EXPECT_NEAR(filling.fraction[1], 0.192798, 5e-7);
  EXPECT_EQ(filling.fraction[2], 0.3);
  EXPECT_NEAR(filling.price, 2.658895, 5e-7);
  EXPECT_NEAR(filling.used, 2, 2e-9);
}

TEST(WaterFilling, leaves_what_nobody_needs) {
  const Filling filling = water_fill(three_receivers(0, 0.1, 0.3), 30);
  EXPECT_EQ(filling.fraction, (std::vector<double>{1, 1, 1}));
  EXPECT_NEAR(filling.used, 27.0583, 5e-5);
  EXPECT_EQ(filling.price, 0);
}

TEST(WaterFilling, of_equal_receivers_is_one_level) {
  // W* = mean of x + budget / (|A| L) over those below it.
  std::vector<Receiver> receivers;
  for (const double x : {0.1, 0.2, 0.9}) receivers.push_back({10, x, {}});
  const Filling filling = water_fill(receivers, 2);
  EXPECT_NEAR(filling.fraction[0], 0.25, 1e-9);
  EXPECT_NEAR(filling.fraction[1], 0.25, 1e-9);
  EXPECT_EQ(filling.fraction[2], 0.9);
}

TEST(Allocator, below_the_least_budget_gives_the_starved_equal_bytes) {
  const auto receivers = three_receivers(0, 0.1, 0.3);
  const auto y = allocate_two_regime(receivers, 0.2);
  EXPECT_NEAR(y[0], 0.041392, 5e-7);
  EXPECT_EQ(y[1], 0.1);
  EXPECT_EQ(y[2], 0.3);
}

TEST(Allocator, above_the_least_budget_fills_with_water) {
  const auto receivers = three_receivers(0, 0.1, 0.3);
  EXPECT_EQ(allocate_two_regime(receivers, 2), water_fill(receivers, 2).fraction);
}

TEST(Allocator, equal_hands_on_what_a_complete_receiver_leaves) {
  const auto receivers = three_receivers(0.99, 0, 0);
  const auto y = allocate_equal(receivers, 2);
  EXPECT_EQ(y[0], 1);
  EXPECT_NEAR(y[1] * kGigabits8k, (2 - 0.01 * kGigabits4k) / 2, 1e-9);
  EXPECT_NEAR(spent(receivers, y), 2, 1e-9);
}

TEST(Allocator, winner_takes_all_cascades) {
  const auto receivers = three_receivers(0.9, 0, 0.05);
  const auto y = allocate_winner_takes_all(receivers, 10);
  EXPECT_EQ(y[1], 1) << "the largest gain";
  EXPECT_GT(y[2], 0.05) << "what it left";
  EXPECT_NEAR(spent(receivers, y), 10, 1e-9);
}

TEST(Allocator, proportional_raises_bits_to_one_level) {
  const auto receivers = three_receivers(0, 0.3, 0);
  const auto y = allocate_proportional(receivers, 2);
  EXPECT_NEAR(y[0] * kGigabits4k, 1, 1e-6);
  EXPECT_EQ(y[1], 0.3);
  EXPECT_NEAR(y[2] * kGigabits16k, 1, 1e-6);
}

TEST(Allocator, a_queue_serves_in_order_of_arrival) {
  const auto times = first_come_first_served(
      {{Seconds(0), Seconds(1)}, {Seconds(0.5), Seconds(1)}, {Seconds(9), Seconds(2)}});
  EXPECT_EQ(times, (std::vector<Seconds>{Seconds(1), Seconds(1.5), Seconds(2)}));
}

TEST(Clairvoyant, of_one_slot_is_water_filling_where_that_is_concave) {
  std::vector<ScheduledTransfer> transfers;
  for (const double gigabits : {kGigabits4k, kGigabits8k}) {
    transfers.push_back({gigabits, 0, 1, {}});
  }
  const std::vector<Receiver> receivers{{kGigabits4k, 0, {}}, {kGigabits8k, 0, {}}};
  const auto y = water_fill(receivers, 3).fraction;
  const double best = receivers[0].utility.value(y[0]) + receivers[1].utility.value(y[1]);
  const ClairvoyantBound bound = clairvoyant_bound(transfers, 3, 1e-7);
  EXPECT_NEAR(bound.upper, best, 1e-4);
  EXPECT_GE(bound.upper, best);
}

TEST(Clairvoyant, moves_load_from_a_dear_slot_to_a_cheap_one) {
  // The first may use both slots, the second only the first one: knowing that, they never share.
  const std::vector<ScheduledTransfer> transfers{{4, 0, 2, {}}, {4, 0, 1, {}}};
  const ClairvoyantBound bound = clairvoyant_bound(transfers, 4, 1e-6);
  const double both_complete = 2 * Utility{}.value(1);
  EXPECT_NEAR(bound.upper, both_complete, 1e-3);
  EXPECT_NEAR(bound.reached, both_complete, 1e-3);
}

TEST(Clairvoyant, closes_its_gap_on_a_long_horizon) {
  std::vector<ScheduledTransfer> transfers;
  for (std::size_t i = 0; i < 200; ++i) {
    const std::size_t begin = (i * 7919) % 150;
    transfers.push_back({i % 3 == 0 ? kGigabits16k : kGigabits4k, begin, begin + 5, {}});
  }
  const ClairvoyantBound bound = clairvoyant_bound(transfers, 2);
  EXPECT_LE(bound.upper - bound.reached, 2e-4 * bound.upper);
}

}  // namespace
}  // namespace pallas::plan
