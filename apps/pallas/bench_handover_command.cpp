// `pallas bench handover`: real gNB processes, one table.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <fstream>
#include <memory>
#include <sstream>

#include "bench_options.h"
#include "bench_output.h"
#include "bench_record.h"
#include "bench_run.h"
#include "bench_statistics.h"
#include "commands.h"
#include "engine_setup.h"
#include "experiment_files.h"
#include "log_folder.h"
#include "model_setup.h"
#include "net/asio_clock.h"
#include "progress_line.h"
#include "record_file.h"

namespace pallas::app {
namespace {

constexpr const char* kExamples = R"(
Examples:
  pallas bench handover                         five schemes at 1,000 tokens and 20 Mbit/s
  pallas bench handover --scheme two-front,pallas --goodput-mbps 0.5x,1x,2x,5x
                                                multiples of the decoder's own KV stream
  pallas bench handover --context 500,1000,1500 --goodput-mbps 10,50 --handovers 6 --out results
  pallas bench handover --resume --out results ...
                                                go on where it was interrupted, or with more
  pallas bench handover --scheme two-front --residents 0,3 --goodput-mbps 50
                                                what residents of the target notice
  pallas bench handover --movers 4 --goodput-mbps 50 --scheme ctho,ctho:link_sharing=ctho
                                                four users on one link, and a rule to share it
  pallas bench handover --scheme two-front,pallas --available-s 0,0.5,1,2,4
                                                predictions that come late
  pallas bench handover --scheme two-front,two-front:window_margin_ms=0
                                                a scheme with another setting of its gNBs
  pallas bench handover --engine fake --handovers 2 --context 300
                                                without a model, for a quick look
)";

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(Errc::kNotFound, "cannot read '" + path + "'");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The measured runs; in a folder, each as soon as it is there.
class Store {
 public:
  static Result<Store> open(const BenchOptions& options) {
    auto file = RecordFile::open(options.out, options.resume);
    if (!file) return Failure(file.error());
    Store store;
    store.file_ = std::move(*file);
    auto records = parse_records(store.file_.kept());
    if (!records) {
      return fail(Errc::kParse, store.file_.path() + ": " + records.error().message);
    }
    store.records_ = std::move(*records);
    return store;
  }

  const BenchRecords& records() const { return records_; }
  Status add(RunRecord run) {
    const auto line = to_json(run);
    records_.runs.push_back(std::move(run));
    return file_.append(line);
  }
  Status add(const std::string& key, const Sizing& sizing) {
    records_.sizings.emplace_back(key, sizing);
    return file_.append(to_json(key, sizing));
  }

 private:
  RecordFile file_;
  BenchRecords records_;
};

std::string outcome(const RunRecord& run) {
  std::string text;
  for (const auto& mover : run.movers) {
    for (const auto& hop : mover.hops) {
      const auto ms = [](const std::optional<double>& v) {
        return v ? fmt::format("{:.1f}", *v) : std::string("-");
      };
      text += fmt::format("{} gap {} SIT {} ms", text.empty() ? ":" : ",", ms(hop.gap_ms),
                          ms(hop.sit_ms));
    }
    for (const auto& fault : mover.faults) text += "; " + fault;
  }
  return text;
}

class Bench {
 public:
  explicit Bench(BenchPlan plan)
      : plan_(std::move(plan)), progress_("bench handover", plan_.options.plain) {}

  Result<std::vector<std::string>> run() {
    auto store = Store::open(plan_.options);
    if (!store) return Failure(store.error());
    const auto status = measure(*store);
    progress_.clear();
    if (!status) return Failure(status.error());
    const auto summaries = summarize(plan_, store->records());
    if (auto s = show(summaries); !s) return Failure(s.error());
    return find_faults(summaries, plan_, store->records());
  }

 private:
  Status measure(Store& store) {
    std::vector<const PlannedRun*> left;
    for (const auto& planned : plan_.runs) {
      if (store.records().run(plan_.key(planned)) == nullptr) left.push_back(&planned);
    }
    const std::size_t known = plan_.runs.size() - left.size();
    if (left.empty()) return {};
    if (auto s = prepare(); !s) return s;
    auto folder = LogFolder::create(plan_.options.keep_logs, "keep_logs");
    if (!folder) return Failure(folder.error());
    boost::asio::io_context io(1);
    net::AsioClock clock(io);
    EventLoop loop(io);
    BenchRunner runner(loop, clock, plan_, **folder);
    progress_.say(0, fmt::format("{}; {} runs, {} of them known", runner.placement(),
                                 plan_.runs.size(), known));
    for (const auto* planned : left) {
      const auto& setting = plan_.settings[planned->setting];
      const auto sizing = sizing_of(setting, runner, store);
      if (!sizing) return Failure(sizing.error());
      auto run = runner.measure(*planned, *sizing);
      if (!run) return Failure(run.error());
      const auto at = static_cast<double>(planned - plan_.runs.data() + 1);
      progress_.say(at / static_cast<double>(plan_.runs.size()),
                    fmt::format("{} {} round {}{}",
                                planned->scheme ? plan_.schemes[*planned->scheme].label : kControl,
                                setting.key(), planned->round + 1, outcome(*run)));
      if (auto s = store.add(std::move(*run)); !s) return s;
    }
    return {};
  }

  Result<Sizing> sizing_of(const BenchSetting& setting, BenchRunner& runner, Store& store) {
    const std::string key = plan_.sizing_key(setting);
    if (const auto* known = store.records().sizing(key)) return *known;
    auto sizing = runner.size(setting);
    if (!sizing) return Failure(sizing.error());
    progress_.say(0, fmt::format("{} tokens, {} at once: a decode step takes {:.2f} ms",
                                 setting.context, setting.movers, sizing->step_ms));
    if (auto s = store.add(key, *sizing); !s) return Failure(s.error());
    return sizing;
  }

  // Whatever takes long at the first start and is then cached happens here once.
  Status prepare() {
    const auto& options = plan_.options;
    if (options.engine != "llama") return {};
    progress_.say(0, "preparing the model (the first time it is re-quantized and measured)");
    auto file = model_file(options.model);
    if (!file) return fail(file.error().code, "model: " + file.error().message);
    return warm_engine_cache(file->string(), options.context_tokens, bench_slots(plan_));
  }

  Status show(const std::vector<SchemeSummary>& summaries) {
    const auto& options = plan_.options;
    if (options.json) {
      fmt::print("{}\n", summary_json(summaries));
    } else {
      fmt::print("{}", summary_table(summaries));
    }
    if (options.out.empty()) return {};
    WrittenFiles files;
    if (auto s = write_text(options.out, "handover.json", summary_json(summaries) + "\n", files);
        !s) {
      return s;
    }
    if (auto s = write_text(options.out, "handover.txt", summary_table(summaries), files); !s) {
      return s;
    }
    if (auto s = write_text(options.out, "handovers.csv", handovers_csv(summaries), files); !s) {
      return s;
    }
    for (const auto& figure : bench_figures(summaries)) {
      if (auto s = write_figure(options.out, figure, files); !s) return s;
    }
    if (!files.no_figures.empty()) {
      fmt::print(stderr, "pallas bench handover: no figures: {}\n", files.no_figures);
    }
    if (!options.json) {
      fmt::print("Files\n  {}/{}\n", options.out, kRecordFile);
      for (const auto& path : files.paths) fmt::print("  {}\n", path);
    }
    return {};
  }

  BenchPlan plan_;
  ProgressLog progress_;
};

template <class T>
CLI::Option* list(CLI::App& app, const char* name, std::vector<T>& values, const char* help) {
  return app.add_option(name, values, help)->delimiter(',')->type_name("A,B")->take_all();
}

void declare(CLI::App& app, BenchOptions& options) {
  list(app, "--scheme", options.schemes,
       "How sessions move, each with or without settings: NAME[:SETTING=VALUE]...")
      ->capture_default_str();
  list(app, "--context", options.contexts, "Tokens of prompt and answer at the (first) handover")
      ->capture_default_str();
  list(app, "--goodput-mbps", options.goodputs,
       "Of the links; 0: not paced; 2x: twice the decoder's KV stream")
      ->capture_default_str();
  app.add_option("--goodput-trace", options.goodput_trace, "CSV `t_ms,mbps` to pace the links by");
  app.add_option("--handovers", options.handovers, "Measured for each scheme and setting")
      ->capture_default_str();
  app.add_option("--handovers-slow", options.handovers_slow,
                 "The same of full-copy, recompute and ctho")
      ->capture_default_str();
  list(app, "--movers", options.movers, "Users that move together, 1 to 4")->capture_default_str();
  app.add_option("--mover-spread", options.mover_spread,
                 "Movers' contexts differ from --context by up to this share of it, 0 to 0.8")
      ->capture_default_str();
  list(app, "--residents", options.residents, "Users at the target, 0 to 3")->capture_default_str();
  list(app, "--max-token-rate", options.token_rates, "Tokens/s that a user wants; 0: uncapped")
      ->capture_default_str();
  list(app, "--trip-handovers", options.trip_handovers,
       "Handovers of one session, to and fro, 1 to 8")
      ->capture_default_str();
  list(app, "--available-s", options.available_s,
       "Handovers are foretold so long before; default: up to 12 s, by context and rate");
  list(app, "--window-s", options.window_s,
       "Preparation takes exactly so long with two-front, at most with others (0 to 12)");
  app.add_option("--wrong-target", options.wrong_target,
                 "Share of handovers that are foretold for another gNB, 0 to 1")
      ->capture_default_str();
  app.add_option("--consistency", options.consistency,
                 "exact, prefer-exact or fast; default: what each scheme can keep");
  app.add_option("--seed", options.seed, "Of sampling and draws")->capture_default_str();
  app.add_option("--engine", options.engine, "llama, or fake: without a model")
      ->capture_default_str();
  app.add_option("--model", options.model, "GGUF file; default: the shipped model");
  app.add_option("--context-tokens", options.context_tokens, "What a gNB's session can hold")
      ->capture_default_str()
      ->check(CLI::Range(256u, 1'000'000u));
  app.add_option("--gnb", options.gnb_settings,
                 "SETTING=VALUE of pallas gnb for all gNBs (repeatable)");
  app.add_flag("--pin,!--no-pin", options.pin,
               "Each gNB on cores of its own, where there are enough; on by default");
  app.add_option("--out", options.out, "Folder for every run, the tables and the figures")
      ->type_name("DIR");
  app.add_flag("--resume", options.resume, "Keep the runs that are in DIR and measure what lacks");
  app.add_flag("--json", options.json, "Print the rows as JSON");
  app.add_flag("--plain", options.plain, "Progress as plain lines, also on a terminal");
  app.add_option("--keep-logs", options.keep_logs, "Keep the gNBs' logs in this folder");
}

}  // namespace

int bench_handover_command(std::vector<std::string> args) {
  CLI::App app(
      "Moves the same sessions under every scheme between gNB processes on this machine, beside "
      "sessions that stay, and compares interruptions, disturbance and cost",
      "pallas bench handover");
  app.footer(kExamples);
  BenchOptions options;
  options.with_llama = has_llama();
  declare(app, options);
  try {
    std::reverse(args.begin(), args.end());
    app.parse(args);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  const auto refuse = [](const Error& error, int code) {
    fmt::print(stderr, "pallas bench handover: {}\n", error.message);
    return code;
  };
  if (!options.goodput_trace.empty()) {
    if (app.count("--goodput-mbps") > 0) {
      return refuse({Errc::kInvalidArgument, "goodput_trace: takes the place of goodput_mbps"},
                    kExitUsage);
    }
    if (const auto file = read_file(options.goodput_trace); !file) {
      return refuse({Errc::kNotFound, "goodput_trace: " + file.error().message}, kExitUsage);
    }
  }
  auto plan = make_plan(options);
  if (!plan) return refuse(plan.error(), kExitUsage);
  Bench bench(std::move(*plan));
  const auto faults = bench.run();
  if (!faults) {
    const auto code = faults.error().code;
    return refuse(faults.error(), code == Errc::kInvalidArgument || code == Errc::kParse
                                      ? kExitUsage
                                      : kExitFailed);
  }
  for (const auto& fault : *faults) fmt::print(stderr, "pallas bench handover: {}\n", fault);
  return faults->empty() ? kExitOk : kExitFailed;
}

}  // namespace pallas::app
