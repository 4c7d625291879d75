#pragma once
// The demo's gNBs: child processes of this very program on loopback.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "child_process.h"
#include "demo_options.h"
#include "event_loop.h"
#include "ue/gnb_client.h"

namespace pallas::app {

// Sessions that each gNB of the demo can take: the trip's, the reference's, and one to spare.
inline constexpr std::uint32_t kFleetSlots = 3;

// Which gNB serves a cell: one a cell, in order of the trip, at least three and at most eight (then
// round again).
struct FleetPlan {
  std::vector<NodeId> names;
  std::map<CellId, NodeId> cells;
};
FleetPlan plan_fleet(const Trip& trip);

class Fleet {
 public:
  // Starts all and waits until each serves; `log_folder` exists. The error of a gNB that ended is
  // what it wrote last.
  static Result<std::unique_ptr<Fleet>> start(EventLoop& loop, const FleetPlan& plan,
                                              const DemoOptions& options, const std::string& scheme,
                                              const std::string& log_folder);
  ~Fleet();  // ends them all
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  const std::map<NodeId, ue::Address>& http() const { return http_; }
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
