#include "plan/two_front_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "plan/cost_model.h"
#include "plan/uncertainty.h"

namespace pallas::plan {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// 0 / 0 is 0: no work takes no time at any rate.
double over(double work, double rate) {
  if (work <= 0) return 0;
  return rate > 0 ? work / rate : kNever;
}

// Work with the rates of the fronts that run.
struct Flow {
  explicit Flow(const PlanInput& input, Fronts fronts) : work(work_of(input)) {
    up = fronts.recompute ? work.prefill : 0;
    down = fronts.send ? work.link : 0;
    // Positions that only the link can bring. The context grows above them.
    restricted = input.recompute_prompt_only || !fronts.recompute;
    reach = !fronts.recompute ? 0 : work.recomputable;
  }
  Work work;
  double up = 0;
  double down = 0;
  bool restricted = false;
  double reach = 0;  // the target's front ends here
};

// One thing that must have happened before the handover: it takes a window of its own.
struct Bound {
  double window = 0;  // after which it has, for an exact prediction
  ReadySlopes slopes;
};
using Bounds = std::array<Bound, 3>;

// None when the context grows faster than it is covered.
std::optional<Bounds> bounds_of(const Flow& flow) {
  const double tokens = flow.work.tokens, decode = flow.work.decode;
  const double all = flow.up + flow.down;
  // Under a restriction the newest positions come over the link alone.
  const double high = flow.restricted ? tokens - flow.reach : 0;
  if (tokens > 0 && (high > 0 ? flow.down : all) <= decode) return std::nullopt;
  // A second of window brings `rate` tokens and takes away the `decode` that come later anyway.
  const auto slopes = [&](double rate) {
    if (!(rate > decode)) return ReadySlopes{};
    return ReadySlopes{.late = 1 - decode / rate, .shift = rate / (rate - decode)};
  };
  return Bounds{{{flow.work.load, {}},
                 {over(tokens + flow.up * flow.work.load, all), slopes(all)},
                 {over(high, flow.down), high > 0 ? slopes(flow.down) : ReadySlopes{}}}};
}

// Time to cover `low` positions that both fronts can take and `high` ones that only the link can;
// the target's front starts after `wait`.
double time_to_cover(const Flow& flow, double low, double high, double wait) {
  const double by_link = over(high, flow.down);
  const double all = low + high;
  // r_t T + r_p (T - wait)^+ >= all
  const double alone = over(all, flow.down);
  const double both = alone <= wait ? alone : over(all + flow.up * wait, flow.up + flow.down);
  return std::max(by_link, both);
}

// Replaces what an exact handover would lead to by expectations: lateness of the bound that is
// latest on average, exposure after the last one.
void expect_over_time(const PlanInput& input, const Flow& flow, Seconds window,
                      TwoFrontForecast& forecast) {
  const auto bounds = bounds_of(flow);
  if (!bounds) return;
  const double sigma = input.sigma ? input.sigma->count() : 0;
  double late = 0, early = kNever;
  for (const Bound& bound : *bounds) {
    // Seconds by which the bound is met before the predicted handover, for a start at `window`.
    const double spare = (window.count() - bound.window) * bound.slopes.shift;
    late = std::max(late, bound.slopes.late * expected_above(-spare, sigma, 0));
    early = std::min(early, expected_above(spare, sigma, 0));
  }
  forecast.clear = bounded(late);
  forecast.early = bounded(early);
}

}  // namespace

Fronts choose_fronts(const PlanInput& input) {
  const Work work = work_of(input);
  if (!work.link_known) return {};
  const double all = work.prefill + work.link;
  if (work.prefill < kLeastShare * all && work.link > work.decode) {
    return {.recompute = false, .send = true};
  }
  const bool no_block = work.link * input.t_max.count() < input.block_tokens;
  if ((work.link < kLeastShare * all || no_block) && work.prefill > work.decode &&
      !input.recompute_prompt_only) {
    return {.recompute = true, .send = false};
  }
  return {};
}

std::optional<Seconds> two_front_window(const PlanInput& input, Fronts fronts) {
  const auto bounds = bounds_of(Flow(input, fronts));
  if (!bounds) return std::nullopt;
  if (!is_uncertain(input)) {
    return bounded(std::max({(*bounds)[0].window, (*bounds)[1].window, (*bounds)[2].window}));
  }
  // Each bound has its own quantile; the one that asks for the longest window decides.
  double window = -kNever;
  for (const Bound& bound : *bounds) {
    if (bound.window > 0) window = std::max(window, bound.window + head_start(input, bound.slopes));
  }
  return Seconds(std::min(window, kForever.count()));
}

TwoFrontForecast forecast_two_front(const PlanInput& input, Fronts fronts, Seconds window) {
  const Flow flow(input, fronts);
  const double w = window.count(), load = flow.work.load, decode = flow.work.decode;
  const double start = std::max(0.0, flow.work.tokens - decode * w);  // positions at the trigger
  const double before_load = std::min(w, load), after_load = w - before_load;

  TwoFrontForecast forecast;
  double low = 0, high = 0;  // uncovered at the handover
  double met = kNever;       // seconds after the trigger
  // Time at which both fronts, working without a pause, catch up with the decoder.
  const auto catch_up = [&](double by_then) {
    const double alone = over(start, flow.down - decode);
    if (alone <= load) return alone;
    return load + over(by_then, flow.up + flow.down - decode);
  };
  const double at_load = std::max(0.0, start + (decode - flow.down) * load);
  if (!flow.restricted) {
    low = std::max(0.0, start + (decode - flow.down) * before_load);
    low = std::max(0.0, low + (decode - flow.down - flow.up) * after_load);
    met = catch_up(at_load);
  } else {
    const double reach = std::min(flow.reach, start), above = start - reach;
    high = std::max(0.0, above + (decode - flow.down) * w);
    const double spare = std::max(0.0, (flow.down - decode) * w - above);
    low = std::max(0.0, reach - flow.up * after_load - spare);
    // The link has its own part to finish, and both have the whole.
    met = std::max(over(above, flow.down - decode), catch_up(at_load));
  }
  forecast.uncovered = low + high;
  forecast.link_only = high;

  // What the link cannot bring the target replays one by one, at the source's pace at least.
  const double wait = load - before_load;
  const double replay_rate = decode > 0 ? decode : flow.work.prefill;
  const double replayed = wait + over(low, flow.work.prefill) + over(high, replay_rate);
  const double clear = std::max(wait, std::min(time_to_cover(flow, low, high, wait), replayed));
  forecast.clear = bounded(clear);
  forecast.early = met < w ? bounded(w - met) : Seconds(0);
  if (is_uncertain(input)) expect_over_time(input, flow, window, forecast);

  const double end = met < w ? met : w + clear;
  const double reach = flow.restricted ? flow.reach : flow.work.tokens;
  forecast.recomputed = std::min(reach, flow.up * std::max(0.0, end - load));
  if (!(flow.down > 0)) forecast.recomputed = flow.work.tokens;
  forecast.sent = flow.work.tokens - forecast.recomputed;
  return forecast;
}

}  // namespace pallas::plan
