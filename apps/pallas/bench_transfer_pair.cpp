#include "bench_transfer_pair.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace pallas::app {
namespace {

// A model is loaded and prefilled meanwhile, or gigabytes are moved over a slow path.
constexpr Duration kPatience = std::chrono::seconds(300);

}  // namespace

Result<std::unique_ptr<TransferProcess>> TransferProcess::start(const TransferProgram& program,
                                                                const std::string& role,
                                                                const std::string& error_file,
                                                                const std::vector<int>& cores) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail(Errc::kIo, std::string("socketpair: ") + std::strerror(errno));
  }
  LineChannel ours(ends[0]);
  // Only this one is passed on.
  const int theirs = dup(ends[1]);
  close(ends[1]);
  if (theirs < 0) return fail(Errc::kIo, std::string("dup: ") + std::strerror(errno));
  std::vector<std::string> args = program.before;
  args.push_back(role);
  args.push_back(std::to_string(theirs));
  args.insert(args.end(), program.after.begin(), program.after.end());
  auto process =
      program.program.empty()
          ? ChildProcess::start(args, "/dev/null", error_file, cores)
          : ChildProcess::start_program(program.program, args, "/dev/null", error_file, cores);
  close(theirs);
  if (!process) return Failure(process.error());
  return std::unique_ptr<TransferProcess>(
      new TransferProcess(role, std::move(ours), std::move(*process)));
}

Status TransferProcess::send(const Line& line) {
  if (auto s = channel_.send(line); !s) {
    return fail(s.error().code, role_ + ": " + s.error().message);
  }
  return {};
}

Result<Line> TransferProcess::receive() {
  auto line = channel_.receive(kPatience);
  if (line) return line;
  std::string why = line.error().message;
  if (line.error().code == Errc::kUnreachable) why = process_->ended().value_or(why);
  return fail(line.error().code, role_ + ": " + why);
}

Result<Line> TransferProcess::ask(const Line& line) {
  if (auto s = send(line); !s) return Failure(s.error());
  return receive();
}

Result<std::unique_ptr<TransferPair>> TransferPair::start(const Start& start) {
  std::unique_ptr<TransferPair> pair(new TransferPair);
  for (const bool source : {true, false}) {
    const std::string role = source ? "source" : "target";
    const auto cores = start.cores.size() < 2 ? std::vector<int>() : start.cores[source ? 0 : 1];
    auto process = TransferProcess::start(
        start.program, role, start.log_folder + "/" + start.name + "-" + role + ".log", cores);
    if (!process) return Failure(process.error());
    (source ? pair->source_ : pair->target_) = std::move(*process);
  }
  for (auto* process : {pair->source_.get(), pair->target_.get()}) {
    const auto line = process->receive();
    if (!line) return Failure(line.error());
    pair->missing_ = pair->missing_ || line->verb == "missing";
    pair->bytes_per_token_ = line->number("bytes_per_token");
    pair->session_bytes_ = line->number("session_bytes");
  }
  return pair;
}

Result<TransferSample> TransferPair::measure(const Order& order) {
  Line open{"open",
            {{"path", order.path},
             {"block", std::to_string(order.block_bytes)},
             {"congestion_control", order.congestion_control}},
            ""};
  const auto target = target_->ask(open);
  if (!target) return Failure(target.error());
  open.values["at"] = target->get("at");
  const auto source = source_->ask(open);
  if (!source) return Failure(source.error());
  detail_ = source->get("detail");
  if (auto warm = run(session_bytes_); !warm) return warm;
  auto sample = run(order.bytes);
  if (!sample) return sample;
  for (auto* process : {source_.get(), target_.get()}) {
    if (const auto closed = process->ask({"close", {}, ""}); !closed) {
      return Failure(closed.error());
    }
  }
  return sample;
}

Result<TransferSample> TransferPair::run(std::uint64_t bytes) {
  const Line order{"run", {{"bytes", std::to_string(bytes)}}, ""};
  if (const auto started = target_->ask(order); !started) return Failure(started.error());
  const auto sent = source_->ask(order);
  if (!sent) return Failure(sent.error());
  const auto got = target_->receive();
  if (!got) return Failure(got.error());
  const auto end = std::max(sent->number("end_ns"), got->number("end_ns"));
  TransferSample sample;
  sample.seconds = static_cast<double>(end - sent->number("begin_ns")) * 1e-9;
  sample.source_cpu_s = static_cast<double>(sent->number("cpu_us")) * 1e-6;
  sample.target_cpu_s = static_cast<double>(got->number("cpu_us")) * 1e-6;
  if (!(sample.seconds > 0)) return fail(Errc::kInternal, "a transfer took no time");
  return sample;
}

Result<bool> TransferPair::rows_equal() {
  const auto sent = source_->ask({"check", {}, ""});
  if (!sent) return Failure(sent.error());
  const auto got = target_->ask({"check", {}, ""});
  if (!got) return Failure(got.error());
  return !sent->get("hash").empty() && sent->get("hash") == got->get("hash");
}

}  // namespace pallas::app
