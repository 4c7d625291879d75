// What sigma and confidence do to the windows; docs/uncertainty.md derives the rule.

#include "plan/uncertainty.h"

#include <cmath>
#include <limits>

#include "inputs.h"
#include "plan/cost_model.h"
#include "plan/two_front_model.h"

namespace pallas::plan {
namespace {

PlanInput uncertain(double sigma, double confidence = 1) {
  PlanInput input = qwen_14b();
  input.sigma = Seconds(sigma);
  input.confidence = confidence;
  return input;
}

TEST(Normal, quantiles_and_probabilities_are_each_others_inverse) {
  EXPECT_NEAR(normal_quantile(0.2), -0.8416212335729143, 1e-12);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-12);
  EXPECT_EQ(normal_quantile(0.5), 0);
  for (const double q : {1e-9, 1e-4, 0.1, 0.3, 0.77, 0.9999}) {
    EXPECT_NEAR(normal_cdf(normal_quantile(q)), q, 1e-13) << q;
  }
  EXPECT_EQ(normal_quantile(0), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(normal_quantile(1), std::numeric_limits<double>::infinity());
}

TEST(Normal, the_mean_excess_over_a_bound) {
  EXPECT_NEAR(expected_above(0, 1, 0), 1 / std::sqrt(2 * M_PI), 1e-12);
  EXPECT_NEAR(expected_above(2, 0.5, -10), 12, 1e-9);
  EXPECT_EQ(expected_above(3, 0, 1), 2);
  EXPECT_EQ(expected_above(1, 0, 3), 0);
}

TEST(Uncertainty, an_exact_prediction_of_the_right_target_changes_nothing) {
  const PlanInput plain = qwen_14b();
  EXPECT_FALSE(is_uncertain(plain));
  EXPECT_FALSE(is_uncertain(uncertain(0)));
  EXPECT_FALSE(is_uncertain(at_handover(uncertain(1, 0.5))));
  EXPECT_EQ(pallas_window(uncertain(0)), pallas_window(plain));
  EXPECT_EQ(pallas_window_by_grid(uncertain(0)), pallas_window_by_grid(plain));
}

TEST(Uncertainty, pallas_is_ready_at_the_1_minus_alpha_quantile_of_the_handover) {
  for (const double alpha : {0.3, 0.5, 0.8, 0.95}) {
    PlanInput input = uncertain(0.4);
    input.alpha = alpha;
    const double window = pallas_window(input).count();
    const WindowCost cost = window_cost(input, Seconds(window));
    // Ready this long after the predicted time, in standard deviations.
    const double z = (cost.history.count() - window) / 0.4;
    EXPECT_NEAR(normal_cdf(z), 1 - alpha, 1e-9) << alpha;
  }
}

TEST(Uncertainty, a_doubtful_target_is_prepared_later_and_a_wrong_one_never) {
  const double certain = pallas_window(uncertain(0.4)).count();
  const double doubtful = pallas_window(uncertain(0.4, 0.6)).count();
  EXPECT_LT(doubtful, certain);
  EXPECT_GT(doubtful, 0);
  // g = 1 + r_d / r_p: 1 and above never pays.
  const double g = 1 + 22 / 1848.4;
  EXPECT_NEAR(best_late_probability(0.8, 0.6, {1, g}), 0.2 * (0.6 * g + 0.4) / (0.6 * g), 1e-12);
  EXPECT_EQ(pallas_window(uncertain(0.4, 0.19)), Seconds(0));
  EXPECT_EQ(pallas_window(uncertain(0.4, 0)), Seconds(0));
  EXPECT_GT(pallas_window(uncertain(0, 0.25)), Seconds(1));
  EXPECT_EQ(pallas_window(uncertain(0, 0.15)), Seconds(0));
}

TEST(Uncertainty, the_ends_of_alpha) {
  PlanInput input = uncertain(0.4);
  input.alpha = 0;
  EXPECT_EQ(pallas_window(input), Seconds(0));
  input.alpha = 1;  // no exposure costs anything
  EXPECT_EQ(pallas_window(input), window_limit(input));
}

TEST(Uncertainty, two_front_moves_by_a_quantile_and_keeps_its_margin) {
  PlanInput input = qwen_14b();
  const double exact = two_front_window(input, {}).value().count();
  EXPECT_NEAR(decide("two-front", input).window.count(), exact + 0.3, 1e-12);
  input.sigma = Seconds(0);
  EXPECT_NEAR(decide("two-front", input).window.count(), exact + 0.3, 1e-12);
  input.sigma = Seconds(0.5);
  const double rate = 1848.4 + 37.5e6 / 163'840;
  const double late = 1 - 22 / rate, shift = rate / (rate - 22);
  const double z = normal_quantile(0.2 / (0.2 + 0.8 * late));
  EXPECT_NEAR(decide("two-front", input).window.count(), exact - 0.5 * z / shift + 0.3, 1e-9);
  input.confidence = 0.05;
  EXPECT_EQ(decide("two-front", input).window, Seconds(0));
}

TEST(Uncertainty, the_forecasts_are_expectations) {
  for (const char* scheme : {"pallas", "two-front"}) {
    const Decision exact = decide(scheme, qwen_14b());
    const Decision expected = decide(scheme, uncertain(0.5));
    // Neither can be avoided any more.
    EXPECT_GT(expected.expected_sit, exact.expected_sit + Seconds(0.01)) << scheme;
    EXPECT_GT(expected.expected_early, exact.expected_early) << scheme;
  }
}

TEST(Uncertainty, nonsense_is_refused_by_field) {
  const auto refused = [](const PlanInput& input) { return check(input).error().message; };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(refused(uncertain(-1)).find("sigma"), std::string::npos);
  EXPECT_NE(refused(uncertain(nan)).find("sigma"), std::string::npos);
  EXPECT_NE(refused(uncertain(1, 1.1)).find("confidence"), std::string::npos);
  EXPECT_NE(refused(uncertain(1, nan)).find("confidence"), std::string::npos);
}

}  // namespace
}  // namespace pallas::plan
