// `pallas bench transfer-end`: one end of a transfer, started by `pallas bench transfer`, which
// tells it what to do (bench_transfer_channel.h). Not for people.

#include <sys/resource.h>

#include <chrono>
#include <memory>
#include <vector>

#include "base/random.h"
#include "bench_transfer_channel.h"
#include "bench_transfer_end.h"
#include "bench_transfer_link.h"
#include "bench_transfer_options.h"
#include "commands.h"

namespace pallas::app {
namespace {

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

std::string now_ns() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

class Worker {
 public:
  Worker(TransferRole role, LineChannel channel) : role_(role), channel_(std::move(channel)) {}

  Status run(const TransferEngineConfig& config) {
    auto engine = TransferEngine::start(role_, config);
    if (!engine) return Failure(engine.error());
    engine_ = std::move(*engine);
    session_.resize(engine_->session_bytes());
    for (std::size_t i = 0; i < session_.size(); ++i) {
      session_[i] = static_cast<std::byte>(i * 0x9e3779b97f4a7c15 >> 56);
    }
    if (auto s = answer({"ready",
                         {{"bytes_per_token", std::to_string(engine_->bytes_per_token())},
                          {"session_bytes", std::to_string(engine_->session_bytes())}},
                         ""});
        !s) {
      return s;
    }
    for (;;) {
      if (end_ && !channel_.has_line()) end_->wait_readable(channel_.fd());
      const auto line = channel_.receive(std::nullopt);
      if (!line) return {};  // nobody asks any more
      if (auto s = obey(*line); !s) return s;
    }
  }

  Status answer(const Line& line) { return channel_.send(line); }

 private:
  Status obey(const Line& line) {
    if (line.verb == "open") return open(line);
    if (line.verb == "run") return transfer(line.number("bytes"));
    if (line.verb == "check") {
      const auto hash = engine_->rows_hash();
      return hash ? answer({"checked", {{"hash", *hash}}, ""}) : Failure(hash.error());
    }
    if (line.verb == "close") {
      end_.reset();
      return answer({"closed", {}, ""});
    }
    return fail(Errc::kInvalidArgument, "'" + line.verb + "' is no order");
  }

  std::unique_ptr<TransferEnd> make_end(const std::string& path) {
    if (has_engines(path)) return engine_->make_end(path == kPallasTlsPath);
    if (path == "memcpy") return make_copy_end(role_, session_);
    return make_stream_end(role_, session_, path.starts_with("tls"), path.ends_with("xxh3"));
  }

  Status open(const Line& line) {
    TransferOrder order;
    order.path = line.get("path");
    order.block_bytes = line.number("block");
    order.congestion_control = line.get("congestion_control");
    order.at = line.get("at");
    end_ = make_end(order.path);
    const auto at = end_->open(order);
    if (!at) return Failure(at.error());
    if (auto s = answer({"opened", {{"at", *at}, {"detail", end_->detail()}}, ""}); !s) return s;
    return role_ == TransferRole::kTarget && !at->empty() ? end_->meet() : Status();
  }

  Status transfer(std::uint64_t bytes) {
    if (!end_) return fail(Errc::kOutOfOrder, "run: nothing is open");
    const double cpu = cpu_seconds();
    if (role_ == TransferRole::kTarget) {
      if (auto s = answer({"started", {}, ""}); !s) return s;
    }
    const std::string begin = now_ns();
    if (auto s = end_->run(bytes); !s) return s;
    return answer({"done",
                   {{"begin_ns", begin},
                    {"end_ns", now_ns()},
                    {"cpu_us", std::to_string(
                                   static_cast<std::uint64_t>((cpu_seconds() - cpu) * 1e6 + 0.5))}},
                   ""});
  }

  TransferRole role_;
  LineChannel channel_;
  std::unique_ptr<TransferEngine> engine_;
  std::vector<std::byte> session_;
  std::unique_ptr<TransferEnd> end_;  // before the engine
};

}  // namespace

int bench_transfer_end_command(std::vector<std::string> args) {
  if (args.size() != 6 || args[1].find_first_not_of("0123456789") != std::string::npos) {
    return kExitUsage;
  }
  const auto role = args[0] == "source" ? TransferRole::kSource : TransferRole::kTarget;
  Worker worker(role, LineChannel(std::stoi(args[1])));
  TransferEngineConfig config{args[2], args[3], static_cast<TokenPosition>(std::stoul(args[4])),
                              args[5]};
  if (auto status = worker.run(config); !status) {
    (void)worker.answer({"error", {}, status.error().message});
    return kExitFailed;
  }
  return kExitOk;
}

}  // namespace pallas::app
