// `pallas drain`: ends a gNB in order.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands.h"
#include "event_loop.h"
#include "operator_call.h"

namespace pallas::app {
namespace {

constexpr const char* kExamples = R"(
Examples:
  pallas drain 127.0.0.1:8080                   sessions may end there, 30 s at most
  pallas drain 127.0.0.1:8080 --to gnb-b        they move to gnb-b
  pallas drain --limit 5 --no-wait              order it, and return

The gNB takes no new sessions (503), refuses preparations, moves its sessions to --to and ends when
none is left, or at the limit: then clients that can resume are sent to --to, others get an error.
Exit code 3: sessions were left at the limit.
)";

constexpr Duration kLook = std::chrono::milliseconds(200);

struct Options {
  std::string at = "127.0.0.1:8080", to, gnb_ca, operator_key_file;
  std::optional<double> limit_s;
  bool json = false, no_wait = false;
};

// The last that the gNB said of it, before it ended.
Result<nlohmann::json> drain(EventLoop& loop, const Options& options) {
  const auto call = OperatorCall::to(loop, options.at, options.gnb_ca, options.operator_key_file);
  if (!call) return Failure(call.error());
  nlohmann::json order = nlohmann::json::object();
  if (!options.to.empty()) order["to"] = options.to;
  if (options.limit_s) order["limit_s"] = *options.limit_s;
  auto last = (*call)("POST", "/v1/drain", order.dump());
  if (!last || options.no_wait) return last;
  for (;;) {
    const auto slept = loop.wait([] { return false; }, kLook, "");
    if (!slept && slept.error().code == Errc::kCancelled) return Failure(slept.error());
    auto now = (*call)("GET", "/v1/drain");
    if (!now && now.error().code == Errc::kCancelled) return now;
    if (!now) return last;  // it has ended
    last = std::move(now);
  }
}

}  // namespace

int drain_command(std::vector<std::string> args) {
  CLI::App app("Ends a gNB in order: no new sessions, those that are there move or end",
               "pallas drain");
  app.footer(kExamples);
  Options options;
  app.add_option("URL", options.at, "HOST:PORT of the gNB's operator interface")
      ->capture_default_str();
  app.add_option("--to", options.to, "Name of the gNB that sessions are moved to");
  app.add_option("--limit", options.limit_s,
                 "Seconds until what is left is cut off; default: the gNB's drain_limit_s");
  app.add_option("--gnb-ca", options.gnb_ca, "PEM file: the authority behind an https:// address");
  app.add_option("--operator-key-file", options.operator_key_file,
                 "Its first line is the key that the gNB wants of operators");
  app.add_flag("--no-wait", options.no_wait, "Do not wait for the end");
  app.add_flag("--json", options.json, "Print the gNB's last answer as it is");
  try {
    std::reverse(args.begin(), args.end());
    app.parse(args);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  boost::asio::io_context io(1);
  EventLoop loop(io);
  const auto last = drain(loop, options);
  if (!last) {
    fmt::print(stderr, "pallas drain: {}\n", last.error().message);
    return last.error().code == Errc::kInvalidArgument ? kExitUsage : kExitFailed;
  }
  const auto left = last->value("left", 0u);
  if (options.json) {
    fmt::print("{}\n", last->dump());
  } else {
    fmt::print("{}: {} sessions moved, {} left{}\n", options.at, last->value("moved", 0u), left,
               options.no_wait ? ", draining" : "");
  }
  return left > 0 && !options.no_wait ? kExitLeft : kExitOk;
}

}  // namespace pallas::app
