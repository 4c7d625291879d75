#pragma once
// What `pallas sim` found, as text, CSV and JSON. Pure: same runs, same bytes.

#include <string>
#include <vector>

#include "sim/scenario.h"

namespace pallas::app {

// A table, one line a run.
std::string runs_text(const std::string& scenario, const std::vector<sim::ScenarioRun>& runs);
std::string runs_csv(const std::vector<sim::ScenarioRun>& runs);
// A list of objects, one a run, without its handovers.
std::string runs_json(const std::vector<sim::ScenarioRun>& runs);
// One line or object a handover of every run.
std::string handovers_csv(const std::vector<sim::ScenarioRun>& runs);
std::string handovers_json(const std::vector<sim::ScenarioRun>& runs);

}  // namespace pallas::app
