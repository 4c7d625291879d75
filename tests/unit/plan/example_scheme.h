// After the handover the older half is recomputed while the newer half is sent.
#include <algorithm>

#include "plan/scheme.h"

namespace pallas::plan {

class HalfAndHalf final : public Scheme {
 public:
  std::string_view name() const override { return "half-and-half"; }
  std::string_view summary() const override {
    return "At the handover the target recomputes the older half and receives the newer.";
  }
  Decision decide(const PlanInput& input) const override {
    const TokenPosition half = input.context / 2 / input.block_tokens * input.block_tokens;
    Decision decision;
    decision.trigger = input.at_handover;
    decision.look_again = input.remaining;
    decision.plan.scheme = name();
    decision.plan.recompute_end = half;
    decision.plan.order = kv::SendOrder::kOldestFirst;
    decision.plan.send_begin = half;
    decision.plan.expected_in_s = input.remaining.count();
    const double bytes =
        static_cast<double>(input.context - half) * static_cast<double>(input.kv_bytes_per_token);
    const double sending = input.goodput ? bytes / input.goodput->value : 0;
    const double prefill = half / input.prefill_rate.value;
    decision.expected_sit = input.activation + Seconds(std::max(prefill, sending));
    decision.expected_bytes = bytes;
    decision.plan.expected_sit_s = decision.expected_sit.count();
    return decision;
  }
};

}  // namespace pallas::plan
