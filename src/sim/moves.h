#pragma once
// The papers' small experiments as one call: K sessions of a given context move from their gNBs to
// one target at the same instant, with R resident sessions there.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim/world.h"

namespace pallas::sim {

struct Moves {
  std::string scheme = "two-front";
  EngineModel engine;
  NetworkSettings network;
  node::NodeConfig node = patient_node();
  TokenPosition context = 2000;         // ids of each moving session at the handover, about
  std::vector<TokenPosition> contexts;  // one a session, in place of `context` and `movers`
  std::uint32_t movers = 1;             // K, at once
  bool one_source = false;              // all at one source, else one source each
  std::uint32_t residents = 0;          // R, decoding at the target all the time
  TokenPosition resident_context = 2000;
  double max_token_rate = 0;
  // T_avail: the (right) prediction comes this long before the handover; none: no prediction.
  std::optional<Seconds> predicted = Seconds(8);
  // Forces the window T_w: the prediction comes this long before the handover and says "now".
  // `predicted` does not count then.
  std::optional<Seconds> window;
  // What the prediction is wrong by: it says the handover comes this much after the true time.
  Seconds error{0};
  std::optional<Duration> sigma;
  std::optional<double> confidence;
  std::optional<std::string>
      wrong_target;  // "wrong": a third gNB is predicted in place of the target
  Seconds after{3};  // the run goes on this long after everybody's 8th token
  std::function<void(node::NodeConfig&)> configure;
  std::function<void(World&)> adjust;  // before anything happens: rates, latencies, faults
  std::uint64_t seed = 1;
};

struct MovesOutcome {
  std::vector<HandoverRecord> handovers;  // one a mover, in order
  std::vector<PreparationRecord> preparations;
  // The residents' intervals from the first trigger to 1 s after the handover.
  std::vector<double> resident_itl_ms;
  double kv_bytes = 0;  // real bytes over all links
  std::vector<std::string> breaches;
};

// Fails, naming the field, for settings that make no run.
Result<MovesOutcome> run(const Moves& moves);

}  // namespace pallas::sim
