#pragma once
// How UEs moved: samples over time, and the handovers along them.

#include <iosfwd>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "mobility/cells.h"

namespace pallas::mobility {

struct TrajectorySample {
  Seconds t{0};
  Point position;
  std::optional<double> speed_mps;
  std::optional<double> heading_deg;  // clockwise from north
};

struct Trajectory {
  UeId ue;
  std::vector<TrajectorySample> samples;  // at least one; times strictly ascend

  Seconds begin() const { return samples.front().t; }
  Seconds end() const { return samples.back().t; }
  // Position and speed by linear interpolation; the heading is that of the sample before `t`.
  // None before the first and after the last sample.
  std::optional<TrajectorySample> at(Seconds t) const;
};

struct CellChange {
  Seconds at{0};
  CellId from;
  CellId to;
  Point where;
};

// Every change of cell in order of time. The UE moves in a straight line at constant speed between
// two samples, so a segment may cross several cells; each time is exact on that line.
std::vector<CellChange> crossings(const Trajectory& trajectory, const CellLayout& layout);

// Readers. They take plain text (decompress before), accept LF and CRLF, and give trajectories in
// order of first appearance. Any fault is kParse and names the line: an unknown, missing or
// repeated column, a wrong number of fields, a number that is malformed or not finite, a negative
// speed, time that runs backwards, a UE twice at one time, no sample at all.

// SUMO FCD CSV: header in any order, `timestep_time` and `vehicle_id;vehicle_x;vehicle_y` and/or
// `person_id;person_x;person_y`, with optional `_speed` and `_angle`; SUMO's other columns are
// ignored; rows that hold only a time are skipped. A vehicle keeps its id as UE, a pedestrian
// becomes "person_<id>" (SUMO numbers both from 0).
Result<std::vector<Trajectory>> parse_sumo_csv(std::istream& in);

// Plain CSV: columns `t_s,ue,x_m,y_m[,speed_mps][,heading_deg]` in any order.
Result<std::vector<Trajectory>> parse_plain_csv(std::istream& in);

// Whichever of the two the header says.
Result<std::vector<Trajectory>> parse_trajectories(std::istream& in);

// The one of that name, or null.
const Trajectory* find_trajectory(const std::vector<Trajectory>& all, const UeId& ue);

}  // namespace pallas::mobility
