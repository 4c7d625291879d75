#include "plan/two_front_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plan/cost_model.h"

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
  const Flow flow(input, fronts);
  const double tokens = flow.work.tokens;
  // Under a restriction the newest positions come over the link alone.
  const double high = flow.restricted ? tokens - flow.reach : 0;
  const double fastest = high > 0 ? flow.down : flow.up + flow.down;
  if (tokens > 0 && fastest <= flow.work.decode) return std::nullopt;
  const double window =
      std::max({flow.work.load, over(tokens + flow.up * flow.work.load, flow.up + flow.down),
                over(high, flow.down)});
  return bounded(window);
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

  const double end = met < w ? met : w + clear;
  const double reach = flow.restricted ? flow.reach : flow.work.tokens;
  forecast.recomputed = std::min(reach, flow.up * std::max(0.0, end - load));
  if (!(flow.down > 0)) forecast.recomputed = flow.work.tokens;
  forecast.sent = flow.work.tokens - forecast.recomputed;
  return forecast;
}

}  // namespace pallas::plan
