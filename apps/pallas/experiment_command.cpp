// `pallas experiment`: the tables and figures of the papers, made again.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

#include "commands.h"
#include "experiment_files.h"
#include "experiment_output.h"
#include "model_setup.h"
#include "progress_line.h"

namespace pallas::app {
namespace {

constexpr const char* kExamples = R"(
Examples:
  pallas experiment list              what there is
  pallas experiment table2            print the table beside the paper's, write files and figures
  pallas experiment all --out results all of them
  pallas experiment table3 --trace my-trajectories.csv --seed 7
  pallas experiment figure6 --json    rows as JSON on standard output, nothing else
)";

constexpr const char* kDefaultFolder = "pallas-experiments";

struct Options {
  std::string name;
  std::optional<std::string> out;
  std::string seed = "1";
  bool json = false;
  bool quick = false;
  std::optional<std::string> trace;
};

std::string names() {
  std::string all;
  for (const auto& experiment : experiments::experiments()) {
    all += (all.empty() ? "" : ", ") + std::string(experiment.name);
  }
  return all;
}

void list() {
  for (const auto& experiment : experiments::experiments()) {
    fmt::print("{:<12} {}{}\n", experiment.name, experiment.summary,
               experiment.takes_trace ? " Takes --trace." : "");
  }
}

int refuse(const std::string& message) {
  fmt::print(stderr, "pallas experiment: {}\n", message);
  return kExitUsage;
}

// The command line's own parser takes -1 for the largest number.
std::optional<std::uint64_t> parse_seed(const std::string& text) {
  std::uint64_t seed = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, seed);
  if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  return seed;
}

// Bad input is the user's, everything else ours.
int code_of(const Error& error) {
  switch (error.code) {
    case Errc::kInvalidArgument:
    case Errc::kInvalidConfig:
    case Errc::kParse:
    case Errc::kNotFound:
    case Errc::kTooLarge:
      return kExitUsage;
    default:
      return kExitFailed;
  }
}

int run_all(const Options& options, const std::vector<const experiments::Experiment*>& chosen,
            experiments::Settings settings) {
  std::vector<experiments::Row> rows;
  for (const auto* experiment : chosen) {
    ProgressLine line(experiment->name);
    settings.progress = [&](double done, std::string_view what) { line.show(done, what); };
    auto outcome = experiment->run(settings);
    line.clear();
    if (!outcome) {
      fmt::print(stderr, "pallas experiment {}: {}\n", experiment->name, outcome.error().message);
      return code_of(outcome.error());
    }
    if (!options.json) {
      if (experiment != chosen.front()) fmt::print("\n");
      fmt::print("{}", outcome_text(*experiment, *outcome));
      std::fflush(stdout);
    }
    if (!options.json || options.out) {
      const auto files =
          write_outcome(options.out.value_or(kDefaultFolder), *experiment, settings, *outcome);
      if (!files) {
        fmt::print(stderr, "pallas experiment: {}\n", files.error().message);
        return kExitFailed;
      }
      if (!files->no_figures.empty()) {
        fmt::print(stderr, "pallas experiment: no figures: {}\n", files->no_figures);
      }
      if (!options.json) {
        fmt::print("Files\n");
        for (const auto& path : files->paths) fmt::print("  {}\n", path);
      }
    }
    rows.insert(rows.end(), outcome->rows.begin(), outcome->rows.end());
  }
  if (options.json) {
    experiments::Outcome all;
    all.rows = std::move(rows);
    fmt::print("{}\n", outcome_rows_json(all));
  }
  return kExitOk;
}

void declare(CLI::App& app, Options& options) {
  app.add_option("name", options.name, "list, all, or the name of one")->required();
  app.add_option("--out", options.out, "Folder of the files; made if need be")
      ->type_name("DIR")
      ->default_str(kDefaultFolder);
  app.add_option("--seed", options.seed, "Of everything that is drawn")
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("--json", options.json,
               "Rows as a JSON list on standard output, and files only with --out");
  app.add_option(
         "--trace", options.trace,
         "A trajectory or goodput file in place of the shipped one (list says who takes it)")
      ->type_name("FILE");
  app.add_flag("--quick", options.quick, "Fewer samples, the same settings");
}

}  // namespace

int experiment_command(std::vector<std::string> args) {
  CLI::App app("Makes the tables and figures of the papers again, beside the papers' numbers",
               "pallas experiment");
  app.footer(kExamples);
  Options options;
  declare(app, options);
  try {
    std::reverse(args.begin(), args.end());
    app.parse(args);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  if (options.name == "list") {
    list();
    return kExitOk;
  }
  std::vector<const experiments::Experiment*> chosen;
  if (options.name == "all") {
    if (options.trace) return refuse("trace: give it to one experiment, not to all");
    for (const auto& experiment : experiments::experiments()) chosen.push_back(&experiment);
  } else {
    const auto* experiment = experiments::find_experiment(options.name);
    if (experiment == nullptr) {
      return refuse(fmt::format("unknown experiment '{}'; there are {}", options.name, names()));
    }
    if (options.trace && !experiment->takes_trace) {
      return refuse(fmt::format("trace: {} takes none", options.name));
    }
    chosen.push_back(experiment);
  }
  const auto seed = parse_seed(options.seed);
  if (!seed) return refuse(fmt::format("seed: '{}' is not a whole number from 0 on", options.seed));
  experiments::Settings settings;
  settings.seed = *seed;
  settings.quick = options.quick;
  settings.trace = options.trace;
  const auto shipped = data_file("sumo_grid_64ue_300s_2hz.csv.gz");
  if (!shipped) return refuse(shipped.error().message);
  settings.data = shipped->parent_path().string();
  return run_all(options, chosen, std::move(settings));
}

}  // namespace pallas::app
