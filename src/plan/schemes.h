#pragma once
// What the files of the schemes share. Internal to plan/.

#include <memory>

#include "plan/scheme.h"

namespace pallas::plan {

// Rounded down, and kept within what a position can hold.
TokenPosition to_position(double tokens);
TokenPosition floor_to_block(TokenPosition tokens, TokenPosition block_tokens);

// A decision with the fields filled that all schemes fill alike: trigger and look_again from
// `window`, expected_in and window of the plan, names. At the handover it always triggers.
Decision start_at(const PlanInput& input, std::string_view scheme, Seconds window);
// For schemes that do nothing before the handover.
Decision start_at_handover(const PlanInput& input, std::string_view scheme);
void expect(Decision& decision, Seconds sit, Seconds early, double bytes, double recomputed);

std::unique_ptr<Scheme> make_detour();
std::unique_ptr<Scheme> make_full_copy();
std::unique_ptr<Scheme> make_recompute();
std::unique_ptr<Scheme> make_ctho();
std::unique_ptr<Scheme> make_partial();
std::unique_ptr<Scheme> make_pallas();
std::unique_ptr<Scheme> make_pallas_no_rc();
std::unique_ptr<Scheme> make_pallas_no_sm();
std::unique_ptr<Scheme> make_two_front();

}  // namespace pallas::plan
