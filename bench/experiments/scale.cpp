// How time and memory of a simulation grow with the number of UEs.

#include <malloc.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "list.h"
#include "paper_models.h"
#include "sim/roaming.h"

namespace pallas::experiments {
namespace {

constexpr int kSide = 20;         // cells a side: 400 cells
constexpr double kCell = 200;     // m
constexpr double kDuration = 60;  // s
constexpr double kTokenRate = 2;  // tokens/s that a listener wants

double resident_mib() {
  std::ifstream statm("/proc/self/statm");
  double pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * 4096 / (1 << 20);
}

struct Cost {
  double seconds = 0, mib = 0, events = 0, handovers = 0, tokens = 0;
};

Result<Cost> drive(const Settings& settings, std::size_t ues) {
  const auto cells = mobility::make_square_cells(kCell, 0, 0);
  if (!cells) return Failure(cells.error());
  auto engine = engine_of(paper_models()[0], "two-front", paper_models()[0].prefill);
  if (!engine) return Failure(engine.error());
  engine->slots = 4096;
  // A site of many accelerators: a session more costs the batch little.
  engine->profile.decode = {{1, 0, Seconds(0.025)}, {4096, 0, Seconds(0.05)}};
  sim::WorldSettings world_settings;
  for (int i = 0; i < kSide; ++i) {
    for (int j = 0; j < kSide; ++j) {
      const std::string place = std::to_string(i) + "_" + std::to_string(j);
      world_settings.gnbs.push_back({"gnb_" + place, {CellId("cell_" + place)}, {}});
    }
  }
  world_settings.scheme = "two-front";
  world_settings.engine = *engine;
  world_settings.network = known_network(10'000);
  world_settings.layout = cells->get();
  world_settings.keep_arrivals = false;
  world_settings.node.max_sessions = 1u << 20;
  // The next look is never later than the trigger, and each position is looked at as it comes, so a
  // slow control cycle costs no precision.
  world_settings.node.control_period = std::chrono::seconds(2);
  world_settings.node.mirror_on_prediction = false;
  world_settings.node.resume = std::chrono::seconds(15);  // how long tombstones keep their ids
  world_settings.seed = settings.seed;
  sim::Roaming roaming;
  roaming.trajectories = sim::random_walks({.ues = ues,
                                            .side_m = kSide * kCell,
                                            .low_mps = 5,
                                            .high_mps = 15,
                                            .turn = Seconds(20),
                                            .duration = Seconds(kDuration)},
                                           settings.seed);
  roaming.ue.prompt_tokens = 100;
  roaming.ue.max_token_rate = kTokenRate;
  roaming.report_interval = Seconds(1);
  roaming.seed = settings.seed;
  roaming.progress = [&](double done) { settings.progress(done, std::to_string(ues) + " UEs"); };
  Cost cost;
  const double before = resident_mib();
  const auto begin = std::chrono::steady_clock::now();
  sim::World world(std::move(world_settings));
  if (auto status = sim::run(world, roaming, Seconds(0)); !status) return Failure(status.error());
  cost.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  cost.mib = resident_mib() - before;
  cost.events = static_cast<double>(world.clock.events_run());
  for (const auto& ue : world.ues()) cost.tokens += ue->received();
  cost.handovers = static_cast<double>(world.handovers().size());
  if (!world.breaches().empty()) return fail(Errc::kInternal, world.breaches().front());
  return cost;
}

}  // namespace

Result<Outcome> run_scale(const Settings& settings) {
  Outcome outcome;
  Figure time{
      "scale-time",      "Simulating 60 s of 400 cells", "UEs", "wall-clock time, s", true, true,
      {{"measured", {}}}};
  Figure memory{"scale-memory", "Memory of the simulation", "UEs", "MiB", true,
                true,           {{"measured", {}}}};
  std::vector<std::size_t> sizes{1'000, 3'000, 10'000, 30'000, 100'000};
  if (settings.quick) sizes = {1000, 3000};
  for (const std::size_t ues : sizes) {
    const auto cost = drive(settings, ues);
    if (!cost) return Failure(cost.error());
    malloc_trim(0);  // what the run gave back must not count for the next one
    const std::string end = "/" + std::to_string(ues) + "ues";
    outcome.rows.push_back({"scale/two-front/time_avg_s" + end, cost->seconds, std::nullopt, ""});
    outcome.rows.push_back({"scale/two-front/memory_worst_mib" + end, cost->mib, std::nullopt, ""});
    outcome.rows.push_back(
        {"scale/two-front/events_avg_count" + end, cost->events, std::nullopt, ""});
    outcome.rows.push_back(
        {"scale/two-front/events_avg_per_s" + end, cost->events / cost->seconds, std::nullopt, ""});
    outcome.rows.push_back(
        {"scale/two-front/handovers_avg_count" + end, cost->handovers, std::nullopt, ""});
    outcome.rows.push_back(
        {"scale/two-front/tokens_avg_count" + end, cost->tokens, std::nullopt, ""});
    time.curves[0].points.emplace_back(static_cast<double>(ues), cost->seconds);
    memory.curves[0].points.emplace_back(static_cast<double>(ues), cost->mib);
  }
  outcome.figures = {std::move(time), std::move(memory)};
  outcome.parameters = {
      "No paper has it. 400 cells of 200 m, 60 simulated seconds, UEs that walk at random with 5 "
      "to "
      "15 m/s, prompts of 100 tokens, 2 tokens/s for each listener, two-front, a position a "
      "second, a control cycle of 2 s, no mirrors, tombstones for 15 s.",
      "Time and memory are this machine's and differ from run to run; all other rows do not."};
  return outcome;
}

}  // namespace pallas::experiments
