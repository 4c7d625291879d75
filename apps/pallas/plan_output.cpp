#include "plan_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "http/json_writer.h"
#include "plan/cost_model.h"
#include "plan/partial.h"
#include "plan/two_front_model.h"
#include "plan/uncertainty.h"

namespace pallas::app {
namespace {

bool wanted(const PlanRequest& request, const char* scheme) {
  return std::find(request.schemes.begin(), request.schemes.end(), scheme) != request.schemes.end();
}

// Tokens that the target computes: whole ones.
std::int64_t split_of(const plan::Decision& decision) {
  return static_cast<std::int64_t>(std::floor(decision.expected_recomputed));
}

std::string start_of(const PlanRequest& request, const plan::Decision& decision) {
  if (decision.plan.relay) return "never";
  if (request.input.at_handover || decision.trigger) return "now";
  if (decision.window.count() <= 0) return "at the handover";
  return fmt::format("in {:.2f} s", decision.look_again.count());
}

// None where partial is never the faster one.
std::optional<double> break_even_mbps(const plan::PlanInput& input) {
  const double mbps =
      plan::partial_break_even(input.partial_fraction,
                               static_cast<double>(input.kv_bytes_per_token), input.prefill_rate)
          .mbps();
  return std::isfinite(mbps) ? std::optional(mbps) : std::nullopt;
}

}  // namespace

std::vector<SchemePlan> make_plans(const PlanRequest& request) {
  std::vector<SchemePlan> plans;
  for (const std::string& name : request.schemes) {
    const auto scheme = plan::make_scheme(name);
    if (scheme) plans.push_back({name, (*scheme)->decide(request.input)});
  }
  return plans;
}

std::string plans_text(const PlanRequest& request, const std::vector<SchemePlan>& plans) {
  const plan::PlanInput& in = request.input;
  std::string text = fmt::format(
      "{}{} tokens now, {} bytes of KV each; handover {}\n"
      "prefill {:g} tokens/s, decode {:g} tokens/s, link {:g} Mbps ({:.1f} tokens/s), "
      "T_0 {:g} ms, load {:g} s\n",
      request.model.empty() ? "" : request.model + ": ", in.context, in.kv_bytes_per_token,
      in.at_handover ? "now" : fmt::format("in {:g} s", in.remaining.count()),
      in.prefill_rate.value, in.decode_rate.value, in.goodput->mbps(),
      in.goodput->value / static_cast<double>(in.kv_bytes_per_token), 1000 * in.activation.count(),
      in.load.count());
  if (plan::is_uncertain(in)) {
    text += fmt::format(
        "prediction: standard deviation {:g} s, confidence {:g}; figures are "
        "expected values\n",
        in.sigma.value_or(Seconds(0)).count(), in.confidence.value_or(1));
  }
  text += fmt::format("\n{:<13} {:>9} {:>15} {:>11} {:>10} {:>9} {:>9}\n", "scheme", "window",
                      "starts", "recomputes", "sends", "SIT", "early");
  for (const SchemePlan& plan : plans) {
    const plan::Decision& d = plan.decision;
    text += fmt::format("{:<13} {:>7.3f} s {:>15} {:>11} {:>7.1f} MB {:>7.3f} s {:>7.3f} s\n",
                        plan.scheme, d.window.count(), start_of(request, d), split_of(d),
                        d.expected_bytes / 1e6, d.expected_sit.count(), d.expected_early.count());
  }
  if (wanted(request, "partial")) {
    const auto least = break_even_mbps(in);
    text += fmt::format("\npartial: decodes with {:g} of the KV; ctHO interrupts for less {}\n",
                        in.partial_fraction,
                        least ? fmt::format("below {:.1f} Mbps", *least) : "at any goodput");
  }
  return text;
}

std::string plans_json(const PlanRequest& request, const std::vector<SchemePlan>& plans) {
  http::JsonWriter json;
  json.begin_array();
  for (const SchemePlan& plan : plans) {
    const plan::Decision& d = plan.decision;
    json.begin_object()
        .member("scheme", plan.scheme)
        .member("window_s", d.window.count())
        .member("split_tokens", split_of(d))
        .member("sit_s", d.expected_sit.count())
        .member("early_s", d.expected_early.count())
        .member("bytes", std::round(d.expected_bytes))
        .member("trigger_now", d.trigger);
    if (plan.scheme == "partial") {
      json.member("fraction", request.input.partial_fraction)
          .member("break_even_mbps", break_even_mbps(request.input));
    }
    json.end_object();
  }
  return json.end_array().take();
}

experiments::Figure tradeoff(const PlanRequest& request) {
  experiments::Figure figure;
  figure.name = "plan";
  figure.title = "Interruption and early exposure by window";
  figure.x_label = "window T_w, s";
  figure.y_label = "s";
  const plan::PlanInput& input = request.input;
  const double end = std::max(plan::window_limit(input).count(), input.step.count());
  const auto add = [&](const char* scheme, auto cost) {
    if (!wanted(request, scheme)) return;
    experiments::Curve sit{std::string(scheme) + ": SIT", {}};
    experiments::Curve early{std::string(scheme) + ": T_early", {}};
    constexpr int kPoints = 200;
    for (int k = 0; k <= kPoints; ++k) {
      const double window = end * k / kPoints;
      const auto [interruption, exposure] = cost(Seconds(window));
      sit.points.emplace_back(window, interruption.count());
      early.points.emplace_back(window, exposure.count());
    }
    figure.curves.push_back(std::move(sit));
    figure.curves.push_back(std::move(early));
  };
  add("pallas", [&](Seconds window) {
    const plan::ExpectedCost cost = plan::expected_pallas_cost(input, window);
    return std::pair(cost.sit, cost.early);
  });
  add("two-front", [&](Seconds window) {
    const auto forecast = plan::forecast_two_front(input, plan::choose_fronts(input), window);
    return std::pair(input.activation + forecast.clear, forecast.early);
  });
  return figure;
}

}  // namespace pallas::app
