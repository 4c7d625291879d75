#include "plan/scheme.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "plan/cost_model.h"
#include "plan/schemes.h"

namespace pallas::plan {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<Scheme> (*make)();
};

// A new scheme needs one line here (docs/schemes.md).
constexpr std::array<Entry, 9> kSchemes{{
    {"detour", make_detour},
    {"full-copy", make_full_copy},
    {"recompute", make_recompute},
    {"ctho", make_ctho},
    {"partial", make_partial},
    {"pallas", make_pallas},
    {"pallas-no-rc", make_pallas_no_rc},
    {"pallas-no-sm", make_pallas_no_sm},
    {"two-front", make_two_front},
}};

// Algorithm 1 is O(T_max / step); more says nothing new.
constexpr double kMaxGridSteps = 1e5;

Status above_zero(double value, const char* field) {
  if (std::isfinite(value) && value > 0) return {};
  return fail(Errc::kInvalidArgument, std::string(field) + " must be finite and above 0");
}

Status not_negative(double value, const char* field) {
  if (std::isfinite(value) && value >= 0) return {};
  return fail(Errc::kInvalidArgument, std::string(field) + " must be finite and not negative");
}

}  // namespace

Status check(const PlanInput& input) {
  if (input.block_tokens == 0) {
    return fail(Errc::kInvalidArgument, "block_tokens must be above 0");
  }
  if (input.kv_bytes_per_token == 0) {
    return fail(Errc::kInvalidArgument, "kv_bytes_per_token must be above 0");
  }
  if (!(input.alpha >= 0 && input.alpha <= 1)) {
    return fail(Errc::kInvalidArgument, "alpha must lie in [0, 1]");
  }
  if (input.confidence && !(*input.confidence >= 0 && *input.confidence <= 1)) {
    return fail(Errc::kInvalidArgument, "confidence must lie in [0, 1]");
  }
  if (!(input.partial_fraction > 0 && input.partial_fraction <= 1)) {
    return fail(Errc::kInvalidArgument, "partial_fraction must lie in (0, 1]");
  }
  if (!(input.spared_share > 0 && input.spared_share <= 1)) {
    return fail(Errc::kInvalidArgument, "spared_share must lie in (0, 1]");
  }
  if (!(input.foretold_share > 0 && input.foretold_share <= 1)) {
    return fail(Errc::kInvalidArgument, "foretold_share must lie in (0, 1]");
  }
  for (const auto& status : {
           above_zero(input.prefill_rate.value, "prefill_rate"),
           not_negative(input.decode_rate.value, "decode_rate"),
           input.goodput ? above_zero(input.goodput->value, "goodput") : Status{},
           not_negative(input.remaining.count(), "remaining"),
           not_negative(input.load.count(), "load"),
           not_negative(input.activation.count(), "activation"),
           above_zero(input.step.count(), "step"),
           above_zero(input.t_max.count(), "t_max"),
           not_negative(input.margin.count(), "margin"),
           not_negative(input.margin_share, "margin_share"),
           not_negative(input.partial_deadline.count(), "partial_deadline"),
           input.sigma ? not_negative(input.sigma->count(), "sigma") : Status{},
       }) {
    if (!status) return status;
  }
  if (input.t_max / input.step > kMaxGridSteps) {
    return fail(Errc::kInvalidArgument, "step must be at least t_max / 100000");
  }
  return {};
}

TokenPosition to_position(double tokens) {
  constexpr double kMax = std::numeric_limits<TokenPosition>::max();
  return static_cast<TokenPosition>(std::clamp(tokens, 0.0, kMax));
}

TokenPosition floor_to_block(TokenPosition tokens, TokenPosition block_tokens) {
  return tokens / block_tokens * block_tokens;
}

Decision start_at(const PlanInput& input, std::string_view scheme, Seconds window) {
  const Seconds remaining = input.at_handover ? Seconds(0) : input.remaining;
  Decision decision;
  decision.trigger = input.at_handover || remaining <= window;
  decision.window = window;
  decision.look_again = std::min(std::max(remaining - window, Seconds(0)), kForever);
  decision.plan.scheme = scheme;
  decision.plan.window_s = window.count();
  decision.plan.expected_in_s = remaining.count();
  return decision;
}

Decision start_at_handover(const PlanInput& input, std::string_view scheme) {
  Decision decision = start_at(input, scheme, Seconds(0));
  // The predicted moment is not the handover: these schemes wait for the fact.
  decision.trigger = input.at_handover;
  return decision;
}

void expect(Decision& decision, Seconds sit, Seconds early, double bytes, double recomputed) {
  decision.expected_recomputed = recomputed;
  decision.expected_sit = bounded(sit.count());
  decision.expected_early = bounded(early.count());
  decision.expected_bytes = bytes;
  decision.plan.expected_sit_s = decision.expected_sit.count();
}

std::vector<std::string_view> scheme_names() {
  std::vector<std::string_view> names;
  for (const Entry& entry : kSchemes) names.push_back(entry.name);
  return names;
}

Result<std::unique_ptr<Scheme>> make_scheme(std::string_view name) {
  std::string known;
  for (const Entry& entry : kSchemes) {
    if (entry.name == name) return entry.make();
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  return fail(Errc::kInvalidArgument,
              "no scheme '" + std::string(name.substr(0, 64)) + "'; there are: " + known);
}

}  // namespace pallas::plan
