#include "plan/cost_model.h"

#include <algorithm>
#include <array>
#include <limits>

#include "plan/uncertainty.h"

namespace pallas::plan {

namespace {

// Without branches, so that the compiler can do several at once.
inline double larger(double a, double b) {
  return a > b ? a : b;
}
inline double smaller(double a, double b) {
  return a < b ? a : b;
}
// Not a number fails the first comparison.
inline double within_bounds(double seconds) {
  return larger(smaller(seconds, kForever.count()), 0.0);
}

}  // namespace

Seconds bounded(double seconds) {
  return Seconds(within_bounds(seconds));
}

Work work_of(const PlanInput& input) {
  Work work;
  work.prefill = input.prefill_rate.value;
  work.decode = input.decode_rate.value;
  work.link_known = input.goodput.has_value();
  if (input.goodput) {
    work.link = input.goodput->value / static_cast<double>(input.kv_bytes_per_token);
  }
  work.remaining = input.at_handover ? 0 : input.remaining.count();
  work.load = input.load.count();
  work.tokens = input.context + work.decode * work.remaining;
  work.recomputable = input.recompute_prompt_only
                          ? static_cast<double>(std::min(input.prompt, input.context))
                          : work.tokens;
  return work;
}

double kv_bytes(const PlanInput& input, double tokens) {
  return tokens * static_cast<double>(input.kv_bytes_per_token);
}

namespace {

// Equations 3 to 7 for one window, in seconds and unbounded.
struct Parts {
  double history_tokens, history, residual, sit, early;
};

inline Parts parts_of(const Work& work, double activation, double w) {
  Parts parts;
  parts.history_tokens =
      smaller(larger(work.tokens - work.decode * w, 0.0), work.recomputable);  // Eq. 9
  parts.history = work.load + parts.history_tokens / work.prefill;             // Eq. 4
  const double sent = work.tokens - parts.history_tokens;                      // Eq. 3
  // An unknown link takes no time.
  const double link = work.link_known ? work.link : std::numeric_limits<double>::infinity();
  parts.residual = larger(sent / link - w, 0.0);                                    // Eq. 5
  parts.sit = activation + larger(larger(parts.history - w, parts.residual), 0.0);  // Eq. 6
  parts.early = w - parts.history;                                                  // Eq. 7
  return parts;
}

inline double objective_of(double alpha, double sit, double early) {
  return alpha * sit + (1 - alpha) * early;  // Eq. 8
}

// The first best of {0, step, 2 step, ..., limit}. `objectives(first, values)` fills in what the
// windows first step, (first + 1) step, ... cost. Multiples, not a running sum: no rounding piles
// up.
constexpr int kAtOnce = 16;
using Costs = std::array<double, kAtOnce>;
template <class Objectives, class Objective>
Seconds least_on_grid(Seconds step, Seconds limit, Objectives objectives, Objective at_limit) {
  double best = 0, best_objective = std::numeric_limits<double>::infinity();
  Costs costs;
  for (double first = 0; first * step.count() < limit.count(); first += kAtOnce) {
    objectives(first, costs);
    double k = first;
    for (const double cost : costs) {
      if (!(k * step.count() < limit.count())) break;
      if (cost < best_objective) {
        best = k * step.count();
        best_objective = cost;
      }
      ++k;
    }
  }
  return at_limit(limit) < best_objective ? limit : Seconds(best);
}

}  // namespace

WindowCost window_cost(const PlanInput& input, Seconds window) {
  const Parts parts = parts_of(work_of(input), input.activation.count(), window.count());
  WindowCost cost;
  cost.history_tokens = parts.history_tokens;
  cost.history = bounded(parts.history);
  cost.residual = bounded(parts.residual);
  cost.sit = bounded(parts.sit);
  cost.early = bounded(parts.early);
  cost.objective = objective_of(input.alpha, cost.sit.count(), cost.early.count());
  return cost;
}

Seconds window_limit(const PlanInput& input) {
  return input.at_handover ? Seconds(0) : std::min(input.t_max, input.remaining);
}

Seconds pallas_window_by_grid(const PlanInput& input) {
  const Seconds limit = window_limit(input);
  const double step = input.step.count();
  if (is_uncertain(input)) {
    const auto cost = [&](Seconds window) { return expected_pallas_cost(input, window).objective; };
    const auto costs = [&](double first, Costs& values) {
      for (double& value : values) value = cost(Seconds(first++ * step));
    };
    return least_on_grid(input.step, limit, costs, cost);
  }
  const Work work = work_of(input);
  const double activation = input.activation.count(), alpha = input.alpha;
  const auto cost = [&](double window) {
    const Parts parts = parts_of(work, activation, window);
    return objective_of(alpha, within_bounds(parts.sit), within_bounds(parts.early));
  };
  const auto costs = [&](double first, Costs& values) {
    for (int k = 0; k < kAtOnce; ++k) {
      values[static_cast<std::size_t>(k)] = cost((first + k) * step);
    }
  };
  return least_on_grid(input.step, limit, costs, [&](Seconds w) { return cost(w.count()); });
}

Seconds pallas_window(const PlanInput& input) {
  if (input.recompute_prompt_only) return pallas_window_by_grid(input);
  // With no weight on the interruption every second of preparation only costs.
  if (input.alpha == 0) return Seconds(0);
  if (is_uncertain(input)) return expected_pallas_window(input);
  const Work work = work_of(input);
  // J is convex and piecewise linear: it falls until the prefill of the history, or the sending of
  // a suffix that grows faster than the link drains it, fits the window exactly.
  const double slower_link = work.link_known ? std::max(1.0, work.decode / work.link) : 1.0;
  const double kink =
      (work.tokens + work.prefill * work.load) / (work.prefill * slower_link + work.decode);
  return std::min(bounded(kink), window_limit(input));
}

WindowDecision decide_window(const PlanInput& input) {
  const Seconds window = pallas_window(input);
  return {window, input.at_handover || input.remaining <= window};
}

Seconds waste_bound(Seconds t_max, Seconds early_error, Seconds available) {
  return std::max(t_max + early_error - available, Seconds(0));
}

Seconds rebuild_time(const PlanInput& input, double tokens) {
  const Work work = work_of(input);
  const double prefilled = std::min(tokens, work.recomputable);
  const double replay_rate = work.decode > 0 ? work.decode : work.prefill;
  return bounded(work.load + prefilled / work.prefill + (tokens - prefilled) / replay_rate);
}

std::optional<Seconds> send_time(const PlanInput& input, double tokens) {
  const Work work = work_of(input);
  if (!work.link_known) return std::nullopt;
  return bounded(tokens / work.link);
}

}  // namespace pallas::plan
