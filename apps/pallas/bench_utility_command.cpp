// `pallas bench utility`: how well the model answers with a part of a prompt's KV.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <map>
#include <optional>

#include "base/random.h"
#include "commands.h"
#include "engine_setup.h"
#include "experiment_files.h"
#include "model_setup.h"
#include "net/asio_clock.h"
#include "progress_line.h"
#include "record_file.h"
#include "request_choices.h"
#include "utility_run.h"

namespace pallas::app {
namespace {

constexpr const char* kExamples = R"(
Examples:
  pallas bench utility                          every ordering at 256, 512 and 1,024 tokens
  pallas bench utility --ordering key-diff,random --fraction 0.2,0.4 --questions 50
  pallas bench utility --out utility --resume   go on where it was interrupted, or with more
  pallas bench utility --keys 1,4               four numbers, of which one is asked for, as well
  pallas bench utility --engine fake --context 64 --questions 2
                                                without a model, for a quick look
)";

// For each context, before a profile is good enough to be planned with.
constexpr std::uint32_t kProfileQuestions = 200;

struct UtilityOptions {
  std::vector<std::string> orderings;
  std::vector<double> fractions{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
  std::vector<std::uint32_t> contexts{256, 512, 1024};
  std::vector<std::uint32_t> keys{1};
  std::uint32_t questions = kProfileQuestions;
  engine::AlwaysSent always{4, 32};
  std::uint64_t seed = 7;
  std::string engine = "llama";
  std::string model;
  std::uint32_t slots = 8;
  std::string out;
  bool resume = false, json = false, plain = false;
};

Failure wrong(std::string_view field, const std::string& why) {
  return fail(Errc::kInvalidArgument, fmt::format("{}: {}", field, why));
}

Result<std::vector<engine::Ordering>> check(UtilityOptions& options) {
  std::vector<engine::Ordering> orderings;
  for (const std::string& name : options.orderings) {
    const auto ordering = engine::parse_ordering(name);
    if (!ordering) return Failure(ordering.error());
    orderings.push_back(*ordering);
  }
  // All KV is always measured, and is the same for every ordering.
  std::erase(options.fractions, 1.0);
  std::sort(options.fractions.begin(), options.fractions.end());
  for (const double fraction : options.fractions) {
    if (!(fraction > 0 && fraction < 1)) return wrong("fraction", "must be above 0, at most 1");
  }
  for (const auto context : options.contexts) {
    if (context < 40 || context > 100'000) return wrong("context", "must be 40 to 100000");
  }
  for (const auto keys : options.keys) {
    if (keys < 1 || keys > 8) return wrong("keys", "must be 1 to 8");
  }
  if (options.slots < 1 || options.slots > 64) return wrong("slots", "must be 1 to 64");
  if (options.questions == 0) return wrong("questions", "must be above 0");
  if (options.resume && options.out.empty()) return wrong("resume", "needs --out DIR");
  if (auto s = check_engine(options.engine, has_llama()); !s) return Failure(s.error());
  return orderings;
}

class Bench {
 public:
  Bench(UtilityOptions options, std::vector<engine::Ordering> orderings)
      : options_(std::move(options)),
        orderings_(std::move(orderings)),
        progress_("bench utility", options_.plain) {}

  Status run() {
    auto file = RecordFile::open(options_.out, options_.resume);
    if (!file) return Failure(file.error());
    auto known = parse_questions(file->kept());
    if (!known) return fail(Errc::kParse, file->path() + ": " + known.error().message);
    known_ = std::move(*known);
    const auto status = measure(*file);
    progress_.clear();
    // What is there is shown, also of a measurement that was interrupted.
    if (!status && status.error().code != Errc::kCancelled) return status;
    if (auto s = show(); !s) return s;
    return status;
  }

 private:
  std::string key(const NeedleTask& task, std::uint32_t index) const {
    return fmt::format(
        "context={} keys={} question={} seed={} sinks={} recent={} engine={} model={}",
        task.context, task.keys, index, task.seed, options_.always.sinks, options_.always.recent,
        options_.engine, options_.model);
  }

  std::vector<UtilityProbe> missing(const QuestionRecord* known) const {
    std::vector<UtilityProbe> probes;
    for (const auto ordering : orderings_) {
      for (const double fraction : options_.fractions) {
        if (known != nullptr) {
          const auto of = known->right.find(std::string(engine::name_of(ordering)));
          if (of != known->right.end() && of->second.contains(fraction_name(fraction))) continue;
        }
        probes.push_back({ordering, fraction});
      }
    }
    return probes;
  }

  Status measure(const RecordFile& file) {
    boost::asio::io_context io(1);
    net::AsioClock clock(io);
    EventLoop loop(io);
    progress_.say(0, "preparing the model");
    GnbConfig config;
    config.engine = options_.engine;
    config.model = options_.model;
    config.slots = options_.slots;
    const auto longest = *std::max_element(options_.contexts.begin(), options_.contexts.end());
    config.context_tokens = std::max(longest + 128, 512u);
    auto kit = make_engine(config, io, clock);
    if (!kit) return Failure(kit.error());
    model_hash_ = kit->engine->info().compatibility.model_hash;
    UtilityRunner runner(loop, *kit, options_.always);
    QuestionMaker maker(*kit->text);
    const double all =
        static_cast<double>(options_.keys.size() * options_.contexts.size()) * options_.questions;
    double done = 0;
    for (const auto keys : options_.keys) {
      for (const auto context : options_.contexts) {
        const NeedleTask task{context, keys, options_.seed};
        for (std::uint32_t i = 0; i < options_.questions; ++i) {
          if (auto s = ask(task, i, maker, runner, file); !s) return s;
          done += 1;
          if (options_.plain && i % 10 != 9) continue;
          progress_.say(done / all, fmt::format("{} key{}, context {}, question {}", keys,
                                                keys == 1 ? "" : "s", context, i + 1));
        }
      }
    }
    return {};
  }

  Status ask(const NeedleTask& task, std::uint32_t index, QuestionMaker& maker,
             UtilityRunner& runner, const RecordFile& file) {
    const std::string name = key(task, index);
    const auto known = known_.find(name);
    const auto probes = missing(known == known_.end() ? nullptr : &known->second);
    if (known != known_.end() && probes.empty()) return {};
    const auto question = maker.make(task, index);
    if (!question) return Failure(question.error());
    auto record = runner.ask(*question, probes, mix(options_.seed, index));
    if (!record) return Failure(record.error());
    record->key = name;
    if (auto s = file.append(to_json(*record)); !s) return s;
    QuestionRecord& kept = known_[name];
    for (auto& [ordering, fractions] : kept.right) record->right[ordering].merge(fractions);
    kept = std::move(*record);
    return {};
  }

  std::vector<const QuestionRecord*> questions_of(std::uint32_t keys, std::uint32_t context) const {
    std::vector<const QuestionRecord*> found;
    for (std::uint32_t i = 0; i < options_.questions; ++i) {
      const auto known = known_.find(key({context, keys, options_.seed}, i));
      if (known != known_.end()) found.push_back(&known->second);
    }
    return found;
  }

  Status show() {
    std::vector<std::string> names;
    for (const auto ordering : orderings_) names.emplace_back(engine::name_of(ordering));
    std::vector<UtilitySummary> summaries;
    std::vector<std::uint32_t> counted;
    std::vector<const QuestionRecord*> pooled;
    for (const auto keys : options_.keys) {
      for (const auto context : options_.contexts) {
        const auto questions = questions_of(keys, context);
        if (questions.empty()) continue;
        summaries.push_back(
            summarize_utility(keys, {context}, questions, names, options_.fractions));
        if (keys != 1 || !summaries.back().counted) continue;
        counted.push_back(context);
        pooled.insert(pooled.end(), questions.begin(), questions.end());
      }
    }
    std::optional<UtilitySummary> together;
    if (!counted.empty()) {
      together = summarize_utility(1, counted, pooled, names, options_.fractions);
      if (counted.size() > 1) summaries.push_back(*together);
    }
    if (options_.json) {
      fmt::print("{}\n", utility_json(summaries));
    } else {
      fmt::print("{}", utility_table(summaries));
    }
    WrittenFiles files;
    if (together) {
      if (auto s = write_profile(*together, files); !s) return s;
    }
    if (!options_.out.empty()) {
      if (auto s = write_results(summaries, files); !s) return s;
    }
    if (!files.no_figures.empty()) {
      fmt::print(stderr, "pallas bench utility: no figures: {}\n", files.no_figures);
    }
    if (!options_.json && !files.paths.empty()) {
      fmt::print("Files\n");
      for (const auto& path : files.paths) fmt::print("  {}\n", path);
    }
    return {};
  }

  Status write_profile(const UtilitySummary& together, WrittenFiles& files) const {
    const std::string profile =
        utility_profile_json(model_hash_, options_.always.sinks, options_.always.recent, together) +
        "\n";
    if (!options_.out.empty()) {
      if (auto s = write_text(options_.out, "utility-profile.json", profile, files); !s) return s;
    }
    // Others rely on the one in the cache, so a quick look or an interrupted run leaves it alone.
    const bool enough = together.questions >= kProfileQuestions * together.contexts.size();
    const auto cache = cache_folder();
    if (!enough || options_.engine != "llama" || cache.empty()) return {};
    return write_text(cache.string(), "utility-" + model_hash_.substr(0, 16) + ".json", profile,
                      files);
  }

  Status write_results(const std::vector<UtilitySummary>& summaries, WrittenFiles& files) const {
    const std::string& out = options_.out;
    files.paths.push_back(out + "/" + kRecordFile);
    if (auto s = write_text(out, "utility.json", utility_json(summaries) + "\n", files); !s) {
      return s;
    }
    if (auto s = write_text(out, "utility.txt", utility_table(summaries), files); !s) return s;
    for (const auto& figure : utility_figures(summaries)) {
      if (auto s = write_figure(out, figure, files); !s) return s;
    }
    return {};
  }

  UtilityOptions options_;
  std::vector<engine::Ordering> orderings_;
  ProgressLog progress_;
  std::map<std::string, QuestionRecord> known_;
  std::string model_hash_;
};

template <class T>
CLI::Option* list(CLI::App& app, const char* name, std::vector<T>& values, const char* help) {
  return app.add_option(name, values, help)
      ->delimiter(',')
      ->type_name("A,B")
      ->take_all()
      ->capture_default_str();
}

void declare(CLI::App& app, UtilityOptions& options) {
  list(app, "--ordering", options.orderings, "Which positions come first");
  list(app, "--fraction", options.fractions, "Of the prompt's KV; all of it is always measured");
  list(app, "--context", options.contexts, "Tokens of a prompt");
  list(app, "--keys", options.keys, "Numbers in a prompt, of which one is asked for");
  app.add_option("--questions", options.questions, "For each context and number of keys")
      ->capture_default_str();
  app.add_option("--sinks", options.always.sinks, "First positions that are always sent")
      ->capture_default_str();
  app.add_option("--recent", options.always.recent, "Last positions that are always sent")
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of the questions and of random's order")
      ->capture_default_str();
  app.add_option("--engine", options.engine, "llama, or fake: without a model")
      ->capture_default_str();
  app.add_option("--model", options.model, "GGUF file; default: the shipped model");
  app.add_option("--slots", options.slots, "Answers decoded together, at most")
      ->capture_default_str();
  app.add_option("--out", options.out, "Folder for every question, the tables and the figures")
      ->type_name("DIR");
  app.add_flag("--resume", options.resume, "Keep what is in DIR and measure what lacks");
  app.add_flag("--json", options.json, "Print the rows as JSON");
  app.add_flag("--plain", options.plain, "Progress as plain lines, also on a terminal");
}

}  // namespace

int bench_utility_command(std::vector<std::string> args) {
  CLI::App app(
      "Asks the model for a number in a long prompt with a part of the prompt's KV, chosen by "
      "importance, and fits accuracy against the fraction",
      "pallas bench utility");
  app.footer(kExamples);
  UtilityOptions options;
  for (const auto ordering : engine::kOrderings) {
    options.orderings.emplace_back(engine::name_of(ordering));
  }
  declare(app, options);
  try {
    std::reverse(args.begin(), args.end());
    app.parse(args);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  const auto refuse = [](const Error& error) {
    fmt::print(stderr, "pallas bench utility: {}\n", error.message);
    return error.code == Errc::kInvalidArgument || error.code == Errc::kParse ? kExitUsage
                                                                              : kExitFailed;
  };
  const auto orderings = check(options);
  if (!orderings) return refuse(orderings.error());
  const auto status = Bench(std::move(options), *orderings).run();
  return status ? kExitOk : refuse(status.error());
}

}  // namespace pallas::app
