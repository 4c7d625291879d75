#pragma once
// What the radio side tells a gNB, as native types; field meanings and rules in docs/ran-feed.md.

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"

namespace pallas::mobility {

// POST /v1/predictions. (ue, seq): the last writer wins; an older seq is refused.
struct Prediction {
  UeId ue;
  std::uint64_t seq = 0;
  CellId serving;
  std::optional<CellId> target;             // none: no handover foreseen
  Duration in{0};                           // from receipt to the handover; >= 0
  std::optional<Duration> sigma;            // standard deviation of `in`, when known
  std::optional<double> confidence;         // [0, 1] that the target is right, when known
  Duration valid{std::chrono::seconds(5)};  // forgotten after it
  bool oracle = false;  // made by a driver that knows the future; reports say so
};

enum class HandoverPhase {
  kPreparation,
  kExecution,  // the UE leaves the source now
  kCompleted,  // the UE is at the target
  kRejected,
  kCancelled,
  kReestablished,  // radio link failure: the UE appears at `target` unannounced
};
std::string_view to_string(HandoverPhase phase);
std::optional<HandoverPhase> parse_handover_phase(std::string_view text);

// POST /v1/handovers. A fact always beats a prediction.
struct HandoverEvent {
  UeId ue;
  std::uint64_t seq = 0;
  HandoverPhase phase = HandoverPhase::kExecution;
  CellId source;
  CellId target;
};

// POST /v1/positions: feeds the built-in predictor.
struct PositionReport {
  UeId ue;
  std::uint64_t seq = 0;
  double t_ms = 0;  // sender's clock, for differences only
  double x_m = 0, y_m = 0;
  std::optional<double> speed_mps;
  std::optional<double> heading_deg;  // clockwise from north
};

}  // namespace pallas::mobility
