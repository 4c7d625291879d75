// What holds for the decision of every scheme on every input.

#include <rapidcheck/gtest.h>

#include "generators.h"

namespace pallas::plan {
namespace {

PlanInput any_input_at_all() {
  PlanInput input = any_input();
  if (whole(0, 4) == 0) input.goodput.reset();
  if (whole(0, 4) == 0) input.decode_rate = TokensPerSecond(0);
  if (whole(0, 8) == 0) input.context = whole<TokenPosition>(0, 16);
  if (whole(0, 8) == 0) input.prefill_rate = TokensPerSecond(1e-300);
  if (whole(0, 8) == 0) input.remaining = Seconds(1e12);
  input.at_handover = whole(0, 3) == 0;
  if (input.at_handover) input.remaining = Seconds(0);
  input.recompute_prompt_only = *rc::gen::arbitrary<bool>();
  input.alpha = *rc::gen::element(0.0, 0.8, 1.0);
  input.may_be_partial = *rc::gen::arbitrary<bool>();
  input.partial_fraction = *rc::gen::element(0.01, 0.4, 1.0);
  input.partial_deadline = Seconds(*rc::gen::element(0.0, 0.5));
  if (whole(0, 3) == 0) input.sigma = Seconds(scaled(1e-3, 10));
  if (whole(0, 3) == 0) input.confidence = *rc::gen::element(0.0, 0.1, 0.7, 1.0);
  return input;
}

RC_GTEST_PROP(Schemes, every_decision_is_finite_and_consistent, ()) {
  for (const auto name : scheme_names()) {
    const auto scheme = make_scheme(name);
    const PlanInput input = any_input_at_all();
    RC_ASSERT(check(input).has_value());
    const Decision d = (*scheme)->decide(input);
    RC_LOG() << name << '\n';
    for (const double value :
         {d.window.count(), d.expected_sit.count(), d.expected_early.count(), d.expected_bytes,
          d.look_again.count(), d.plan.window_s, d.plan.expected_in_s, d.plan.expected_sit_s}) {
      RC_ASSERT(std::isfinite(value));
      RC_ASSERT(value >= 0);
    }
    RC_ASSERT(d.plan.scheme == name);
    RC_ASSERT(d.plan.window_s == d.window.count());
    RC_ASSERT(d.plan.expected_sit_s == d.expected_sit.count());
    if (input.at_handover) RC_ASSERT(d.trigger);
    if (d.window > Seconds(0) && !input.at_handover) {
      RC_ASSERT(d.trigger == (input.remaining <= d.window));
    }
    RC_ASSERT(d.window <= input.t_max);
    if (d.trigger && !input.at_handover) RC_ASSERT(d.look_again == Seconds(0));
    // A part that nobody may recompute in chunks is never planned to be.
    if (input.recompute_prompt_only) RC_ASSERT(d.plan.recompute_end <= input.prompt);
  }
}

RC_GTEST_PROP(Schemes, looking_again_when_told_is_in_time, ()) {
  PlanInput input = any_input();
  for (const auto name : {"pallas", "two-front"}) {
    const auto scheme = make_scheme(name);
    const Decision now = (*scheme)->decide(input);
    if (now.trigger) continue;
    PlanInput later = input;
    later.remaining -= now.look_again;
    later.context +=
        static_cast<TokenPosition>(std::ceil(input.decode_rate.value * now.look_again.count()));
    const Decision then = (*scheme)->decide(later);
    // The window belongs to the handover, not to the moment of asking.
    RC_ASSERT(std::abs((then.window - now.window).count()) <=
              1.5 / (input.prefill_rate.value + input.decode_rate.value) + 1e-9);
  }
}

}  // namespace
}  // namespace pallas::plan
