#pragma once
// What `pallas plan` answers. Pure functions: same request, same bytes.

#include <string>
#include <vector>

#include "experiment.h"
#include "plan_request.h"

namespace pallas::app {

struct SchemePlan {
  std::string scheme;
  plan::Decision decision;
};
std::vector<SchemePlan> make_plans(const PlanRequest& request);

std::string plans_text(const PlanRequest& request, const std::vector<SchemePlan>& plans);
// A list of objects with scheme, window_s, split_tokens, sit_s, early_s, bytes, trigger_now; for
// `partial` besides fraction and break_even_mbps, the goodput below which ctHO is faster.
std::string plans_json(const PlanRequest& request, const std::vector<SchemePlan>& plans);
// Interruption and early exposure over the window, for those of the schemes that have one.
experiments::Figure tradeoff(const PlanRequest& request);

}  // namespace pallas::app
