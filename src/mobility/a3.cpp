#include "mobility/a3.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace pallas::mobility {
namespace {

// TimeToTrigger of TS 38.331, in ms.
constexpr std::array<int, 16> kTimesToTrigger{0,   40,  64,  80,  100,  128,  160,  256,
                                              320, 480, 512, 640, 1024, 1280, 2560, 5120};

bool in_range(double value, double low, double high) {
  return value >= low && value <= high;  // and false for what is not a number
}

}  // namespace

Status check(const A3Settings& settings) {
  const auto bad = [](const char* what) { return fail(Errc::kInvalidArgument, what); };
  if (!in_range(settings.hysteresis_db, 0, 15)) return bad("hysteresis_db: must be in [0, 15]");
  if (!in_range(settings.offset_db, -15, 15)) return bad("offset_db: must be in [-15, 15]");
  if (!in_range(settings.path_loss_exponent, 1, 10)) {
    return bad("path_loss_exponent: must be in [1, 10]");
  }
  const bool standard = std::any_of(kTimesToTrigger.begin(), kTimesToTrigger.end(), [&](int ms) {
    return settings.time_to_trigger == std::chrono::milliseconds(ms);
  });
  if (!standard) return bad("time_to_trigger_ms: is none of the standard's values");
  if (settings.measure_every <= Duration{0}) return bad("measure_every_ms: must be above 0");
  return {};
}

A3Monitor::A3Monitor(const A3Settings& settings, const std::vector<Site>& sites, CellId serving)
    : settings_(settings),
      sites_(sites),
      nearer2_(std::pow(
          10, -(settings.offset_db + settings.hysteresis_db) / (5 * settings.path_loss_exponent))),
      serving_(std::move(serving)),
      entered_(sites.size()) {
  const auto found = std::find_if(sites.begin(), sites.end(),
                                  [this](const Site& site) { return site.cell == serving_; });
  serving_site_ = static_cast<std::size_t>(found - sites.begin());
}

// Powers are compared as distances: under one path loss law a power is higher by x dB where the
// distance is shorter by the factor 10^(x / 10 n).
double A3Monitor::distance2(std::size_t site, Point where) const {
  const Point at = sites_[site].position;
  const double dx = at.x_m - where.x_m, dy = at.y_m - where.y_m;
  return std::max(dx * dx + dy * dy, 1.0);
}

std::optional<CellId> A3Monitor::measure(Seconds now, Point where) {
  // A UE whose cell has no site takes the best one at once.
  const bool homeless = serving_site_ >= sites_.size();
  const double needed = homeless ? std::numeric_limits<double>::infinity()
                                 : distance2(serving_site_, where) * nearer2_;
  std::optional<std::size_t> best;
  double best_distance = 0;
  for (std::size_t n = 0; n < sites_.size(); ++n) {
    const double distance = distance2(n, where);
    if (n == serving_site_ || !(distance < needed)) {
      entered_[n].reset();
      continue;
    }
    if (!entered_[n]) entered_[n] = now;
    const bool held = homeless || now - *entered_[n] >= to_seconds(settings_.time_to_trigger);
    if (held && (!best || distance < best_distance)) {
      best = n;
      best_distance = distance;
    }
  }
  if (!best) return std::nullopt;
  serving_site_ = *best;
  serving_ = sites_[*best].cell;
  std::fill(entered_.begin(), entered_.end(), std::nullopt);
  return serving_;
}

std::vector<CellChange> a3_handovers(const Trajectory& trajectory, const std::vector<Site>& sites,
                                     const A3Settings& settings) {
  std::vector<CellChange> changes;
  if (sites.empty() || trajectory.samples.empty()) return changes;
  A3Monitor monitor(settings, sites, CellId());
  monitor.measure(trajectory.begin(), trajectory.samples.front().position);
  const Seconds step = to_seconds(settings.measure_every);
  for (double k = 1;; ++k) {
    const Seconds t = trajectory.begin() + k * step;
    const auto sample = trajectory.at(t);
    if (!sample) return changes;
    const CellId from = monitor.serving();
    if (const auto to = monitor.measure(t, sample->position)) {
      changes.push_back({t, from, *to, sample->position});
    }
  }
}

}  // namespace pallas::mobility
