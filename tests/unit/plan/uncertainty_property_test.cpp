// The windows for uncertain predictions against expectations by numerical integration.

#include <rapidcheck/gtest.h>

#include <functional>
#include <limits>

#include "generators.h"
#include "plan/cost_model.h"
#include "plan/two_front_model.h"
#include "plan/uncertainty.h"

namespace pallas::plan {
namespace {

// E[value(W)] for W ~ N(mean, sigma): Simpson's rule over nine standard deviations.
double integrate(double mean, double sigma, const std::function<double(double)>& value) {
  constexpr int kHalf = 900;
  const double step = 9.0 / kHalf;
  double sum = 0;
  for (int k = -kHalf; k <= kHalf; ++k) {
    const double z = k * step;
    const double weight = k == -kHalf || k == kHalf ? 1 : (k % 2 == 0 ? 2 : 4);
    sum += weight * std::exp(-z * z / 2) * value(mean + sigma * z);
  }
  return sum * step / 3 / std::sqrt(2 * M_PI);
}

PlanInput any_uncertain(bool prompt_only = false) {
  PlanInput input = any_input();
  input.context = whole<TokenPosition>(0, 8'000);
  input.prompt = whole<TokenPosition>(0, input.context + 1);
  input.remaining = Seconds(even(0, 10));
  input.sigma = Seconds(scaled(0.02, 2));
  if (whole(0, 2) == 0) input.confidence = even(0, 1);
  input.recompute_prompt_only = prompt_only;
  return input;
}

// The objective of a planned window from equations 2 to 8, each handover time on its own.
double pallas_objective(const PlanInput& input, double planned) {
  const double r_p = input.prefill_rate.value, r_d = input.decode_rate.value;
  const double r_t = input.goodput->value / static_cast<double>(input.kv_bytes_per_token);
  const double at_start = input.context + r_d * (input.remaining.count() - planned);
  const double prefilled =
      input.recompute_prompt_only ? std::min<double>(at_start, input.prompt) : at_start;
  const double history = input.load.count() + prefilled / r_p;
  const double p = input.confidence.value_or(1), alpha = input.alpha;
  const double right = integrate(planned, input.sigma->count(), [&](double w) {
    const double residual = (at_start - prefilled + r_d * w) / r_t - w;
    const double sit = input.activation.count() + std::max({0.0, history - w, residual});
    return alpha * sit + (1 - alpha) * std::max(0.0, w - history);
  });
  return p * right + (1 - p) * (1 - alpha) * planned;
}

RC_GTEST_PROP(UncertaintyProperty, the_expected_cost_is_the_integral, ()) {
  const PlanInput input = any_uncertain(*rc::gen::arbitrary<bool>());
  const double window = even(0, 1) * window_limit(input).count();
  const double brute = pallas_objective(input, window);
  const double formula = expected_pallas_cost(input, Seconds(window)).objective;
  RC_LOG() << "integral " << brute << ", formula " << formula << '\n';
  RC_ASSERT(std::abs(formula - brute) <= 1e-3 * (input.sigma->count() + brute));
}

RC_GTEST_PROP(UncertaintyProperty, no_other_window_of_pallas_is_better, ()) {
  for (int k = 0; k < 3; ++k) {
    const PlanInput input = any_uncertain();
    RC_ASSERT(check(input).has_value());
    const double limit = window_limit(input).count();
    const double best = pallas_objective(input, pallas_window(input).count());
    for (int point = 0; point <= 40; ++point) {
      const double other = pallas_objective(input, limit * point / 40);
      RC_LOG() << "window " << pallas_window(input).count() << ": " << best << ", "
               << limit * point / 40 << ": " << other << '\n';
      RC_ASSERT(best <= other + 1e-4 * (input.sigma->count() + other));
    }
  }
}

RC_GTEST_PROP(UncertaintyProperty, grid_and_closed_form_agree_within_a_step, ()) {
  for (int k = 0; k < 20; ++k) {
    const PlanInput input = any_uncertain();
    const Seconds grid = pallas_window_by_grid(input), closed = pallas_window(input);
    RC_LOG() << "grid " << grid.count() << " closed " << closed.count() << '\n';
    const double best = expected_pallas_cost(input, grid).objective;
    const double ours = expected_pallas_cost(input, closed).objective;
    RC_ASSERT(ours <= best + 1e-9);
    // Where the objective is flat to the last digit the place says nothing.
    if (best - ours > 1e-9) {
      RC_ASSERT(std::abs((grid - closed).count()) <= input.step.count() * (1 + 1e-6));
    }
  }
}

// Two-front as a flow from a start on: what a handover `w` after it finds.
double two_front_objective(const PlanInput& input, double planned) {
  const double r_p = input.prefill_rate.value, r_d = input.decode_rate.value;
  const double r_t = input.goodput->value / static_cast<double>(input.kv_bytes_per_token);
  const double load = input.load.count(), both = r_p + r_t;
  const double at_start = input.context + r_d * (input.remaining.count() - planned);
  const double reach =
      input.recompute_prompt_only ? std::min<double>(at_start, input.prompt) : at_start;
  const double p = input.confidence.value_or(1), alpha = input.alpha;
  const double right = integrate(planned, input.sigma->count(), [&](double w) {
    // Time at which everything known at the handover is there, if the link never pauses before.
    double ready = std::max(load, (at_start + r_d * w + r_p * load) / both);
    double met = std::max(load, (at_start + r_p * load) / (both - r_d));
    if (input.recompute_prompt_only) {
      ready = std::max(ready, (at_start - reach + r_d * w) / r_t);
      met = std::max(met, (at_start - reach) / (r_t - r_d));
    }
    return alpha * std::max(0.0, ready - w) + (1 - alpha) * std::max(0.0, w - met);
  });
  return p * right + (1 - p) * (1 - alpha) * planned;
}

RC_GTEST_PROP(UncertaintyProperty, no_other_window_of_two_front_is_better, ()) {
  for (int k = 0; k < 3; ++k) {
    PlanInput input = any_uncertain();
    input.load = Seconds(0);  // one bound; with several the latest decides, see below
    const auto exact = two_front_window(input, {});
    if (!exact) continue;
    const double window = std::clamp(*exact, Seconds(0), window_limit(input)).count();
    const double best = two_front_objective(input, window);
    for (int point = 0; point <= 40; ++point) {
      const double other = two_front_objective(input, window_limit(input).count() * point / 40);
      RC_LOG() << "window " << window << ": " << best << ", "
               << window_limit(input).count() * point / 40 << ": " << other << '\n';
      RC_ASSERT(best <= other + 1e-4 * (input.sigma->count() + other));
    }
  }
}

RC_GTEST_PROP(UncertaintyProperty, several_bounds_of_two_front_cost_little_more_than_one, ()) {
  for (int k = 0; k < 3; ++k) {
    PlanInput input = any_uncertain(true);
    const auto exact = two_front_window(input, {});
    if (!exact) continue;
    const double limit = window_limit(input).count();
    const double window = std::clamp(*exact, Seconds(0), window_limit(input)).count();
    const double here = two_front_objective(input, window);
    double best = std::numeric_limits<double>::infinity();
    for (int point = 0; point <= 40; ++point) {
      best = std::min(best, two_front_objective(input, limit * point / 40));
    }
    RC_LOG() << "rule " << here << ", best " << best << '\n';
    RC_ASSERT(here - best <= 0.1 * input.sigma->count());
  }
}

}  // namespace
}  // namespace pallas::plan
