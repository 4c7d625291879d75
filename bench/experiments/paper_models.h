#pragma once
// The papers' three models as the simulator runs them, and what their experiments have in common.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "experiment.h"
#include "sim/moves.h"

namespace pallas::experiments {

struct PaperModel {
  const char* name;       // in quantities
  const char* engine;     // sim::paper_model
  double step_ms;         // t_dec
  double context;         // tokens at a handover of Table 2, mean
  double prefill;         // r_p of Table 2, tokens/s
  double single_prefill;  // r_p of Figure 5's ratios: the papers' experiments differ
  double activation_s;    // for the schemes that the papers charge T_0 to
};
const std::array<PaperModel, 3>& paper_models();

// Fitted engines. The papers' T_0 belongs to the pallas family; their full copy, recomputation and
// ctHO have none (their times are bytes over goodput and tokens over rate to 0.1 %).
Result<sim::EngineModel> engine_of(const PaperModel& model, std::string_view scheme,
                                   double prefill_rate);
// What engine_of() does, as a sentence for Outcome::parameters.
std::string engine_sentence();

// A network between gNBs whose goodput is fixed and known.
sim::NetworkSettings known_network(double mbps);

// One handover at a time, each in a world of its own: `base` with these contexts.
Result<std::vector<sim::HandoverRecord>> move_each(const sim::Moves& base,
                                                   const std::vector<TokenPosition>& contexts,
                                                   std::uint64_t seed);
// The paper's contexts of single handovers: from 500 to 4,500 tokens in four equal intervals, as
// many from each.
std::vector<TokenPosition> paper_contexts(std::uint64_t seed, int from_each);

// Their SITs in ms, and the mean ITL in ms over the whole of their streams.
std::vector<double> sits(const std::vector<sim::HandoverRecord>& handovers);
double itl_avg_ms(const std::vector<sim::HandoverRecord>& handovers);

}  // namespace pallas::experiments
