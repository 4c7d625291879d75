// `pallas bench transfer`: KV rows from one engine's cache into another's, beside plainer paths.

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "bench_sizing.h"
#include "bench_transfer_options.h"
#include "bench_transfer_output.h"
#include "bench_transfer_pair.h"
#include "certificate_folder.h"
#include "commands.h"
#include "experiment_files.h"
#include "log_folder.h"
#include "model_setup.h"
#include "progress_line.h"

namespace pallas::app {
namespace {

constexpr const char* kExamples = R"(
Examples:
  pallas bench transfer                         all paths, blocks of 16, 64 and 256 tokens
  pallas bench transfer --path tcp-xxh3,pallas --block-tokens 64 --repeat 9
  pallas bench transfer --model-type f16,q8_0,q4_0 --out results
                                                the shipped model in three types of weights
  pallas bench transfer --model a.gguf --model b.gguf
                                                other models' rows
  pallas bench transfer --congestion-control cubic
                                                for all paths; the system's may be slow on loopback
  pallas bench transfer --python build/nixl/bin/python
                                                where NIXL is installed (docs/bench.md says how)
  pallas bench transfer --engine fake --context 64 --block-tokens 16 --megabytes 1 --repeat 1
                                                without a model, for a quick look
)";

constexpr const char* kInstall =
    "not installed: python3.11 -m venv build/nixl && build/nixl/bin/pip install --no-deps "
    "--require-hashes -r bench/nixl-requirements.txt, then --python build/nixl/bin/python";

// What new sockets use: `wanted` (empty: the system's), by its name; an error when it is not there.
Result<std::string> congestion_control(const std::string& wanted) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail(Errc::kIo, std::string("socket: ") + std::strerror(errno));
  const bool set = wanted.empty() || setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, wanted.data(),
                                                static_cast<socklen_t>(wanted.size())) == 0;
  const std::string why = std::strerror(errno);
  char name[16] = {};
  socklen_t size = sizeof name - 1;
  getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size);
  close(fd);
  if (!set) return fail(Errc::kInvalidArgument, "congestion_control: '" + wanted + "': " + why);
  return std::string(name);
}

class Bench {
 public:
  explicit Bench(TransferPlan plan)
      : plan_(std::move(plan)), options_(plan_.options), line_("bench transfer") {}

  Result<int> run() {
    auto control = congestion_control(options_.congestion_control);
    if (!control) return Failure(control.error());
    scene_.congestion_control = *control;
    auto folder = LogFolder::create(options_.keep_logs, "keep_logs");
    if (!folder) return Failure(folder.error());
    logs_ = folder->get();
    if (options_.pin) cores_ = share_cores(allowed_cores(), 2);
    scene_.cores = cores_.empty()
                       ? std::string("Source and target are not pinned")
                       : fmt::format("Source on core {}, target on core {}",
                                     fmt::join(cores_[0], " "), fmt::join(cores_[1], " "));
    for (std::size_t i = 0; i < plan_.models.size(); ++i) {
      if (auto s = measure(i); !s) return Failure(s.error());
    }
    line_.clear();
    if (auto s = show(); !s) return Failure(s.error());
    const bool differ = std::any_of(rows_.begin(), rows_.end(),
                                    [](const auto& row) { return row.rows_equal == false; });
    if (differ) {
      fmt::print(stderr, "pallas bench transfer: rows at the target are not those of the source\n");
    }
    return differ ? kExitFailed : kExitOk;
  }

 private:
  void say(double done, const std::string& text) {
    if (!options_.plain && line_.shown()) {
      line_.show(done, text);
    } else {
      fmt::print(stderr, "{:3.0f} %  {}\n", 100 * done, text);
    }
  }

  Result<std::string> file_of(const TransferModel& model) {
    if (options_.engine == "fake") return std::string();
    const auto file = model.file.empty() ? shipped_model(model.type) : model_file(model.file);
    if (!file) return fail(file.error().code, "model: " + file.error().message);
    return file->string();
  }

  Result<std::unique_ptr<TransferPair>> start_pair(const std::string& model_path) {
    TransferProgram program;
    program.before = {"bench", "transfer-end"};
    const std::string certificates = logs_->path() + "/certificates";
    CertificateOrder order;
    order.folder = certificates;
    order.names = {"source", "target"};
    order.lifetime = std::chrono::hours(24);
    if (const auto made = make_certificates(order); !made) return Failure(made.error());
    program.after = {options_.engine, model_path, std::to_string(options_.context), certificates};
    return TransferPair::start({program, logs_->path(), "pallas", cores_});
  }

  // None, with a reason, when the library cannot be used.
  std::unique_ptr<TransferPair> start_library(std::uint64_t session_bytes, std::string& why_not) {
    const auto script = bench_script("nixl_transfer.py");
    if (!script) {
      why_not = script.error().message;
      return nullptr;
    }
    TransferProgram program;
    program.program = options_.python;
    program.before = {script->string()};
    program.after = {std::to_string(session_bytes)};
    auto pair = TransferPair::start({program, logs_->path(), "library", cores_});
    if (pair && !(*pair)->missing()) return std::move(*pair);
    why_not = pair ? kInstall : pair.error().message;
    return nullptr;
  }

  Status measure(std::size_t number) {
    const auto& model = plan_.models[number];
    const auto part = static_cast<double>(number);
    say(part / static_cast<double>(plan_.models.size()), model.label + ": engines are started");
    const auto file = file_of(model);
    if (!file) return Failure(file.error());
    auto pair = start_pair(*file);
    if (!pair) return Failure(pair.error());
    std::string why_not;  // no row of the library has a figure
    const std::size_t first = rows_.size();
    const std::uint64_t session = (*pair)->session_bytes();
    const std::uint64_t sessions = (options_.megabytes * 1'000'000ull + session - 1) / session;
    for (const auto tokens : options_.block_tokens) {
      for (const auto& path : plan_.paths) {
        TransferRow row;
        row.path = path.name;
        row.model = model.label;
        row.block_tokens = tokens;
        row.block_bytes = tokens * (*pair)->bytes_per_token();
        row.bytes = sessions * session;
        rows_.push_back(std::move(row));
      }
    }
    for (std::uint32_t round = 0; round < options_.repeat; ++round) {
      for (std::size_t b = 0; b < options_.block_tokens.size(); ++b) {
        for (const std::size_t p : plan_.order(round)) {
          auto& row = rows_[first + b * plan_.paths.size() + p];
          if (!plan_.paths[p].library) {
            if (auto s = take(row, **pair); !s) return s;
          } else if (why_not.empty()) {
            // Of processes of its own: one that hangs or breaks off cannot spoil the next.
            const auto library = start_library(session, why_not);
            if (!library) continue;
            if (auto s = take(row, *library); !s) row.why_not = "failed: " + s.error().message;
          }
        }
        const double done = (part + (round + double(b + 1) / double(options_.block_tokens.size())) /
                                        options_.repeat) /
                            static_cast<double>(plan_.models.size());
        say(done, fmt::format("{} round {}, blocks of {}", model.label, round + 1,
                              options_.block_tokens[b]));
      }
    }
    for (std::size_t i = first; i < rows_.size(); ++i) {
      const bool library = plan_.paths[(i - first) % plan_.paths.size()].library;
      if (library && !why_not.empty()) rows_[i].why_not = why_not;
    }
    return {};
  }

  // One sample.
  Status take(TransferRow& row, TransferPair& pair) {
    const auto sample =
        pair.measure({row.path, row.block_bytes, row.bytes, options_.congestion_control});
    if (!sample) return fail(sample.error().code, row.path + ": " + sample.error().message);
    row.samples.push_back(*sample);
    row.detail = pair.detail();
    if (!has_engines(row.path)) return {};
    const auto equal = pair.rows_equal();
    if (!equal) return Failure(equal.error());
    row.rows_equal = row.rows_equal.value_or(true) && *equal;
    return {};
  }

  Status show() {
    const auto table = transfer_table(rows_, scene_);
    const auto json = transfer_json(rows_, scene_) + "\n";
    fmt::print("{}", options_.json ? json : table);
    if (options_.out.empty()) return {};
    WrittenFiles files;
    if (auto s = write_text(options_.out, "transfer.json", json, files); !s) return s;
    if (auto s = write_text(options_.out, "transfer.txt", table, files); !s) return s;
    if (!options_.json) {
      fmt::print("Files\n");
      for (const auto& path : files.paths) fmt::print("  {}\n", path);
    }
    return {};
  }

  TransferPlan plan_;
  const TransferOptions& options_;
  ProgressLine line_;
  TransferScene scene_;
  const LogFolder* logs_ = nullptr;
  std::vector<std::vector<int>> cores_;
  std::vector<TransferRow> rows_;
};

template <class T>
CLI::Option* list(CLI::App& app, const char* name, std::vector<T>& values, const char* help) {
  return app.add_option(name, values, help)->delimiter(',')->type_name("A,B")->take_all();
}

std::string paths_help() {
  std::string text = "What is measured; default: all.";
  for (const auto& path : transfer_paths())
    text += fmt::format("\n{}: {}", path.name, path.summary);
  return text;
}

void declare(CLI::App& app, TransferOptions& options, const std::string& paths) {
  list(app, "--path", options.paths, paths.c_str());
  list(app, "--block-tokens", options.block_tokens, "Tokens whose rows travel in one frame")
      ->capture_default_str();
  list(app, "--model-type", options.model_types, "Weights of the shipped model: q4_0, q8_0, f16")
      ->capture_default_str();
  app.add_option("--model", options.models, "A GGUF file, measured too (repeatable)");
  app.add_option("--context", options.context, "Tokens in the session's KV cache")
      ->capture_default_str();
  app.add_option("--megabytes", options.megabytes,
                 "Moved for each sample, rounded up to whole sessions")
      ->capture_default_str();
  app.add_option("--repeat", options.repeat, "Samples of each row")->capture_default_str();
  app.add_option("--congestion-control", options.congestion_control,
                 "TCP's, of every path; default: the system's");
  app.add_option("--python", options.python, "An interpreter that can import nixl_cu12")
      ->capture_default_str();
  app.add_option("--engine", options.engine, "llama, or fake: without a model")
      ->capture_default_str();
  app.add_flag("--pin,!--no-pin", options.pin,
               "Source and target on cores of their own, where there are enough; on by default");
  app.add_option("--out", options.out, "Folder for the table and the rows")->type_name("DIR");
  app.add_flag("--json", options.json, "Print the rows as JSON");
  app.add_flag("--plain", options.plain, "Progress as plain lines, also on a terminal");
  app.add_option("--keep-logs", options.keep_logs, "Keep what the processes wrote in this folder");
}

}  // namespace

int bench_transfer_command(std::vector<std::string> args) {
  CLI::App app(
      "Moves KV rows from one engine's cache into another's, in two processes over loopback, and "
      "compares speed and CPU time with plainer ways for bytes",
      "pallas bench transfer");
  app.footer(kExamples);
  TransferOptions options;
  options.with_llama = has_llama();
  declare(app, options, paths_help());
  try {
    std::reverse(args.begin(), args.end());
    app.parse(args);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  if (!options.models.empty() && app.count("--model-type") == 0) options.model_types.clear();
  const auto refuse = [](const Error& error, int code) {
    fmt::print(stderr, "pallas bench transfer: {}\n", error.message);
    return code;
  };
  auto plan = make_transfer_plan(options);
  if (!plan) return refuse(plan.error(), kExitUsage);
  Bench bench(std::move(*plan));
  const auto code = bench.run();
  if (!code) {
    return refuse(code.error(),
                  code.error().code == Errc::kInvalidArgument ? kExitUsage : kExitFailed);
  }
  return *code;
}

}  // namespace pallas::app
