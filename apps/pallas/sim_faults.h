#pragma once
// `pallas sim --faults`: many random runs with faults, each judged after every event.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/fault_run.h"

namespace pallas::app {

struct FaultCampaign {
  std::uint64_t runs = 1000;
  std::uint64_t seed = 1;
};

struct FailedRun {
  std::uint64_t index = 0;
  std::uint64_t seed = 0;  // --runs 1 --seed of it is this run
  std::vector<sim::Violation> violations;
};

struct FaultResults {
  std::uint64_t runs = 0;
  double seconds = 0;  // of this machine
  unsigned threads = 1;
  double simulated_s = 0;
  std::uint64_t handovers = 0, tokens = 0, events = 0;
  std::array<std::uint64_t, sim::kFaultKinds> injected{};
  sim::FaultCoverage coverage;
  std::vector<FailedRun> failed;  // by index, the first ones
  std::uint64_t failures = 0;
};

// On as many threads as there are cores, one World each. `progress` is called now and then, on the
// calling thread.
FaultResults run_faults(const FaultCampaign& campaign,
                        const std::function<void(std::uint64_t done)>& progress);

std::string faults_text(const FaultCampaign& campaign, const FaultResults& results);
std::string faults_json(const FaultCampaign& campaign, const FaultResults& results);
// What is left of a failed run when everything is left out that it does not need, and so many of
// the last lines of its trace.
std::string trace_text(const FailedRun& failed, std::size_t lines);

}  // namespace pallas::app
