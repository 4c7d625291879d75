#pragma once
// The choice of one session's next token: llama.cpp's samplers up to the temperature, then a draw
// with a number that depends on (seed, index) only.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/request.h"

struct llama_sampler;
struct llama_vocab;

namespace pallas::engine {

// Order, as in llama.cpp: logit bias, penalties, top_k, top_p, min_p, temperature. A grammar is
// asked about the drawn token first, and applied to all of them only when it refuses that one.
// Engine thread only.
class TokenSampler {
 public:
  // `ids` are all tokens of the session, prompt first; penalties count all of them, the grammar
  // follows those from `prompt_tokens` on. kInvalidArgument names the field: a value out of range,
  // a grammar that does not parse, ids that it does not allow.
  static Result<TokenSampler> make(const llama_vocab* vocab, const SamplingParams& params,
                                   std::span<const TokenId> ids, TokenPosition prompt_tokens);
  TokenSampler(TokenSampler&&) noexcept;
  TokenSampler& operator=(TokenSampler&&) noexcept;
  ~TokenSampler();

  // Chooses the token with generated index `index` and takes it into the sampler's state. kEngine
  // when logits are not numbers.
  Result<TokenId> sample(std::span<const float> logits, TokenIndex index);
  bool is_end(TokenId id) const;  // of generation

 private:
  struct Free {
    void operator()(llama_sampler* sampler) const;
  };
  using Sampler = std::unique_ptr<llama_sampler, Free>;
  struct Candidates;

  TokenSampler();
  bool fits_grammar(TokenId id);
  void fill(std::span<const float> logits, TokenIndex index);
  Result<TokenId> choose(TokenIndex index, std::uint32_t draw, bool grammar_first);

  const llama_vocab* vocab_ = nullptr;
  SamplingParams params_;
  Sampler chain_;
  Sampler grammar_;  // none: null
  std::vector<TokenId> end_ids_;
  std::unique_ptr<Candidates> candidates_;
};

// Does every field lie in its documented range? kInvalidArgument with the field's name.
Status check(const SamplingParams& params, TokenId vocabulary_size);

}  // namespace pallas::engine
