#pragma once
// One experiment reproduces a table or a figure of the papers, or measures what they do not have.
// What it returns is printed, written as CSV and JSON and drawn by `pallas experiment`.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace pallas::experiments {

// One number beside the paper's.
struct Row {
  // <experiment>/<scheme>/<metric>_<avg|p50|p90|p99|worst>_<unit>/<setting>, for example
  // table2/pallas/sit_avg_ms/14b.
  std::string quantity;
  double ours = 0;
  std::optional<double> paper;  // none: the paper has no such number
  std::string note;             // why it misses, where that is known; else empty
};

struct Curve {
  std::string title;
  std::vector<std::pair<double, double>> points;  // x ascends
};

struct Figure {
  std::string name;  // of its files, without a suffix: "figure6"
  std::string title;
  std::string x_label, y_label;  // with units
  bool log_x = false, log_y = false;
  std::vector<Curve> curves;
};

struct Outcome {
  std::vector<Row> rows;
  std::vector<Figure> figures;
  // A sentence each: which parameters are the paper's and which are assumed, and where they come
  // from.
  std::vector<std::string> parameters;
};

struct Settings {
  std::uint64_t seed = 1;
  bool quick = false;                // fewer samples, the same settings; for tests
  std::optional<std::string> trace;  // a trajectory or goodput file in place of the default
  std::string data;                  // folder of the shipped traces
  // Called now and then with the share that is done, in [0, 1].
  std::function<void(double done, std::string_view what)> progress = [](double, std::string_view) {
  };
};

struct Experiment {
  std::string_view name;
  std::string_view summary;  // one sentence
  Result<Outcome> (*run)(const Settings& settings);
  bool takes_trace = false;  // whether Settings::trace means anything to it
};

// All of them, in the order of the papers.
const std::vector<Experiment>& experiments();
// Null when there is none of that name.
const Experiment* find_experiment(std::string_view name);

}  // namespace pallas::experiments
