// Window and forecast of two-front against the discrete plant. The bounds are those that
// docs/two-front.md proves.

#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>

#include "generators.h"
#include "plan/cost_model.h"
#include "plan/two_front_model.h"
#include "plant.h"

namespace pallas::plan {
namespace {

constexpr Fronts kBoth{};

struct Case {
  PlanInput input;  // at the trigger: remaining is the window
  TokenPosition chunk = 32;
  double r_p = 0, r_t = 0, r_d = 0;

  double block() const { return input.block_tokens; }
  double fluid_tokens() const { return work_of(input).tokens; }
  // What the last chunk and block add once everything else is given out.
  double endgame() const {
    return std::min(std::max(chunk / r_p, block() / r_t), (chunk + block()) / r_p);
  }
};

// A session of at most about 2,000 tokens on any machine.
Case any_case() {
  Case c;
  c.input.context = whole<TokenPosition>(0, 1'500);
  c.input.prompt = whole<TokenPosition>(0, c.input.context + 1);
  c.input.block_tokens = *rc::gen::element<TokenPosition>(1, 8, 16);
  c.chunk = *rc::gen::element<TokenPosition>(8, 32, 64);
  c.r_p = scaled(30, 5'000);
  c.r_t = scaled(5, 5'000);
  c.r_d = scaled(1, 60);
  c.input.kv_bytes_per_token = 1000;
  c.input.prefill_rate = TokensPerSecond(c.r_p);
  c.input.decode_rate = TokensPerSecond(c.r_d);
  c.input.goodput = BytesPerSecond(c.r_t * 1000);
  c.input.load = Seconds(*rc::gen::element(0.0, 0.0, 0.3, 1.5));
  return c;
}

PlantSetup setup_of(const Case& c, double window) {
  PlantSetup setup;
  setup.plan.recompute_end =
      c.input.recompute_prompt_only ? c.input.prompt : std::numeric_limits<TokenPosition>::max();
  setup.plan.order = kv::SendOrder::kHighestFirst;
  setup.plan.meet = true;
  setup.plan.partial_ranges = true;
  setup.context = c.input.context;
  setup.window = window;
  setup.prefill = c.r_p;
  setup.link = c.r_t;
  setup.decode = c.r_d;
  setup.load = c.input.load.count();
  setup.block = c.input.block_tokens;
  setup.chunk = c.chunk;
  return setup;
}

// What blocks and chunks may add to the flow (docs/two-front.md, "Blocks and chunks").
double slack(const Case& c) {
  const double tokens = 4 * c.chunk + 5 * c.block() + c.block() * c.r_d / c.r_t + 2;
  return tokens / (c.r_p + c.r_t) + c.endgame();
}

RC_GTEST_PROP(TwoFront, started_at_the_handover_it_is_the_optimum_of_ctho, ()) {
  Case c = any_case();
  c.input.at_handover = true;
  c.input.load = Seconds(0);
  const double n = c.input.context;
  const PlantResult result = run_plant(setup_of(c, 0));
  const double optimum = n / (c.r_p + c.r_t);
  RC_ASSERT(result.complete);
  RC_ASSERT(result.sit >= optimum - 1e-9);
  RC_ASSERT(result.sit <= optimum + c.endgame() + 1e-9);
  const auto forecast = forecast_two_front(c.input, kBoth, Seconds(0));
  RC_ASSERT(std::abs(forecast.clear.count() - optimum) <= 1e-9);
}

RC_GTEST_PROP(TwoFront, no_fixed_split_does_better_than_a_chunk_and_a_block, ()) {
  Case c = any_case();
  c.input.context = std::min<TokenPosition>(c.input.context, 400);
  const double window = even(0, 3);
  const double two_front = run_plant(setup_of(c, window)).sit;
  for (TokenPosition L = 0; L <= c.input.context; L += c.input.block_tokens) {
    PlantSetup split = setup_of(c, window);
    split.plan.recompute_end = L;
    split.plan.send_begin = L;
    split.plan.order = kv::SendOrder::kOldestFirst;
    split.plan.meet = false;
    const PlantResult result = run_plant(split);
    RC_ASSERT(result.complete);
    RC_ASSERT(two_front <= result.sit + slack(c));
  }
}

RC_GTEST_PROP(TwoFront, no_split_at_the_handover_beats_it_by_more_than_the_last_chunk_and_block,
              ()) {
  Case c = any_case();
  c.input.context = std::min<TokenPosition>(c.input.context, 400);
  c.input.load = Seconds(0);
  const double two_front = run_plant(setup_of(c, 0)).sit;
  double best = std::numeric_limits<double>::infinity();
  for (TokenPosition L = 0; L <= c.input.context; L += c.input.block_tokens) {
    PlantSetup split = setup_of(c, 0);
    split.plan.recompute_end = split.plan.send_begin = L;
    split.plan.order = kv::SendOrder::kOldestFirst;
    split.plan.meet = false;
    best = std::min(best, run_plant(split).sit);
  }
  RC_LOG() << "two-front " << two_front << " s, best split " << best << " s\n";
  RC_ASSERT(two_front <= best + c.endgame() + 1e-9);
}

RC_GTEST_PROP(TwoFront, newest_first_is_no_worse_than_oldest_first, ()) {
  Case c = any_case();
  const double window = even(0, 6);
  PlantSetup oldest = setup_of(c, window);
  oldest.plan.order = kv::SendOrder::kOldestFirst;
  oldest.plan.send_begin = c.input.context / c.input.block_tokens * c.input.block_tokens;
  RC_ASSERT(run_plant(setup_of(c, window)).sit <= run_plant(oldest).sit + slack(c));
}

RC_GTEST_PROP(TwoFront, the_plant_follows_the_flow, ()) {
  for (int k = 0; k < 10; ++k) {
    Case c = any_case();
    const double window = even(0, 6);
    c.input.remaining = Seconds(window);
    const auto forecast = forecast_two_front(c.input, kBoth, Seconds(window));
    const PlantResult result = run_plant(setup_of(c, window));
    RC_LOG() << "flow " << forecast.clear.count() << " s, plant " << result.sit << " s\n";
    RC_ASSERT(result.complete);
    // Whole tokens: the plant may have one less than the flow.
    RC_ASSERT(result.sit >= forecast.clear.count() - 1 / (c.r_p + c.r_t) - 1e-9);
    RC_ASSERT(result.sit <= forecast.clear.count() + slack(c) + 1e-9);
  }
}

RC_GTEST_PROP(TwoFront, the_window_is_enough_and_a_shorter_one_costs_its_difference, ()) {
  for (int k = 0; k < 10; ++k) {
    Case c = any_case();
    // Stand somewhere before the trigger, then go to it.
    c.input.remaining = Seconds(even(0, 12));
    const auto window = two_front_window(c.input, kBoth);
    if (!window) {
      RC_ASSERT(c.r_p + c.r_t <= c.r_d);
      continue;
    }
    if (*window > c.input.remaining) continue;  // it had to start earlier than now
    const auto start = [&](double w) {
      Case at = c;
      at.input.context +=
          static_cast<TokenPosition>(std::llround(c.r_d * (c.input.remaining.count() - w)));
      return run_plant(setup_of(at, w)).sit;
    };
    const double token = 1.5 / (c.r_p + c.r_t);
    RC_ASSERT(start(window->count()) <= slack(c) + token);
    const double late = even(0, 1) * window->count();
    const double sit = start(window->count() - late);
    // Before the model is loaded only the link covers; then the loss is the loading alone.
    if (window->count() - late >= c.input.load.count()) RC_ASSERT(sit >= late - token);
    RC_ASSERT(sit <= late + slack(c) + token);
  }
}

RC_GTEST_PROP(TwoFront, under_exact_the_window_is_enough_for_both_constraints, ()) {
  for (int k = 0; k < 10; ++k) {
    Case c = any_case();
    c.input.recompute_prompt_only = true;
    c.input.remaining = Seconds(even(0, 12));
    const auto window = two_front_window(c.input, kBoth);
    if (!window) {
      RC_ASSERT(c.r_t <= c.r_d);
      continue;
    }
    if (*window > c.input.remaining) continue;
    c.input.context +=
        static_cast<TokenPosition>(std::llround(c.r_d * (c.input.remaining - *window).count()));
    const double sit = run_plant(setup_of(c, window->count())).sit;
    RC_ASSERT(sit <= slack(c) + (3 * c.block() + 3) / c.r_t + 1e-9);
  }
}

RC_GTEST_PROP(TwoFront, generated_positions_come_over_the_link_when_they_must, ()) {
  for (int k = 0; k < 10; ++k) {
    Case c = any_case();
    c.input.recompute_prompt_only = true;
    const double window = even(0, 6);
    c.input.remaining = Seconds(window);
    const PlantResult result = run_plant(setup_of(c, window));
    RC_ASSERT(result.complete);
    RC_ASSERT(result.recomputed <= c.input.prompt);
    // The plant does not replay, as the forecast may.
    const auto forecast = forecast_two_front(c.input, kBoth, Seconds(window));
    const double wait = std::max(0.0, c.input.load.count() - window);
    const double alone = forecast.uncovered / c.r_t;
    const double both =
        alone <= wait ? alone : (forecast.uncovered + c.r_p * wait) / (c.r_p + c.r_t);
    const double fluid = std::max({wait, forecast.link_only / c.r_t, both});
    RC_ASSERT(forecast.clear.count() <= fluid + 1e-9);
    const double extra = slack(c) + (3 * c.block() + 2) / c.r_t;
    RC_ASSERT(result.sit >= fluid - 2 / c.r_t - 1e-9);
    RC_ASSERT(result.sit <= fluid + extra + 1e-9);
  }
}

}  // namespace
}  // namespace pallas::plan
