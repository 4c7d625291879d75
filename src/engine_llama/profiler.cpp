#include "engine_llama/profiler.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <vector>

#include "engine_llama/mailbox.h"

namespace pallas::engine {
namespace {

constexpr std::array<TokenPosition, 4> kDepths{0, 500, 1000, 1500};
constexpr std::array<TokenPosition, 3> kChunks{16, 32, 64};
constexpr TokenPosition kChunkDepth = 500;  // where chunk sizes are compared
// A smaller chunk is worth this much speed: it lets others decode sooner, and an abort acts sooner.
constexpr double kChunkTolerance = 1.08;
constexpr int kRuns = 2;
constexpr int kMostRuns = 5;  // while other work interrupts them
constexpr int kRowRuns = 6;
constexpr TokenPosition kRowTokens = 64;
// On a slow or busy machine first the second runs are left out, then points.
constexpr Duration kHurry = std::chrono::seconds(8);
constexpr Duration kEnough = std::chrono::seconds(20);

// Processor time of this process and how often it was taken off a processor that it wanted.
struct Usage {
  Duration processor{0};
  long interruptions = 0;
};
Usage usage() {
  rusage r{};
  getrusage(RUSAGE_SELF, &r);
  const auto of = [](const timeval& t) {
    return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
  };
  return {of(r.ru_utime) + of(r.ru_stime), r.ru_nivcsw};
}

// A run that was interrupted and of which more than this share is missing counts as disturbed.
constexpr double kMissing = 0.05;

class Profiler {
 public:
  explicit Profiler(Decoder& decoder) : decoder_(decoder), begin_(steady_now()) {}

  Result<MeasuredProfile> run() {
    ids_.resize(kMaxChunkTokens);
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      ids_[i] = static_cast<TokenId>((i * 7919 + 13) %
                                     static_cast<std::size_t>(decoder_.vocabulary_size()));
    }
    time_chunk(0, kPromptClassTokens);  // builds what the first call builds
    measure_rows();
    measure_chunks();
    measure_prefill();
    measure_decode();
    for (std::uint32_t s = 0; s < decoder_.streams(); ++s) decoder_.truncate(s, 0);
    if (!status_) return tl::unexpected(status_.error());
    return MeasuredProfile{profile_, disturbed_};
  }

 private:
  bool enough() const { return !status_ || steady_now() > begin_ + kEnough; }
  bool hurry() const { return !status_ || steady_now() > begin_ + kHurry; }

  void keep(Status status) {
    if (status_ && !status) status_ = std::move(status);
  }

  bool fits(TokenPosition depth, TokenPosition more) const {
    return depth + more <= decoder_.context_tokens();
  }

  // Makes the stream `depth` tokens deep.
  void fill(std::uint32_t stream, TokenPosition depth) {
    decoder_.truncate(stream, 0);
    const kv::Bytes rows(kRowTokens * decoder_.rows().geometry().bytes_per_token(), std::byte{});
    for (TokenPosition at = 0; at < depth; at += kRowTokens) {
      const kv::TokenRange range{at, std::min(at + kRowTokens, depth)};
      keep(decoder_.rows().append(stream, range, range, rows));
    }
  }

  // The shortest of some runs: other work on the machine only ever adds, and a node corrects its
  // rates by what it sees later.
  Seconds time(int runs, const std::function<void()>& prepare, const std::function<void()>& work) {
    Duration shortest = Duration::max();
    bool calm = false;
    for (int i = 0; i < (calm ? runs : kMostRuns) && (i == 0 || !hurry()); ++i) {
      prepare();
      const Usage used = usage();
      const TimePoint before = steady_now();
      work();
      const Duration took = steady_now() - before;
      const Usage after = usage();
      const Duration worked = (after.processor - used.processor) / decoder_.threads();
      calm = calm || after.interruptions == used.interruptions ||
             to_seconds(worked) > to_seconds(took) * (1 - kMissing);
      shortest = std::min(shortest, took);
    }
    disturbed_ = disturbed_ || !calm;
    return to_seconds(shortest);
  }

  Seconds time_chunk(TokenPosition depth, TokenPosition chunk) {
    return time(
        kRuns, [&] { decoder_.truncate(0, depth); },
        [&] { keep(decoder_.prefill(0, depth, std::span<const TokenId>(ids_).first(chunk))); });
  }

  void measure_chunks() {
    const TokenPosition depth = fits(kChunkDepth, kMaxChunkTokens) ? kChunkDepth : 0;
    fill(0, depth);
    std::vector<std::pair<TokenPosition, double>> costs;
    for (const TokenPosition chunk : kChunks) {
      if (!fits(depth, chunk) || (enough() && !costs.empty())) break;
      costs.emplace_back(chunk, time_chunk(depth, chunk).count() / chunk);
    }
    profile_.chunk_tokens = std::max<TokenPosition>(1, decoder_.context_tokens());
    if (costs.empty()) return;
    const auto best = std::min_element(costs.begin(), costs.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
    const auto good = std::find_if(costs.begin(), costs.end(), [&](auto& c) {
      return c.second <= best->second * kChunkTolerance;
    });
    profile_.chunk_tokens = good->first;
  }

  void measure_prefill() {
    const TokenPosition chunk = profile_.chunk_tokens;
    for (const TokenPosition depth : kDepths) {
      if (!fits(depth, chunk) || (enough() && !profile_.prefill.empty())) break;
      fill(0, depth);
      profile_.prefill.push_back({depth + chunk / 2, time_chunk(depth, chunk) / chunk});
    }
  }

  void measure_decode() {
    for (std::uint32_t batch = 1; batch <= decoder_.streams(); batch *= 2) {
      for (const TokenPosition depth : kDepths) {
        if (!fits(depth, 1) || (enough() && !profile_.decode.empty())) break;
        for (std::uint32_t s = 0; s < batch; ++s) fill(s, depth);
        profile_.decode.push_back({batch, depth, time_step(batch, depth)});
      }
    }
  }

  Seconds time_step(std::uint32_t batch, TokenPosition depth) {
    std::vector<Decoder::StepToken> tokens;
    for (std::uint32_t s = 0; s < batch; ++s) tokens.push_back({s, depth, ids_[s], true});
    return time(
        kRuns,
        [&] {
          for (std::uint32_t s = 0; s < batch; ++s) decoder_.truncate(s, depth);
        },
        [&] {
          keep(decoder_.step(tokens));
          decoder_.logits(0);
        });
  }

  void measure_rows() {
    const TokenPosition count = std::min<TokenPosition>(
        decoder_.context_tokens(), 8 * decoder_.rows().geometry().block_tokens);
    const TokenPosition block =
        std::min<TokenPosition>(count, decoder_.rows().geometry().block_tokens);
    kv::Bytes rows(block * decoder_.rows().geometry().bytes_per_token(), std::byte{});
    const auto each_block = [&](const std::function<Status(kv::TokenRange)>& move) {
      for (TokenPosition at = 0; at + block <= count; at += block) keep(move({at, at + block}));
    };
    const auto tokens = static_cast<double>(count / block * block);
    const auto empty = [&] { decoder_.truncate(0, 0); };
    const auto attach = [&] {
      each_block([&](kv::TokenRange range) -> Status {
        if (Status status = decoder_.rows().check(rows, block); !status) return status;
        return decoder_.rows().append(0, range, range, rows);
      });
    };
    const auto nothing = [] {};
    const auto take_out = [&] {
      each_block(
          [&](kv::TokenRange range) { return decoder_.rows().copy_out(0, range, range, rows); });
    };
    profile_.attach_per_token = time(kRowRuns, empty, attach) / tokens;
    profile_.export_per_token = time(kRowRuns, nothing, take_out) / tokens;
  }

  Decoder& decoder_;
  const TimePoint begin_;
  std::vector<TokenId> ids_;
  Profile profile_;
  bool disturbed_ = false;
  Status status_;
};

}  // namespace

Result<MeasuredProfile> measure_profile(Decoder& decoder) {
  return Profiler(decoder).run();
}

Profile shorter_of(Profile now, const Profile& before) {
  if (now.chunk_tokens != before.chunk_tokens) return now;
  for (auto& point : now.prefill) {
    for (const auto& other : before.prefill) {
      if (other.depth == point.depth) point.per_token = std::min(point.per_token, other.per_token);
    }
  }
  for (auto& point : now.decode) {
    for (const auto& other : before.decode) {
      if (other.batch == point.batch && other.depth == point.depth) {
        point.step = std::min(point.step, other.step);
      }
    }
  }
  now.export_per_token = std::min(now.export_per_token, before.export_per_token);
  now.attach_per_token = std::min(now.attach_per_token, before.attach_per_token);
  return now;
}

}  // namespace pallas::engine
