#pragma once
// ctHO (arXiv 2603.28018) for several users who move to one target: one batch prefill of the first
// L tokens of each, the rest over a shared link. All times in seconds from one common zero.

#include <limits>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace pallas::plan {

struct CthoUser {
  double at = 0;      // tau_i, the handover
  double tokens = 0;  // C_i
  // Of these, how many of the first are recomputed whatever L is, and how many may be at all.
  double least = 0, most = std::numeric_limits<double>::infinity();
};

struct CthoProblem {
  std::vector<CthoUser> users;  // at least one; `at` ascends
  double link = 0;              // R = R_bh / s_KV, tokens/s for all together
  // p(L) = a L + b; p(0) = 0, since no batch is launched then. b = 0 and a = 1 / r_p is the other
  // schemes' prefill.
  double seconds_per_token = 0;  // a
  double overhead_s = 0;         // b
  double cycle_s = 0;            // T_c: a batch starts at a multiple of it; 0: at once
  // No batch: an engine that prefills one after another, each from its handover on. Then p(L) of a
  // user is a times what is recomputed of it, all wait as on the link, and the cycle and b do not
  // matter.
  bool in_turn = false;
};

// Fails with kInvalidArgument, naming the field.
Status check(const CthoProblem& problem);

// How D*_tx, the least largest transfer delay for a given L, is computed.
enum class TransferDelay {
  kExact,    // w_k = max(w_{k-1} - (tau_k - tau_{k-1}), 0) + n_k / R, the largest of them
  kPrinted,  // Proposition 2 of the paper, which counts idle time before later arrivals as usable
};

// t_s = ceil(tau_K / T_c) T_c.
double batch_start(const CthoProblem& problem);
// D^pf(L) = t_s + p(L) - tau_1; 0 for L = 0, where nobody waits for a batch. In turn: the longest
// that a user waits.
double prefill_delay(const CthoProblem& problem, double split);
double transfer_delay(const CthoProblem& problem, double split, TransferDelay how);
// What the user `k` waits for its own suffix under the schedule below.
std::vector<double> user_transfer_delays(const CthoProblem& problem, double split);

struct CthoSolution {
  double split = 0;    // L*
  double seconds = 0;  // D*: what the user who waits longest waits
};
// Proposition 3: L where the falling transfer meets the growing prefill, else an end of
// [0, max C_i]. Of several optima one.
CthoSolution solve_ctho(const CthoProblem& problem, TransferDelay how = TransferDelay::kExact);
// The same over L = 0, block, 2 block, ... and max C_i.
CthoSolution solve_ctho_blocks(const CthoProblem& problem, TokenPosition block,
                               TransferDelay how = TransferDelay::kExact);
// The baselines: everything is sent (L = 0), everything is prefilled (L = max C_i).
CthoSolution send_all(const CthoProblem& problem);
CthoSolution prefill_all(const CthoProblem& problem);

// Somebody gets the link to itself for a while.
struct LinkShare {
  std::size_t user = 0;
  double from = 0, to = 0;
  double tokens_per_second = 0;
};
// The constructive rate schedule: earliest deadline first, where the deadline tau_i + D* is common
// to all but for tau_i; so first come, first served, and nobody is interrupted. It attains the
// exact transfer delay. In order of time, without users who need nothing.
std::vector<LinkShare> link_schedule(const CthoProblem& problem, double split);

}  // namespace pallas::plan
