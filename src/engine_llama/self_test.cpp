#include "engine_llama/self_test.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <vector>

#include "engine_llama/random.h"

namespace pallas::engine {
namespace {

// Together they cross 256 cells, where llama.cpp's kernels take a longer row.
constexpr TokenPosition kPrompt = 181;
constexpr TokenPosition kGenerated = 24;
constexpr TokenPosition kSteps = 64;

// Which part of a copy is rebuilt otherwise than the original.
enum class Way : std::uint8_t { kChunkedPrompt, kChunkedGenerated, kSingleSteps, kAttached };
constexpr std::array<Way, 4> kWays{Way::kChunkedPrompt, Way::kSingleSteps, Way::kChunkedGenerated,
                                   Way::kAttached};

using Digests = std::vector<std::uint64_t>;

class SelfTest {
 public:
  SelfTest(Decoder& decoder, TokenPosition chunk) : decoder_(decoder), chunk_(chunk) {
    // A short context tests what fits.
    const TokenPosition room = decoder.context_tokens();
    prompt_ = std::min(kPrompt, room / 2);
    generated_ = std::min(kGenerated, (room - prompt_) / 2);
    steps_ = std::min(kSteps, room - prompt_ - generated_);
    ids_.resize(prompt_ + generated_ + steps_);
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      ids_[i] = static_cast<TokenId>(mix_bits(i + 1) %
                                     static_cast<std::uint64_t>(decoder.vocabulary_size()));
    }
  }

  Result<Capabilities> run() {
    const Digests original = run_original();
    Capabilities can;
    for (std::size_t i = 0; i < kWays.size() && status_;) {
      const std::size_t together = std::min<std::size_t>(kWays.size() - i, decoder_.streams());
      const std::span<const Way> group(&kWays[i], together);
      const std::vector<Digests> copies = run_copies(group);
      for (std::size_t k = 0; k < group.size(); ++k) note(can, group[k], copies[k] == original);
      i += together;
    }
    clear();
    if (!status_) return tl::unexpected(status_.error());
    return can;
  }

 private:
  static void note(Capabilities& can, Way way, bool equal) {
    switch (way) {
      case Way::kChunkedPrompt:
        can.exact_chunked_prompt = equal;
        break;
      case Way::kChunkedGenerated:
        can.exact_chunked_generated = equal;
        break;
      case Way::kSingleSteps:
        can.exact_single_step = equal;
        break;
      case Way::kAttached:
        can.exact_attach = equal;
        break;
    }
  }

  void keep(Status status) {
    if (status_ && !status) status_ = std::move(status);
  }

  void clear() {
    for (std::uint32_t s = 0; s < decoder_.streams(); ++s) decoder_.truncate(s, 0);
  }

  void prefill(std::uint32_t stream, TokenPosition from, TokenPosition to, TokenPosition chunk) {
    for (TokenPosition at = from; at < to; at += chunk) {
      const TokenPosition n = std::min(chunk, to - at);
      keep(decoder_.prefill(stream, at, std::span<const TokenId>(ids_).subspan(at, n)));
    }
  }

  // Sizes down to a single token.
  void prefill_odd(std::uint32_t stream, TokenPosition to) {
    TokenPosition size = 1;
    for (TokenPosition at = 0; at < to;) {
      const TokenPosition n = std::min(size, to - at);
      prefill(stream, at, at + n, n);
      at += n;
      size = size * 3 % 61;
    }
  }

  void step(std::span<const std::uint32_t> streams, TokenPosition at) {
    std::vector<Decoder::StepToken> tokens;
    for (const std::uint32_t s : streams) tokens.push_back({s, at, ids_[at], true});
    if (!tokens.empty()) keep(decoder_.step(tokens));
  }

  std::uint64_t digest(std::size_t row) {
    const std::span<const float> logits = decoder_.logits(row);
    return XXH3_64bits(logits.data(), logits.size_bytes());
  }

  Digests run_original() {
    clear();
    const std::array<std::uint32_t, 1> alone{0};
    const TokenPosition end = prompt_ + generated_;
    prefill(0, 0, prompt_, chunk_);
    for (TokenPosition at = prompt_; at < end; ++at) step(alone, at);
    rows_.resize(end * decoder_.rows().geometry().bytes_per_token());
    keep(decoder_.rows().copy_out(0, {0, end}, {0, end}, rows_));
    Digests digests;
    for (TokenPosition at = end; at < end + steps_ && status_; ++at) {
      step(alone, at);
      digests.push_back(digest(0));
    }
    return digests;
  }

  // The way with number i in stream i; all decode side by side.
  std::vector<Digests> run_copies(std::span<const Way> ways) {
    clear();
    const TokenPosition end = prompt_ + generated_;
    std::vector<std::uint32_t> streams;
    std::vector<std::uint32_t> replaying;
    for (std::uint32_t s = 0; s < ways.size(); ++s) {
      streams.push_back(s);
      switch (ways[s]) {
        case Way::kChunkedPrompt:
          prefill_odd(s, prompt_);
          replaying.push_back(s);
          break;
        case Way::kSingleSteps:
          prefill(s, 0, prompt_, chunk_);
          replaying.push_back(s);
          break;
        case Way::kChunkedGenerated:
          prefill(s, 0, prompt_, chunk_);
          prefill(s, prompt_, end, chunk_);
          break;
        case Way::kAttached:
          attach(s, end);
          break;
      }
    }
    for (TokenPosition at = prompt_; at < end; ++at) step(replaying, at);

    std::vector<Digests> digests(ways.size());
    for (TokenPosition at = end; at < end + steps_ && status_; ++at) {
      step(streams, at);
      for (std::size_t i = 0; i < ways.size(); ++i) digests[i].push_back(digest(i));
    }
    return digests;
  }

  void attach(std::uint32_t stream, TokenPosition end) {
    const TokenPosition block = decoder_.rows().geometry().block_tokens;
    for (TokenPosition at = 0; at < end; at += block) {
      keep(decoder_.rows().append(stream, {at, std::min(at + block, end)}, {0, end}, rows_));
    }
  }

  Decoder& decoder_;
  const TokenPosition chunk_;
  TokenPosition prompt_ = 0;
  TokenPosition generated_ = 0;
  TokenPosition steps_ = 0;
  std::vector<TokenId> ids_;
  kv::Bytes rows_;  // of the original
  Status status_;
};

}  // namespace

Result<Capabilities> measure_capabilities(Decoder& decoder, TokenPosition chunk_tokens) {
  return SelfTest(decoder, chunk_tokens).run();
}

}  // namespace pallas::engine
