#pragma once
// What a user asks of an engine, as native types: parsed and validated at the HTTP border, carried
// whole to the next node (every field here determines the session's tokens).

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"

namespace pallas::engine {

// Everything that the choice of the next token depends on besides the model and the tokens so far.
// Samplers with hidden state (mirostat, adaptive ones) are not here and are refused at the border.
struct SamplingParams {
  double temperature = 0.8;          // >= 0; 0 is greedy
  double top_p = 1.0;                // (0, 1]
  std::int32_t top_k = 0;            // 0: off
  double min_p = 0.0;                // [0, 1]
  double repeat_penalty = 1.0;       // > 0; 1: off
  double presence_penalty = 0.0;     // [-2, 2]
  double frequency_penalty = 0.0;    // [-2, 2]
  std::int32_t penalty_last_n = 64;  // >= 0
  std::uint64_t seed = 0;  // with an index it determines the random number: any node draws the same
  std::uint32_t min_tokens = 0;  // end of generation is suppressed below this index
  bool ignore_eos = false;
  std::string grammar;  // GBNF, empty: none; its state is rebuilt by replaying ids
  std::vector<std::pair<TokenId, float>> logit_bias;
  friend bool operator==(const SamplingParams&, const SamplingParams&) = default;
};

struct ChatMessage {
  std::string role;  // "system", "user", "assistant", "tool"
  std::string content;
};

}  // namespace pallas::engine
