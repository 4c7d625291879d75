// `pallas drive`: one vehicle of a trace, in real time, as reports to gNBs and a UE.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <set>

#include "commands.h"
#include "driver.h"
#include "http/json_writer.h"
#include "http_feed.h"
#include "net/asio_clock.h"
#include "operator_access.h"
#include "trip.h"

namespace pallas::app {
namespace {

constexpr const char* kExamples = R"(
Examples:
  pallas drive --trip data/sumo_grid_64ue_300s_2hz.csv.gz --vehicle 2 --cell-offset 50 --dry-run
      which cells vehicle 2 crosses, and when
  pallas drive --trip trace.csv --vehicle 2 --from 98 --to 119 --cell-offset 50 \
    --gnb gnb-a=127.0.0.1:8080 --cell cell_-1_4=gnb-a \
    --gnb gnb-b=127.0.0.1:8081 --cell cell_-1_3=gnb-b ... --ue-endpoint 127.0.0.1:9000
      drives it past two gNBs, and tells the UE that listens on port 9000
  ... --oracle
      posts perfect predictions instead of positions; the gNBs' reports then say so
)";

struct Options {
  TripOptions trip;
  double cell_size = 100, cell_offset = 0;
  std::vector<std::string> gnbs, cells;
  std::string ue, ue_endpoint, gnb_ca, operator_key_file;
  double hz = 2;
  double interruption_ms = 0;
  bool oracle = false, dry_run = false, json = false;
};

struct Setup {
  Trip trip;
  DriverOptions driver;
  std::map<NodeId, ue::Address> gnbs;
  std::optional<ue::Address> ue_endpoint;
  ue::HttpAccess access;
};

Result<std::pair<std::string, std::string>> split(const std::string& flag,
                                                  const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return fail(Errc::kInvalidArgument, flag + ": '" + text + "' has no name before a '='");
  }
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

Status read_map(const Options& options, Setup& setup) {
  for (const auto& text : options.gnbs) {
    const auto pair = split("--gnb", text);
    if (!pair) return Failure(pair.error());
    const auto at = ue::parse_address(pair->second);
    if (!at) return fail(Errc::kInvalidArgument, "--gnb " + text + ": " + at.error().message);
    if (!setup.gnbs.emplace(NodeId(pair->first), *at).second) {
      return fail(Errc::kInvalidArgument, "--gnb: '" + pair->first + "' is given twice");
    }
  }
  for (const auto& text : options.cells) {
    const auto pair = split("--cell", text);
    if (!pair) return Failure(pair.error());
    if (!setup.gnbs.contains(NodeId(pair->second))) {
      return fail(Errc::kInvalidArgument,
                  "--cell " + text + ": there is no --gnb '" + pair->second + "'");
    }
    setup.driver.cells[CellId(pair->first)] = NodeId(pair->second);
  }
  return {};
}

Result<Setup> prepare(const Options& options) {
  const auto layout =
      mobility::make_square_cells(options.cell_size, options.cell_offset, options.cell_offset);
  if (!layout) return Failure(layout.error());
  auto trip = load_trip(options.trip, **layout);
  if (!trip) return Failure(trip.error());
  Setup setup;
  setup.trip = std::move(*trip);
  if (!(options.hz > 0 && options.hz <= 100)) {
    return fail(Errc::kInvalidArgument, "--hz: must be above 0, at most 100");
  }
  if (!(options.interruption_ms >= 0 && options.interruption_ms <= 10'000)) {
    return fail(Errc::kInvalidArgument, "--interruption-ms: must be from 0 to 10000");
  }
  auto& driver = setup.driver;
  driver.ue = UeId(options.ue.empty() ? "ue-" + setup.trip.trajectory.ue.value : options.ue);
  driver.period = to_duration(Seconds(1 / options.hz));
  driver.interruption = to_duration(Seconds(options.interruption_ms / 1000));
  driver.oracle = options.oracle;
  // Wall-clock microseconds: a later run's reports win over an earlier one's.
  driver.first_seq =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                     std::chrono::system_clock::now().time_since_epoch())
                                     .count());
  if (auto status = read_map(options, setup); !status) return Failure(status.error());
  auto access = operator_access(options.gnb_ca, options.operator_key_file);
  if (!access) return Failure(access.error());
  setup.access = std::move(*access);
  if (!options.ue_endpoint.empty()) {
    const auto at = ue::parse_address(options.ue_endpoint);
    if (!at) return fail(Errc::kInvalidArgument, "--ue-endpoint: " + at.error().message);
    setup.ue_endpoint = *at;
  }
  return setup;
}

void print_trip(const Trip& trip) {
  fmt::print("vehicle {} from {:.2f} s in {}\n", trip.trajectory.ue.value, trip.begin().count(),
             trip.first_cell.value);
  for (const auto& change : trip.crossings) {
    fmt::print("  {:.2f} s: {} -> {}\n", change.at.count(), change.from.value, change.to.value);
  }
  fmt::print("until {:.2f} s, {} handovers\n", trip.end().count(), trip.crossings.size());
}

void print_summary(const Options& options, const DriverCounts& counts,
                   const HttpFeed::Failures& failures) {
  if (options.json) {
    http::JsonWriter json;
    json.begin_object()
        .member("oracle", options.oracle)
        .member("positions", counts.positions)
        .member("predictions", counts.predictions)
        .member("handovers", counts.handovers)
        .member("gnb_handovers", counts.gnb_handovers)
        .member("failures", failures.count)
        .member("first_failure", failures.first)
        .end_object();
    fmt::print("{}\n", json.take());
    return;
  }
  fmt::print("{} handovers, {} of them to another gNB; {}{} reports failed\n", counts.handovers,
             counts.gnb_handovers,
             options.oracle ? fmt::format("predictions by an oracle: {}; ", counts.predictions)
                            : fmt::format("{} positions; ", counts.positions),
             failures.count);
  if (failures.count > 0) fmt::print(stderr, "first failure: {}\n", failures.first);
}

int drive(const Options& options) {
  auto setup = prepare(options);
  if (!setup) {
    fmt::print(stderr, "pallas drive: {}\n", setup.error().message);
    return kExitUsage;
  }
  if (options.dry_run) {
    print_trip(setup->trip);
    return kExitOk;
  }
  if (auto status = Driver::check(setup->trip, setup->driver); !status) {
    fmt::print(stderr, "pallas drive: {}; --cell CELL=GNB says which\n", status.error().message);
    return kExitUsage;
  }
  boost::asio::io_context io(1);
  net::AsioClock clock(io);
  HttpFeed feed(io, setup->gnbs, setup->ue_endpoint, setup->access);
  Driver driver(clock, feed, setup->trip, setup->driver);
  boost::asio::signal_set signals(io, SIGINT, SIGTERM);
  bool interrupted = false;
  signals.async_wait([&](const boost::system::error_code& error, int) {
    if (error) return;
    interrupted = true;
    driver.stop();
    io.stop();
  });
  Timer last_answers(clock);
  driver.start([&] {
    // The last reports are on their way.
    last_answers.arm(std::chrono::milliseconds(500), [&] { io.stop(); });
  });
  io.run();
  print_summary(options, driver.counts(), feed.failures());
  return interrupted || feed.failures().count > 0 ? kExitFailed : kExitOk;
}

}  // namespace

int drive_command(std::vector<std::string> args) {
  CLI::App app("Replays a trajectory in real time: posts positions and handovers, nothing else",
               "pallas drive");
  app.footer(kExamples);
  Options options;
  app.add_option("--trip", options.trip.file, "SUMO FCD CSV or plain CSV, gzipped or not")
      ->required();
  app.add_option("--vehicle", options.trip.vehicle, "Which one of the trace");
  app.add_option("--from", options.trip.from_s, "Begin at this time of the trace, s");
  app.add_option("--to", options.trip.to_s, "End at this time of the trace, s");
  app.add_option("--cell-size", options.cell_size, "Side of a square cell, m")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1e7));
  app.add_option("--cell-offset", options.cell_offset, "Where a cell begins in x and y, m")
      ->capture_default_str();
  app.add_option(
      "--gnb", options.gnbs,
      "NAME=HOST:PORT: where a gNB takes the RAN feed, https:// before HOST if under TLS "
      "(repeatable)");
  app.add_option("--gnb-ca", options.gnb_ca, "PEM file: the authority behind https:// addresses");
  app.add_option("--operator-key-file", options.operator_key_file,
                 "Its first line is the key that the gNBs want of operators");
  app.add_option("--cell", options.cells, "CELL=GNB: which gNB serves a cell (repeatable)");
  app.add_option("--ue", options.ue, "The UE's name at the gNBs; default: ue-<vehicle>");
  app.add_option("--ue-endpoint", options.ue_endpoint,
                 "HOST:PORT of a `pallas ue` that is told of its handovers");
  app.add_option("--hz", options.hz, "Reports a second, interpolated")->capture_default_str();
  app.add_option("--interruption-ms", options.interruption_ms,
                 "What the radio needs from one cell to the next")
      ->capture_default_str();
  app.add_flag("--oracle", options.oracle, "Post perfect predictions instead of positions");
  app.add_flag("--dry-run", options.dry_run, "Only print the trip's handovers");
  app.add_flag("--json", options.json, "Print the summary as JSON");
  try {
    std::reverse(args.begin(), args.end());
    app.parse(args);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  return drive(options);
}

}  // namespace pallas::app
