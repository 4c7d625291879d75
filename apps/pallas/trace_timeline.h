#pragma once
// One handover on one time line: everybody's phases as slices and instants, messages as arrows
// between them. Pure.
//
// Reports that name the same clock share the monotonic one, and nothing is estimated. Others are
// put side by side by date, and then moved so that messages there and back take equally long, the
// fastest of each way: half their sum is the most that this can be wrong by.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trace_reports.h"

namespace pallas::app {

// A row of threads within one process of the trace.
enum class TraceLane { kProtocol, kLink, kEngine };

struct TraceItem {
  enum class Kind {
    kPhase,    // something that lasts
    kInstant,  // something that happens
    kMessage,  // an end of an arrow
    kSpan,     // what two instants enclose
  };
  Kind kind = Kind::kInstant;
  TraceRole who = TraceRole::kTarget;
  TraceLane lane = TraceLane::kProtocol;
  std::string name;
  double begin_ms = 0, end_ms = 0;  // from the timeline's zero
  std::optional<std::uint64_t> count, tokens;
  std::optional<double> busy_ms;
};

struct TraceArrow {
  std::string name;
  std::size_t from = 0, to = 0;  // items: from the beginning of one to the beginning of the other
};

struct TraceTimeline {
  std::string title;                 // "two-front: gnb-a -> gnb-b, session ..., epoch 2"
  std::string zero;                  // what the times count from
  std::string clock;                 // how they came together, one sentence
  std::string source, target, ue;    // names of who is in it, where known
  std::vector<std::string> missing;  // sentences about reports that would have helped
  std::vector<TraceItem> items;      // by begin
  std::vector<TraceArrow> arrows;
};
TraceTimeline make_timeline(const TracedHandover& handover);

}  // namespace pallas::app
