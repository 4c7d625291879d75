// Figure 2 of Pallas: the longer the window, the shorter the interruption and the longer the
// prepared state waits.

#include "list.h"
#include "plan/cost_model.h"

namespace pallas::experiments {
namespace {

constexpr double kPlantRate = 3434;      // tokens/s, what the prefill really takes
constexpr double kEstimateShare = 0.54;  // what the scheduler believes of it

// Qwen3-14B at 300 Mbps with a history of 3,000 tokens, whatever the window.
plan::PlanInput setting(double prefill_rate) {
  plan::PlanInput input;
  input.context = 3000;
  input.prompt = 3000;
  input.kv_bytes_per_token = 163'840;
  input.prefill_rate = TokensPerSecond(prefill_rate);
  input.goodput = BytesPerSecond::from_mbps(300);
  input.remaining = Seconds(5);
  input.activation = Seconds(0.2355);
  return input;
}

double sit(double window) {
  return plan::window_cost(setting(kPlantRate), Seconds(window)).sit.count();
}
double early(double window) {
  return plan::window_cost(setting(kPlantRate * kEstimateShare), Seconds(window)).early.count();
}

}  // namespace

Result<Outcome> run_figure2(const Settings&) {
  Outcome outcome;
  const double fall = 100 * (1 - sit(1) / sit(0));
  outcome.rows = {{"figure2/pallas/sit_avg_s/window0", sit(0), std::nullopt, ""},
                  {"figure2/pallas/sit_avg_s/window1", sit(1), 0.25, ""},
                  {"figure2/pallas/sit_reduction_avg_pct/window1", fall, 77, ""},
                  {"figure2/pallas/early_avg_s/window4", early(4), 2.4, ""}};
  Figure figure{"figure2",
                "Interruption and early exposure by window (Qwen3-14B, 3,000 tokens, 300 Mbps)",
                "window T_w, s",
                "s",
                false,
                false,
                {{"SIT", {}}, {"T_early", {}}}};
  for (int k = 0; k <= 50; ++k) {
    const double window = k * 0.1;
    figure.curves[0].points.emplace_back(window, sit(window));
    figure.curves[1].points.emplace_back(window, early(window));
  }
  outcome.figures.push_back(std::move(figure));
  outcome.parameters = {
      "Paper: Qwen3-14B (160 KiB a token), 3,000 tokens, 300 Mbps, windows from 0 to 5 s.",
      "Fitted: the target prefills 3434 tokens/s (Table 2), the scheduler believes 0.54 of that "
      "and "
      "T_early is reported from its estimate; no single rate gives both curves of the paper. "
      "T_0 235.5 ms (Table 2).",
      "Assumed: the history does not grow while the window lasts."};
  return outcome;
}

}  // namespace pallas::experiments
