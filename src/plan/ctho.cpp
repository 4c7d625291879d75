// ctHO (arXiv 2603.28018): recompute the front part while the rest is sent; for one user, or with
// the split that several who move together have in common.

#include <algorithm>

#include "plan/cost_model.h"
#include "plan/ctho_split.h"
#include "plan/schemes.h"

namespace pallas::plan {
namespace {

// As much of the common part as this user has and may have recomputed.
BlockSplit common_split(const PlanInput& input, double tokens) {
  const double limit = std::min(tokens, work_of(input).recomputable);
  const TokenPosition most =
      limit < tokens ? floor_to_block(to_position(limit), input.block_tokens) : to_position(tokens);
  return {std::min(input.common->recompute, most), bounded(input.common->time.count())};
}

class Ctho final : public Scheme {
 public:
  std::string_view name() const override { return "ctho"; }
  std::string_view summary() const override {
    return "At the handover the target recomputes [0, L*) while the source sends the rest.";
  }
  Decision decide(const PlanInput& input) const override {
    Decision decision = start_at_handover(input, name());
    const double tokens = work_of(input).tokens;
    const BlockSplit split =
        input.common ? common_split(input, tokens) : block_split(input, tokens);
    decision.plan.recompute_end = split.recompute;
    decision.plan.send_begin = split.recompute;
    const double sent = tokens - split.recompute;
    decision.plan.order = sent > 0 ? kv::SendOrder::kOldestFirst : kv::SendOrder::kNothing;
    expect(decision, input.activation + split.time, Seconds(0), kv_bytes(input, sent),
           split.recompute);
    return decision;
  }
};

}  // namespace

std::unique_ptr<Scheme> make_ctho() {
  return std::make_unique<Ctho>();
}

}  // namespace pallas::plan
