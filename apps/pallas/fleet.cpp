#include "fleet.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

namespace pallas::app {
namespace {

constexpr std::size_t kMinGnbs = 3, kMaxGnbs = 8;

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The last words of a log, for a message.
std::string last_line(const std::string& path) {
  std::istringstream lines(read_all(path));
  std::string line, last;
  while (std::getline(lines, line)) {
    if (!line.empty()) last = line;
  }
  return last;
}

bool is_free(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool free = bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
  close(fd);
  return free;
}

// Below the range that the system hands out for outgoing connections: a gNB that dials another
// before it listens could otherwise be given that very port.
Result<std::vector<std::uint16_t>> free_ports(std::size_t count) {
  std::random_device random;
  std::uniform_int_distribution<int> any(20'000, 32'000);
  std::set<std::uint16_t> ports;
  for (int tries = 0; tries < 1000 && ports.size() < count; ++tries) {
    const auto port = static_cast<std::uint16_t>(any(random));
    if (is_free(port)) ports.insert(port);
  }
  if (ports.size() < count) return fail(Errc::kResourceExhausted, "no free ports on loopback");
  return std::vector<std::uint16_t>(ports.begin(), ports.end());
}

std::vector<std::string> arguments(const FleetPlan& plan, std::size_t self,
                                   const std::vector<std::string>& flags,
                                   const std::vector<std::uint16_t>& ports) {
  const auto http = [&](std::size_t i) { return fmt::format("127.0.0.1:{}", ports[2 * i]); };
  const auto peer = [&](std::size_t i) { return fmt::format("127.0.0.1:{}", ports[2 * i + 1]); };
  // "--flag=value" throughout, so that a value may begin with '-'.
  std::vector<std::string> args = {"gnb", "--name=" + plan.names[self].value,
                                   "--http-listen=" + http(self), "--peer-listen=" + peer(self)};
  args.insert(args.end(), flags.begin(), flags.end());
  for (std::size_t i = 0; i < plan.names.size(); ++i) {
    if (i != self) args.push_back("--peer=" + plan.names[i].value + "=" + peer(i));
  }
  for (const auto& [cell, name] : plan.cells) {
    args.push_back("--cell=" + cell.value + "=" + name.value);
  }
  return args;
}

}  // namespace

FleetPlan plan_fleet(const Trip& trip) {
  std::vector<CellId> cells{trip.first_cell};
  for (const auto& change : trip.crossings) {
    if (std::find(cells.begin(), cells.end(), change.to) == cells.end()) cells.push_back(change.to);
  }
  FleetPlan plan;
  const std::size_t count = std::clamp(cells.size(), kMinGnbs, kMaxGnbs);
  for (std::size_t i = 0; i < count; ++i) {
    plan.names.emplace_back(std::string("gnb-") + static_cast<char>('a' + i));
  }
  for (std::size_t i = 0; i < cells.size(); ++i) plan.cells[cells[i]] = plan.names[i % count];
  return plan;
}

Result<std::unique_ptr<Fleet>> Fleet::start(EventLoop& loop, const FleetPlan& plan,
                                            const FleetStart& how) {
  const auto ports = free_ports(2 * plan.names.size());
  if (!ports) return Failure(ports.error());
  std::unique_ptr<Fleet> fleet(new Fleet);
  for (std::size_t i = 0; i < plan.names.size(); ++i) {
    const std::string stem = how.log_folder + "/" + plan.names[i].value;
    Member member{plan.names[i], nullptr, stem + ".out", stem + ".log", false};
    auto process =
        ChildProcess::start(arguments(plan, i, how.flags, *ports), member.out_file, member.err_file,
                            how.cores.empty() ? std::vector<int>{} : how.cores[i]);
    if (!process) return Failure(process.error());
    member.process = std::move(*process);
    fleet->members_.push_back(std::move(member));
    fleet->http_[plan.names[i]] = ue::Address{"127.0.0.1", (*ports)[2 * i]};
  }
  std::string trouble;
  const auto all_ready = [&] {
    trouble = fleet->trouble();
    if (!trouble.empty()) return true;
    for (auto& member : fleet->members_) {
      if (!member.ready) member.ready = read_all(member.out_file).starts_with("ready ");
    }
    return std::all_of(fleet->members_.begin(), fleet->members_.end(),
                       [](const Member& m) { return m.ready; });
  };
  // Loading and, at the very first start, measuring.
  if (auto s = loop.wait(all_ready, std::chrono::seconds(180), "the start of the gNBs"); !s) {
    return Failure(s.error());
  }
  if (!trouble.empty()) return fail(Errc::kUnreachable, trouble);
  return fleet;
}

Fleet::~Fleet() {
  for (auto& member : members_) {
    if (member.process) member.process->terminate();
  }
}

std::string Fleet::trouble() {
  for (auto& member : members_) {
    if (const auto how = member.process->ended()) {
      return fmt::format("{} {}: {}", member.name.value, *how, last_line(member.err_file));
    }
  }
  return {};
}

pid_t Fleet::pid(const NodeId& name) const {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&](const Member& member) { return member.name == name; });
  return found == members_.end() ? 0 : found->process->pid();
}

}  // namespace pallas::app
