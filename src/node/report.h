#pragma once
// What happened in one handover, as the target saw it (completed by the source's figures that
// travelled with the protocol), and as the source saw it. GET /v1/handovers shows them; the UE adds
// gap and SIT.

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"
#include "node/phases.h"

namespace pallas::node {

// Of a handover whose target decoded on a part of the KV first.
struct PartialReport {
  double fraction = 0;                // of the positions, when decoding began
  TokenPosition positions = 0;        // how many those were
  TokenIndex tokens = 0;              // decoded on the part
  TokenPosition tokens_replayed = 0;  // of them, computed anew for the whole
  bool second_slot = false;           // the whole was built beside: no pause
  // After the attach: whole again. Absent: not yet, or the session ended or moved on before.
  std::optional<double> complete_ms;
};

struct HandoverReport {
  std::string id;  // "<session>:<epoch>"
  SessionId session;
  Epoch epoch;
  std::string scheme;
  NodeId source, target;
  bool prepared = false;  // an acknowledged preparation existed when the UE attached
  bool exact = false;     // token ids are those the source would have gone on to send
  bool relay = false;
  bool oracle = false;  // predictions came from a driver that knows the future
  std::string
      recovery;  // empty, or how an unprepared arrival was served: "retrieved", "mirror", "ue"

  // Times of phases at the target; absent when it did not happen. Relative to the attach.
  std::optional<double> request_ms;      // HandoverRequest came (negative: before)
  std::optional<double> fronts_met_ms;   // all that was known then was covered
  std::optional<double> status_ms;       // SnStatusTransfer came
  std::optional<double> covered_ms;      // coverage of [0, n) complete
  std::optional<double> first_token_ms;  // first own token emitted
  std::optional<double> release_ack_ms;

  double window_s = 0;  // planned T_w
  double early_s = 0;   // T_early: from the moment the fronts met to the attach
  double expected_sit_s = 0;
  double load_s = 0;                    // T_load: the model had to be loaded here first
  TokenPosition tokens_total = 0;       // n
  TokenPosition tokens_recomputed = 0;  // prefilled at the target
  TokenPosition tokens_replayed = 0;    // one per step
  TokenPosition tokens_received = 0;    // rows attached
  TokenPosition tokens_overlap = 0;     // received and not used, since computed already
  std::uint64_t bytes = 0;              // KV bytes received
  TokenPosition residual_tokens = 0;    // rows that came after the claim
  // Of the positions with KV, those that were here, received or computed: when the UE came, and
  // NodeConfig::fraction_deadline later (1 if the session went on before).
  double fraction_at_attach = 0;
  std::optional<double> fraction_at_deadline;
  // Shadow decoding: tokens sampled beside the source, of them those that the source's confirmed
  // or not; and whether the first token after the handover was there already.
  TokenPosition shadow_tokens = 0, shadow_agreed = 0, shadow_differed = 0;
  bool shadow_used = false;
  std::optional<PartialReport> partial;
  std::string error;              // why it failed, empty
  OnDemand<TargetPhases> phases;  // if NodeConfig::report_phases
};

// The same handover at its source: made when the session has left for good, or is lent to a relay.
struct DepartureReport {
  std::string id;  // HandoverReport's
  SessionId session;
  Epoch epoch;  // of the claim
  std::string scheme;
  NodeId source, target;
  bool prepared = false;  // the target had acknowledged a preparation
  bool relay = false;     // decoding goes on here for a target that relays
  TokenPosition tokens_total = 0;
  std::uint64_t bytes = 0;  // KV bytes sent
  SourcePhases phases;
};

}  // namespace pallas::node
