#pragma once
// A whole experiment as a value: what `pallas sim --scenario` reads from TOML and runs. The reader
// of the file is in apps/pallas; everything here is checked before anything runs.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "mobility/cells.h"
#include "sim/engine_model.h"
#include "sim/network.h"
#include "sim/roaming.h"
#include "sim/world.h"

namespace pallas::sim {

struct GridCells {
  double size_m = 100;
  double offset_x_m = 0, offset_y_m = 0;
  std::uint32_t columns = 8, rows = 8;  // cells cell_0_0 to cell_<columns-1>_<rows-1>
};

struct Scenario {
  std::string name = "scenario";
  std::vector<std::string> schemes = {"two-front"};
  std::vector<std::uint64_t> seeds = {1};
  Seconds duration{60};  // trajectories are cut there

  std::optional<GridCells> grid;  // exactly one of these three
  std::vector<mobility::Site> sites;
  std::vector<mobility::Rectangle> rectangles;

  EngineModel engine;
  NetworkSettings network;
  node::NodeConfig node = patient_node();
  UeSettings session;

  std::vector<mobility::Trajectory> trajectories;  // or
  std::optional<Walks> walks;                      // over the grid; side and duration are its
  bool rotate_and_shift = false;                   // anew for each seed

  PredictorKind predictor = PredictorKind::kCvh;
  Seconds horizon{8};
  Seconds report_interval{0.5};
  PredictionError error;
  std::optional<Duration> cvh_sigma;
  std::optional<double> cvh_confidence;
  std::optional<mobility::A3Settings>
      a3;                    // cells need sites, or are a grid with one in each middle
  bool keep_reports = true;  // per-handover records in the result
};

// kInvalidConfig, naming the field, for anything that makes no run: values that are not finite or
// out of range, cells that overlap, no UE, contradictory options.
Status check(const Scenario& scenario);

struct ScenarioRun {
  std::string scheme;
  std::uint64_t seed = 0;
  std::size_t ues = 0, gnbs = 0;
  std::uint64_t tokens = 0;  // received by UEs
  std::uint64_t events = 0;  // of the clock
  Summary sit_ms, gap_ms, early_s, available_s, waste_s, lead_s;
  double itl_avg_ms = 0, itl_latency_avg_ms = 0;
  std::uint64_t handovers = 0, failed = 0, prepared = 0, wrong_target = 0;
  std::uint64_t recomputed = 0, received = 0;
  double kv_bytes = 0;
  double waste_over_bound_s = 0;  // most by which a T_waste exceeds Eq. 10's bound; 0: none does
  std::vector<HandoverRecord> records;
  std::vector<PreparationRecord> preparations;
  std::vector<std::string> breaches;
};

// Eq. 10's bound of a preparation that ended before or with handover `h` of the same UE, with one
// control period and the cancel's round trip added; and by how much it was exceeded, at least 0.
double waste_over_bound_s(const PreparationRecord& p, const HandoverRecord& h,
                          const node::NodeConfig& node, const NetworkSettings& network);

using Progress = std::function<void(double done, std::string_view what)>;
// One run for each scheme and seed, in that order. `scenario` has passed check().
Result<std::vector<ScenarioRun>> run(const Scenario& scenario, const Progress& progress = {});

}  // namespace pallas::sim
