// What a prediction's own doubt is worth: CVH on real streets, with the papers' window and with the
// one that minimizes the expected objective.

#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>

#include "base/random.h"
#include "list.h"
#include "paper_models.h"
#include "sim/roaming.h"
#include "statistics.h"
#include "trace_input.h"

namespace pallas::experiments {
namespace {

constexpr double kCell = 100;     // m
constexpr double kReport = 0.5;   // s
constexpr double kPrompt = 2000;  // tokens

struct Variant {
  const char* name;
  bool aware;
  Duration margin;  // of two-front
};
constexpr std::array<Variant, 3> kVariants{{{"plain", false, Duration(0)},
                                            {"margin", false, std::chrono::milliseconds(300)},
                                            {"aware", true, std::chrono::milliseconds(300)}}};

}  // namespace

Result<Outcome> run_uncertainty(const Settings& settings) {
  auto traces = read_trajectories(settings);
  if (!traces) return Failure(traces.error());
  if (settings.quick && traces->size() > 16) traces->resize(16);
  const auto cells = mobility::make_square_cells(kCell, 0, 0);
  if (!cells) return Failure(cells.error());
  Outcome outcome;
  Figure figure{"uncertainty",
                "Interruption with CVH on the trace",
                "SIT, ms",
                "share of handovers at most, %",
                true,
                false,
                {}};
  const int turns = settings.quick ? 1 : 4;
  std::vector<std::vector<mobility::Trajectory>> maps;
  for (int turn = 0; turn < turns; ++turn) {
    Random random(mix(settings.seed, static_cast<std::uint64_t>(turn)));
    const double angle = random.uniform(0, 2 * std::numbers::pi);
    const double x = random.uniform(0, kCell), y = random.uniform(0, kCell);
    maps.emplace_back();
    for (const auto& trajectory : *traces) {
      maps.back().push_back(moved(trajectory, angle, x, y));
    }
  }
  const auto& model = paper_models()[1];
  for (const char* scheme : {"pallas", "two-front"}) {
    for (const auto& variant : kVariants) {
      // Pallas has no margin to leave out.
      if (std::string(variant.name) == "margin" && std::string(scheme) == "pallas") continue;
      std::vector<double> sit, early;
      for (int turn = 0; turn < turns; ++turn) {
        settings.progress(static_cast<double>(turn) / turns, scheme);
        const auto engine = engine_of(model, scheme, model.prefill);
        if (!engine) return Failure(engine.error());
        sim::WorldSettings world_settings;
        const auto& map = maps[static_cast<std::size_t>(turn)];
        world_settings.gnbs = sim::gnbs_along(map, **cells);
        world_settings.scheme = scheme;
        world_settings.engine = *engine;
        world_settings.network = known_network(300);
        world_settings.node.unmeasured_rate = 1;
        world_settings.node.window_margin = variant.margin;
        world_settings.layout = cells->get();
        world_settings.keep_arrivals = false;
        world_settings.seed = settings.seed;
        sim::World world(std::move(world_settings));
        sim::Roaming roaming;
        roaming.trajectories = map;
        roaming.ue.prompt_tokens = static_cast<TokenPosition>(kPrompt);
        roaming.report_interval = Seconds(kReport);
        // Aware: the gNBs predict from positions, and say how sure they are. Plain: the same
        // predictions come from outside and say nothing.
        if (!variant.aware) roaming.cvh_confidence = 1;
        roaming.seed = settings.seed;
        if (auto status = sim::run(world, roaming); !status) return Failure(status.error());
        for (const auto& handover : world.handovers()) {
          if (!handover.sit_ms) continue;
          sit.push_back(*handover.sit_ms);
          early.push_back(handover.early_s.value_or(0));
        }
      }
      const std::string start = std::string("uncertainty/") + scheme + "/";
      const std::string end = std::string("/") + variant.name;
      outcome.rows.push_back({start + "sit_avg_ms" + end, mean(sit), std::nullopt, ""});
      outcome.rows.push_back({start + "sit_p99_ms" + end, quantile(sit, 0.99), std::nullopt, ""});
      outcome.rows.push_back({start + "early_avg_s" + end, mean(early), std::nullopt, ""});
      Curve curve{std::string(scheme) + ", " + variant.name, {}};
      for (int q = 1; q < 100; ++q) curve.points.emplace_back(quantile(sit, q / 100.0), q);
      figure.curves.push_back(std::move(curve));
    }
  }
  outcome.figures.push_back(std::move(figure));
  outcome.parameters = {
      "No paper has it. Trajectories of the shipped SUMO trace or --trace, turned and shifted at "
      "random under the seed, cells of 100 m, a position every 500 ms, CVH.",
      "aware: CVH says how sure it is of the time, min(1.25 T^2 / (2 v), T / 2) for a crossing in "
      "T at speed v (docs/uncertainty.md). plain: the same predictions, taken for exact, the "
      "papers' "
      "rule. Two-front's fixed margin of 0.3 s is added in aware; without and with it alone: "
      "plain, "
      "margin.",
      "Qwen3-14B, prompts of 2,000 tokens, 300 Mbps. " + engine_sentence()};
  return outcome;
}

}  // namespace pallas::experiments
