#pragma once
// Two-front as a flow of tokens: the target prefills upward at r_p, the source sends downward at
// r_t = B / s_KV, the context grows at r_d until the handover. docs/two-front.md derives what is
// here and says what blocks and chunks add to it.

#include <optional>

#include "base/units.h"
#include "plan/scheme.h"

namespace pallas::plan {

// Which of the two run.
struct Fronts {
  bool recompute = true;
  bool send = true;
  friend bool operator==(const Fronts&, const Fronts&) = default;
};

// A front with less than this share of r_p + r_t is switched off: it would shorten the work by no
// more than 1/63, and costs the target's residents or the link all the same.
inline constexpr double kLeastShare = 1.0 / 64;

// Both, unless
// - the link is known, r_t > r_d, and the target's share is below kLeastShare: send only; or
// - the link is known, r_p > r_d, the target may recompute everything, and the link's share is
//   below kLeastShare or it moves no block within t_max: recompute only.
Fronts choose_fronts(const PlanInput& input);

// T_w*: the smallest window after which nothing is left at the handover; none when every window
// leaves something (the context grows faster than it is covered). Where the prediction says how
// good it is, the window of the least expected objective (docs/uncertainty.md): below 0 when
// starting at the handover is best.
std::optional<Seconds> two_front_window(const PlanInput& input, Fronts fronts);

// What starting `window` before the handover leads to.
struct TwoFrontForecast {
  double uncovered = 0;   // tokens not covered at the handover
  double link_only = 0;   // of these, the ones that only the link can bring
  Seconds clear{0};       // from the handover until all is covered and the model loaded
  Seconds early{0};       // from when the fronts met to the handover
  double recomputed = 0;  // tokens by the target
  double sent = 0;        // tokens by the source
};
// `clear` and `early` are expected values where the prediction says how good it is.
TwoFrontForecast forecast_two_front(const PlanInput& input, Fronts fronts, Seconds window);

}  // namespace pallas::plan
