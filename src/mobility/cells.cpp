#include "mobility/cells.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

namespace pallas::mobility {
namespace {

constexpr std::string_view kSquarePrefix = "cell_";
// Beyond this a double no longer tells neighbouring squares apart; such points share a cell.
constexpr double kMaxIndex = 1e15;

bool finite(Point p) {
  return std::isfinite(p.x_m) && std::isfinite(p.y_m);
}

struct SquareIndex {
  std::int64_t i = 0;
  std::int64_t j = 0;
};

CellId square_name(SquareIndex at) {
  return CellId("cell_" + std::to_string(at.i) + "_" + std::to_string(at.j));
}

// One axis of the grid.
class Axis {
 public:
  Axis(double size, double offset) : size_(size), offset_(offset) {}

  double edge(std::int64_t index) const { return offset_ + static_cast<double>(index) * size_; }

  std::int64_t index_of(double v) const {
    const double raw = std::clamp(std::floor((v - offset_) / size_), -kMaxIndex, kMaxIndex);
    auto index = static_cast<std::int64_t>(raw);
    // The quotient is rounded; the edges decide.
    if (v < edge(index)) --index;
    if (v >= edge(index + 1)) ++index;
    return index;
  }

  // Seconds until `v`, now in square `index`, leaves it at `speed`; infinite when it does not.
  double leaves_in(double v, std::int64_t index, double speed) const {
    if (speed > 0) return std::max(0.0, (edge(index + 1) - v) / speed);
    if (speed < 0) return std::max(0.0, (edge(index) - v) / speed);
    return std::numeric_limits<double>::infinity();
  }

 private:
  double size_;
  double offset_;
};

class SquareCells final : public CellLayout {
 public:
  SquareCells(double size, double offset_x, double offset_y)
      : x_(size, offset_x), y_(size, offset_y) {}

  CellId cell_at(Point p) const override {
    if (!finite(p)) return CellId{};
    return square_name({x_.index_of(p.x_m), y_.index_of(p.y_m)});
  }

  bool knows(const CellId& cell) const override {
    std::string_view text = cell.value;
    if (!text.starts_with(kSquarePrefix)) return false;
    text.remove_prefix(kSquarePrefix.size());
    SquareIndex at;
    const char* const end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, at.i);
    if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '_') return false;
    const auto second = std::from_chars(first.ptr + 1, end, at.j);
    if (second.ec != std::errc{} || second.ptr != end) return false;
    return square_name(at) == cell;  // one name a cell: no "-0", no leading zeros
  }

  std::optional<Crossing> first_crossing(Point p, double vx, double vy,
                                         Seconds horizon) const override {
    if (!finite(p) || !std::isfinite(vx) || !std::isfinite(vy)) return std::nullopt;
    const SquareIndex from{x_.index_of(p.x_m), y_.index_of(p.y_m)};
    const double tx = x_.leaves_in(p.x_m, from.i, vx);
    const double ty = y_.leaves_in(p.y_m, from.j, vy);
    const double t = std::min(tx, ty);
    if (!(t <= horizon.count()) || !std::isfinite(t)) return std::nullopt;
    SquareIndex to = from;
    if (tx <= ty) to.i += vx > 0 ? 1 : -1;
    if (ty <= tx) to.j += vy > 0 ? 1 : -1;  // both: straight through the corner
    return Crossing{square_name(from), square_name(to), Seconds(t)};
  }

 private:
  Axis x_;
  Axis y_;
};

class NearestSiteCells final : public CellLayout {
 public:
  explicit NearestSiteCells(std::vector<Site> sites) : sites_(std::move(sites)) {}

  CellId cell_at(Point p) const override {
    if (!finite(p)) return CellId{};
    return sites_[nearest(p)].cell;
  }

  bool knows(const CellId& cell) const override {
    return std::any_of(sites_.begin(), sites_.end(),
                       [&](const Site& site) { return site.cell == cell; });
  }

  std::optional<Crossing> first_crossing(Point p, double vx, double vy,
                                         Seconds horizon) const override {
    if (!finite(p) || !std::isfinite(vx) || !std::isfinite(vy)) return std::nullopt;
    const Site& from = sites_[nearest(p)];
    const double ax = from.position.x_m - p.x_m, ay = from.position.y_m - p.y_m;
    const Site* to = nullptr;
    double best_t = std::numeric_limits<double>::infinity();
    double best_closing = 0;
    for (const Site& site : sites_) {
      // |p + t v - site| = |p + t v - from| is linear in t.
      const double bx = site.position.x_m - p.x_m, by = site.position.y_m - p.y_m;
      const double closing = 2 * (vx * (bx - ax) + vy * (by - ay));
      if (!(closing > 0)) continue;  // the bisector is never reached
      const double t = std::max(0.0, ((bx * bx + by * by) - (ax * ax + ay * ay)) / closing);
      // Through a corner of several cells: the one that is nearest just behind it.
      if (t < best_t || (t == best_t && closing > best_closing)) {
        best_t = t;
        best_closing = closing;
        to = &site;
      }
    }
    if (to == nullptr || !(best_t <= horizon.count())) return std::nullopt;
    return Crossing{from.cell, to->cell, Seconds(best_t)};
  }

 private:
  // On a bisector the site that was listed first.
  std::size_t nearest(Point p) const {
    std::size_t best = 0;
    double best_d = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < sites_.size(); ++k) {
      const double d = std::hypot(sites_[k].position.x_m - p.x_m, sites_[k].position.y_m - p.y_m);
      if (d < best_d) {
        best_d = d;
        best = k;
      }
    }
    return best;
  }

  std::vector<Site> sites_;
};

}  // namespace

Result<std::unique_ptr<CellLayout>> make_square_cells(double size_m, double offset_x_m,
                                                      double offset_y_m) {
  if (!std::isfinite(size_m) || size_m <= 0) {
    return fail(Errc::kInvalidArgument, "size_m must be finite and above 0");
  }
  if (!std::isfinite(offset_x_m)) {
    return fail(Errc::kInvalidArgument, "offset_x_m must be finite");
  }
  if (!std::isfinite(offset_y_m)) {
    return fail(Errc::kInvalidArgument, "offset_y_m must be finite");
  }
  return std::unique_ptr<CellLayout>(std::make_unique<SquareCells>(size_m, offset_x_m, offset_y_m));
}

Result<std::unique_ptr<CellLayout>> make_nearest_site_cells(std::vector<Site> sites) {
  if (sites.empty()) return fail(Errc::kInvalidArgument, "sites must not be empty");
  std::set<std::string> names;
  std::set<std::pair<double, double>> positions;
  for (const Site& site : sites) {
    if (site.cell.value.empty()) return fail(Errc::kInvalidArgument, "sites: a cell has no name");
    if (!finite(site.position)) {
      return fail(Errc::kInvalidArgument, "sites: position of " + site.cell.value + " not finite");
    }
    if (!names.insert(site.cell.value).second) {
      return fail(Errc::kInvalidArgument, "sites: " + site.cell.value + " is named twice");
    }
    // + 0.0 makes -0 and 0 one position.
    if (!positions.emplace(site.position.x_m + 0.0, site.position.y_m + 0.0).second) {
      return fail(Errc::kInvalidArgument,
                  "sites: " + site.cell.value + " shares its position with another");
    }
  }
  return std::unique_ptr<CellLayout>(std::make_unique<NearestSiteCells>(std::move(sites)));
}

}  // namespace pallas::mobility
