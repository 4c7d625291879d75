#include "plan/partial.h"

#include <algorithm>
#include <limits>

#include "plan/cost_model.h"
#include "plan/ctho_split.h"
#include "plan/schemes.h"

namespace pallas::plan {
namespace {

// A deadline waits for these, too: the first four positions and the latest two blocks.
double always_sent(const PlanInput& input, double tokens) {
  return std::min(tokens, 4.0 + 2.0 * input.block_tokens);
}

class Partial final : public Scheme {
 public:
  std::string_view name() const override { return "partial"; }
  std::string_view summary() const override {
    return "At the handover the most important KV is sent first; the target decodes on a part.";
  }
  Decision decide(const PlanInput& input) const override {
    if (!input.may_be_partial) {
      Decision whole = make_ctho()->decide(input);
      whole.plan.scheme = name();
      return whole;
    }
    Decision decision = start_at_handover(input, name());
    decision.plan.order = kv::SendOrder::kByImportance;
    decision.plan.partial_fraction = input.partial_fraction;
    decision.plan.partial_deadline_s = input.partial_deadline.count();
    expect(decision, partial_interruption(input), Seconds(0),
           kv_bytes(input, work_of(input).tokens), 0);
    return decision;
  }
};

}  // namespace

Seconds partial_interruption(const PlanInput& input) {
  const Work work = work_of(input);
  if (!work.link_known)
    return bounded((input.activation + rebuild_time(input, work.tokens)).count());
  double seconds = input.partial_fraction * work.tokens / work.link;
  const double deadline = input.partial_deadline.count();
  if (deadline > 0) {
    const double always = always_sent(input, work.tokens) / work.link;
    seconds = std::min(seconds, std::max(deadline, always));
  }
  return bounded(input.activation.count() + std::max(seconds, work.load));
}

Seconds ctho_interruption(const PlanInput& input) {
  return bounded((input.activation + block_split(input, work_of(input).tokens).time).count());
}

bool partial_rescues(const PlanInput& input, Seconds limit) {
  if (!input.may_be_partial || !input.goodput) return false;
  return ctho_interruption(input) > limit && partial_interruption(input) < limit;
}

BytesPerSecond partial_break_even(double fraction, double kv_bytes_per_token,
                                  TokensPerSecond prefill_rate) {
  if (fraction >= 1) return BytesPerSecond(std::numeric_limits<double>::infinity());
  return BytesPerSecond(fraction * kv_bytes_per_token * prefill_rate.value / (1 - fraction));
}

std::unique_ptr<Scheme> make_partial() {
  return std::make_unique<Partial>();
}

}  // namespace pallas::plan
