// Cells given one by one as rectangles.

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "mobility/cells.h"

namespace pallas::mobility {
namespace {

// How far behind an edge the next cell is looked up.
constexpr double kBehindEdgeMeters = 1e-6;

// When a point at `v` with this speed is in [low, high): [enter, leave).
struct Stay {
  double enter = 0, leave = 0;
};
Stay stay(double v, double speed, double low, double high) {
  constexpr double kEver = 1e300;
  if (speed == 0) return v >= low && v < high ? Stay{-kEver, kEver} : Stay{kEver, -kEver};
  const double a = (low - v) / speed, b = (high - v) / speed;
  return {std::min(a, b), std::max(a, b)};
}

class RectangleCells final : public CellLayout {
 public:
  explicit RectangleCells(std::vector<Rectangle> rectangles) : all_(std::move(rectangles)) {}

  CellId cell_at(Point p) const override {
    for (const Rectangle& r : all_) {
      if (p.x_m >= r.x_m && p.x_m < r.x_m + r.width_m && p.y_m >= r.y_m &&
          p.y_m < r.y_m + r.height_m) {
        return r.cell;
      }
    }
    return CellId{};
  }

  bool knows(const CellId& cell) const override {
    return std::any_of(all_.begin(), all_.end(),
                       [&](const Rectangle& r) { return r.cell == cell; });
  }

  std::optional<Crossing> first_crossing(Point p, double vx, double vy,
                                         Seconds horizon) const override {
    const double speed = std::hypot(vx, vy);
    if (!std::isfinite(speed) || !(speed > 0)) return std::nullopt;
    const CellId from = cell_at(p);
    // Only edges of rectangles change the cell; the earliest one behind which it differs counts.
    std::vector<double> edges;
    for (const Rectangle& r : all_) {
      const Stay x = stay(p.x_m, vx, r.x_m, r.x_m + r.width_m);
      const Stay y = stay(p.y_m, vy, r.y_m, r.y_m + r.height_m);
      const double enter = std::max(x.enter, y.enter), leave = std::min(x.leave, y.leave);
      if (enter >= leave) continue;
      for (const double t : {enter, leave}) {
        if (t >= 0 && t <= horizon.count()) edges.push_back(t);
      }
    }
    std::sort(edges.begin(), edges.end());
    for (const double t : edges) {
      const double behind = t + kBehindEdgeMeters / speed;
      CellId to = cell_at({p.x_m + vx * behind, p.y_m + vy * behind});
      if (to != from) return Crossing{from, std::move(to), Seconds(t)};
    }
    return std::nullopt;
  }

 private:
  std::vector<Rectangle> all_;
};

bool overlap(const Rectangle& a, const Rectangle& b) {
  return a.x_m < b.x_m + b.width_m && b.x_m < a.x_m + a.width_m && a.y_m < b.y_m + b.height_m &&
         b.y_m < a.y_m + a.height_m;
}

}  // namespace

Result<std::unique_ptr<CellLayout>> make_rectangle_cells(std::vector<Rectangle> rectangles) {
  const auto bad = [](std::string what) { return fail(Errc::kInvalidArgument, std::move(what)); };
  if (rectangles.empty()) return bad("rectangles: there is none");
  std::set<std::string> names;
  for (std::size_t i = 0; i < rectangles.size(); ++i) {
    const Rectangle& r = rectangles[i];
    if (r.cell.value.empty()) return bad("rectangles: one has no cell name");
    if (!names.insert(r.cell.value).second) {
      return bad("rectangles: " + r.cell.value + " is named twice");
    }
    if (!std::isfinite(r.x_m) || !std::isfinite(r.y_m)) {
      return bad("rectangles: position of " + r.cell.value + " is not finite");
    }
    if (!std::isfinite(r.width_m) || !std::isfinite(r.height_m) || r.width_m <= 0 ||
        r.height_m <= 0) {
      return bad("rectangles: " + r.cell.value + " has no area");
    }
    for (std::size_t k = 0; k < i; ++k) {
      if (overlap(r, rectangles[k])) {
        return bad("rectangles: " + r.cell.value + " overlaps " + rectangles[k].cell.value);
      }
    }
  }
  return std::unique_ptr<CellLayout>(std::make_unique<RectangleCells>(std::move(rectangles)));
}

}  // namespace pallas::mobility
