#pragma once
// Event A3 (TS 38.331, 5.5.4.4): a neighbour becomes better than the serving cell by an offset, for
// a time to trigger. Received powers come from a path loss model on the cells' sites.

#include <cstddef>
#include <optional>
#include <vector>

#include "base/result.h"
#include "mobility/cells.h"
#include "mobility/trajectory.h"

namespace pallas::mobility {

struct A3Settings {
  double hysteresis_db = 1;  // Hys, [0, 15]
  double offset_db = 3;      // Off, [-15, 15]
  // One of the standard's values: 0, 40, 64, 80, 100, 128, 160, 256, 320, 480, 512, 640, 1024,
  // 1280, 2560, 5120 ms.
  Duration time_to_trigger{std::chrono::milliseconds(160)};
  Duration measure_every{std::chrono::milliseconds(40)};
  // Log-distance path loss: power = -10 exponent log10(max(d, 1 m)), relative.
  double path_loss_exponent = 3.5;
};
// kInvalidArgument with the field's name.
Status check(const A3Settings& settings);

// One UE's measurements. Offsets of frequency and cell (Ofn, Ocn, Ofp, Ocp) are 0.
class A3Monitor {
 public:
  // `sites` outlives it.
  A3Monitor(const A3Settings& settings, const std::vector<Site>& sites, CellId serving);

  // At most one call each instant, times ascend. The cell to hand over to, when the condition
  // Mn - Hys > Mp + Off has held for the time to trigger; it is the serving cell from then on.
  std::optional<CellId> measure(Seconds now, Point where);
  const CellId& serving() const { return serving_; }

 private:
  double distance2(std::size_t site, Point where) const;  // squared, at least 1 m

  A3Settings settings_;
  const std::vector<Site>& sites_;
  double nearer2_;  // a neighbour meets the condition below this share of the squared distance
  CellId serving_;
  std::size_t serving_site_;
  std::vector<std::optional<Seconds>> entered_;  // since when each neighbour meets the condition
};

// Every handover along a trajectory, as crossings() gives them for boundaries.
std::vector<CellChange> a3_handovers(const Trajectory& trajectory, const std::vector<Site>& sites,
                                     const A3Settings& settings);

}  // namespace pallas::mobility
