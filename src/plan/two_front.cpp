// Two-front: the target prefills upward from 0, the source sends downward from the newest block,
// and they meet where their real rates make them meet (docs/two-front.md).

#include <algorithm>
#include <limits>

#include "plan/cost_model.h"
#include "plan/schemes.h"
#include "plan/two_front_model.h"

namespace pallas::plan {
namespace {

// T_w*, a share of it for rates that have changed, and a margin for blocks and chunks and for what
// other sessions take. As early as allowed when no window suffices.
Seconds window_of(const PlanInput& input, Fronts fronts) {
  const auto exact = two_front_window(input, fronts);
  if (!exact) return input.t_max;
  return std::clamp(*exact * (1 + input.margin_share) + input.margin, Seconds(0), input.t_max);
}

// The front may follow new tokens upward without an end, unless they must not be recomputed.
TokenPosition recompute_end(const PlanInput& input, Fronts fronts) {
  if (!fronts.recompute) return 0;
  if (input.recompute_prompt_only) return std::min(input.prompt, input.context);
  return std::numeric_limits<TokenPosition>::max();
}

class TwoFront final : public Scheme {
 public:
  std::string_view name() const override { return "two-front"; }
  std::string_view summary() const override {
    return "The target prefills upward, the source sends newest blocks first, until they meet.";
  }
  Decision decide(const PlanInput& seen) const override {
    PlanInput input = seen;
    if (!input.at_handover) {
      input.prefill_rate.value *= input.spared_share * input.foretold_share;
      if (input.goodput) input.goodput->value *= input.foretold_share;
    }
    const Fronts fronts = choose_fronts(input);
    const Seconds window = window_of(input, fronts);
    Decision decision = start_at(input, name(), window);
    decision.plan.recompute_end = recompute_end(input, fronts);
    if (fronts.send) {
      decision.plan.order = kv::SendOrder::kHighestFirst;
      decision.plan.meet = true;
      decision.plan.partial_ranges = true;
    }
    const Seconds head_start = input.at_handover ? Seconds(0) : std::min(window, input.remaining);
    const TwoFrontForecast forecast = forecast_two_front(input, fronts, head_start);
    expect(decision, input.activation + forecast.clear, forecast.early,
           kv_bytes(input, forecast.sent), forecast.recomputed);
    return decision;
  }
};

}  // namespace

std::unique_ptr<Scheme> make_two_front() {
  return std::make_unique<TwoFront>();
}

}  // namespace pallas::plan
