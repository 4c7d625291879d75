#include "sim/moves.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace pallas::sim {
namespace {

constexpr const char* kTarget = "target";
constexpr const char* kWrong = "wrong";
// The movers decode at least this long before anything is predicted, so that they are in their
// stride.
constexpr Seconds kSettle{1};
constexpr Seconds kResidentsAfter{1};
constexpr Duration kPatience = std::chrono::hours(1);

Status check(const Moves& moves) {
  const auto bad = [](const char* what) { return fail(Errc::kInvalidArgument, what); };
  if (moves.contexts.empty() && moves.movers == 0) return bad("movers: must be at least 1");
  const auto time = [](Seconds s) { return std::isfinite(s.count()) && s.count() >= 0; };
  if (moves.predicted && !time(*moves.predicted)) return bad("predicted: must be at least 0");
  if (moves.window && !time(*moves.window)) return bad("window: must be at least 0");
  if (!std::isfinite(moves.error.count())) return bad("error: must be finite");
  if (!time(moves.after)) return bad("after: must be at least 0");
  return {};
}

std::string source_name(const Moves& moves, std::size_t mover) {
  return moves.one_source ? "source" : "source-" + std::to_string(mover + 1);
}

TokenPosition context_of(const Moves& moves, std::size_t mover) {
  return moves.contexts.empty() ? moves.context : moves.contexts[mover];
}

// A prompt such that `context` ids are there `ahead` after its first token, if it is long enough.
TokenPosition prompt_for(const Moves& moves, TokenPosition context, Seconds ahead) {
  const Seconds step = moves.engine.profile.decode_step(1, context);
  double rate = 1 / step.count();
  if (moves.max_token_rate > 0) rate = std::min(rate, moves.max_token_rate);
  const double decoded = std::floor(rate * ahead.count());
  return static_cast<TokenPosition>(std::max(1.0, context - decoded));
}

WorldSettings world_of(const Moves& moves, std::size_t movers) {
  WorldSettings settings;
  settings.gnbs.push_back({kTarget, {}, {}});
  settings.gnbs.push_back({kWrong, {}, {}});
  const std::size_t sources = moves.one_source ? 1 : movers;
  for (std::size_t i = 0; i < sources; ++i) {
    settings.gnbs.push_back({source_name(moves, i), {}, {}});
  }
  settings.scheme = moves.scheme;
  settings.engine = moves.engine;
  settings.network = moves.network;
  settings.node = moves.node;
  settings.configure = moves.configure;
  settings.seed = moves.seed;
  return settings;
}

}  // namespace

Result<MovesOutcome> run(const Moves& moves) {
  if (auto ok = check(moves); !ok) return Failure(ok.error());
  const std::size_t movers = moves.contexts.empty() ? moves.movers : moves.contexts.size();
  WorldSettings settings = world_of(moves, movers);
  if (auto ok = check(settings); !ok) return Failure(ok.error());
  World world(std::move(settings));
  if (moves.adjust) moves.adjust(world);

  // Everybody is ready when the last prompt is prefilled; the handover comes `ahead` after that.
  Seconds ahead = kSettle;
  if (moves.window) {
    ahead += *moves.window;
  } else if (moves.predicted) {
    ahead += *moves.predicted;
  }
  Seconds prefill{0};
  const auto open = [&](const std::string& gnb, TokenPosition prompt, std::string name) -> Ue& {
    UeSettings ue;
    ue.name = std::move(name);
    ue.prompt_tokens = prompt;
    ue.max_token_rate = moves.max_token_rate;
    return world.open(gnb, ue);
  };
  std::vector<Ue*> residents;
  for (std::uint32_t i = 0; i < moves.residents; ++i) {
    residents.push_back(
        &open(kTarget, moves.resident_context, "resident-" + std::to_string(i + 1)));
    prefill += moves.engine.profile.prefill_time(0, moves.resident_context);
  }
  Seconds last_source{0};
  Seconds one_source{0};
  std::vector<Ue*> moving;
  for (std::size_t i = 0; i < movers; ++i) {
    const TokenPosition prompt = prompt_for(moves, context_of(moves, i), ahead);
    const Seconds own = moves.engine.profile.prefill_time(0, prompt);
    one_source += own;
    last_source = std::max(last_source, own);
    moving.push_back(&open(source_name(moves, i), prompt, "mover-" + std::to_string(i + 1)));
    if (moving.back()->failed) return Failure(*moving.back()->failed);
  }
  for (const Ue* ue : residents) {
    if (ue->failed) return Failure(*ue->failed);
  }
  prefill = std::max(prefill, moves.one_source ? one_source : last_source);
  const TimePoint handover = world.clock.now() + to_duration(prefill + ahead);

  World::Forecast forecast;
  forecast.target = moves.wrong_target ? *moves.wrong_target : kTarget;
  forecast.sigma = moves.sigma;
  forecast.confidence = moves.confidence;
  std::optional<TimePoint> predicted_at;
  if (moves.window) {
    predicted_at = handover - to_duration(*moves.window);
    forecast.valid = to_duration(*moves.window) + std::chrono::seconds(5);
  } else if (moves.predicted) {
    predicted_at = handover - to_duration(*moves.predicted);
    forecast.in = std::max(to_duration(*moves.predicted + moves.error), Duration{0});
    forecast.valid = to_duration(*moves.predicted) + std::chrono::seconds(5);
  }
  if (predicted_at) {
    world.clock.run_until(*predicted_at);
    for (Ue* ue : moving) world.predict(*ue, forecast);
  }
  const auto first_trigger = [&] {
    TimePoint first = handover;
    for (const PreparationRecord& p : world.preparations()) {
      first = std::min(first, TimePoint(to_duration(Seconds(p.requested_s))));
    }
    return first;
  };
  world.clock.run_until(handover);
  for (Ue* ue : moving) world.hand_over(*ue, kTarget);
  const TimePoint begin = first_trigger();
  // A slow scheme takes its time.
  world.clock.run_until(
      [&] {
        return std::all_of(moving.begin(), moving.end(), [](const Ue* ue) {
          return ue->failed || ue->finished || ue->settled();
        });
      },
      kPatience);
  world.clock.run_for(to_duration(std::max(moves.after, kResidentsAfter)));
  world.finish();

  MovesOutcome outcome;
  outcome.handovers = world.handovers();
  outcome.preparations = world.preparations();
  outcome.kv_bytes = world.network().stats().kv_bytes;
  outcome.breaches = world.breaches();
  const TimePoint end = handover + to_duration(kResidentsAfter);
  for (const Ue* ue : residents) {
    const auto& arrivals = ue->arrivals();
    for (std::size_t i = 1; i < arrivals.size(); ++i) {
      if (arrivals[i].at < begin || arrivals[i].at > end) continue;
      outcome.resident_itl_ms.push_back(to_ms(arrivals[i].at - arrivals[i - 1].at));
    }
  }
  return outcome;
}

}  // namespace pallas::sim
