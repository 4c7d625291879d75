#pragma once
// UEs that move: trajectories over a cell layout drive a World's predictions and handovers.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "mobility/a3.h"
#include "mobility/cells.h"
#include "mobility/trajectory.h"
#include "sim/world.h"

namespace pallas::sim {

enum class PredictorKind : std::uint8_t {
  kNone,    // nobody foresees anything
  kCvh,     // positions go to the gNBs, whose own CVH predictor works
  kOracle,  // the true next handover, from `horizon` before it
  kGiven    // the same with errors
};

// kGiven: what is wrong with each prediction. Redrawn for each handover, not for each report.
struct PredictionError {
  Seconds bias{0};          // added to the true time
  Seconds sd{0};            // normal
  double wrong_target = 0;  // probability that another neighbour is named
  bool tell_sigma = false;  // predictions carry sigma = sd
  std::optional<double> confidence;
};

struct Roaming {
  std::vector<mobility::Trajectory> trajectories;  // times from 0 of the run
  UeSettings ue;                                   // of each; the name is the trajectory's
  Seconds report_interval{0.5};                    // of positions and predictions
  PredictorKind predictor = PredictorKind::kCvh;
  Seconds horizon{8};  // of kOracle and kGiven
  PredictionError error;
  // For kCvh: predictions made here instead of in the nodes, to carry sigma and confidence.
  std::optional<Duration> cvh_sigma;
  std::optional<double> cvh_confidence;
  // Trigger by A3 in place of the cell's boundary; the layout's cells need sites then.
  std::optional<mobility::A3Settings> a3;
  std::vector<mobility::Site> sites;  // for a3
  // Sessions open when their trajectory begins and are left alone when it ends.
  std::uint64_t seed = 1;
  std::function<void(double done)> progress;  // share of the time, now and then
};
Status check(const Roaming& roaming);

// Runs all of it in `world`, whose settings name the layout, from now until the last trajectory
// ended and `tail` more; ends with World::finish().
Status run(World& world, const Roaming& roaming, Seconds tail = Seconds(5));

// A gNB "gnb_<i>_<j>" for each square cell that the trajectories touch and for those around it.
std::vector<GnbSettings> gnbs_along(const std::vector<mobility::Trajectory>& trajectories,
                                    const mobility::CellLayout& layout);
// One for each of cell_0_0 to cell_<columns-1>_<rows-1>.
std::vector<GnbSettings> gnbs_of_grid(std::uint32_t columns, std::uint32_t rows);

// The same trajectories turned by a random multiple of 90 degrees about the middle of their field
// and shifted by up to one cell, drawn from `seed` (Table 3: one map gives many runs).
std::vector<mobility::Trajectory> rotated_and_shifted(
    const std::vector<mobility::Trajectory>& trajectories, double cell_m, std::uint64_t seed);

// What lies within [0, duration]; trajectories that begin later are left out.
std::vector<mobility::Trajectory> cut_to(const std::vector<mobility::Trajectory>& trajectories,
                                         Seconds duration);

// UEs "ue-<n>" that walk straight in a square of `side_m`, turn into a random direction every
// `turn` on average and are reflected at the border; speeds uniform in [low, high] m/s. They begin
// within the first two seconds. Samples only where the direction changes.
struct Walks {
  std::size_t ues = 100;
  double side_m = 1000;
  double low_mps = 5, high_mps = 15;
  Seconds turn{20};
  Seconds duration{60};
};
std::vector<mobility::Trajectory> random_walks(const Walks& walks, std::uint64_t seed);

}  // namespace pallas::sim
