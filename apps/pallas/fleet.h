#pragma once
// gNBs that belong to this program: child processes of itself on loopback.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "child_process.h"
#include "event_loop.h"
#include "trip.h"
#include "ue/gnb_client.h"

namespace pallas::app {

struct FleetPlan {
  std::vector<NodeId> names;
  std::map<CellId, NodeId> cells;  // which gNB serves a cell
};
// One gNB a cell, in order of the trip, at least three and at most eight (then round again).
FleetPlan plan_fleet(const Trip& trip);

// How the gNBs of a fleet are started.
struct FleetStart {
  // Flags of `pallas gnb` that all get, beside names, addresses, peers and cells.
  std::vector<std::string> flags;
  // The cores of each gNB, in the plan's order; empty: where the system puts it.
  std::vector<std::vector<int>> cores;
  std::string log_folder;  // exists
};

class Fleet {
 public:
  // Starts all and waits until each serves. The error of a gNB that ended is what it wrote last.
  static Result<std::unique_ptr<Fleet>> start(EventLoop& loop, const FleetPlan& plan,
                                              const FleetStart& how);
  ~Fleet();  // ends them all
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  const std::map<NodeId, ue::Address>& http() const { return http_; }
  pid_t pid(const NodeId& name) const;  // of one that is in the plan
  // One that ended meanwhile, and how; empty while all run.
  std::string trouble();

 private:
  struct Member {
    NodeId name;
    std::unique_ptr<ChildProcess> process;
    std::string out_file, err_file;
    bool ready = false;
  };
  Fleet() = default;

  std::vector<Member> members_;
  std::map<NodeId, ue::Address> http_;
};

}  // namespace pallas::app
