#include "engine/fake_model.h"

#include <algorithm>
#include <array>

#include "engine/fake_kv.h"
#include "engine/fake_text.h"

namespace pallas::engine {
namespace {

// A logit bias from here on leaves no other token a chance.
constexpr float kCertain = 100;

}  // namespace

Profile fake_profile() {
  Profile profile;
  profile.chunk_tokens = 32;
  profile.prefill = {{0, Seconds(0.0032)}, {1024, Seconds(0.0034)}, {4096, Seconds(0.0044)}};
  profile.decode = {{1, 0, Seconds(0.0165)}, {1, 1024, Seconds(0.017)}, {1, 4096, Seconds(0.019)},
                    {2, 0, Seconds(0.0185)}, {2, 1024, Seconds(0.019)}, {2, 4096, Seconds(0.022)},
                    {4, 0, Seconds(0.0225)}, {4, 1024, Seconds(0.023)}, {4, 4096, Seconds(0.028)},
                    {8, 0, Seconds(0.0400)}, {8, 1024, Seconds(0.041)}, {8, 4096, Seconds(0.050)}};
  profile.export_per_token = Seconds(0.000024);
  profile.attach_per_token = Seconds(0.000014);
  return profile;
}

EngineInfo fake_engine_info() {
  EngineInfo info;
  info.model_name = "fake";
  info.geometry = {.layers = 2, .k_row_bytes = 8, .v_row_bytes = 8, .block_tokens = 16};
  info.context_tokens = 4096;
  info.slots = 4;
  info.compatibility.model_hash = "00000000000000000000000000000fa4e";
  info.compatibility.tokenizer_hash = "0000000000000000000000000000f1dd";
  info.compatibility.context_tokens = info.context_tokens;
  info.compatibility.rope = "none";
  info.compatibility.kv_types = "k=hash,v=hash";
  info.compatibility.kv_layout = "rows-v1,layers=2,k=8,v=8";
  info.compatibility.block_tokens = info.geometry.block_tokens;
  info.compatibility.instruction_set = "any";
  info.compatibility.engine_build = "fake 1";
  info.compatibility.threads = 1;
  info.capabilities.exact_chunked_prompt = true;
  info.capabilities.exact_chunked_generated = false;
  info.capabilities.exact_single_step = true;
  info.capabilities.exact_attach = true;
  info.capabilities.holes = true;
  info.profile = fake_profile();
  return info;
}

TokenId fake_sample(const DecodeParams& params, std::uint64_t logits, double end_probability) {
  const std::vector<TokenId>& ids = params.tokens;
  if (const auto rest = FakeTextCodec::continuation(ids.back())) return *rest;

  const SamplingParams& p = params.sampling;
  const auto index = static_cast<TokenIndex>(ids.size() - params.prompt_tokens);
  HashInput input;
  input.add(logits).add(p.temperature).add(p.grammar);
  if (p.temperature > 0) {
    input.add(p.top_p).add(static_cast<std::uint64_t>(p.top_k)).add(p.min_p);
    input.add(p.seed).add(std::uint64_t{index});
  }
  for (const auto& [id, bias] : p.logit_bias) {
    input.add(static_cast<std::uint64_t>(id)).add(double{bias});
  }
  // Penalties and grammar see the ids, not the cache.
  std::size_t seen = 0;
  if (p.repeat_penalty != 1 || p.presence_penalty != 0 || p.frequency_penalty != 0) {
    input.add(p.repeat_penalty).add(p.presence_penalty).add(p.frequency_penalty);
    seen = std::min(ids.size(), static_cast<std::size_t>(std::max(p.penalty_last_n, 0)));
  }
  if (!p.grammar.empty()) seen = std::max<std::size_t>(seen, index);
  for (std::size_t i = ids.size() - seen; i < ids.size(); ++i) {
    input.add(static_cast<std::uint64_t>(ids[i]));
  }

  const std::uint64_t draw = input.digest();
  const auto another = [draw](std::uint64_t salt) {
    return HashInput().add(draw).add(salt).digest();
  };
  const double chance = static_cast<double>(another(1) >> 11) / 9007199254740992.0;  // [0, 1)
  const bool may_end = !p.ignore_eos && index >= p.min_tokens;
  if (may_end && chance < end_probability) return fake_id::kEnd;
  for (const auto& [id, bias] : p.logit_bias) {
    if (bias >= kCertain && (id != fake_id::kEnd || may_end)) return id;
  }
  if (another(2) % 16 == 0) {  // the first part of a character; the others follow by themselves
    constexpr std::array<TokenId, 3> kBeginnings = {4, 6, 9};
    return kBeginnings[another(3) % kBeginnings.size()];
  }
  constexpr std::uint64_t kOrdinary = fake_id::kVocabulary - fake_id::kStopWord;
  return fake_id::kStopWord + static_cast<TokenId>(another(4) % kOrdinary);
}

}  // namespace pallas::engine
