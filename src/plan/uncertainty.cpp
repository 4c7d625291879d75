#include "plan/uncertainty.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "plan/cost_model.h"

namespace pallas::plan {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double sigma_of(const PlanInput& input) {
  return input.sigma ? input.sigma->count() : 0;
}

double confidence_of(const PlanInput& input) {
  return input.confidence.value_or(1);
}

double density(double z) {
  return std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
}

// The interruption as a function of the window W that there really was: the largest of lines.
struct Line {
  double slope = 0, at_zero = 0;
  double at(double w) const { return at_zero + slope * w; }
};

// E[max of the lines] for W ~ N(mean, sigma). The maximum is convex: its first line, and at each
// kink to the right the increase of the slope.
double expected_maximum(std::array<Line, 3> lines, double mean, double sigma) {
  std::sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    return a.slope != b.slope ? a.slope < b.slope : a.at_zero < b.at_zero;
  });
  std::size_t now = 0;
  // Of equal slopes the last is the highest.
  while (now + 1 < lines.size() && lines[now + 1].slope == lines[now].slope) ++now;
  double expected = lines[now].at(mean);
  while (true) {
    // The line that takes over first.
    std::size_t next = now;
    double kink = kInfinity;
    for (std::size_t k = now + 1; k < lines.size(); ++k) {
      const double steeper = lines[k].slope - lines[now].slope;
      if (!(steeper > 0)) continue;
      const double meets = (lines[now].at_zero - lines[k].at_zero) / steeper;
      if (meets <= kink) {
        kink = meets;
        next = k;
      }
    }
    if (next == now) return expected;
    expected += (lines[next].slope - lines[now].slope) * expected_above(mean, sigma, kink);
    now = next;
  }
}

// Equations 3 to 7 with the start fixed and the window open.
struct StartedPallas {
  double history = 0;         // T_hist
  double at_start = 0;        // seconds of sending left over from before the start
  double residual_slope = 0;  // r_d / r_t - 1
};

StartedPallas start_pallas(const PlanInput& input, double window) {
  const Work work = work_of(input);
  StartedPallas started;
  const double there = work.tokens - work.decode * window;
  const double recomputed = std::clamp(there, 0.0, work.recomputable);
  started.history = work.load + recomputed / work.prefill;
  if (work.link_known) {
    started.at_start = std::max(0.0, there - recomputed) / work.link;
    started.residual_slope = work.decode / work.link - 1;
  } else {
    started.residual_slope = -1;
  }
  return started;
}

}  // namespace

bool is_uncertain(const PlanInput& input) {
  return !input.at_handover && (sigma_of(input) > 0 || confidence_of(input) < 1);
}

double normal_cdf(double z) {
  return std::erfc(-z / std::numbers::sqrt2) / 2;
}

double normal_quantile(double q) {
  if (!(q > 0)) return -kInfinity;
  if (!(q < 1)) return kInfinity;
  // Newton from 0 approaches the root from one side: the distribution is concave above 0. The
  // smaller tail, since 1 - q would lose digits there.
  const double tail = std::min(q, 1 - q);
  double z = 0;
  for (int round = 0; round < 60; ++round) {
    const double step = (normal_cdf(z) - tail) / density(z);
    z -= step;
    if (std::abs(step) < 1e-13) break;
  }
  return q < 0.5 ? z : -z;
}

double expected_above(double mean, double sigma, double from) {
  if (!(sigma > 0)) return std::max(0.0, mean - from);
  const double z = (mean - from) / sigma;
  return sigma * (density(z) + z * normal_cdf(z));
}

double best_late_probability(double alpha, double confidence, ReadySlopes slopes) {
  const double right = confidence * slopes.shift;
  return (1 - alpha) * (right + 1 - confidence) / (right * (alpha * slopes.late + 1 - alpha));
}

double head_start(const PlanInput& input, ReadySlopes slopes) {
  const double late = best_late_probability(input.alpha, confidence_of(input), slopes);
  if (!(late < 1)) return -kInfinity;
  const double sigma = sigma_of(input);
  return sigma > 0 ? -sigma * normal_quantile(late) / slopes.shift : 0;
}

Seconds expected_pallas_window(const PlanInput& input) {
  const Work work = work_of(input);
  const double limit = window_limit(input).count();
  const double shift = 1 + work.decode / work.prefill;
  const double exact = (work.tokens + work.prefill * work.load) / (work.prefill + work.decode);
  const double ratio = work.link_known ? std::max(1.0, work.decode / work.link) : 1.0;
  if (ratio == 1) {
    return Seconds(std::clamp(exact + head_start(input, {1, shift}), 0.0, limit));
  }
  // The link falls behind the decoder: beyond M = x + T_hist / ratio every second of window costs
  // what the link is short of.
  const double sigma = sigma_of(input), p = confidence_of(input), alpha = input.alpha;
  // Of the objective by the window; falls where a longer window helps.
  const auto slope = [&](double window) {
    const double history = start_pallas(input, window).history;
    const auto before = [&](double at) {  // P(handover < start + at)
      if (sigma > 0) return normal_cdf((at - window) / sigma);
      return at > window ? 1.0 : 0.0;
    };
    const double late = before(history / ratio);
    const double interruption = late * (ratio + shift - 1) - (ratio - 1);
    const double exposure = (1 - alpha) * shift * (1 - before(history));
    return -p * (alpha * interruption - exposure) + (1 - p) * (1 - alpha);
  };
  double low = 0, high = limit;
  if (slope(low) >= 0) return Seconds(low);
  if (slope(high) <= 0) return Seconds(high);
  for (int round = 0; round < 60; ++round) {
    const double middle = (low + high) / 2;
    (slope(middle) < 0 ? low : high) = middle;
  }
  return Seconds(high);
}

ExpectedCost expected_pallas_cost(const PlanInput& input, Seconds window) {
  const double w = window.count(), sigma = sigma_of(input), p = confidence_of(input);
  const StartedPallas started = start_pallas(input, w);
  const double interruption = expected_maximum(
      {{{0, 0}, {-1, started.history}, {started.residual_slope, started.at_start}}}, w, sigma);
  ExpectedCost cost;
  cost.sit = bounded(input.activation.count() + interruption);
  cost.early = bounded(expected_above(w, sigma, started.history));
  cost.waste = bounded(w);
  cost.objective = p * (input.alpha * cost.sit.count() + (1 - input.alpha) * cost.early.count()) +
                   (1 - p) * (1 - input.alpha) * cost.waste.count();
  return cost;
}

}  // namespace pallas::plan
