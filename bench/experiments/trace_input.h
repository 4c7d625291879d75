#pragma once
// The trajectories that an experiment drives.

#include <vector>

#include "experiment.h"
#include "mobility/trajectory.h"

namespace pallas::experiments {

// Those of settings.trace, or the shipped ones. Errors name the file, and the line where there is
// one.
Result<std::vector<mobility::Trajectory>> read_trajectories(const Settings& settings);

// A copy that is turned about the origin and shifted; headings turn with it.
mobility::Trajectory moved(const mobility::Trajectory& trajectory, double angle_rad,
                           double shift_x_m, double shift_y_m);

}  // namespace pallas::experiments
