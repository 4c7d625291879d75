#pragma once
// Random PlanInputs for the property tests.

#include <rapidcheck.h>

#include <cmath>

#include "plan/scheme.h"

namespace pallas::plan {

// inRange alone grows its range with RapidCheck's size; this always uses all of it. [low, high)
template <class T>
T whole(T low, T high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(low, high));
}

// Evenly spread on a grid of a million steps, so that a case shrinks towards `low`.
inline double even(double low, double high) {
  return low + (high - low) * whole(0, 1'000'001) / 1e6;
}

// Evenly spread orders of magnitude.
inline double scaled(double low, double high) {
  return std::exp(even(std::log(low), std::log(high)));
}

// Everything that check() lets through and that some machine may be.
inline PlanInput any_input() {
  PlanInput input;
  input.context = whole<TokenPosition>(0, 20'000);
  input.prompt = whole<TokenPosition>(0, input.context + 1);
  input.block_tokens = *rc::gen::element<TokenPosition>(1, 8, 16, 32);
  input.kv_bytes_per_token = *rc::gen::element<std::uint64_t>(23'040, 131'072, 163'840, 262'144);
  input.prefill_rate = TokensPerSecond(scaled(50, 10'000));
  input.decode_rate = TokensPerSecond(scaled(1, 100));
  input.goodput = BytesPerSecond::from_mbps(scaled(1, 10'000));
  input.remaining = Seconds(even(0, 20));
  input.load = Seconds(*rc::gen::element(0.0, 0.0, 0.4, 2.0));
  input.activation = Seconds(even(0, 0.4));
  input.alpha = even(0.05, 0.95);
  input.step = Seconds(*rc::gen::element(0.01, 0.04, 0.1, 0.2));
  input.t_max = Seconds(even(0.5, 10));
  input.margin = Seconds(even(0, 1));
  return input;
}

}  // namespace pallas::plan
