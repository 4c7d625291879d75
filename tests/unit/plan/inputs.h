#pragma once
// PlanInputs of known machines for the unit tests.

#include "plan/scheme.h"

namespace pallas::plan {

// Qwen3-14B on the scheduler's own estimate: r_p 1848.4 tokens/s, 300 Mbps.
inline PlanInput qwen_14b() {
  PlanInput input;
  input.context = 3000;
  input.prompt = 2000;
  input.kv_bytes_per_token = 163'840;
  input.prefill_rate = TokensPerSecond(1848.4);
  input.decode_rate = TokensPerSecond(22);
  input.goodput = BytesPerSecond::from_mbps(300);
  input.remaining = Seconds(4);
  input.activation = Seconds(0.2276);
  input.t_max = Seconds(5);
  return input;
}

// SmolLM2-135M on two cores, links of 50 Mbps, a reader's pace of 25 tokens/s: the demo.
inline PlanInput demo() {
  PlanInput input;
  input.context = 1000;
  input.prompt = 800;
  input.kv_bytes_per_token = 23'040;
  input.prefill_rate = TokensPerSecond(270);
  input.decode_rate = TokensPerSecond(25);
  input.goodput = BytesPerSecond::from_mbps(50);
  input.remaining = Seconds(4);
  input.activation = Seconds(0.02);
  return input;
}

inline PlanInput at_handover(PlanInput input) {
  input.at_handover = true;
  input.remaining = Seconds(0);
  return input;
}

inline Decision decide(std::string_view scheme, const PlanInput& input) {
  return make_scheme(scheme).value()->decide(input);
}

}  // namespace pallas::plan
