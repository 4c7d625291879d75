// Trajectories made or changed for a run.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>
#include <set>
#include <utility>

#include "base/random.h"
#include "sim/roaming.h"

namespace pallas::sim {
namespace {

using mobility::Point;
using mobility::Trajectory;
using mobility::TrajectorySample;

constexpr double kDegrees = 180 / std::numbers::pi;
// Walks begin within it, so that a city's sessions do not all open at one instant.
constexpr double kBeginWithin = 2;

// The indices in "cell_<i>_<j>".
std::optional<std::pair<int, int>> indices(const std::string& cell) {
  constexpr std::string_view kPrefix = "cell_";
  if (!cell.starts_with(kPrefix)) return std::nullopt;
  std::pair<int, int> at;
  const char* const end = cell.data() + cell.size();
  const auto first = std::from_chars(cell.data() + kPrefix.size(), end, at.first);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '_') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, at.second);
  if (second.ec != std::errc{} || second.ptr != end) return std::nullopt;
  return at;
}

GnbSettings gnb_of_square(int i, int j) {
  const std::string place = std::to_string(i) + "_" + std::to_string(j);
  return {"gnb_" + place, {CellId("cell_" + place)}, {}};
}

// Moves `v` along with `speed` until it reaches 0 or `side`; infinite when it does not.
double until_border(double v, double speed, double side) {
  if (speed > 0) return (side - v) / speed;
  if (speed < 0) return -v / speed;
  return std::numeric_limits<double>::infinity();
}

double heading_of(double vx, double vy) {
  const double degrees = std::atan2(vx, vy) * kDegrees;
  return degrees < 0 ? degrees + 360 : degrees;
}

}  // namespace

std::vector<GnbSettings> gnbs_along(const std::vector<Trajectory>& trajectories,
                                    const mobility::CellLayout& layout) {
  std::set<std::pair<int, int>> cells;
  const auto add = [&](const CellId& cell) {
    const auto at = indices(cell.value);
    if (!at) return;
    for (int di = -1; di <= 1; ++di) {
      for (int dj = -1; dj <= 1; ++dj) cells.emplace(at->first + di, at->second + dj);
    }
  };
  for (const Trajectory& t : trajectories) {
    if (t.samples.empty()) continue;
    add(layout.cell_at(t.samples.front().position));
    for (const auto& change : crossings(t, layout)) add(change.to);
  }
  std::vector<GnbSettings> gnbs;
  for (const auto& [i, j] : cells) gnbs.push_back(gnb_of_square(i, j));
  return gnbs;
}

std::vector<GnbSettings> gnbs_of_grid(std::uint32_t columns, std::uint32_t rows) {
  std::vector<GnbSettings> gnbs;
  for (std::uint32_t i = 0; i < columns; ++i) {
    for (std::uint32_t j = 0; j < rows; ++j) {
      gnbs.push_back(gnb_of_square(static_cast<int>(i), static_cast<int>(j)));
    }
  }
  return gnbs;
}

std::vector<Trajectory> rotated_and_shifted(const std::vector<Trajectory>& trajectories,
                                            double cell_m, std::uint64_t seed) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  double x_low = kFar, x_high = -kFar, y_low = kFar, y_high = -kFar;
  for (const Trajectory& t : trajectories) {
    for (const TrajectorySample& s : t.samples) {
      x_low = std::min(x_low, s.position.x_m);
      x_high = std::max(x_high, s.position.x_m);
      y_low = std::min(y_low, s.position.y_m);
      y_high = std::max(y_high, s.position.y_m);
    }
  }
  Random random(seed);
  const auto quarters = random.below(4);
  const double dx = random.uniform(0, cell_m), dy = random.uniform(0, cell_m);
  const Point middle{(x_low + x_high) / 2, (y_low + y_high) / 2};
  std::vector<Trajectory> turned = trajectories;
  for (Trajectory& t : turned) {
    for (TrajectorySample& s : t.samples) {
      double x = s.position.x_m - middle.x_m, y = s.position.y_m - middle.y_m;
      for (std::uint64_t q = 0; q < quarters; ++q) x = std::exchange(y, -x);  // clockwise
      s.position = {middle.x_m + x + dx, middle.y_m + y + dy};
      if (s.heading_deg) {
        *s.heading_deg = std::fmod(*s.heading_deg + 90 * static_cast<double>(quarters), 360);
      }
    }
  }
  return turned;
}

std::vector<Trajectory> cut_to(const std::vector<Trajectory>& trajectories, Seconds duration) {
  std::vector<Trajectory> cut;
  for (const Trajectory& t : trajectories) {
    if (t.samples.empty() || t.begin() > duration) continue;
    Trajectory kept{t.ue, {}};
    for (const TrajectorySample& s : t.samples) {
      if (s.t <= duration) kept.samples.push_back(s);
    }
    const auto last = t.at(duration);
    if (last && kept.samples.back().t < duration) kept.samples.push_back(*last);
    cut.push_back(std::move(kept));
  }
  return cut;
}

std::vector<Trajectory> random_walks(const Walks& walks, std::uint64_t seed) {
  std::vector<Trajectory> all;
  all.reserve(walks.ues);
  for (std::size_t n = 0; n < walks.ues; ++n) {
    Random random(mix(seed, static_cast<std::uint64_t>(n)));
    Trajectory t{UeId("ue-" + std::to_string(n + 1)), {}};
    Point at{random.uniform(0, walks.side_m), random.uniform(0, walks.side_m)};
    const double speed = random.uniform(walks.low_mps, walks.high_mps);
    double now = random.uniform(0, std::min(kBeginWithin, walks.duration.count() / 2));
    double angle = random.uniform(0, 2 * std::numbers::pi);
    double turn_at = now + random.exponential(walks.turn.count());
    double vx = speed * std::cos(angle), vy = speed * std::sin(angle);
    for (;;) {
      t.samples.push_back({Seconds(now), at, speed, heading_of(vx, vy)});
      if (now >= walks.duration.count()) break;
      const double x_in = until_border(at.x_m, vx, walks.side_m);
      const double y_in = until_border(at.y_m, vy, walks.side_m);
      const double step =
          std::max({1e-3, std::min({x_in, y_in, turn_at - now, walks.duration.count() - now})});
      at = {std::clamp(at.x_m + vx * step, 0.0, walks.side_m),
            std::clamp(at.y_m + vy * step, 0.0, walks.side_m)};
      now += step;
      if (x_in <= step) vx = -vx;
      if (y_in <= step) vy = -vy;
      if (now >= turn_at) {
        angle = random.uniform(0, 2 * std::numbers::pi);
        vx = speed * std::cos(angle);
        vy = speed * std::sin(angle);
        turn_at = now + random.exponential(walks.turn.count());
      }
    }
    all.push_back(std::move(t));
  }
  return all;
}

}  // namespace pallas::sim
