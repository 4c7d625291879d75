#pragma once
// Runs an experiment as `--quick` does and looks up what it found.

#include <map>
#include <string>

#include "experiment.h"

namespace pallas::experiments {

inline Settings quick_settings(std::uint64_t seed = 1) {
  Settings settings;
  settings.seed = seed;
  settings.quick = true;
  settings.data = PALLAS_SOURCE_DIR "/data";
  return settings;
}

// Its rows by quantity; a failure of the run is a row of its message.
inline std::map<std::string, Row> run_quickly(const std::string& name, std::uint64_t seed = 1) {
  std::map<std::string, Row> rows;
  const Experiment* experiment = find_experiment(name);
  if (experiment == nullptr) return rows;
  const auto outcome = experiment->run(quick_settings(seed));
  if (!outcome) return {{outcome.error().message, {}}};
  for (const auto& row : outcome->rows) rows[row.quantity] = row;
  return rows;
}

}  // namespace pallas::experiments
