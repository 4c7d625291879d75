// Pallas (arXiv 2608.16477): at the best window before the handover the target starts to prefill
// what there is, and the source streams the blocks that it completes from then on. The ablations
// have the same trigger and leave one of the two halves out.

#include <algorithm>

#include "plan/cost_model.h"
#include "plan/ctho_split.h"
#include "plan/schemes.h"
#include "plan/uncertainty.h"

namespace pallas::plan {
namespace {

// The most that the target may prefill now, in whole blocks: the split k.
TokenPosition split_now(const PlanInput& input) {
  const TokenPosition limit =
      input.recompute_prompt_only ? std::min(input.prompt, input.context) : input.context;
  return floor_to_block(limit, input.block_tokens);
}

class Pallas final : public Scheme {
 public:
  std::string_view name() const override { return "pallas"; }
  std::string_view summary() const override {
    return "T_w* before the handover the target prefills [0, k); blocks from k on are streamed.";
  }
  Decision decide(const PlanInput& input) const override {
    const Seconds window = pallas_window(input);
    Decision decision = start_at(input, name(), window);
    if (input.at_handover) {
      recover(input, decision);
      return decision;
    }
    const TokenPosition k = split_now(input);
    decision.plan.recompute_end = k;
    decision.plan.send_begin = k;
    decision.plan.order = kv::SendOrder::kOldestFirst;
    const WindowCost cost = window_cost(input, window);
    const double sent = work_of(input).tokens - cost.history_tokens;
    Seconds sit = cost.sit, early = cost.early;
    if (is_uncertain(input)) {
      const ExpectedCost expected = expected_pallas_cost(input, window);
      sit = expected.sit;
      early = expected.early;
    }
    expect(decision, sit, early, kv_bytes(input, sent), cost.history_tokens);
    return decision;
  }

 private:
  // The UE left unprepared: recomputation or ctHO, whichever is faster;
  // ctHO's split contains both.
  void recover(const PlanInput& input, Decision& decision) const {
    const BlockSplit split = block_split(input, input.context);
    decision.plan.recompute_end = split.recompute;
    decision.plan.send_begin = split.recompute;
    decision.plan.order =
        split.recompute < input.context ? kv::SendOrder::kOldestFirst : kv::SendOrder::kNothing;
    const double sent = static_cast<double>(input.context) - split.recompute;
    expect(decision, input.activation + split.time, Seconds(0), kv_bytes(input, sent),
           split.recompute);
  }
};

class PallasNoRecompute final : public Scheme {
 public:
  std::string_view name() const override { return "pallas-no-rc"; }
  std::string_view summary() const override {
    return "Ablation: the window of pallas, but everything is sent and nothing recomputed.";
  }
  Decision decide(const PlanInput& input) const override {
    const Seconds window = pallas_window(input);
    Decision decision = start_at(input, name(), window);
    decision.plan.order = kv::SendOrder::kOldestFirst;
    const double tokens = work_of(input).tokens;
    const Seconds all =
        std::max(send_time(input, tokens).value_or(rebuild_time(input, tokens)), input.load);
    expect(decision, input.activation + bounded((all - window).count()),
           bounded((window - all).count()), kv_bytes(input, tokens), 0);
    return decision;
  }
};

class PallasNoStreaming final : public Scheme {
 public:
  std::string_view name() const override { return "pallas-no-sm"; }
  std::string_view summary() const override {
    return "Ablation: the window of pallas, but nothing is sent; the suffix is recomputed after.";
  }
  Decision decide(const PlanInput& input) const override {
    const Seconds window = pallas_window(input);
    Decision decision = start_at(input, name(), window);
    decision.plan.recompute_end = split_now(input);
    const WindowCost cost = window_cost(input, window);
    const Seconds suffix =
        rebuild_time(input, work_of(input).tokens) - rebuild_time(input, cost.history_tokens);
    expect(decision, input.activation + bounded((cost.history - window).count()) + suffix,
           cost.early, 0, work_of(input).tokens);
    return decision;
  }
};

}  // namespace

std::unique_ptr<Scheme> make_pallas() {
  return std::make_unique<Pallas>();
}
std::unique_ptr<Scheme> make_pallas_no_rc() {
  return std::make_unique<PallasNoRecompute>();
}
std::unique_ptr<Scheme> make_pallas_no_sm() {
  return std::make_unique<PallasNoStreaming>();
}

}  // namespace pallas::plan
