// Table 3 of Pallas: how long before a handover its target is known, how often the predicted target
// is wrong, and what is prepared in vain.

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>

#include "base/random.h"
#include "list.h"
#include "mobility/predictor.h"
#include "plan/cost_model.h"
#include "statistics.h"
#include "trace_input.h"

namespace pallas::experiments {
namespace {

constexpr double kPeriod = 0.1;  // s, between two predictions
constexpr double kTMax = 5;      // s

struct Totals {
  std::vector<double> available, early, waste, bound;
  double prepared = 0, wrong = 0;
};

// One UE between two handovers: what the predictor says each period, and when Pallas would have
// started to prepare.
class Dwell {
 public:
  explicit Dwell(double window) : window_(window) {}

  // A UE that stands still is not predicted to go elsewhere: what was said stays.
  void predict(double now, const mobility::Crossing& next) {
    if (!target_ || *target_ != next.to) {
      if (trigger_) cancel(now);
      target_ = next.to;
      since_ = now;
    }
    if (!trigger_ && next.in.count() <= window_) {
      trigger_ = Trigger{now, now + next.in.count(), next.to};
      if (!first_) first_ = trigger_;
    }
  }

  void hand_over(double now, const CellId& to, Totals& totals) {
    if (trigger_ && trigger_->to != to) cancel(now);
    const double available = target_ && *target_ == to ? now - since_ : 0;
    totals.available.push_back(available);
    double early = 0;
    if (first_) {
      early = std::max(now - first_->expected, 0.0);
      totals.prepared += 1;
      if (first_->to != to) totals.wrong += 1;
      totals.early.push_back(early);
    }
    double waste = 0;
    for (const double w : cancelled_) waste += w;
    totals.waste.push_back(waste);
    totals.bound.push_back(
        plan::waste_bound(Seconds(kTMax), Seconds(early), Seconds(available)).count());
  }

 private:
  struct Trigger {
    double at = 0;
    double expected = 0;  // the predicted time of the handover
    CellId to;
  };

  void cancel(double now) {
    cancelled_.push_back(now - trigger_->at);
    trigger_.reset();
  }

  double window_;
  std::optional<CellId> target_;
  double since_ = 0;
  std::optional<Trigger> trigger_, first_;
  std::vector<double> cancelled_;
};

void drive(const mobility::Trajectory& trajectory, const mobility::CellLayout& cells, double window,
           Totals& totals) {
  const mobility::CvhPredictor predictor(cells, {});
  const auto changes = mobility::crossings(trajectory, cells);
  double begin = trajectory.begin().count();
  // The dwell before the first handover began before the trace did, so it does not count.
  for (std::size_t k = 0; k < changes.size(); ++k) {
    const double end = changes[k].at.count();
    if (k > 0) {
      Dwell dwell(window);
      for (double t = begin; t < end; t += kPeriod) {
        const auto sample = trajectory.at(Seconds(t));
        if (!sample) break;
        mobility::PositionReport report;
        report.x_m = sample->position.x_m;
        report.y_m = sample->position.y_m;
        report.speed_mps = sample->speed_mps;
        report.heading_deg = sample->heading_deg;
        const auto next = predictor.predict(report, nullptr);
        // On the border itself rounding may still see the cell that the UE came from.
        if (next && next->from == changes[k].from) dwell.predict(t, *next);
      }
      dwell.hand_over(end, changes[k].to, totals);
    }
    begin = end;
  }
}

struct Paper {
  double size_m, available2, available3, wrong, early_p90, waste, bound;
};
constexpr std::array<Paper, 3> kPaper{{{50, 51.9, 34.6, 37.3, 4.19, 1.46, 3.79},
                                       {100, 57.9, 42.2, 19.3, 2.16, 1.02, 2.93},
                                       {150, 62.8, 48.0, 11.2, 0.94, 0.58, 2.57}}};

}  // namespace

Result<Outcome> run_table3(const Settings& settings) {
  const auto traces = read_trajectories(settings);
  if (!traces) return Failure(traces.error());
  plan::PlanInput input;
  input.context = 4559;  // 4,669 at the handover: the mean of Table 2
  input.prompt = 4559;
  input.kv_bytes_per_token = 163'840;
  input.prefill_rate = TokensPerSecond(1848);
  input.decode_rate = TokensPerSecond(22);
  input.goodput = BytesPerSecond::from_mbps(300);
  input.remaining = Seconds(kTMax);
  input.t_max = Seconds(kTMax);
  const double window = plan::pallas_window(input).count();

  Outcome outcome;
  Figure figure{"table3",
                "Time for which the actual target was known before the handover",
                "T_avail, s",
                "share of handovers with at least that, %",
                false,
                false,
                {}};
  const int turns = settings.quick ? 5 : 30;
  for (const auto& paper : kPaper) {
    Totals totals;
    for (int turn = 0; turn < turns; ++turn) {
      settings.progress((static_cast<double>(turn) / turns + (paper.size_m / 50 - 1)) / 3,
                        "cells of " + std::to_string(static_cast<int>(paper.size_m)) + " m");
      Random random(mix(settings.seed, static_cast<std::uint64_t>(turn)));
      const double angle = random.uniform(0, 2 * std::numbers::pi);
      const double x = random.uniform(0, paper.size_m), y = random.uniform(0, paper.size_m);
      const auto cells = mobility::make_square_cells(paper.size_m, 0, 0);
      if (!cells) return Failure(cells.error());
      for (const auto& trajectory : *traces) {
        drive(moved(trajectory, angle, x, y), **cells, window, totals);
      }
    }
    if (totals.available.empty() || totals.prepared == 0) {
      return fail(Errc::kInvalidArgument, "trace: nobody in it changes cells twice");
    }
    const std::string cell = "/cell" + std::to_string(static_cast<int>(paper.size_m));
    const char* other = "other trajectories than the paper's: the trend counts, not the figure";
    const auto add = [&](const char* metric, double ours, double theirs) {
      outcome.rows.push_back({std::string("table3/cvh/") + metric + cell, ours, theirs, other});
    };
    add("available_2s_avg_pct", 100 * share_of(totals.available, [](double t) { return t >= 2; }),
        paper.available2);
    add("available_3s_avg_pct", 100 * share_of(totals.available, [](double t) { return t >= 3; }),
        paper.available3);
    add("wrong_target_avg_pct", 100 * totals.wrong / totals.prepared, paper.wrong);
    add("early_error_p90_s", quantile(totals.early, 0.9), paper.early_p90);
    add("waste_avg_s", mean(totals.waste), paper.waste);
    add("waste_bound_avg_s", mean(totals.bound), paper.bound);
    Curve curve{std::to_string(static_cast<int>(paper.size_m)) + " m", {}};
    for (int k = 0; k <= 60; ++k) {
      const double t = k * 0.1;
      curve.points.emplace_back(
          t, 100 * share_of(totals.available, [t](double value) { return value >= t; }));
    }
    figure.curves.push_back(std::move(curve));
  }
  outcome.figures.push_back(std::move(figure));
  outcome.parameters = {
      "Paper: CVH, cells of 50, 100 and 150 m.",
      "Other trajectories: the paper's (nuScenes) need a registration; these are " +
          std::string(settings.trace ? "those of --trace"
                                     : "64 vehicles of the shipped SUMO trace") +
          ", turned and shifted at random under the seed, " + std::to_string(turns) + " times.",
      "Assumed: a prediction every 100 ms, horizon 30 s, T_max 5 s (fits the paper's bounds), and "
      "Pallas' window for 14B with Table 2's mean context of 4,669 tokens and the scheduler's "
      "prefill rate of 1848 tokens/s, " +
          std::to_string(static_cast<int>(std::lround(1000 * window))) +
          " ms, which decides when preparation starts. A UE below 0.5 m/s keeps its last "
          "prediction."};
  return outcome;
}

}  // namespace pallas::experiments
