#pragma once
// Partial handover against ctHO: decoding begins on a part of the KV, the most important positions
// first, and the rest follows (docs/impactho.md, docs/decisions/0008).

#include "base/units.h"
#include "plan/scheme.h"

namespace pallas::plan {

// From the handover to the first token, where the UE comes to a cell that nobody prepared.
// Partial: f n s_KV / B + T_0, or the deadline, where that is sooner and what is always sent is
// there by then. The model's load counts. A link that is not known: as long as a rebuild takes.
Seconds partial_interruption(const PlanInput& input);
// ctHO: min over L of max(L / r_p, (n - L) s_KV / B) + T_0, over whole blocks, with the load.
Seconds ctho_interruption(const PlanInput& input);

// The pull of another scheme becomes partial: ctHO's split would take longer than `limit`, and
// partial would not. Never where input.may_be_partial is false or the link is not known.
bool partial_rescues(const PlanInput& input, Seconds limit);

// Below this goodput ctHO is faster: it needs n / (r_p + r_t), r_t = B / s_KV, and partial f n /
// r_t. Infinite for f = 1.
BytesPerSecond partial_break_even(double fraction, double kv_bytes_per_token,
                                  TokensPerSecond prefill_rate);

}  // namespace pallas::plan
