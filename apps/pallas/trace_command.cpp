// `pallas trace`: one handover, collected from whoever took part in it, on one time line.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <fstream>

#include "commands.h"
#include "event_loop.h"
#include "gzip_file.h"
#include "operator_access.h"
#include "trace_output.h"
#include "trace_reports.h"
#include "ue/gnb_client.h"

namespace pallas::app {
namespace {

constexpr const char* kExamples = R"(
Examples:
  pallas demo --report trip.json && pallas trace latest --report trip.json --out trace.json
      the last handover of a demo; open trace.json in https://ui.perfetto.dev
  pallas trace latest --gnb 127.0.0.1:8080 --gnb 127.0.0.1:8081 --ue 127.0.0.1:9000 --table
      the last handover between two gNBs, as the UE saw it, too
  pallas trace 9f3c...:4 --gnb 127.0.0.1:8080 --gnb 127.0.0.1:8081 --out trace.json
      the handover of that session that began epoch 4
)";

constexpr std::uintmax_t kLargestReport = 256u << 20;
constexpr Duration kPatience = std::chrono::seconds(10);

struct Options {
  std::string handover;
  std::vector<std::string> gnbs, reports;
  std::string ue, out, gnb_ca, operator_key_file;
  bool table = false;
};

struct Asked {
  std::string flag;
  ue::Address at;
  std::optional<Result<ue::HttpReply>> reply;
};

Result<std::vector<Asked>> whom_to_ask(const Options& options) {
  std::vector<Asked> asked;
  const auto add = [&](const std::string& flag, const std::string& text) -> Status {
    const auto at = ue::parse_address(text);
    if (!at) return fail(Errc::kInvalidArgument, flag + ": " + at.error().message);
    asked.push_back({flag + " " + text, *at, {}});
    return {};
  };
  for (const auto& gnb : options.gnbs) {
    // NAME=HOST:PORT, as other commands have it, is taken as well.
    const auto equals = gnb.find('=');
    if (auto s = add("--gnb", equals == std::string::npos ? gnb : gnb.substr(equals + 1)); !s) {
      return Failure(s.error());
    }
  }
  if (!options.ue.empty()) {
    if (auto s = add("--ue", options.ue); !s) return Failure(s.error());
  }
  return asked;
}

Status take(std::vector<TraceReport>& all, const std::string& where, const std::string& text) {
  auto found = read_trace_reports(text);
  if (!found) return fail(found.error().code, where + ": " + found.error().message);
  all.insert(all.end(), found->begin(), found->end());
  return {};
}

Status ask(const Options& options, std::vector<Asked>& asked, const HandoverName& name,
           std::vector<TraceReport>& all) {
  if (asked.empty()) return {};
  const auto access = operator_access(options.gnb_ca, options.operator_key_file);
  if (!access) return Failure(access.error());
  boost::asio::io_context io(1);
  EventLoop loop(io);
  ue::GnbClient gnbs(io, ue::HttpTimeouts{}, *access), ues(io, ue::HttpTimeouts{});
  std::size_t waiting = asked.size();
  std::string target = "/v1/handovers";
  if (!name.session.value.empty()) target += "?session=" + name.session.value;
  for (auto& one : asked) {
    auto& client = one.flag.starts_with("--ue") ? ues : gnbs;
    client.fetch(one.at, {"GET", target, {}, ""}, [&](Result<ue::HttpReply> reply) {
      one.reply = std::move(reply);
      --waiting;
    });
  }
  if (auto s = loop.wait([&] { return waiting == 0; }, kPatience, "the reports"); !s) return s;
  for (const auto& one : asked) {
    const auto& reply = *one.reply;
    if (!reply) {
      return fail(Errc::kUnreachable, one.flag + ": " + reply.error().message +
                                          "; is that its HTTP address (http=... of its `ready` "
                                          "line)?");
    }
    if (reply->status != 200) {
      return fail(Errc::kUnreachable, fmt::format("{}: GET /v1/handovers was answered with {}",
                                                  one.flag, reply->status));
    }
    if (auto s = take(all, one.flag, reply->body); !s) return s;
  }
  return {};
}

Status write_trace(const Options& options, const std::string& json) {
  if (options.out.empty()) {
    fmt::print("{}\n", json);
    return {};
  }
  std::ofstream file(options.out, std::ios::binary | std::ios::trunc);
  file << json << '\n';
  if (!file.flush()) return fail(Errc::kIo, "--out: cannot write '" + options.out + "'");
  return {};
}

Status trace(const Options& options) {
  if (options.gnbs.empty() && options.reports.empty()) {
    return fail(Errc::kInvalidArgument,
                "there is nowhere to look: give --gnb HOST:PORT of the source and of the target, "
                "or --report FILE");
  }
  const auto name = parse_handover_name(options.handover);
  if (!name) return Failure(name.error());
  auto asked = whom_to_ask(options);
  if (!asked) return Failure(asked.error());

  std::vector<TraceReport> all;
  for (const auto& file : options.reports) {
    const auto text = read_text_file(file, kLargestReport);
    if (!text) return fail(text.error().code, "--report: " + text.error().message);
    if (auto s = take(all, "--report " + file, *text); !s) return s;
  }
  if (auto s = ask(options, *asked, *name, all); !s) return s;
  const auto handover = choose_handover(all, *name);
  if (!handover) return Failure(handover.error());

  const TraceTimeline timeline = make_timeline(*handover);
  if (auto s = write_trace(options, chrome_trace(timeline)); !s) return s;
  // Where the trace itself goes to standard output, the table keeps out of it.
  const bool shared = options.out.empty();
  if (options.table || isatty(shared ? STDERR_FILENO : STDOUT_FILENO) != 0) {
    fmt::print(shared ? stderr : stdout, "{}", phase_table(timeline));
  } else {
    for (const auto& sentence : timeline.missing)
      fmt::print(stderr, "pallas trace: {}\n", sentence);
  }
  return {};
}

}  // namespace

int trace_command(std::vector<std::string> args) {
  CLI::App app(
      "One handover as a Chrome/Perfetto trace: source, target and UE on one time line, every "
      "phase "
      "and message",
      "pallas trace");
  app.footer(kExamples);
  Options options;
  app.add_option("HANDOVER", options.handover,
                 "SESSION (its latest handover), SESSION:EPOCH (the id of a report), or latest")
      ->required();
  app.add_option("--gnb", options.gnbs,
                 "HOST:PORT of a gNB's HTTP interface (repeatable); source and target are needed");
  app.add_option("--gnb-ca", options.gnb_ca, "PEM file: the authority behind https:// addresses");
  app.add_option("--operator-key-file", options.operator_key_file,
                 "Its first line is the key that the gNBs want of operators");
  app.add_option("--ue", options.ue, "HOST:PORT of the endpoint of `pallas ue`, for the UE's side");
  app.add_option("--report", options.reports,
                 "Report of `pallas demo --report`, or saved answers of GET /v1/handovers "
                 "(repeatable)");
  app.add_option("--out", options.out, "Write the trace there; default: standard output");
  app.add_flag("--table", options.table,
               "Print a table of the phases, also where the output is no terminal");
  try {
    std::reverse(args.begin(), args.end());
    app.parse(args);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  if (auto status = trace(options); !status) {
    fmt::print(stderr, "pallas trace: {}\n", status.error().message);
    const bool usage = status.error().code == Errc::kInvalidArgument;
    return usage ? kExitUsage : kExitFailed;
  }
  return kExitOk;
}

}  // namespace pallas::app
