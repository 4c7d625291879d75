// The curve of accuracy over the fraction received, and its fit.

#include "plan/utility.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "plan/utility_fit.h"

namespace pallas::plan {
namespace {

const Utility kShapes[] = {{UtilityShape::kAlgebraic, 94.134298, 28, 0.065},
                           {UtilityShape::kLogistic, 90, 12, 0.3}};

TEST(Utility, rises_to_half_of_its_ceiling_at_the_threshold) {
  for (const Utility& utility : kShapes) {
    EXPECT_NEAR(utility.value(utility.threshold), utility.full / 2, 1e-12);
    EXPECT_LT(utility.value(0), utility.value(0.5));
    EXPECT_LT(utility.value(1), utility.full);
  }
}

TEST(Utility, the_slope_is_the_derivative_of_the_value) {
  for (const Utility& utility : kShapes) {
    for (double y = 0.01; y < 1; y += 0.01) {
      const double h = 1e-6;
      const double measured = (utility.value(y + h) - utility.value(y - h)) / (2 * h);
      EXPECT_NEAR(utility.slope(y), measured, 1e-4 * (1 + measured));
    }
  }
}

TEST(Utility, the_steepest_slope_is_mk_over_2_or_4) {
  EXPECT_NEAR(kShapes[0].steepest(), kShapes[0].full * kShapes[0].steepness / 2, 1e-9);
  EXPECT_NEAR(kShapes[1].steepest(), kShapes[1].full * kShapes[1].steepness / 4, 1e-9);
}

TEST(Utility, at_slope_inverts_the_slope_above_the_threshold) {
  for (const Utility& utility : kShapes) {
    for (double y = utility.threshold + 0.01; y < 1; y += 0.01) {
      EXPECT_NEAR(utility.at_slope(utility.slope(y)), y, 1e-7);
    }
    EXPECT_EQ(utility.at_slope(1e9), utility.threshold);
    EXPECT_EQ(utility.at_slope(0), 1);
  }
}

TEST(Utility, a_field_out_of_range_is_named) {
  Utility utility;
  EXPECT_TRUE(check(utility));
  utility.threshold = 1;
  EXPECT_THAT(check(utility).error().message, testing::HasSubstr("threshold"));
  utility = {};
  utility.steepness = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(check(utility).error().message, testing::HasSubstr("steepness"));
  utility = {};
  utility.full = 0;
  EXPECT_THAT(check(utility).error().message, testing::HasSubstr("full"));
}

TEST(Envelope, lies_above_the_curve_and_touches_it_from_the_tangent_point_on) {
  for (const Utility& utility : kShapes) {
    const ConcaveEnvelope envelope(utility);
    for (double y = 0; y <= 1; y += 0.001) {
      EXPECT_GE(envelope.value(y), utility.value(y) - 1e-9);
      if (y > envelope.tangent()) {
        EXPECT_EQ(envelope.value(y), utility.value(y));
      }
    }
    EXPECT_NEAR(envelope.value(0), utility.value(0), 1e-12);
  }
  // equations.md, 3.4: y_c is about 0.085 to 0.09.
  EXPECT_NEAR(ConcaveEnvelope(kShapes[0]).tangent(), 0.0875, 0.005);
}

TEST(Envelope, has_slopes_that_never_rise) {
  for (const Utility& utility : kShapes) {
    const ConcaveEnvelope envelope(utility);
    for (double y = 0; y < 1; y += 0.001) {
      EXPECT_GE(envelope.slope(y) * (1 + 1e-9), envelope.slope(y + 0.001));
    }
  }
}

std::vector<AccuracyPoint> sampled(const Utility& utility, double noise) {
  std::mt19937_64 bits(5);
  std::vector<AccuracyPoint> points;
  for (int k = 0; k <= 40; ++k) {
    const double y = k < 30 ? k * 0.01 : 0.3 + (k - 30) * 0.07;
    const double error = noise * (static_cast<double>(bits() >> 11) / (1ull << 53) - 0.5);
    points.push_back({y, utility.value(y) + error});
  }
  return points;
}

TEST(UtilityFit, recovers_the_curve_that_the_points_lie_on) {
  for (const Utility& utility : kShapes) {
    const auto fit = fit_utility(sampled(utility, 0), utility.shape);
    ASSERT_TRUE(fit);
    EXPECT_NEAR(fit->utility.full, utility.full, 1e-4);
    EXPECT_NEAR(fit->utility.steepness, utility.steepness, 1e-4);
    EXPECT_NEAR(fit->utility.threshold, utility.threshold, 1e-6);
    EXPECT_GT(fit->r_squared, 0.999999);
  }
}

TEST(UtilityFit, explains_noisy_points_to_three_nines) {
  for (const Utility& utility : kShapes) {
    const auto fit = fit_utility(sampled(utility, 2), utility.shape);
    ASSERT_TRUE(fit);
    EXPECT_GT(fit->r_squared, 0.999);
    EXPECT_LT(fit->r_squared, 1);
    EXPECT_NEAR(fit->utility.steepness, utility.steepness, 0.05 * utility.steepness);
  }
}

TEST(UtilityFit, refuses_points_that_fix_no_curve) {
  const auto message = [](std::vector<AccuracyPoint> points) {
    return fit_utility(points, UtilityShape::kAlgebraic).error().message;
  };
  EXPECT_THAT(message({{0, 1}, {0.5, 2}, {1, 3}}), testing::HasSubstr("four"));
  EXPECT_THAT(message({{0, 1}, {0.5, 1}, {0.7, 1}, {1, 1}}), testing::HasSubstr("equal"));
  EXPECT_THAT(message({{0, 1}, {0.5, 2}, {0.7, 2}, {1.1, 3}}), testing::HasSubstr("fraction"));
  EXPECT_THAT(message({{0, 1}, {0.5, 2}, {0.7, std::nan("")}, {1, 3}}),
              testing::HasSubstr("finite"));
}

}  // namespace
}  // namespace pallas::plan
