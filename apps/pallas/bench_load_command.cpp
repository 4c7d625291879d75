// `pallas bench load`: how many sessions one gNB holds, and what a wave of arrivals does to them.

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "commands.h"
#include "fleet.h"
#include "load_clients.h"
#include "load_figures.h"
#include "log_folder.h"

namespace pallas::app {
namespace {

constexpr const char* kExamples = R"(
Examples:
  pallas bench load                                      5,000 sessions, 1,000 handovers
  pallas bench load --sessions 500 --handovers 100       smaller
  pallas bench load --json > load.json

Two gNB processes with the simulated engine on loopback: gnb-a has a core to itself and is measured,
gnb-b shares the other with the clients. Sessions stream at gnb-a; others at gnb-b are foretold and
move to gnb-a, evenly within one second; then requests above what it can hold must be refused with
503 and Retry-After. Every token's index and id is checked. Exit code 1 when anything was lost,
repeated or wrong. It needs one file descriptor a session: `ulimit -n` must allow that.
)";

struct Options {
  std::uint32_t sessions = 5000, handovers = 1000, refusals = 100;
  double rate = 4, seconds = 10, opens_per_second = 500;
  std::uint32_t prompt = 100;
  bool json = false;
};

// Until all sessions have begun.
constexpr Duration kStart = std::chrono::seconds(120);

TimePoint now() {
  return TimePoint(std::chrono::steady_clock::now().time_since_epoch());
}

// Of a process: seconds of CPU time, resident bytes.
struct Usage {
  double cpu_s = 0;
  std::uint64_t rss = 0;
};
Usage usage_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::stringstream text;
  text << file.rdbuf();
  const std::string line = text.str();
  std::istringstream fields(line.substr(std::min(line.rfind(')') + 1, line.size())));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  std::uint64_t user = 0, system = 0, resident = 0;
  fields >> user >> system;
  for (int i = 0; i < 8; ++i) fields >> skipped;
  fields >> resident;
  return {static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK)),
          resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))};
}

Status allow_descriptors(std::uint64_t wanted) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= wanted) return {};
  limit.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= wanted) return {};
  return fail(Errc::kInvalidArgument,
              fmt::format("needs {} file descriptors, the system allows {}: raise `ulimit -n`",
                          wanted, limit.rlim_max));
}

void stay_on(const std::vector<int>& cores) {
  if (cores.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<std::size_t>(core), &set);
  sched_setaffinity(0, sizeof set, &set);
}

class Run {
 public:
  Run(const Options& options, Fleet& fleet, LoadClients clients)
      : options_(options),
        clients_(std::move(clients)),
        a_(fleet.http().at(NodeId("gnb-a")).port),
        b_(fleet.http().at(NodeId("gnb-b")).port),
        pid_(fleet.pid(NodeId("gnb-a"))) {}

  Result<LoadFigures> run() {
    figures_.sessions = options_.sessions;
    figures_.handovers = options_.handovers;
    figures_.rate = options_.rate;
    figures_.seconds = options_.seconds;
    figures_.rss_empty = usage_of(pid_).rss;
    if (auto s = open_all(); !s) return Failure(s.error());

    const Usage full = usage_of(pid_);
    figures_.rss_full = full.rss;
    figures_.bytes_per_session =
        static_cast<double>(full.rss - std::min(full.rss, figures_.rss_empty)) / options_.sessions;
    const TimePoint t0 = now();
    wait(t0 + to_duration(Seconds(options_.seconds)));
    const Usage u1 = usage_of(pid_);
    const TimePoint t1 = now();
    figures_.cpu_before = share(full, u1, t0, t1);
    move_all();
    const TimePoint t2 = now();
    const Usage u2 = usage_of(pid_);
    figures_.cpu_handovers = share(u1, u2, t1, t2);
    wait(t2 + to_duration(Seconds(options_.seconds)));
    const TimePoint t3 = now();
    figures_.cpu_after = share(u2, usage_of(pid_), t2, t3);
    const auto expected = expected_tokens(t0, t3);
    refuse_some();
    judge(t0, t1, t2, t3);
    figures_.expected = expected;
    return figures_;
  }

 private:
  static double share(const Usage& from, const Usage& to, TimePoint a, TimePoint b) {
    return (to.cpu_s - from.cpu_s) / to_seconds(b - a).count();
  }

  void wait(TimePoint until) {
    while (now() < until)
      clients_.poll(std::min(until - now(), Duration(std::chrono::milliseconds(10))));
  }

  std::string body(std::uint64_t seed) const {
    return fmt::format(R"({{"prompt":"{}","stream":true,"max_tokens":{},"max_token_rate":{},)"
                       R"("seed":{},"temperature":1,"ignore_eos":true}})",
                       std::string(options_.prompt, 'x'), 3000, options_.rate, seed);
  }

  // Steadily, so that sessions are due at all times alike.
  Status open_all() {
    const std::uint32_t all = options_.sessions + options_.handovers;
    const TimePoint begin = now();
    for (std::uint32_t k = 0; k < all; ++k) {
      wait(begin + to_duration(Seconds(k / options_.opens_per_second)));
      clients_.open(k < options_.sessions ? a_ : b_, 1000 + k, body(1000 + k));
    }
    const TimePoint latest = now() + kStart;
    const auto started = [&] {
      return std::all_of(clients_.sessions().begin(), clients_.sessions().end(),
                         [](const LoadSession& s) { return s.next > 0 || !s.error.empty(); });
    };
    while (!started() && now() < latest) clients_.poll(std::chrono::milliseconds(10));
    for (const auto& s : clients_.sessions()) {
      if (!s.error.empty()) return fail(Errc::kIo, "a session did not start: " + s.error);
      if (s.next == 0) return fail(Errc::kTimeout, "a session did not start in time");
    }
    wait(now() + std::chrono::seconds(2));
    return {};
  }

  // Foretold a second before, the UEs of gnb-b attach at gnb-a, evenly within a second.
  void move_all() {
    const TimePoint begin = now();
    const Duration ahead = std::chrono::seconds(1);
    const auto due = [&](std::uint32_t k) {
      return begin + to_duration(Seconds(static_cast<double>(k) / options_.handovers));
    };
    std::uint32_t foretold = 0, moved = 0;
    while (moved < options_.handovers) {
      for (; foretold < options_.handovers && due(foretold) <= now(); ++foretold) {
        const std::uint32_t ue = options_.sessions + foretold;
        clients_.post(b_, "/v1/predictions",
                      fmt::format(R"({{"ue":"ue-{}","seq":1,"serving":"cell-b","target":"cell-a",)"
                                  R"("in_ms":1000}})",
                                  ue),
                      [this](const LoadReply& reply) {
                        if (reply.status != 204) ++unforetold_;
                      });
      }
      for (; moved < options_.handovers && due(moved) + ahead <= now(); ++moved) {
        clients_.attach(options_.sessions + moved, a_, "gnb-b");
      }
      clients_.poll(std::chrono::milliseconds(1));
    }
    wait(now() + std::chrono::milliseconds(500));
  }

  // gnb-a is full now: whoever else comes is told so at once.
  void refuse_some() {
    figures_.refusals_asked = options_.refusals;
    for (std::uint32_t k = 0; k < options_.refusals; ++k) {
      clients_.post(a_, "/v1/completions", body(k), [this](const LoadReply& reply) {
        if (reply.status == 503 && reply.retry_after) ++figures_.refusals_in_order;
      });
    }
    const TimePoint latest = now() + std::chrono::seconds(10);
    while (clients_.asking() > 0 && now() < latest) clients_.poll(std::chrono::milliseconds(10));
  }

  std::uint64_t expected_tokens(TimePoint from, TimePoint to) const {
    const double sessions = options_.sessions + options_.handovers;
    return static_cast<std::uint64_t>(sessions * options_.rate * to_seconds(to - from).count());
  }

  void judge(TimePoint t0, TimePoint t1, TimePoint t2, TimePoint t3) {
    std::vector<double> before, during, after, gaps, attaches;
    for (std::size_t k = 0; k < clients_.sessions().size(); ++k) {
      const LoadSession& s = clients_.sessions()[k];
      const bool mover = k >= options_.sessions;
      figures_.lost += s.skipped;
      figures_.repeated += s.repeated;
      figures_.wrong += s.wrong;
      if (!s.error.empty() || s.finished) {
        ++figures_.broken;
        if (figures_.first_error.empty())
          figures_.first_error = s.error.empty() ? "ended" : s.error;
      }
      for (const TimePoint at : s.arrivals) figures_.tokens += at >= t0 && at < t3 ? 1 : 0;
      if (!mover) {
        add_lateness(s, options_.rate, t0, t1, before);
        add_lateness(s, options_.rate, t1, t2, during);
        add_lateness(s, options_.rate, t2, t3, after);
        continue;
      }
      if (const auto gap = added_gap_ms(s, options_.rate)) gaps.push_back(*gap);
      if (s.granted.size() < 2 || s.arrivals.size() <= s.began.back() + 1) continue;
      ++figures_.handovers_done;
      attaches.push_back(to_ms(s.granted.back() - s.asked.back()));
    }
    figures_.late_before = quantiles(std::move(before));
    figures_.late_handovers = quantiles(std::move(during));
    figures_.late_after = quantiles(std::move(after));
    figures_.gap = quantiles(std::move(gaps));
    figures_.attach = quantiles(std::move(attaches));
    if (unforetold_ > 0 && figures_.first_error.empty()) {
      figures_.first_error = fmt::format("{} predictions were refused", unforetold_);
    }
  }

  const Options& options_;
  LoadClients clients_;
  std::uint16_t a_, b_;
  pid_t pid_;
  LoadFigures figures_;
  std::uint64_t unforetold_ = 0;
};

Result<LoadFigures> measure(const Options& options) {
  const std::uint32_t all = options.sessions + options.handovers;
  if (auto s = allow_descriptors(all + options.refusals + 512); !s) return Failure(s.error());
  const auto logs = LogFolder::create("", "");
  if (!logs) return Failure(logs.error());
  FleetPlan plan;
  plan.names = {NodeId("gnb-a"), NodeId("gnb-b")};
  plan.cells = {{CellId("cell-a"), NodeId("gnb-a")}, {CellId("cell-b"), NodeId("gnb-b")}};
  FleetStart how;
  how.flags = {"--engine=simulated",
               fmt::format("--slots={}", all),
               fmt::format("--max-sessions={}", 2 * all),
               fmt::format("--max-connections={}", all + options.refusals + 256),
               "--context-tokens=4096",
               "--log-level=warning"};
  how.log_folder = (*logs)->path();
  const auto cores = allowed_cores();
  if (cores.size() > 1) how.cores = {{cores[0]}, {cores[1]}};
  boost::asio::io_context io(1);
  EventLoop loop(io);
  auto fleet = Fleet::start(loop, plan, how);
  if (!fleet) return Failure(fleet.error());
  if (cores.size() > 1) stay_on({cores[1]});
  auto clients = LoadClients::create();
  if (!clients) return Failure(clients.error());
  auto figures = Run(options, **fleet, std::move(*clients)).run();
  if (const auto trouble = (*fleet)->trouble(); !trouble.empty()) return fail(Errc::kIo, trouble);
  return figures;
}

}  // namespace

int bench_load_command(std::vector<std::string> args) {
  CLI::App app("How many sessions one gNB holds, and what a wave of arrivals does to them",
               "pallas bench load");
  app.footer(kExamples);
  Options options;
  app.add_option("--sessions", options.sessions, "Sessions that stream at the measured gNB")
      ->check(CLI::Range(1, 30000))
      ->capture_default_str();
  app.add_option("--rate", options.rate, "Tokens/s of each")
      ->check(CLI::Range(0.1, 100.0))
      ->capture_default_str();
  app.add_option("--handovers", options.handovers, "Sessions that arrive there within a second")
      ->check(CLI::Range(0, 20000))
      ->capture_default_str();
  app.add_option("--refusals", options.refusals, "Requests above what it holds, at the end")
      ->check(CLI::Range(0, 10000))
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "Measured before and after the arrivals, each")
      ->check(CLI::Range(1.0, 600.0))
      ->capture_default_str();
  app.add_option("--opens-per-second", options.opens_per_second, "How fast sessions begin")
      ->check(CLI::Range(1.0, 10000.0))
      ->capture_default_str();
  app.add_option("--prompt", options.prompt, "Tokens of each prompt")
      ->check(CLI::Range(1, 900))
      ->capture_default_str();
  app.add_flag("--json", options.json, "Print the figures as a JSON object");
  try {
    std::reverse(args.begin(), args.end());
    app.parse(args);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  const auto figures = measure(options);
  if (!figures) {
    fmt::print(stderr, "pallas bench load: {}\n", figures.error().message);
    return figures.error().code == Errc::kInvalidArgument ? kExitUsage : kExitFailed;
  }
  if (options.json) {
    fmt::print("{}\n", to_json(*figures));
  } else {
    fmt::print("{}", to_text(*figures));
  }
  return figures->good() ? kExitOk : kExitFailed;
}

}  // namespace pallas::app
