// All KV moves after the handover, oldest first.

#include <algorithm>

#include "plan/cost_model.h"
#include "plan/schemes.h"

namespace pallas::plan {
namespace {

class FullCopy final : public Scheme {
 public:
  std::string_view name() const override { return "full-copy"; }
  std::string_view summary() const override {
    return "At the handover the source sends the whole KV cache; nothing is recomputed.";
  }
  Decision decide(const PlanInput& input) const override {
    Decision decision = start_at_handover(input, name());
    decision.plan.order = kv::SendOrder::kOldestFirst;
    const double tokens = work_of(input).tokens;
    // A link that is not known: nobody waits longer than a rebuild takes.
    const Seconds copy = send_time(input, tokens).value_or(rebuild_time(input, tokens));
    expect(decision, input.activation + std::max(copy, input.load), Seconds(0),
           kv_bytes(input, tokens), 0);
    return decision;
  }
};

}  // namespace

std::unique_ptr<Scheme> make_full_copy() {
  return std::make_unique<FullCopy>();
}

}  // namespace pallas::plan
