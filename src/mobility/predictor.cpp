#include "mobility/predictor.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace pallas::mobility {
namespace {

struct Velocity {
  double x = 0;
  double y = 0;
};

// From the two latest positions; none when the sender's clock did not advance.
std::optional<Velocity> from_positions(const PositionReport& latest,
                                       const PositionReport* previous) {
  if (previous == nullptr) return std::nullopt;
  const double dt = (latest.t_ms - previous->t_ms) / 1000;
  if (!(dt > 0)) return std::nullopt;
  return Velocity{(latest.x_m - previous->x_m) / dt, (latest.y_m - previous->y_m) / dt};
}

// What the report says wins; the positions fill in what it leaves out.
std::optional<Velocity> velocity(const PositionReport& latest, const PositionReport* previous) {
  const std::optional<Velocity> measured = from_positions(latest, previous);
  if (!latest.speed_mps && !latest.heading_deg) return measured;

  double east = 0, north = 0;  // unit vector of the heading
  if (latest.heading_deg) {
    const double angle = *latest.heading_deg * std::numbers::pi / 180;
    east = std::sin(angle);
    north = std::cos(angle);
  }
  if (latest.speed_mps && latest.heading_deg) {
    return Velocity{*latest.speed_mps * east, *latest.speed_mps * north};
  }
  if (!measured) return std::nullopt;
  const double measured_speed = std::hypot(measured->x, measured->y);
  if (latest.heading_deg) return Velocity{measured_speed * east, measured_speed * north};
  if (!(measured_speed > 0)) return std::nullopt;
  const double scale = *latest.speed_mps / measured_speed;
  return Velocity{measured->x * scale, measured->y * scale};
}

}  // namespace

std::optional<Crossing> CvhPredictor::predict(const PositionReport& latest,
                                              const PositionReport* previous) const {
  const std::optional<Velocity> v = velocity(latest, previous);
  // Below it a heading means nothing; the negation also turns away NaN.
  if (!v || !(std::hypot(v->x, v->y) >= options_.min_speed_mps)) return std::nullopt;
  return cells_.first_crossing({latest.x_m, latest.y_m}, v->x, v->y, options_.horizon);
}

Seconds CvhPredictor::sigma(const PositionReport& latest, const PositionReport* previous,
                            Seconds in) const {
  const std::optional<Velocity> v = velocity(latest, previous);
  const double speed = std::max(v ? std::hypot(v->x, v->y) : 0.0, options_.min_speed_mps);
  return std::min(in / 2,
                  Seconds(options_.acceleration_mps2 * in.count() * in.count() / (2 * speed)));
}

}  // namespace pallas::mobility
