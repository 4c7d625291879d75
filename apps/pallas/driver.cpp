#include "driver.h"

#include <algorithm>
#include <utility>

namespace pallas::app {

Status Driver::check(const Trip& trip, const DriverOptions& options) {
  const auto known = [&](const CellId& cell) -> Status {
    if (options.cells.contains(cell)) return {};
    return fail(Errc::kInvalidArgument, "cell " + cell.value + " of the trip is served by no gNB");
  };
  if (auto status = known(trip.first_cell); !status) return status;
  for (const auto& crossing : trip.crossings) {
    if (auto status = known(crossing.to); !status) return status;
  }
  for (const auto& [crossing, cell] : options.foretold_wrongly) {
    if (auto status = known(cell); !status) return status;
  }
  return {};
}

Driver::Driver(Clock& clock, RanFeed& feed, Trip trip, DriverOptions options)
    : clock_(clock),
      feed_(feed),
      trip_(std::move(trip)),
      options_(std::move(options)),
      cell_(trip_.first_cell),
      seq_(options_.first_seq),
      timer_(clock) {}

void Driver::start(std::function<void()> done) {
  done_ = std::move(done);
  running_ = true;
  started_ = clock_.now();
  next_report_ = started_;
  report();
  arm_next();
}

void Driver::stop() {
  running_ = false;
  timer_.cancel();
}

TimePoint Driver::real(Seconds trace) const {
  return started_ + to_duration(trace - trip_.begin());
}
Seconds Driver::trace_now() const {
  return trip_.begin() + to_seconds(clock_.now() - started_);
}

std::optional<Seconds> Driver::until_crossing() const {
  if (!running_ || next_crossing_ >= trip_.crossings.size()) return std::nullopt;
  return trip_.crossings[next_crossing_].at - trace_now();
}

// One timer for all: whatever comes first of a completion, a crossing, a report and the end.
void Driver::arm_next() {
  if (!running_) return;
  const bool more = next_crossing_ < trip_.crossings.size();
  if (between_cells_) {
    timer_.arm_at(real(trip_.crossings[next_crossing_].at) + options_.interruption,
                  [this] { complete(); });
    return;
  }
  // A crossing wins over a report of the same instant: facts beat predictions.
  if (more && real(trip_.crossings[next_crossing_].at) <= next_report_) {
    timer_.arm_at(real(trip_.crossings[next_crossing_].at), [this] { execute(); });
    return;
  }
  const TimePoint end = real(trip_.end());
  if (next_report_ > end) {
    timer_.arm_at(end, [this] {
      running_ = false;
      if (auto done = std::exchange(done_, nullptr)) done();
    });
    return;
  }
  timer_.arm_at(next_report_, [this] {
    report();
    arm_next();
  });
}

void Driver::report() {
  // After a pause of the whole machine nobody wants the missed ones.
  next_report_ = std::max(next_report_ + options_.period, clock_.now());
  const NodeId& gnb = options_.cells.at(cell_);
  if (!options_.oracle) {
    const auto sample = *trip_.trajectory.at(std::clamp(trace_now(), trip_.begin(), trip_.end()));
    mobility::PositionReport position;
    position.ue = options_.ue;
    position.seq = seq_++;
    position.t_ms = sample.t.count() * 1000;
    position.x_m = sample.position.x_m;
    position.y_m = sample.position.y_m;
    position.speed_mps = sample.speed_mps;
    position.heading_deg = sample.heading_deg;
    ++counts_.positions;
    feed_.position(gnb, position);
    return;
  }
  mobility::Prediction prediction;
  prediction.ue = options_.ue;
  prediction.seq = seq_++;
  prediction.serving = cell_;
  prediction.oracle = true;
  // Lives until the next but one, so that a single lost report withdraws nothing.
  prediction.valid = 2 * options_.period + std::chrono::milliseconds(500);
  const auto in = until_crossing();
  if (in && to_duration(*in) <= options_.foresight) {
    const auto wrong = options_.foretold_wrongly.find(next_crossing_);
    prediction.target = wrong == options_.foretold_wrongly.end()
                            ? trip_.crossings[next_crossing_].to
                            : wrong->second;
    prediction.in = std::max(Duration{0}, to_duration(*in));
  }
  ++counts_.predictions;
  feed_.prediction(gnb, prediction);
}

void Driver::execute() {
  const auto& crossing = trip_.crossings[next_crossing_];
  const NodeId& source = options_.cells.at(crossing.from);
  const NodeId& target = options_.cells.at(crossing.to);
  const mobility::HandoverEvent event{options_.ue, seq_++, mobility::HandoverPhase::kExecution,
                                      crossing.from, crossing.to};
  ++counts_.handovers;
  if (source != target) ++counts_.gnb_handovers;
  // The UE first: nothing in this process may delay its way to the target.
  feed_.ue_handover(target, event);
  feed_.handover(source, event);
  if (source != target) feed_.handover(target, event);
  between_cells_ = true;
  if (options_.interruption > Duration{0}) {
    arm_next();
  } else {
    complete();
  }
}

void Driver::complete() {
  const auto& crossing = trip_.crossings[next_crossing_];
  const NodeId& source = options_.cells.at(crossing.from);
  const NodeId& target = options_.cells.at(crossing.to);
  const mobility::HandoverEvent event{options_.ue, seq_++, mobility::HandoverPhase::kCompleted,
                                      crossing.from, crossing.to};
  cell_ = crossing.to;
  between_cells_ = false;
  ++next_crossing_;
  feed_.ue_handover(target, event);
  feed_.handover(target, event);
  if (source != target) feed_.handover(source, event);
  // The target needs no full period to be told where the UE is; but not on the very boundary,
  // where a predictor may see it in either cell.
  next_report_ = std::min(next_report_, clock_.now() + std::chrono::milliseconds(100));
  arm_next();
}

}  // namespace pallas::app
