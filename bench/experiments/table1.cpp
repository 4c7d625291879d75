// Table 1 of Pallas: recovery at the target after an unprepared handover of Qwen3-32B.

#include <array>
#include <string>

#include "list.h"
#include "paper_models.h"
#include "statistics.h"

namespace pallas::experiments {
namespace {

constexpr std::array<TokenPosition, 3> kContexts{1024, 2048, 4096};
constexpr std::array<const char*, 3> kNames{"1k", "2k", "4k"};
struct Paper {
  const char* scheme;
  std::array<double, 3> sit_ms;
};
constexpr std::array<Paper, 3> kPaper{{{"full-copy", {7165, 14310, 29066}},
                                       {"recompute", {581, 1208, 2103}},
                                       {"ctho", {554, 1119, 2058}}}};
constexpr double kPrefill = 1910;  // tokens/s

}  // namespace

Result<Outcome> run_table1(const Settings& settings) {
  Outcome outcome;
  Figure figure{"table1",
                "Recovery at the target without preparation, Qwen3-32B, 300 Mbps",
                "context, tokens",
                "SIT, ms",
                false,
                true,
                {}};
  const int repeats = settings.quick ? 4 : 20;
  for (const auto& paper : kPaper) {
    Curve curve{paper.scheme, {}};
    for (std::size_t c = 0; c < kContexts.size(); ++c) {
      settings.progress(static_cast<double>(c) / 3, paper.scheme);
      const auto engine = engine_of(paper_models()[2], paper.scheme, kPrefill);
      if (!engine) return Failure(engine.error());
      sim::Moves moves;
      moves.scheme = paper.scheme;
      moves.engine = *engine;
      moves.network = known_network(300);
      moves.predicted = Seconds(1);  // which these schemes do not use
      moves.after = Seconds(1);
      const auto handovers = move_each(
          moves, std::vector<TokenPosition>(static_cast<std::size_t>(repeats), kContexts[c]),
          settings.seed);
      if (!handovers) return Failure(handovers.error());
      const double sit = mean(sits(*handovers));
      outcome.rows.push_back({std::string("table1/") + paper.scheme + "/sit_avg_ms/" + kNames[c],
                              sit, paper.sit_ms[c], ""});
      curve.points.emplace_back(kContexts[c], sit);
    }
    figure.curves.push_back(std::move(curve));
  }
  outcome.figures.push_back(std::move(figure));
  outcome.parameters = {
      "Paper: Qwen3-32B (256 KiB of KV a token), 300 Mbps, contexts of 1K, 2K and 4K; the "
      "full-copy "
      "row implies 1024, 2048 and 4096 tokens.",
      "Fitted to this table alone: prefill 1910 tokens/s. Table 2 implies 619 to 698 and Figure 5 "
      "about 1066 for the same model.",
      "No T_0 (the paper's numbers have none); the source ends its step and the target's first "
      "decode step of 66.7 ms counts."};
  return outcome;
}

}  // namespace pallas::experiments
