// Figure 5 of Pallas: single handovers, every scheme, three models, three goodputs; or goodput as a
// trace says.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "gzip_file.h"
#include "list.h"
#include "paper_models.h"
#include "statistics.h"

namespace pallas::experiments {
namespace {

constexpr std::array<const char*, 6> kSchemes{"detour", "full-copy", "recompute",
                                              "ctho",   "pallas",    "two-front"};
constexpr std::array<double, 3> kGoodputs{100, 300, 500};
constexpr double kHopMs = 64.9;  // Table 2

struct Extremes {
  const char* scheme;
  double least, most;
};
constexpr std::array<Extremes, 3> kPaper{
    {{"full-copy", 70.13, 89.68}, {"recompute", 2.35, 7.28}, {"ctho", 2.28, 6.76}}};

struct Setting {
  std::size_t model;
  std::string goodput;
  sim::NetworkSettings network;
};

Result<std::vector<sim::HandoverRecord>> moved(const Settings& settings, const Setting& setting,
                                               const char* scheme) {
  const auto& model = paper_models()[setting.model];
  const auto engine = engine_of(model, scheme, model.single_prefill);
  if (!engine) return Failure(engine.error());
  sim::Moves moves;
  moves.scheme = scheme;
  moves.engine = *engine;
  moves.network = setting.network;
  moves.network.relay_hop_latency = to_duration(Seconds(kHopMs / 1000));
  moves.predicted = Seconds(7);
  moves.after = Seconds(1);
  return move_each(moves, paper_contexts(settings.seed, settings.quick ? 2 : 15), settings.seed);
}

Result<std::vector<Setting>> settings_of(const Settings& settings) {
  std::vector<Setting> all;
  for (std::size_t m = 0; m < paper_models().size(); ++m) {
    if (!settings.trace) {
      for (const double mbps : kGoodputs) {
        all.push_back({m, std::to_string(std::lround(mbps)) + "mbps", known_network(mbps)});
      }
      continue;
    }
    const auto text = app::read_text_file(*settings.trace);
    if (!text) return Failure(text.error());
    auto trace = kv::RateTrace::parse(*text);
    if (!trace) return fail(trace.error().code, *settings.trace + ": " + trace.error().message);
    sim::NetworkSettings network = known_network(300);
    network.rate = sim::TracedRate{*trace, true};
    all.push_back({m, "trace", network});
  }
  return all;
}

}  // namespace

Result<Outcome> run_figure5(const Settings& settings) {
  const auto all = settings_of(settings);
  if (!all) return Failure(all.error());
  Outcome outcome;
  std::map<std::string, std::array<std::vector<double>, 3>> by_scheme;  // means, by model
  std::map<std::string, std::vector<double>> itl_reduction;
  for (const auto& setting : *all) {
    const auto& model = paper_models()[setting.model];
    std::map<std::string, double> itl;
    for (const char* scheme : kSchemes) {
      settings.progress(
          static_cast<double>(&setting - all->data()) / static_cast<double>(all->size()),
          std::string(scheme) + " " + model.name + " " + setting.goodput);
      const auto handovers = moved(settings, setting, scheme);
      if (!handovers) return Failure(handovers.error());
      const double sit = mean(sits(*handovers));
      const std::string where = std::string("/") + model.name + "-" + setting.goodput;
      Row row{std::string("figure5/") + scheme + "/sit_avg_ms" + where, sit, std::nullopt, ""};
      if (row.quantity == "figure5/pallas/sit_avg_ms/32b-100mbps") row.paper = 321;
      outcome.rows.push_back(row);
      itl[scheme] = itl_avg_ms(*handovers);
      outcome.rows.push_back({std::string("figure5/") + scheme + "/itl_avg_ms" + where, itl[scheme],
                              std::nullopt, ""});
      by_scheme[scheme][setting.model].push_back(sit);
    }
    itl_reduction["pallas"].push_back(100 * (1 - itl["pallas"] / itl["detour"]));
  }
  for (const auto& paper : kPaper) {
    std::vector<double> ratios;
    for (std::size_t m = 0; m < paper_models().size(); ++m) {
      ratios.push_back(mean(by_scheme[paper.scheme][m]) / mean(by_scheme["pallas"][m]));
    }
    const std::string start = std::string("figure5/") + paper.scheme + "/sit_over_pallas_avg_x/";
    const bool fixed = !settings.trace;
    outcome.rows.push_back({start + "least", *std::min_element(ratios.begin(), ratios.end()),
                            fixed ? std::optional(paper.least) : std::nullopt, ""});
    outcome.rows.push_back({start + "most", *std::max_element(ratios.begin(), ratios.end()),
                            fixed ? std::optional(paper.most) : std::nullopt, ""});
  }
  for (const char* scheme : kSchemes) {
    Curve curve{scheme, {}};
    for (std::size_t m = 0; m < paper_models().size(); ++m) {
      curve.points.emplace_back(static_cast<double>(std::array{8, 14, 32}[m]),
                                mean(by_scheme[scheme][m]));
    }
    if (outcome.figures.empty()) {
      outcome.figures.push_back({"figure5",
                                 "Mean SIT over contexts and goodputs",
                                 "model, 10^9 parameters",
                                 "SIT, ms",
                                 false,
                                 true,
                                 {}});
    }
    outcome.figures.back().curves.push_back(std::move(curve));
  }
  outcome.parameters = {
      "Paper: contexts from 500 to 4,500 tokens, 15 from each of four intervals; goodput 100, 300 "
      "and 500 Mbps, or a trace (--trace); block of 16.",
      "Fitted to this figure's ratios: prefill 7500, 3611 and 1110 tokens/s (Table 2 implies 6526, "
      "3431 to 3762 and 619). " +
          engine_sentence(),
      "The ratios are of each model's mean over the goodputs, least and most of the three models. "
      "Assumed: the handover is foreseen 7 s ahead; detour takes one hop of 64.9 ms."};
  return outcome;
}

}  // namespace pallas::experiments
