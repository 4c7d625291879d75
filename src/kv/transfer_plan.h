#pragma once
// What a scheme decided (design.md, section 6), as a value: the session protocol executes any of
// it, and it travels to the target in HandoverRequest.

#include <cstdint>
#include <string>

#include "base/units.h"

namespace pallas::kv {

// In which order the source sends what it sends.
enum class SendOrder : std::uint8_t {
  kNothing = 0,
  kOldestFirst = 1,
  kHighestFirst = 2,
  kByImportance = 3  // scattered positions, those that matter most first
};

struct TransferPlan {
  std::string scheme;  // its name, for reports
  bool relay = false;  // detour: the source goes on decoding, the target relays
  // The target prefills [0, recompute_end) upward from 0, as far as no received rows cover it.
  // What of [0, n) nobody sends is recomputed after SnStatusTransfer.
  TokenPosition recompute_end = 0;
  SendOrder order = SendOrder::kNothing;
  TokenPosition send_begin = 0;  // the source sends completed blocks at or above it
  bool meet = false;             // two-front: the source sends down to the target's front
  bool partial_ranges = false;   // also ranges below a block, when the link is idle
  // The target decodes on a part of the KV, while the rest still comes: as soon as it has this
  // fraction of the positions, [0, 1]; 0: never. With a deadline (0: none) after the UE came it
  // does not wait longer, as long as what is always sent is there.
  double partial_fraction = 0;
  double partial_deadline_s = 0;
  bool oracle = false;        // the prediction came from a driver that knows the future
  double window_s = 0;        // T_w as planned
  double expected_in_s = 0;   // predicted time to the handover when made; 0: now
  double expected_sit_s = 0;  // what the plan predicts

  bool partial() const { return partial_fraction > 0; }
  friend bool operator==(const TransferPlan&, const TransferPlan&) = default;
};

}  // namespace pallas::kv
