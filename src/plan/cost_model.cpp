#include "plan/cost_model.h"

#include <algorithm>
#include <cmath>

namespace pallas::plan {

Seconds bounded(double seconds) {
  if (std::isnan(seconds)) return kForever;
  return Seconds(std::clamp(seconds, 0.0, kForever.count()));
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

WindowCost window_cost(const PlanInput& input, Seconds window) {
  const Work work = work_of(input);
  const double w = window.count();
  WindowCost cost;
  cost.history_tokens = std::clamp(work.tokens - work.decode * w, 0.0, work.recomputable);  // Eq. 9
  const double history = work.load + cost.history_tokens / work.prefill;                    // Eq. 4
  const double sent = work.tokens - cost.history_tokens;                                    // Eq. 3
  const double residual = work.link_known ? std::max(0.0, sent / work.link - w) : 0.0;      // Eq. 5
  cost.history = bounded(history);
  cost.residual = bounded(residual);
  cost.sit = bounded(input.activation.count() + std::max({0.0, history - w, residual}));  // Eq. 6
  cost.early = bounded(w - history);                                                      // Eq. 7
  cost.objective = input.alpha * cost.sit.count() + (1 - input.alpha) * cost.early.count();
  return cost;
}

Seconds window_limit(const PlanInput& input) {
  return input.at_handover ? Seconds(0) : std::min(input.t_max, input.remaining);
}

Seconds pallas_window_by_grid(const PlanInput& input) {
  const Seconds limit = window_limit(input);
  Seconds best{0};
  double best_objective = window_cost(input, best).objective;
  const auto consider = [&](Seconds window) {
    const double objective = window_cost(input, window).objective;
    if (objective < best_objective) {
      best = window;
      best_objective = objective;
    }
  };
  // Multiples, not a running sum: no rounding piles up.
  for (double k = 1; k * input.step < limit; ++k) consider(k * input.step);
  consider(limit);
  return best;
}

Seconds pallas_window(const PlanInput& input) {
  if (input.recompute_prompt_only) return pallas_window_by_grid(input);
  // With no weight on the interruption every second of preparation only costs.
  if (input.alpha == 0) return Seconds(0);
  const Work work = work_of(input);
  // J is convex and piecewise linear: it falls until the prefill of the history, or the sending of
  // a suffix that grows faster than the link drains it, fits the window exactly.
  const double slower_link = work.link_known ? std::max(1.0, work.decode / work.link) : 1.0;
  const double kink =
      (work.tokens + work.prefill * work.load) / (work.prefill * slower_link + work.decode);
  return std::min(bounded(kink), window_limit(input));
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
