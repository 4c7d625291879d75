// `pallas move`: one session to another gNB, by an operator's order.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "event_loop.h"
#include "operator_call.h"

namespace pallas::app {
namespace {

constexpr const char* kExamples = R"(
Examples:
  pallas move 9f3c... --to gnb-b --dry-run   what it would cost
  pallas move 9f3c... --to gnb-b --wait      move it, and wait for the end

GET /v1/sessions lists the sessions of a gNB. The client must have opted in to resume
(`Pallas-Resume: 1`, as `pallas ue` does): its stream ends with the name of the next gNB, and it
goes there by itself. Exit code 1: refused, or with --wait not moved.
)";

constexpr Duration kLook = std::chrono::milliseconds(100);
constexpr Duration kLongest = std::chrono::minutes(2);

struct Options {
  std::string session, to, from = "127.0.0.1:8080", gnb_ca, operator_key_file;
  bool dry_run = false, json = false, wait = false;
};

void print(const nlohmann::json& move) {
  const auto& plan = move["plan"];
  const bool planned = move["id"].is_null();
  fmt::print("{} {} -> {}: {}, {}\n", planned ? "plan" : move["id"].get<std::string>(),
             move.value("source", ""), move.value("target", ""), plan.value("scheme", ""),
             move.value("state", ""));
  if (plan.value("relay", false)) {
    fmt::print("  the source goes on decoding, the target relays\n");
  } else {
    fmt::print(
        "  {} positions, the source sends from {} on ({:.2f} MB), the target computes {:.0f}\n",
        plan.value("context", 0u), plan.value("split", 0u), plan.value("bytes", 0.0) / 1e6,
        plan.value("recomputed", 0.0));
  }
  fmt::print("  the UE goes after about {:.2f} s and waits about {:.0f} ms for the next token\n",
             plan.value("window_s", 0.0), 1000 * plan.value("interruption_s", 0.0));
  const std::string reason = move.value("reason", "");
  if (!reason.empty()) fmt::print("  {}\n", reason);
}

bool runs(const nlohmann::json& move) {
  const auto state = move.value("state", std::string());
  return state == "preparing" || state == "executing" || state == "completing";
}

Result<nlohmann::json> move(EventLoop& loop, const Options& options) {
  const auto call = OperatorCall::to(loop, options.from, options.gnb_ca, options.operator_key_file);
  if (!call) return Failure(call.error());
  const nlohmann::json order = {{"target", options.to}, {"dry_run", options.dry_run}};
  auto answer = (*call)("POST", "/v1/sessions/" + options.session + "/move", order.dump());
  if (!answer || !options.wait || options.dry_run) return answer;
  const auto id = answer->value("id", std::string());
  for (Duration waited{0}; runs(*answer); waited += kLook) {
    if (waited > kLongest) return fail(Errc::kTimeout, "the move did not end in time");
    const auto slept = loop.wait([] { return false; }, kLook, "");
    if (!slept && slept.error().code == Errc::kCancelled) return Failure(slept.error());
    answer = (*call)("GET", "/v1/handovers/" + id);
    if (!answer) return answer;
  }
  return answer;
}

}  // namespace

int move_command(std::vector<std::string> args) {
  CLI::App app("Moves one session to another gNB", "pallas move");
  app.footer(kExamples);
  Options options;
  app.add_option("SESSION", options.session, "Its id, as GET /v1/sessions shows it")->required();
  app.add_option("--to", options.to, "Name of the gNB that it moves to")->required();
  app.add_option("--from", options.from,
                 "HOST:PORT of the operator's interface of the gNB where it is")
      ->capture_default_str();
  app.add_option("--gnb-ca", options.gnb_ca, "PEM file: the authority behind an https:// address");
  app.add_option("--operator-key-file", options.operator_key_file,
                 "Its first line is the key that the gNB wants of operators");
  app.add_flag("--dry-run", options.dry_run, "Only say what would be done");
  app.add_flag("--wait", options.wait, "Wait until it is there, or failed");
  app.add_flag("--json", options.json, "Print the gNB's answer as it is");
  try {
    std::reverse(args.begin(), args.end());
    app.parse(args);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  boost::asio::io_context io(1);
  EventLoop loop(io);
  const auto moved = move(loop, options);
  if (!moved) {
    fmt::print(stderr, "pallas move: {}\n", moved.error().message);
    return moved.error().code == Errc::kInvalidArgument ? kExitUsage : kExitFailed;
  }
  if (options.json) {
    fmt::print("{}\n", moved->dump());
  } else {
    print(*moved);
  }
  return moved->value("state", std::string()) == "failed" ? kExitFailed : kExitOk;
}

}  // namespace pallas::app
