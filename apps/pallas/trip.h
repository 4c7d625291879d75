#pragma once
// One vehicle's way through the cells, ready to be replayed.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "mobility/cells.h"
#include "mobility/trajectory.h"

namespace pallas::app {

struct Trip {
  mobility::Trajectory trajectory;  // at least two samples
  CellId first_cell;
  std::vector<mobility::CellChange> crossings;  // ascending in time, at least one

  Seconds begin() const { return trajectory.begin(); }
  Seconds end() const { return trajectory.end(); }
};

// The part of a trajectory from `from` to `to`, its ends interpolated; the whole where none is
// given. kInvalidArgument when nothing of it lies there, kNotFound, naming the vehicle, when it
// never leaves its first cell.
Result<Trip> make_trip(const mobility::Trajectory& trajectory, std::optional<Seconds> from,
                       std::optional<Seconds> to, const mobility::CellLayout& cells);

struct TripOptions {
  std::string file;     // SUMO FCD CSV or plain CSV, gzipped or not
  std::string vehicle;  // "": the file's only one
  std::optional<double> from_s, to_s;
};
// Reads and picks. Every error names the file, and the line where there is one; an unknown vehicle
// is answered with some that exist.
Result<Trip> load_trip(const TripOptions& options, const mobility::CellLayout& cells);

}  // namespace pallas::app
