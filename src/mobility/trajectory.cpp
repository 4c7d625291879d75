#include "mobility/trajectory.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace pallas::mobility {
namespace {

// How far behind a boundary the new cell is looked up. A point on a boundary belongs to one side
// only, and rounding may put it on either.
constexpr double kBehindBoundaryMeters = 1e-6;

double mix(double a, double b, double f) {
  return a + (b - a) * f;
}

Point mix(Point a, Point b, double f) {
  return {mix(a.x_m, b.x_m, f), mix(a.y_m, b.y_m, f)};
}

// Notes a change whenever the cell differs from the last one seen.
class Recorder {
 public:
  Recorder(const CellLayout& layout, CellId start) : layout_(layout), cell_(std::move(start)) {}

  // The UE is at `inside` right after time `t`, where it was at `where`.
  void visit(Seconds t, Point where, Point inside) {
    CellId now = layout_.cell_at(inside);
    if (now == cell_) return;
    changes_.push_back({t, std::exchange(cell_, now), now, where});
  }
  std::vector<CellChange> take() { return std::move(changes_); }

 private:
  const CellLayout& layout_;
  CellId cell_;
  std::vector<CellChange> changes_;
};

}  // namespace

std::optional<TrajectorySample> Trajectory::at(Seconds t) const {
  if (samples.empty() || !(t >= begin() && t <= end())) return std::nullopt;
  const auto after = std::upper_bound(
      samples.begin(), samples.end(), t,
      [](Seconds time, const TrajectorySample& sample) { return time < sample.t; });
  if (after == samples.end()) return samples.back();
  const TrajectorySample& a = *(after - 1);
  const TrajectorySample& b = *after;
  const double f = (t - a.t) / (b.t - a.t);
  TrajectorySample result{t, mix(a.position, b.position, f), a.speed_mps, a.heading_deg};
  if (a.speed_mps && b.speed_mps) result.speed_mps = mix(*a.speed_mps, *b.speed_mps, f);
  return result;
}

std::vector<CellChange> crossings(const Trajectory& trajectory, const CellLayout& layout) {
  const auto& samples = trajectory.samples;
  if (samples.empty()) return {};
  Recorder recorder(layout, layout.cell_at(samples.front().position));
  for (std::size_t k = 1; k < samples.size(); ++k) {
    const TrajectorySample& a = samples[k - 1];
    const TrajectorySample& b = samples[k];
    recorder.visit(a.t, a.position, a.position);
    const double length = (b.t - a.t).count();
    const double vx = (b.position.x_m - a.position.x_m) / length;
    const double vy = (b.position.y_m - a.position.y_m) / length;
    const double speed = std::hypot(vx, vy);
    if (!(speed > 0)) continue;
    const double step = kBehindBoundaryMeters / speed;
    double gone = 0;  // seconds into the segment, always a little behind the last boundary
    while (gone < length) {
      const Point from = mix(a.position, b.position, gone / length);
      const auto next = layout.first_crossing(from, vx, vy, Seconds(length - gone));
      if (!next) break;
      const double when = gone + next->in.count();
      gone = std::min(when + step, length);
      recorder.visit(a.t + Seconds(when), mix(a.position, b.position, when / length),
                     mix(a.position, b.position, gone / length));
    }
  }
  const TrajectorySample& last = samples.back();
  recorder.visit(last.t, last.position, last.position);
  return recorder.take();
}

const Trajectory* find_trajectory(const std::vector<Trajectory>& all, const UeId& ue) {
  const auto it =
      std::find_if(all.begin(), all.end(), [&](const Trajectory& t) { return t.ue == ue; });
  return it == all.end() ? nullptr : &*it;
}

}  // namespace pallas::mobility
