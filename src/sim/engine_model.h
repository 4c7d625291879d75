#pragma once
// What a simulated engine costs and how large its KV is: the papers' three models, or a profile
// that our own engine measured.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "engine/profile.h"

namespace pallas::sim {

struct EngineModel {
  std::string name;
  engine::Profile profile;               // chunk_tokens, prefill and decode curves, load
  std::uint64_t kv_bytes_per_token = 0;  // s_KV of the real model; links charge it
  TokenPosition block_tokens = 16;
  TokenPosition context_tokens = 32768;
  std::uint32_t slots = 64;
  engine::Capabilities capabilities;

  // T_0 of equations.md: what the first decode step of a session takes at least that goes on here
  // with KV from elsewhere or rebuilt. 0: an ordinary step.
  Seconds activation{0};
  // Prefill chunks of several sessions: in order of reservation, or one of each in turn.
  bool prefill_fcfs = false;
  // A chunk is at most this long while other sessions decode; 0: profile.chunk_tokens always.
  TokenPosition chunk_beside_decode = 0;
  // Of a decode step's time, the share that a step with a prefill chunk takes on top of the chunk.
  // 1: decode and chunk are two steps in a row, as in our engine; less: one fused forward pass.
  double fused_decode_share = 1;
  // What the engine tells planners as its prefill rate, as a share of the true one (equations.md
  // 4.3: the paper's scheduler sees 0.54 of the plant).
  double told_prefill_share = 1;
};

// 1 / ITL and T_0 of equations.md 4.1; prefill as given there for Table 2; one more session in a
// batch adds `kPaperBatchCost` of a step (assumed: the papers do not say).
inline constexpr double kPaperBatchCost = 0.02;
std::vector<std::string_view> paper_model_names();  // llama-3-8b, qwen3-14b, qwen3-32b
// kNotFound with the list of names.
Result<EngineModel> paper_model(std::string_view name);

// Constant costs, whatever the depth: prefill rate and decode rate alone in tokens/s.
engine::Profile constant_profile(TokensPerSecond prefill, TokensPerSecond decode,
                                 double batch_cost = kPaperBatchCost,
                                 TokenPosition chunk_tokens = 256);

// Fails with kInvalidArgument, naming the field, for a model that no engine can have.
Status check(const EngineModel& model);

}  // namespace pallas::sim
