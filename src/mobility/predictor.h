#pragma once
// CVH: constant velocity and heading. p + t v (sin a, cos a) from the latest sample; below 0.5 m/s
// it predicts nothing.

#include <optional>

#include "mobility/cells.h"
#include "mobility/ran_events.h"

namespace pallas::mobility {

struct CvhOptions {
  double min_speed_mps = 0.5;
  Seconds horizon{30};
};

class CvhPredictor {
 public:
  CvhPredictor(const CellLayout& cells, CvhOptions options) : cells_(cells), options_(options) {}
  // Speed and heading come from the report, or from the two latest positions where it has none.
  // `previous` may be null.
  std::optional<Crossing> predict(const PositionReport& latest,
                                  const PositionReport* previous) const;

 private:
  const CellLayout& cells_;
  CvhOptions options_;
};

}  // namespace pallas::mobility
