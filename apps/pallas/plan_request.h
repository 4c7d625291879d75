#pragma once
// What `pallas plan` is asked, checked: every refusal names the flag.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/scheme.h"
#include "plan_model_shape.h"

namespace pallas::app {

// As the flags say it; absent ones take defaults.
struct PlanOptions {
  std::vector<std::string> schemes;  // none: all
  std::optional<std::int64_t> context;
  std::optional<double> prefill_rate, decode_rate;
  std::optional<double> goodput_mbps;
  std::optional<std::int64_t> kv_bytes_per_token;
  std::optional<std::string> model_shape;
  std::optional<double> remaining;
  std::optional<double> alpha, step, t_max;
  std::optional<double> activation, load;
  std::optional<double> sigma, confidence;
  std::optional<double> partial_fraction;
  std::optional<std::string> plot;  // an SVG file
};

struct PlanRequest {
  plan::PlanInput input;
  std::string model;  // its name; empty where only bytes were given
  std::vector<std::string> schemes;
  std::optional<std::string> plot;
};

// kInvalidArgument, beginning with the flag.
Result<PlanRequest> to_request(const PlanOptions& options);

}  // namespace pallas::app
