#pragma once
// What an experiment found, as text, CSV and JSON, and its figures as scripts for gnuplot. Pure
// functions: same outcome, same bytes.

#include <string>

#include "experiment.h"

namespace pallas::app {

// A table of quantities beside the paper's, then the notes and the parameters.
std::string outcome_text(const experiments::Experiment& experiment,
                         const experiments::Outcome& outcome);
// quantity,ours,paper,ratio,note
std::string outcome_csv(const experiments::Outcome& outcome);
// A list of objects with quantity, ours, paper (or null), ratio (or null), note.
std::string outcome_rows_json(const experiments::Outcome& outcome);
// The rows with what made them: experiment, seed, quick, parameters.
std::string outcome_json(const experiments::Experiment& experiment,
                         const experiments::Settings& settings,
                         const experiments::Outcome& outcome);
// x and y of each curve, one block a curve, as CSV: curve,x,y
std::string figure_csv(const experiments::Figure& figure);
// A script that draws the figure into <name>.svg and <name>.png where it is run. Holds the data.
// Empty when there is nothing to draw.
std::string figure_script(const experiments::Figure& figure);

}  // namespace pallas::app
