// The target prefills everything from token ids after the handover.

#include <algorithm>

#include "plan/cost_model.h"
#include "plan/schemes.h"

namespace pallas::plan {
namespace {

class Recompute final : public Scheme {
 public:
  std::string_view name() const override { return "recompute"; }
  std::string_view summary() const override {
    return "At the handover the target prefills the whole context from its token ids.";
  }
  Decision decide(const PlanInput& input) const override {
    Decision decision = start_at_handover(input, name());
    decision.plan.recompute_end =
        input.recompute_prompt_only ? std::min(input.prompt, input.context) : input.context;
    const Work work = work_of(input);
    expect(decision, input.activation + rebuild_time(input, work.tokens), Seconds(0), 0,
           work.tokens);
    return decision;
  }
};

}  // namespace

std::unique_ptr<Scheme> make_recompute() {
  return std::make_unique<Recompute>();
}

}  // namespace pallas::plan
