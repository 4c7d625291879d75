#include "paper_models.h"

#include <algorithm>

#include "base/random.h"
#include "statistics.h"

namespace pallas::experiments {
namespace {

bool is_prepared(std::string_view scheme) {
  return scheme.starts_with("pallas") || scheme == "two-front";
}

}  // namespace

const std::array<PaperModel, 3>& paper_models() {
  static constexpr std::array<PaperModel, 3> kModels{
      {{"8b", "llama-3-8b", 25.1, 5464, 6830, 7500, 0.140},
       {"14b", "qwen3-14b", 45.5, 4669, 3611, 3611, 0.208},
       {"32b", "qwen3-32b", 66.7, 2746, 634, 1110, 0.287}}};
  return kModels;
}

Result<sim::EngineModel> engine_of(const PaperModel& model, std::string_view scheme,
                                   double prefill_rate) {
  auto engine = sim::paper_model(model.engine);
  if (!engine) return Failure(engine.error());
  engine->profile =
      sim::constant_profile(TokensPerSecond(prefill_rate), TokensPerSecond(1000 / model.step_ms));
  engine->activation = is_prepared(scheme) ? Seconds(model.activation_s) : Seconds(0);
  return engine;
}

std::string engine_sentence() {
  return "Fitted: T_0 (140, 208 and 287 ms, so that with the end of the source's decode step and "
         "the last, incomplete block the interruption is Table 2's), charged to pallas, its "
         "ablations and two-front only: the papers' other schemes contain none, and pay an "
         "ordinary decode step here.";
}

sim::NetworkSettings known_network(double mbps) {
  sim::NetworkSettings network;
  network.rate = sim::FixedRate{BytesPerSecond::from_mbps(mbps)};
  network.sight = sim::GoodputSight::kCurrent;
  return network;
}

Result<std::vector<sim::HandoverRecord>> move_each(const sim::Moves& base,
                                                   const std::vector<TokenPosition>& contexts,
                                                   std::uint64_t seed) {
  std::vector<sim::HandoverRecord> all;
  for (std::size_t k = 0; k < contexts.size(); ++k) {
    sim::Moves moves = base;
    moves.context = contexts[k];
    moves.node.unmeasured_rate = 1;  // one session alone: the profile's rate is the true one
    moves.seed = mix(seed, static_cast<std::uint64_t>(k));
    // The handover falls anywhere within a decode step.
    if (moves.predicted) {
      *moves.predicted +=
          Random(moves.seed).uniform() * moves.engine.profile.decode_step(1, moves.context);
    }
    auto outcome = sim::run(moves);
    if (!outcome) return Failure(outcome.error());
    for (auto& handover : outcome->handovers) {
      if (!handover.sit_ms) {
        return fail(Errc::kInternal, moves.scheme + " did not finish a handover: " +
                                         (handover.error.empty() ? "no token" : handover.error));
      }
      all.push_back(std::move(handover));
    }
  }
  return all;
}

std::vector<TokenPosition> paper_contexts(std::uint64_t seed, int from_each) {
  Random random(mix(seed, "contexts"));
  std::vector<TokenPosition> contexts;
  for (int interval = 0; interval < 4; ++interval) {
    for (int k = 0; k < from_each; ++k) {
      const double low = 500 + 1000.0 * interval;
      contexts.push_back(static_cast<TokenPosition>(random.uniform(low, low + 1000)));
    }
  }
  return contexts;
}

std::vector<double> sits(const std::vector<sim::HandoverRecord>& handovers) {
  std::vector<double> values;
  values.reserve(handovers.size());
  for (const auto& handover : handovers) values.push_back(handover.sit_ms.value_or(0));
  return values;
}

double itl_avg_ms(const std::vector<sim::HandoverRecord>& handovers) {
  sim::Intervals all;
  for (const auto& handover : handovers) {
    all.add(handover.before.latency);
    all.add(handover.after.latency);
  }
  return all.avg_ms();
}

}  // namespace pallas::experiments
