// `pallas sim`: runs a scenario on virtual time, or many random runs with faults.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

#include "commands.h"
#include "sim_faults.h"
#include "sim_output.h"
#include "sim_scenario.h"

namespace pallas::app {
namespace {

constexpr const char* kExamples = R"(
A scenario says cells, engine, links, UEs and schemes; docs/simulation.md has every key, data/scenarios three
commented examples. It is checked completely before anything runs.

Examples:
  pallas sim --scenario data/scenarios/grid.toml
  pallas sim --scenario data/scenarios/slow-links.toml --json
  pallas sim --scenario my.toml --seed 7 --out results
  pallas sim --faults --runs 1000 --seed 1
  pallas sim --faults --runs 1 --seed 69473669737254     one of them again, with its trace if it fails
)";

struct Options {
  std::string scenario;
  std::optional<std::string> out;
  std::optional<std::uint64_t> seed;
  bool faults = false;
  std::size_t trace = 60;
  std::uint64_t runs = 1000;
  bool json = false;
};

int refuse(const Error& error) {
  fmt::print(stderr, "pallas sim: {}\n", error.message);
  return kExitUsage;
}

// A line on a terminal that is written over; nothing elsewhere.
class ProgressLine {
 public:
  void show(double done, std::string_view what) {
    if (!on_) return;
    fmt::print(stderr, "\r{:3.0f} %  {:<20}", done * 100, what);
    std::fflush(stderr);
    dirty_ = true;
  }
  void clear() {
    if (dirty_) fmt::print(stderr, "\r{:<30}\r", "");
    dirty_ = false;
  }

 private:
  bool on_ = isatty(STDERR_FILENO) == 1;
  bool dirty_ = false;
};

Status write_file(const std::filesystem::path& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  file.flush();
  if (!file) return fail(Errc::kIo, "out: cannot write " + path.string());
  return {};
}

Status write_files(const std::string& folder, const std::vector<sim::ScenarioRun>& runs) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(Errc::kIo, "out: cannot make " + folder + ": " + error.message());
  const std::filesystem::path out(folder);
  const std::pair<const char*, std::string> files[] = {{"runs.csv", runs_csv(runs)},
                                                       {"runs.json", runs_json(runs)},
                                                       {"handovers.csv", handovers_csv(runs)},
                                                       {"handovers.json", handovers_json(runs)}};
  for (const auto& [name, content] : files) {
    if (auto written = write_file(out / name, content); !written) return written;
  }
  return {};
}

int run_scenario(const Options& options) {
  auto scenario = read_scenario_file(options.scenario);
  if (!scenario) return refuse(scenario.error());
  if (options.seed) scenario->seeds = {*options.seed};
  ProgressLine line;
  const auto runs =
      sim::run(*scenario, [&](double done, std::string_view what) { line.show(done, what); });
  line.clear();
  if (!runs) {
    fmt::print(stderr, "pallas sim: {}\n", runs.error().message);
    return kExitFailed;
  }
  fmt::print("{}", options.json ? runs_json(*runs) : runs_text(scenario->name, *runs));
  if (options.out) {
    if (auto written = write_files(*options.out, *runs); !written) {
      fmt::print(stderr, "pallas sim: {}\n", written.error().message);
      return kExitFailed;
    }
  }
  int code = kExitOk;
  for (const sim::ScenarioRun& run : *runs) {
    for (const std::string& breach : run.breaches) {
      fmt::print(stderr, "pallas sim: {} seed {}: broken promise: {}\n", run.scheme, run.seed,
                 breach);
      code = kExitFailed;
    }
  }
  return code;
}

int run_with_faults(const Options& options) {
  const FaultCampaign campaign{options.runs, options.seed.value_or(1)};
  ProgressLine line;
  const FaultResults results = run_faults(campaign, [&](std::uint64_t done) {
    line.show(static_cast<double>(done) / static_cast<double>(campaign.runs),
              fmt::format("{} runs", done));
  });
  line.clear();
  fmt::print("{}", options.json ? faults_json(campaign, results) : faults_text(campaign, results));
  if (results.failures == 0) return kExitOk;
  fmt::print(stderr, "pallas sim: a broken promise, made small:\n{}",
             trace_text(results.failed.front(), options.trace));
  return kExitFailed;
}

}  // namespace

int sim_command(std::vector<std::string> args) {
  CLI::App app("Runs a scenario of cells, links and moving users on virtual time", "pallas sim");
  app.footer(kExamples);
  Options options;
  auto* const scenario =
      app.add_option("--scenario", options.scenario, "The scenario, TOML")->type_name("FILE");
  auto* const faults =
      app.add_flag("--faults", options.faults,
                   "Random runs with faults, each promise checked after every event");
  faults->excludes(scenario);
  app.add_option("--runs", options.runs, "How many of them (default 1000)")
      ->needs(faults)
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000'000}))
      ->type_name("N");
  app.add_option("--trace", options.trace, "Last lines of a failed run's trace (default 60)")
      ->needs(faults)
      ->check(CLI::Range(std::size_t{1}, std::size_t{1'000'000}))
      ->type_name("LINES");
  app.add_option("--out", options.out, "Folder for runs and handovers as CSV and JSON")
      ->type_name("DIR");
  app.add_option("--seed", options.seed,
                 "In place of the scenario's seeds; with --faults, of the runs");
  app.add_flag("--json", options.json, "Runs as a JSON list on standard output");
  try {
    std::reverse(args.begin(), args.end());
    app.parse(args);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  if (options.faults) return run_with_faults(options);
  if (options.scenario.empty()) {
    fmt::print(stderr, "pallas sim: --scenario or --faults is required; see pallas sim --help\n");
    return kExitUsage;
  }
  return run_scenario(options);
}

}  // namespace pallas::app
