#pragma once
// One llama.cpp context: a KV stream per session, decode steps and prefill chunks as separate
// calls. Engine thread only.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "engine_llama/attention_watch.h"
#include "engine_llama/kv_rows.h"
#include "engine_llama/model.h"

struct llama_context;

namespace pallas::engine {

// A prompt's positions are bit-equal in whatever chunks they are computed, but a call with a single
// token takes another path through the kernels than one with more (measured: 2 suffice; 4 for
// kernels that work on four rows). Prefill therefore never evaluates fewer tokens than this: it
// pads with tokens that are removed again, for which each stream has room beyond its context.
constexpr TokenPosition kPromptClassTokens = 4;
constexpr TokenPosition kMaxChunkTokens = 128;

struct DecoderConfig {
  std::uint32_t streams = 1;
  TokenPosition context_tokens = 0;  // of one stream
  std::uint32_t threads = 1;
  bool flash_attention = false;
  std::uint32_t block_tokens = 16;
};

class Decoder {
 public:
  // `model` outlives the decoder. kUnsupported as KvRows::open; kResourceExhausted when memory
  // does not suffice.
  static Result<std::unique_ptr<Decoder>> make(const LlamaModel& model,
                                               const DecoderConfig& config);

  struct StepToken {
    std::uint32_t stream = 0;
    TokenPosition position = 0;  // the stream's end
    TokenId id = 0;
    bool wants_logits = false;
  };
  // Evaluates one token of each stream named, in one batch. Streams are distinct and ascending.
  Status step(std::span<const StepToken> tokens);
  // Of the i-th token of the last step, valid until the next call; it wanted them.
  std::span<const float> logits(std::size_t i);

  // Evaluates [first, first + ids.size()) at the stream's end in one call, in the prompt class; at
  // most kMaxChunkTokens.
  Status prefill(std::uint32_t stream, TokenPosition first, std::span<const TokenId> ids);

  // How `ids` would attend to [0, first), the whole stream, if they came next:
  // AttentionWatch::end(). Evaluates them in one call and forgets them again; at most
  // kMaxChunkTokens. kUnsupported with flash attention, which never has the attention in one place.
  Result<std::vector<std::vector<double>>> observe(std::uint32_t stream, TokenPosition first,
                                                   std::span<const TokenId> ids);

  // Cuts the stream to [0, end).
  void truncate(std::uint32_t stream, TokenPosition end);

  KvRows& rows() { return rows_; }
  const KvRows& rows() const { return rows_; }
  std::uint32_t streams() const { return config_.streams; }
  std::uint32_t threads() const { return config_.threads; }
  TokenPosition context_tokens() const { return config_.context_tokens; }
  TokenId vocabulary_size() const { return vocabulary_size_; }

 private:
  struct Free {
    void operator()(llama_context* context) const;
  };
  using Context = std::unique_ptr<llama_context, Free>;
  Decoder(std::unique_ptr<AttentionWatch> watch, Context context, KvRows rows,
          const DecoderConfig& config, TokenId vocabulary_size);
  void add(std::uint32_t stream, TokenPosition position, TokenId id, bool wants_logits);
  Status evaluate(const char* what);

  std::unique_ptr<AttentionWatch> watch_;  // outlives the context, which knows where it is
  Context context_;
  KvRows rows_;
  DecoderConfig config_;
  TokenId vocabulary_size_ = 0;

  // The batch being built, in llama.cpp's arrays.
  std::vector<std::int32_t> ids_;
  std::vector<std::int32_t> positions_;
  std::vector<std::int32_t> stream_counts_;
  std::vector<std::int32_t> streams_;
  std::vector<std::int32_t*> stream_pointers_;
  std::vector<std::int8_t> wants_logits_;
};

}  // namespace pallas::engine
