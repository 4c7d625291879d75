#pragma once
// Runs of `pallas bench handover`: real gNB processes, real sessions, handovers at given times.

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "bench_options.h"
#include "bench_record.h"
#include "bench_sizing.h"
#include "event_loop.h"
#include "fleet_pool.h"
#include "log_folder.h"

namespace pallas::app {

class BenchRunner {
 public:
  // All outlive it.
  BenchRunner(EventLoop& loop, Clock& clock, const BenchPlan& plan, const LogFolder& logs);

  // What layouts need to know about the engine. Takes some seconds.
  Result<Sizing> size(const BenchSetting& setting);
  // One run. A session that fails is a fault in the record; an error is of the run as a whole.
  Result<RunRecord> measure(const PlannedRun& planned, const Sizing& sizing);

  // Which cores the gNBs are on, as a sentence.
  std::string placement() const;

 private:
  struct User;

  // Settings that the user gives win over those of the links, a scheme's own over both.
  FleetStart fleet_start(const std::string& name, const std::vector<std::string>& links,
                         const std::vector<std::string>& of_scheme) const;
  Result<Fleet*> fleet_for(const PlannedRun& planned, const RunLayout& layout);
  std::string request(std::uint32_t words, std::uint32_t start, std::uint32_t max_tokens,
                      std::uint64_t seed, double rate, const std::string& consistency) const;
  Result<std::unique_ptr<User>> start_user(Fleet& fleet, const std::string& name,
                                           const CellId& cell, const std::string& body);
  Status wait_for_first(Fleet& fleet, const std::vector<std::unique_ptr<User>>& users);
  Status end(std::vector<std::unique_ptr<User>>& users);
  Status collect(Fleet& fleet, const User& user, TimePoint start, MoverRecord& record);

  EventLoop& loop_;
  Clock& clock_;
  const BenchPlan& plan_;
  const LogFolder& logs_;
  FleetPlan fleet_plan_;
  std::vector<std::vector<int>> cores_;
  std::uint32_t slots_ = 3;
  std::uint64_t users_started_ = 0;  // names of UEs are never used twice
  FleetPool pool_;
};

// Sessions that a gNB of this plan must hold at once.
std::uint32_t bench_slots(const BenchPlan& plan);

}  // namespace pallas::app
