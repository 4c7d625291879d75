#pragma once
// Where cells are, and which one covers a point.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace pallas::mobility {

struct Point {
  double x_m = 0;
  double y_m = 0;
  friend bool operator==(const Point&, const Point&) = default;
};

struct Crossing {
  CellId from;
  CellId to;
  Seconds in{0};  // from the start of the motion
};

class CellLayout {
 public:
  virtual ~CellLayout() = default;
  virtual CellId cell_at(Point p) const = 0;
  // Does a cell of this name exist?
  virtual bool knows(const CellId& cell) const = 0;
  // First change of cell when moving from `p` with velocity (vx, vy) m/s, within `horizon`.
  // Exact for squares; for sites the nearest-site bisector.
  virtual std::optional<Crossing> first_crossing(Point p, double vx, double vy,
                                                 Seconds horizon) const = 0;
};

// Squares of `size_m`; cell (i, j) spans [offset + i*size, offset + (i+1)*size) in x, likewise y.
// Names: "cell_<i>_<j>" (i, j may be negative: "cell_-1_0").
// kInvalidArgument for a size that is not finite and positive or an offset that is not finite.
Result<std::unique_ptr<CellLayout>> make_square_cells(double size_m, double offset_x_m,
                                                      double offset_y_m);

struct Site {
  CellId cell;
  Point position;
};
// Nearest-site (Voronoi) cells. At least one site, distinct names and positions, finite.
Result<std::unique_ptr<CellLayout>> make_nearest_site_cells(std::vector<Site> sites);

// [x, x + width) by [y, y + height).
struct Rectangle {
  CellId cell;
  double x_m = 0, y_m = 0;
  double width_m = 0, height_m = 0;
};
// Cells given one by one; outside of all of them there is no cell (an empty name). At least one;
// distinct names, finite, positive sizes; kInvalidArgument names the two that overlap.
Result<std::unique_ptr<CellLayout>> make_rectangle_cells(std::vector<Rectangle> rectangles);

}  // namespace pallas::mobility
