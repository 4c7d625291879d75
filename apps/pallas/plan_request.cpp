#include "plan_request.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pallas::app {
namespace {

Failure wrong(const char* flag, const std::string& why) {
  return fail(Errc::kInvalidArgument, std::string(flag) + ": " + why);
}

// Comparisons are written so that not a number fails them.
Status above_zero(const char* flag, double value) {
  if (value > 0 && std::isfinite(value)) return {};
  return wrong(flag, "must be a finite number above 0");
}
Status not_negative(const char* flag, double value) {
  if (value >= 0 && std::isfinite(value)) return {};
  return wrong(flag, "must be a finite number, not negative");
}
Status share(const char* flag, double value) {
  if (value >= 0 && value <= 1) return {};
  return wrong(flag, "must lie in [0, 1]");
}

Status take_model(const PlanOptions& options, PlanRequest& request, ModelShape& shape) {
  if (options.kv_bytes_per_token && options.model_shape) {
    return wrong("--kv-bytes-per-token", "cannot be given together with --model-shape");
  }
  if (options.kv_bytes_per_token) {
    const std::int64_t bytes = *options.kv_bytes_per_token;
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    if (bytes < 1 || bytes > kMost) {
      return wrong("--kv-bytes-per-token", "must be from 1 to " + std::to_string(kMost));
    }
    shape.kv_bytes_per_token = static_cast<std::uint64_t>(bytes);
  } else {
    auto found = find_model_shape(options.model_shape.value_or("qwen3-14b"));
    if (!found) return wrong("--model-shape", found.error().message);
    shape = std::move(*found);
  }
  request.model = shape.name;
  request.input.kv_bytes_per_token = shape.kv_bytes_per_token;
  return {};
}

Status take_rates(const PlanOptions& options, const ModelShape& shape, plan::PlanInput& input) {
  const char* unknown = "is needed: nothing is known about this model's speed";
  const auto prefill = options.prefill_rate ? options.prefill_rate : shape.prefill_rate;
  if (!prefill) return wrong("--prefill-rate", unknown);
  if (auto ok = above_zero("--prefill-rate", *prefill); !ok) return ok;
  const auto decode = options.decode_rate ? options.decode_rate : shape.decode_rate;
  if (!decode) return wrong("--decode-rate", unknown);
  if (auto ok = not_negative("--decode-rate", *decode); !ok) return ok;
  const double mbps = options.goodput_mbps.value_or(300);
  if (auto ok = above_zero("--goodput-mbps", mbps); !ok) return ok;
  // One decode step is the least that a first token takes.
  const double step = *decode > 0 ? 1 / *decode : 0;
  const double activation = options.activation.value_or(shape.activation_s.value_or(step));
  if (auto ok = not_negative("--activation", activation); !ok) return ok;
  const double load = options.load.value_or(0);
  if (auto ok = not_negative("--load", load); !ok) return ok;
  input.prefill_rate = TokensPerSecond(*prefill);
  input.decode_rate = TokensPerSecond(*decode);
  input.goodput = BytesPerSecond::from_mbps(mbps);
  input.activation = Seconds(activation);
  input.load = Seconds(load);
  return {};
}

Status take_objective(const PlanOptions& options, plan::PlanInput& input) {
  const double remaining = options.remaining.value_or(4);
  if (auto ok = not_negative("--remaining", remaining); !ok) return ok;
  input.remaining = Seconds(remaining);
  input.at_handover = remaining == 0;
  input.alpha = options.alpha.value_or(input.alpha);
  if (auto ok = share("--alpha", input.alpha); !ok) return ok;
  input.step = Seconds(options.step.value_or(input.step.count()));
  if (auto ok = above_zero("--step", input.step.count()); !ok) return ok;
  input.t_max = Seconds(options.t_max.value_or(input.t_max.count()));
  if (auto ok = above_zero("--t-max", input.t_max.count()); !ok) return ok;
  if (input.step > input.t_max) return wrong("--step", "is longer than --t-max");
  input.may_be_partial = true;
  input.partial_fraction = options.partial_fraction.value_or(input.partial_fraction);
  if (!(input.partial_fraction > 0 && input.partial_fraction <= 1)) {
    return wrong("--partial-fraction", "must be above 0, at most 1");
  }
  if (options.sigma) {
    if (auto ok = not_negative("--sigma", *options.sigma); !ok) return ok;
    input.sigma = Seconds(*options.sigma);
  }
  if (options.confidence) {
    if (auto ok = share("--confidence", *options.confidence); !ok) return ok;
    input.confidence = options.confidence;
  }
  return {};
}

Status take_schemes(const PlanOptions& options, PlanRequest& request) {
  if (options.schemes.empty()) {
    for (const auto name : plan::scheme_names()) request.schemes.emplace_back(name);
  }
  for (const std::string& name : options.schemes) {
    if (auto scheme = plan::make_scheme(name); !scheme) {
      return wrong("--scheme", scheme.error().message);
    }
    if (std::find(request.schemes.begin(), request.schemes.end(), name) != request.schemes.end()) {
      return wrong("--scheme", "'" + name + "' is given twice");
    }
    request.schemes.push_back(name);
  }
  if (!options.plot) return {};
  if (!options.plot->ends_with(".svg")) return wrong("--plot", "the file must end in .svg");
  for (const char* name : {"pallas", "two-front"}) {
    if (std::find(request.schemes.begin(), request.schemes.end(), name) != request.schemes.end()) {
      return {};
    }
  }
  return wrong("--plot", "shows the windows of pallas and two-front; --scheme leaves both out");
}

}  // namespace

Result<PlanRequest> to_request(const PlanOptions& options) {
  PlanRequest request;
  const std::int64_t context = options.context.value_or(3000);
  constexpr std::int64_t kMostTokens = 1 << 30;
  if (context < 0 || context > kMostTokens) {
    return wrong("--context", "must be from 0 to " + std::to_string(kMostTokens));
  }
  request.input.context = static_cast<TokenPosition>(context);
  request.input.prompt = request.input.context;
  ModelShape shape;
  if (auto ok = take_schemes(options, request); !ok) return Failure(ok.error());
  if (auto ok = take_model(options, request, shape); !ok) return Failure(ok.error());
  if (auto ok = take_rates(options, shape, request.input); !ok) return Failure(ok.error());
  if (auto ok = take_objective(options, request.input); !ok) return Failure(ok.error());
  request.plot = options.plot;
  // What is left is about the combination of values: the grid's size.
  if (auto ok = plan::check(request.input); !ok) return wrong("--step", ok.error().message);
  return request;
}

}  // namespace pallas::app
