// `pallas demo`: gNB processes on loopback, a driving UE, and what became of its stream.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cmath>
#include <fstream>

#include "commands.h"
#include "demo_run.h"
#include "engine_setup.h"
#include "log_folder.h"
#include "model_setup.h"
#include "net/asio_clock.h"
#include "plan/scheme.h"

namespace pallas::app {
namespace {

constexpr const char* kExamples = R"(
Examples:
  pallas demo                       watch the text, coloured by the cell that produced it
  pallas demo --report trip.json    the figures of the trip, too
  pallas demo --scheme full-copy    another way of moving the session
  pallas demo --compare             the same trip under every scheme, one table
  pallas demo --shadow off          without decoding beside the source before a handover
  pallas demo --goodput-mbps 10     a slower link between the cells
  pallas demo --engine fake --plain without a model, for a quick look
)";

Status check(const DemoOptions& options) {
  const auto wrong = [](const char* field, const char* why) {
    return fail(Errc::kInvalidArgument, std::string(field) + ": " + why);
  };
  if (auto scheme = plan::make_scheme(options.scheme); !scheme) {
    return fail(Errc::kInvalidArgument, "scheme: " + scheme.error().message);
  }
  if (auto status = check_engine(options.engine, has_llama()); !status) return status;
  if (options.consistency) {
    if (auto status = check_consistency(*options.consistency); !status) return status;
  }
  if (!(options.goodput_mbps >= 0) || !std::isfinite(options.goodput_mbps)) {
    return wrong("goodput_mbps", "must be at least 0 (0: not paced)");
  }
  if (!(options.max_token_rate > 0 && options.max_token_rate <= 1000)) {
    return wrong("max_token_rate", "must be above 0, at most 1000");
  }
  // Better now than after the trip.
  if (!options.report_file.empty() && !std::ofstream(options.report_file, std::ios::app)) {
    return fail(Errc::kIo, "report: cannot write '" + options.report_file + "'");
  }
  if (!(options.hz > 0 && options.hz <= 100)) return wrong("hz", "must be above 0, at most 100");
  return {};
}

Result<Trip> trip_of(DemoOptions& options) {
  const auto cells = mobility::make_square_cells(options.cell_size_m, options.cell_offset_m,
                                                 options.cell_offset_m);
  if (!cells) return Failure(cells.error());
  if (options.trip.file.empty()) {
    const auto shipped = data_file("sumo_grid_64ue_300s_2hz.csv.gz");
    if (!shipped) return Failure(shipped.error());
    options.trip.file = shipped->string();
  }
  return load_trip(options.trip, **cells);
}

class Demo {
 public:
  Demo(DemoOptions options, Trip trip)
      : options_(std::move(options)), trip_(std::move(trip)), plan_(plan_fleet(trip_)) {}

  Status run() {
    if (auto status = prepare(); !status) return status;
    auto folder = LogFolder::create(options_.keep_logs, "keep_logs");
    if (!folder) return Failure(folder.error());
    boost::asio::io_context io(1);
    net::AsioClock clock(io);
    EventLoop loop(io);
    DemoRun run(loop, clock, options_, trip_, plan_);

    std::vector<std::string> schemes{options_.scheme};
    if (options_.compare) {
      schemes.clear();
      for (const auto name : plan::scheme_names()) schemes.emplace_back(name);
    }
    std::optional<Reference> reference;
    for (const auto& scheme : schemes) {
      say(fmt::format("{}: starting {} gNBs", scheme, plan_.names.size()));
      auto fleet = Fleet::start(loop, plan_,
                                {demo_gnb_flags(options_, scheme), {}, (*folder)->folder(scheme)});
      if (!fleet) return Failure(fleet.error());
      const auto view = make_view();
      auto input = run.drive(**fleet, scheme, *view);
      if (!input) return Failure(input.error());
      if (!reference) {
        say("the same request at one gNB, without a handover, to compare with");
        auto ran = run.reference(**fleet, scheme);
        if (!ran) return Failure(ran.error());
        reference = std::move(*ran);
      }
      input->reference = reference->ids;
      input->reference_itl_ms = reference->itl_ms;
      reports_.push_back(judge(*input));
      if (options_.compare && !options_.json) fmt::print("{}\n", handover_table(reports_.back()));
    }
    return show();
  }

 private:
  // Whatever takes long at the first start and is then cached happens here once, not in every gNB.
  Status prepare() {
    if (options_.engine != "llama") return {};
    say("preparing the model (the first time it is re-quantized and measured)");
    auto file = model_file(options_.model);
    if (!file) return Failure(file.error());
    return warm_engine_cache(file->string(), options_.context_tokens, kDemoSlots);
  }

  std::unique_ptr<DemoView> make_view() const {
    if (options_.compare || options_.json) return make_silent_view();
    if (options_.plain || !stdout_is_terminal()) return make_plain_view();
    return make_terminal_view(plan_.names);
  }

  void say(const std::string& text) const {
    if (!options_.json) fmt::print(stderr, "{}\n", text);
  }

  std::string result_json() const {
    if (!options_.compare) return to_json(reports_.front());
    std::string list;
    for (const auto& report : reports_) list += (list.empty() ? "" : ",") + to_json(report);
    return "{\"trips\":[" + list + "]}";
  }

  Status show() const {
    if (!options_.report_file.empty()) {
      std::ofstream file(options_.report_file, std::ios::binary | std::ios::trunc);
      file << result_json() << '\n';
      if (!file.flush()) {
        return fail(Errc::kIo, "report: cannot write '" + options_.report_file + "'");
      }
    }
    if (options_.json) {
      fmt::print("{}\n", result_json());
    } else if (options_.compare) {
      fmt::print("{}", comparison_table(reports_));
    } else {
      fmt::print("{}{}", handover_table(reports_.front()), summary(reports_.front()));
    }
    std::string faults;
    for (const auto& report : reports_) {
      for (const auto& fault : report.faults) {
        faults += fmt::format("\n  {}: {}", report.scheme, fault);
      }
    }
    if (faults.empty()) return {};
    return fail(Errc::kInternal, "the trip was not as promised:" + faults);
  }

  static std::string summary(const DemoReport& report) {
    const auto ms = [](const std::optional<double>& v) {
      return v ? fmt::format("{:.1f}", *v) : std::string("-");
    };
    return fmt::format(
        "\n{} tokens after a prompt of {}; intervals p50 {} ms, p95 {} ms; a decode step takes {} "
        "ms\nToken ids {} those of one gNB without a handover.\n",
        report.tokens, report.prompt_tokens, ms(report.itl.p50), ms(report.itl.p95),
        ms(report.step.p50),
        report.text_identical
            ? std::string("equal")
            : fmt::format("from {} on differ from", report.first_difference.value_or(0)));
  }

  DemoOptions options_;
  Trip trip_;
  FleetPlan plan_;
  std::vector<DemoReport> reports_;
};

void declare(CLI::App& app, DemoOptions& options) {
  app.add_option("--scheme", options.scheme, "How the session moves (pallas gnb --help lists them)")
      ->capture_default_str();
  app.add_flag("--compare", options.compare, "The same trip under every scheme");
  app.add_option("--report", options.report_file, "Write the figures there, as JSON");
  app.add_flag("--json", options.json, "Print the figures as JSON, and nothing else");
  app.add_flag("--plain", options.plain, "Plain text, also on a terminal");
  app.add_option("--goodput-mbps", options.goodput_mbps, "Links between gNBs are paced to this")
      ->capture_default_str();
  app.add_option("--max-token-rate", options.max_token_rate, "Tokens a second that the user wants")
      ->capture_default_str();
  app.add_option("--consistency", options.consistency,
                 "exact, prefer-exact or fast; default: what the scheme can keep");
  app.add_option("--shadow", options.shadow,
                 "A prepared target decodes beside its source "
                 "(with --compare: off, unless said)")
      ->check(CLI::IsMember({"off", "idle", "always"}))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of the sampling")->capture_default_str();
  app.add_option("--model", options.model, "GGUF file; default: the shipped model");
  app.add_option("--engine", options.engine, "llama, or fake: without a model")
      ->capture_default_str();
  app.add_option("--context-tokens", options.context_tokens, "Context of a session")
      ->capture_default_str();
  app.add_option("--trip", options.trip.file,
                 "SUMO FCD CSV or plain CSV; default: the shipped one");
  app.add_option("--vehicle", options.trip.vehicle, "Which one of the trace")
      ->capture_default_str();
  app.add_option("--from", options.trip.from_s, "Begin at this time of the trace, s")
      ->capture_default_str();
  app.add_option("--to", options.trip.to_s, "End at this time of the trace, s")
      ->capture_default_str();
  app.add_option("--cell-size", options.cell_size_m, "Side of a square cell, m")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1e7));
  app.add_option("--cell-offset", options.cell_offset_m, "Where a cell begins in x and y, m")
      ->capture_default_str();
  app.add_option("--hz", options.hz, "Positions a second")->capture_default_str();
  app.add_flag("--oracle", options.oracle, "Perfect predictions instead of positions");
  app.add_option("--log-level", options.log_level, "Of the gNBs; trace shows every message")
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error", "off"}))
      ->capture_default_str();
  app.add_option("--keep-logs", options.keep_logs, "Keep the gNBs' logs in this folder");
}

}  // namespace

int demo_command(std::vector<std::string> args) {
  CLI::App app(
      "A model talks to a driving user across cells: gNB processes on this machine, one "
      "UE, one vehicle of a trace",
      "pallas demo");
  app.footer(kExamples);
  DemoOptions options;
  declare(app, options);
  try {
    std::reverse(args.begin(), args.end());
    app.parse(args);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  // Another trace has other times and vehicles.
  if (app.count("--trip") > 0) {
    if (app.count("--vehicle") == 0) options.trip.vehicle.clear();
    if (app.count("--from") == 0) options.trip.from_s.reset();
    if (app.count("--to") == 0) options.trip.to_s.reset();
  }
  // Schemes are compared as published.
  if (options.compare && app.count("--shadow") == 0) options.shadow = "off";
  const auto refuse = [](const Error& error) {
    fmt::print(stderr, "pallas demo: {}\n", error.message);
    return kExitUsage;
  };
  if (auto status = check(options); !status) return refuse(status.error());
  auto trip = trip_of(options);
  if (!trip) return refuse(trip.error());
  Demo demo(std::move(options), std::move(*trip));
  if (auto status = demo.run(); !status) {
    fmt::print(stderr, "pallas demo: {}\n", status.error().message);
    return kExitFailed;
  }
  return kExitOk;
}

}  // namespace pallas::app
