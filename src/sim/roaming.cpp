#include "sim/roaming.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/random.h"
#include "mobility/predictor.h"

namespace pallas::sim {
namespace {

using mobility::CellChange;
using mobility::Trajectory;

// As long as a node believes a prediction of its own (radio.cpp).
constexpr Duration kPositionValid = std::chrono::seconds(2);
constexpr int kProgressSteps = 100;

bool time_above(Seconds s, double low) {
  return std::isfinite(s.count()) && s.count() >= low;
}

class Driver {
 public:
  Driver(World& world, const Roaming& roaming)
      : world_(world),
        roaming_(roaming),
        layout_(*world.settings().layout),
        cvh_(layout_, mobility::CvhOptions{}),
        begin_(world.clock.now()) {}

  void run(Seconds tail);

 private:
  struct Walker {
    const Trajectory* way = nullptr;
    Ue* ue = nullptr;  // null until its session opens
    std::vector<CellChange> changes;
    std::size_t next = 0;  // of changes
    Seconds at{0};         // of the next report
    std::optional<mobility::PositionReport> previous;
    Random random{0};
    std::size_t drawn_for = 0;  // the change that the errors below are for, plus one
    double time_error_s = 0;
    bool wrong = false;
  };

  TimePoint time(Seconds t) const { return begin_ + to_duration(t); }
  void start(Walker& w);
  void report(Walker& w);
  void predict_by_cvh(Walker& w, const mobility::PositionReport& report);
  void predict_known(Walker& w, Seconds now, mobility::Point where);
  std::string another_target(Walker& w, mobility::Point where, const std::string& right);
  void change(Walker& w);
  void arm_change(Walker& w);
  void open(Walker& w, const CellId& cell);

  World& world_;
  const Roaming& roaming_;
  const mobility::CellLayout& layout_;
  mobility::CvhPredictor cvh_;
  TimePoint begin_;
  std::vector<Walker> walkers_;
};

void Driver::run(Seconds tail) {
  walkers_.resize(roaming_.trajectories.size());
  Seconds end{0};
  for (std::size_t i = 0; i < walkers_.size(); ++i) {
    Walker& w = walkers_[i];
    w.way = &roaming_.trajectories[i];
    w.random = Random(mix(roaming_.seed, std::string_view(w.way->ue.value)));
    w.changes = roaming_.a3 ? mobility::a3_handovers(*w.way, roaming_.sites, *roaming_.a3)
                            : mobility::crossings(*w.way, layout_);
    w.at = w.way->begin();
    end = std::max(end, w.way->end());
    world_.clock.schedule(time(w.way->begin()), [this, &w] { start(w); });
  }
  const TimePoint last = time(end + tail);
  for (int step = 1; step <= kProgressSteps; ++step) {
    world_.clock.run_until(begin_ + (last - begin_) / kProgressSteps * step);
    if (roaming_.progress) roaming_.progress(static_cast<double>(step) / kProgressSteps);
  }
  world_.finish();
}

void Driver::start(Walker& w) {
  const mobility::Point where = w.way->samples.front().position;
  if (roaming_.a3) {
    // Where A3 itself sees it at first: the best site.
    mobility::A3Monitor monitor(*roaming_.a3, roaming_.sites, CellId());
    monitor.measure(w.way->begin(), where);
    open(w, monitor.serving());
  } else {
    open(w, layout_.cell_at(where));
  }
  arm_change(w);
  if (roaming_.predictor != PredictorKind::kNone) report(w);
}

void Driver::open(Walker& w, const CellId& cell) {
  const std::string gnb = world_.gnb_of(cell);
  if (gnb.empty()) return;  // not covered here; it opens where it first is
  UeSettings settings = roaming_.ue;
  settings.name = w.way->ue.value;
  w.ue = &world_.open(gnb, settings);
}

void Driver::report(Walker& w) {
  const auto sample = w.way->at(w.at);
  if (!sample) return;  // the trajectory is over
  const bool live = w.ue != nullptr && !w.ue->finished && !w.ue->failed;
  if (live) {
    mobility::PositionReport report;
    report.t_ms = w.at.count() * 1e3;
    report.x_m = sample->position.x_m;
    report.y_m = sample->position.y_m;
    report.speed_mps = sample->speed_mps;
    report.heading_deg = sample->heading_deg;
    switch (roaming_.predictor) {
      case PredictorKind::kNone:
        break;
      case PredictorKind::kCvh:
        predict_by_cvh(w, report);
        break;
      case PredictorKind::kOracle:
      case PredictorKind::kGiven:
        predict_known(w, w.at, sample->position);
        break;
    }
    w.previous = report;
  }
  w.at += roaming_.report_interval;
  world_.clock.schedule(time(w.at), [this, &w] { report(w); });
}

void Driver::predict_by_cvh(Walker& w, const mobility::PositionReport& report) {
  // The same predictor as the node's: for the record here, or in its place.
  const auto crossing = cvh_.predict(report, w.previous ? &*w.previous : nullptr);
  const std::string target = crossing ? world_.gnb_of(crossing->to) : std::string();
  const bool elsewhere = !target.empty() && target != w.ue->at.value;
  const bool here = roaming_.cvh_sigma || roaming_.cvh_confidence;
  if (here) {
    if (!elsewhere) return;
    World::Forecast forecast;
    forecast.target = target;
    forecast.in = to_duration(crossing->in);
    forecast.sigma = roaming_.cvh_sigma;
    forecast.confidence = roaming_.cvh_confidence;
    forecast.valid = kPositionValid;
    world_.predict(*w.ue, forecast);
    return;
  }
  if (elsewhere) {
    world_.note_forecast(*w.ue, target, kPositionValid);
  } else if (!target.empty()) {
    world_.note_forecast(*w.ue, std::nullopt, Duration{0});
  }
  world_.report_position(*w.ue, report);
}

void Driver::predict_known(Walker& w, Seconds now, mobility::Point where) {
  // The next change that is a handover.
  std::size_t k = w.next;
  std::string target;
  for (; k < w.changes.size(); ++k) {
    target = world_.gnb_of(w.changes[k].to);
    if (!target.empty() && target != w.ue->at.value) break;
  }
  if (k >= w.changes.size() || w.changes[k].at - now > roaming_.horizon) return;
  double in = (w.changes[k].at - now).count();
  World::Forecast forecast;
  if (roaming_.predictor == PredictorKind::kGiven) {
    const PredictionError& error = roaming_.error;
    if (w.drawn_for != k + 1) {
      w.drawn_for = k + 1;
      w.time_error_s = error.bias.count() + w.random.normal(0, error.sd.count());
      w.wrong = w.random.uniform() < error.wrong_target;
    }
    in = std::max(in + w.time_error_s, 0.0);
    if (w.wrong) target = another_target(w, where, target);
    if (error.tell_sigma) forecast.sigma = to_duration(error.sd);
    forecast.confidence = error.confidence;
  } else {
    forecast.oracle = true;
  }
  forecast.target = target;
  forecast.in = to_duration(Seconds(in));
  world_.predict(*w.ue, forecast);
}

// A gNB that the UE could reach straight on from here in some direction, or the right one if there
// is no other. The same one as long as the UE is in its cell.
std::string Driver::another_target(Walker& w, mobility::Point where, const std::string& right) {
  constexpr int kDirections = 16;
  std::vector<std::string> others;
  for (int d = 0; d < kDirections; ++d) {
    const double angle = 2 * std::numbers::pi * d / kDirections;
    const auto crossing =
        layout_.first_crossing(where, std::cos(angle), std::sin(angle), Seconds(1e6));
    if (!crossing) continue;
    std::string gnb = world_.gnb_of(crossing->to);
    if (!gnb.empty() && gnb != right && gnb != w.ue->at.value) others.push_back(std::move(gnb));
  }
  std::sort(others.begin(), others.end());
  others.erase(std::unique(others.begin(), others.end()), others.end());
  if (others.empty()) return right;
  const std::uint64_t draw = mix(mix(roaming_.seed, std::string_view(w.way->ue.value)),
                                 static_cast<std::uint64_t>(w.drawn_for));
  return others[draw % others.size()];
}

void Driver::arm_change(Walker& w) {
  if (w.next >= w.changes.size()) return;
  world_.clock.schedule(time(w.changes[w.next].at), [this, &w] { change(w); });
}

void Driver::change(Walker& w) {
  const CellId to = w.changes[w.next++].to;
  const std::string target = world_.gnb_of(to);
  if (w.ue == nullptr) {
    open(w, to);
  } else if (!target.empty() && target != w.ue->at.value && !w.ue->finished && !w.ue->failed) {
    world_.hand_over(*w.ue, target);
    w.previous.reset();
  }
  arm_change(w);
}

}  // namespace

Status check(const Roaming& roaming) {
  const auto bad = [](const char* what) { return fail(Errc::kInvalidArgument, what); };
  if (roaming.trajectories.empty()) return bad("trajectories: there is none");
  for (const Trajectory& t : roaming.trajectories) {
    if (t.samples.empty()) return bad("trajectories: one has no sample");
    if (t.begin() < Seconds(0)) return bad("trajectories: one begins before 0");
  }
  if (!time_above(roaming.report_interval, 1e-3)) {
    return bad("report_interval_s: must be at least 0.001");
  }
  if (!time_above(roaming.horizon, 0)) return bad("horizon_s: must be at least 0");
  const PredictionError& error = roaming.error;
  if (!std::isfinite(error.bias.count())) return bad("bias_s: must be finite");
  if (!time_above(error.sd, 0)) return bad("sd_s: must be at least 0");
  if (!(error.wrong_target >= 0 && error.wrong_target <= 1)) {
    return bad("wrong_target: must be in [0, 1]");
  }
  for (const auto& confidence : {error.confidence, roaming.cvh_confidence}) {
    if (confidence && !(*confidence >= 0 && *confidence <= 1)) {
      return bad("confidence: must be in [0, 1]");
    }
  }
  if (roaming.cvh_sigma && *roaming.cvh_sigma < Duration{0}) {
    return bad("sigma_ms: must be at least 0");
  }
  if (roaming.a3) {
    if (auto ok = check(*roaming.a3); !ok) return ok;
    if (roaming.sites.empty()) return bad("sites: A3 needs the cells' sites");
  }
  if (roaming.ue.prompt_tokens == 0) return bad("prompt_tokens: must be at least 1");
  if (!(roaming.ue.max_token_rate >= 0) || !std::isfinite(roaming.ue.max_token_rate)) {
    return bad("max_token_rate: must be at least 0");
  }
  return {};
}

Status run(World& world, const Roaming& roaming, Seconds tail) {
  if (auto ok = check(roaming); !ok) return ok;
  if (world.settings().layout == nullptr) {
    return fail(Errc::kInvalidArgument, "layout: the world has none");
  }
  Driver(world, roaming).run(tail);
  return {};
}

}  // namespace pallas::sim
