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
  // How far a UE departs from constant velocity: standard deviation of its acceleration. 1.25 is
  // what cars in a town do; on the shipped trace it puts a fifth of the crossings of the next 1 to
  // 4 s earlier than 0.84 standard deviations before the predicted time, as it should.
  double acceleration_mps2 = 1.25;
};

class CvhPredictor {
 public:
  CvhPredictor(const CellLayout& cells, CvhOptions options) : cells_(cells), options_(options) {}
  // Speed and heading come from the report, or from the two latest positions where it has none.
  // `previous` may be null.
  std::optional<Crossing> predict(const PositionReport& latest,
                                  const PositionReport* previous) const;
  // Standard deviation of a crossing predicted `in` from now for such a UE: an acceleration that
  // stays the same moves it by a in^2 / 2 until then, which at speed v is a in^2 / (2 v) of time;
  // never more than half of `in`.
  Seconds sigma(const PositionReport& latest, const PositionReport* previous, Seconds in) const;

 private:
  const CellLayout& cells_;
  CvhOptions options_;
};

}  // namespace pallas::mobility
