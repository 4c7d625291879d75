#pragma once
// Replays a trip in real time as the radio side would report it: positions (or, as an oracle,
// perfect predictions) and handovers. It decides nothing else; the gNBs predict by themselves.
//
// Time comes from a Clock and reports leave through RanFeed, so that a test runs it on virtual
// time, and the demo beside its UE.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>

#include "base/clock.h"
#include "base/result.h"
#include "base/units.h"
#include "mobility/ran_events.h"
#include "trip.h"

namespace pallas::app {

// Where reports go. Calls return at once; what became of a report is the feed's affair.
class RanFeed {
 public:
  virtual ~RanFeed() = default;
  virtual void position(const NodeId& gnb, const mobility::PositionReport& report) = 0;
  virtual void prediction(const NodeId& gnb, const mobility::Prediction& prediction) = 0;
  virtual void handover(const NodeId& gnb, const mobility::HandoverEvent& event) = 0;
  // The UE's radio: it leaves (kExecution), it is at the target (kCompleted).
  virtual void ue_handover(const NodeId& target, const mobility::HandoverEvent& event) = 0;
};

struct DriverOptions {
  UeId ue;
  std::map<CellId, NodeId> cells;                   // every cell of the trip
  Duration period{std::chrono::milliseconds(500)};  // between positions, or predictions
  bool oracle = false;
  // How long the radio needs from leaving the source to being at the target.
  Duration interruption{0};
  // Predictions of the oracle begin this long before the handover; before, it foresees none.
  Duration foresight{std::chrono::seconds(30)};
  // Crossings, counted from 0, for which the oracle names another cell than the one that comes.
  std::map<std::size_t, CellId> foretold_wrongly;
  // Greater than any that an earlier driver used for this UE (a newer report wins).
  std::uint64_t first_seq = 1;
};

struct DriverCounts {
  std::uint64_t positions = 0;
  std::uint64_t predictions = 0;
  std::uint64_t handovers = 0;      // changes of cell
  std::uint64_t gnb_handovers = 0;  // of these, to another gNB
};

class Driver {
 public:
  // kInvalidArgument when a cell of the trip has no gNB.
  static Status check(const Trip& trip, const DriverOptions& options);

  // All must outlive the driver. `trip` and `options` have passed check().
  Driver(Clock& clock, RanFeed& feed, Trip trip, DriverOptions options);

  // `done` is called once, at the trip's end.
  void start(std::function<void()> done);
  void stop();

  const Trip& trip() const { return trip_; }
  const CellId& cell() const { return cell_; }
  const NodeId& gnb() const { return options_.cells.at(cell_); }
  const DriverCounts& counts() const { return counts_; }
  // Trace time of the next crossing minus now; none after the last one or before start().
  std::optional<Seconds> until_crossing() const;

 private:
  void arm_next();
  void report();
  void execute();
  void complete();
  TimePoint real(Seconds trace) const;
  Seconds trace_now() const;

  Clock& clock_;
  RanFeed& feed_;
  Trip trip_;
  DriverOptions options_;
  CellId cell_;
  DriverCounts counts_;
  std::uint64_t seq_;
  std::size_t next_crossing_ = 0;
  bool between_cells_ = false;  // executed, not completed
  bool running_ = false;
  TimePoint started_{};
  TimePoint next_report_{};
  Timer timer_;
  std::function<void()> done_;
};

}  // namespace pallas::app
