// The source goes on decoding and the target relays: no KV moves, every token makes the longer way.

#include "plan/cost_model.h"
#include "plan/schemes.h"

namespace pallas::plan {
namespace {

class Detour final : public Scheme {
 public:
  std::string_view name() const override { return "detour"; }
  std::string_view summary() const override {
    return "The source keeps the session and decodes; the target relays its tokens.";
  }
  Decision decide(const PlanInput& input) const override {
    Decision decision = start_at_handover(input, name());
    decision.plan.relay = true;
    // The next token comes one decode step after the last; T_0 is a target's.
    const double rate = input.decode_rate.value;
    expect(decision, rate > 0 ? bounded(1 / rate) : input.activation, Seconds(0), 0, 0);
    return decision;
  }
};

}  // namespace

std::unique_ptr<Scheme> make_detour() {
  return std::make_unique<Detour>();
}

}  // namespace pallas::plan
