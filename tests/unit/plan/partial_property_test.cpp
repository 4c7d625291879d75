// Partial handover against ctHO: the break-even goodput against the fluid model.

#include <rapidcheck/gtest.h>

#include "generators.h"
#include "plan/ctho_split.h"
#include "plan/partial.h"

namespace pallas::plan {
namespace {

PlanInput leaving() {
  PlanInput input = any_input();
  input.at_handover = true;
  input.remaining = Seconds(0);
  input.load = Seconds(0);
  input.may_be_partial = true;
  input.partial_fraction = even(0.01, 1);
  return input;
}

RC_GTEST_PROP(PartialProperty, above_its_break_even_it_beats_the_fluid_optimum_and_below_loses,
              ()) {
  PlanInput input = leaving();
  input.partial_fraction = even(0.01, 0.99);
  input.context = whole<TokenPosition>(1, 20'000);
  const auto row = static_cast<double>(input.kv_bytes_per_token);
  const double even_at = partial_break_even(input.partial_fraction, row, input.prefill_rate).value;
  for (const double factor : {0.5, 0.99, 1.01, 2.0}) {
    input.goodput = BytesPerSecond(even_at * factor);
    const double ctho =
        fluid_split(input.context, 1 / input.prefill_rate.value, 0, input.goodput->value / row)
            .seconds;
    const double part = (partial_interruption(input) - input.activation).count();
    RC_ASSERT((part < ctho) == (factor > 1));
  }
}

RC_GTEST_PROP(PartialProperty, a_rescue_is_below_the_limit_and_ctho_above_it, ()) {
  PlanInput input = leaving();
  const Seconds limit(scaled(0.01, 100));
  if (partial_rescues(input, limit)) {
    RC_ASSERT(partial_interruption(input) < limit);
    RC_ASSERT(ctho_interruption(input) > limit);
    RC_ASSERT(partial_interruption(input) < ctho_interruption(input));
  }
}

RC_GTEST_PROP(PartialProperty, more_of_the_kv_never_comes_sooner, ()) {
  PlanInput less = leaving();
  PlanInput more = less;
  more.partial_fraction = even(less.partial_fraction, 1);
  RC_ASSERT(partial_interruption(less) <= partial_interruption(more));
  // A deadline only shortens it.
  PlanInput by_then = more;
  by_then.partial_deadline = Seconds(scaled(0.001, 10));
  RC_ASSERT(partial_interruption(by_then) <= partial_interruption(more));
}

}  // namespace
}  // namespace pallas::plan
