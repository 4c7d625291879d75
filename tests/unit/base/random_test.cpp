#include "base/random.h"

#include <gtest/gtest.h>

namespace pallas {
namespace {

TEST(Random, draws_are_fixed_numbers) {
  // The same on every machine: recorded from the first run, and SplitMix64's own first output.
  EXPECT_EQ(mix(0, std::uint64_t{0}), 0xe220a8397b1dcdafULL);
  Random a(1), b(1), c(2);
  const auto first = a.bits();
  EXPECT_EQ(first, b.bits());
  EXPECT_NE(first, c.bits());
  EXPECT_NE(mix(1, "a"), mix(1, "b"));
}

TEST(Random, distributions_have_their_moments) {
  Random random(3);
  constexpr int kDraws = 100'000;
  double uniform = 0, normal = 0, squares = 0, exponential = 0, lowest = 1e9;
  for (int i = 0; i < kDraws; ++i) {
    uniform += random.uniform();
    const double x = random.normal(5, 2);
    normal += x;
    squares += (x - 5) * (x - 5);
    exponential += random.exponential(3);
    lowest = std::min(lowest, random.normal_above(0, 1, -0.5));
    ASSERT_LT(random.below(7), 7u);
  }
  EXPECT_NEAR(uniform / kDraws, 0.5, 0.005);
  EXPECT_NEAR(normal / kDraws, 5, 0.03);
  EXPECT_NEAR(squares / kDraws, 4, 0.1);
  EXPECT_NEAR(exponential / kDraws, 3, 0.05);
  EXPECT_GE(lowest, -0.5);
  EXPECT_EQ(random.normal_above(0, 0, 1), 1);
}

}  // namespace
}  // namespace pallas
