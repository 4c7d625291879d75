// first_crossing against a walk in small steps.

#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "mobility/cells.h"

namespace pallas::mobility {
namespace {

double in_range(double low, double high) {
  // inRange alone grows its range with RapidCheck's size.
  const auto step = rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, 1'000'001));
  return low + (high - low) * *step / 1e6;
}

// The cell stays `from` until shortly before the crossing and is `to` shortly after; without a
// crossing it stays to the end.
void agrees_with_a_walk(const CellLayout& cells) {
  const Point p{in_range(-300, 300), in_range(-300, 300)};
  const double vx = in_range(-40, 40), vy = in_range(-40, 40);
  const double horizon = 20;
  const auto crossing = cells.first_crossing(p, vx, vy, Seconds(horizon));
  const double end = crossing ? crossing->in.count() : horizon;
  const auto at = [&](double t) { return cells.cell_at({p.x_m + t * vx, p.y_m + t * vy}); };
  const CellId from = at(0);
  constexpr double kTiny = 1e-7;
  for (int k = 0; k < 200; ++k) {
    const double t = end * k / 200;
    if (t < end - kTiny) RC_ASSERT(at(t) == from);
  }
  if (!crossing) return;
  RC_ASSERT(crossing->from == from);
  RC_ASSERT(crossing->to != from);
  // A graze of a corner may be shorter than the step behind the boundary.
  const CellId behind = at(end + kTiny);
  RC_CLASSIFY(behind != crossing->to, "grazed a corner");
  RC_ASSERT(behind != from || std::hypot(vx, vy) < 1e-6);
}

RC_GTEST_PROP(SquareCells, first_crossing_agrees_with_a_walk, ()) {
  const auto cells = make_square_cells(in_range(20, 150), in_range(-80, 80), in_range(-80, 80));
  agrees_with_a_walk(**cells);
}

RC_GTEST_PROP(NearestSite, first_crossing_agrees_with_a_walk, ()) {
  std::vector<Site> list;
  const int count = *rc::gen::inRange(1, 12);
  for (int k = 0; k < count; ++k) {
    list.push_back({CellId(std::to_string(k)), {in_range(-300, 300), in_range(-300, 300)}});
  }
  const auto cells = make_nearest_site_cells(std::move(list));
  RC_PRE(cells.has_value());
  agrees_with_a_walk(**cells);
}

}  // namespace
}  // namespace pallas::mobility
