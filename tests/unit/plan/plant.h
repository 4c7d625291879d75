#pragma once
// A session and its two nodes in discrete events: tokens, blocks and chunks instead of a flow. It
// executes a TransferPlan that starts at time 0, with the handover at `window`.

#include "kv/transfer_plan.h"

namespace pallas::plan {

struct PlantSetup {
  kv::TransferPlan plan;
  TokenPosition context = 0;  // positions with KV at the start
  double window = 0;          // seconds to the handover, where decoding stops
  double prefill = 1;         // r_p
  double link = 0;            // r_t; 0: nothing arrives
  double decode = 0;          // r_d
  double load = 0;
  TokenPosition block = 16;
  TokenPosition chunk = 32;
};

struct PlantResult {
  TokenPosition tokens = 0;     // n
  TokenPosition uncovered = 0;  // of [0, n) at the handover
  double sit = 0;               // from the handover until [0, n) is covered; T_0 is not in it
  TokenPosition recomputed = 0;
  TokenPosition sent = 0;
  bool complete = true;  // false: the plan leaves positions that nobody brings
};

PlantResult run_plant(const PlantSetup& setup);

}  // namespace pallas::plan
