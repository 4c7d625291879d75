#include "sim/engine_model.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace pallas::sim {
namespace {

// equations.md 4.1 and 1.1.
struct PaperModel {
  std::string_view name;
  std::uint64_t kv_bytes_per_token;
  double decode_rate;   // 1 / ITL of Table 2
  double prefill_rate;  // Table 2: context of the Full-Copy row over the Recomputation row
  double activation_s;  // T_0
};
constexpr std::array<PaperModel, 3> kPaperModels{{
    {"llama-3-8b", 131'072, 39.8, 6526, 0.152},
    {"qwen3-14b", 163'840, 22.0, 3431, 0.2355},
    {"qwen3-32b", 262'144, 15.0, 619, 0.322},
}};

constexpr double kLargestBatch = 64;

bool costs_time(Seconds s) {
  return std::isfinite(s.count()) && s.count() > 0;
}

}  // namespace

std::vector<std::string_view> paper_model_names() {
  std::vector<std::string_view> names;
  for (const PaperModel& model : kPaperModels) names.push_back(model.name);
  return names;
}

engine::Profile constant_profile(TokensPerSecond prefill, TokensPerSecond decode, double batch_cost,
                                 TokenPosition chunk_tokens) {
  const Seconds step(1 / decode.value);
  engine::Profile profile;
  profile.chunk_tokens = chunk_tokens;
  profile.prefill = {{0, Seconds(1 / prefill.value)}};
  profile.decode = {{1, 0, step},
                    {static_cast<std::uint32_t>(kLargestBatch), 0,
                     step * (1 + batch_cost * (kLargestBatch - 1))}};
  return profile;
}

Result<EngineModel> paper_model(std::string_view name) {
  const auto* const found =
      std::find_if(kPaperModels.begin(), kPaperModels.end(),
                   [&](const PaperModel& candidate) { return candidate.name == name; });
  if (found == kPaperModels.end()) {
    std::string known;
    for (const PaperModel& candidate : kPaperModels) known.append(" ").append(candidate.name);
    return fail(Errc::kNotFound, "no model is named " + std::string(name) + "; there are" + known);
  }
  EngineModel model;
  model.name = found->name;
  model.profile =
      constant_profile(TokensPerSecond(found->prefill_rate), TokensPerSecond(found->decode_rate));
  model.kv_bytes_per_token = found->kv_bytes_per_token;
  model.activation = Seconds(found->activation_s);
  // Without content every way to rebuild a row gives the same one.
  model.capabilities = {.exact_chunked_prompt = true,
                        .exact_chunked_generated = true,
                        .exact_single_step = true,
                        .exact_attach = true};
  return model;
}

Status check(const EngineModel& model) {
  const auto bad = [](const std::string& what) { return fail(Errc::kInvalidArgument, what); };
  if (model.profile.prefill.empty()) return bad("engine: the profile has no prefill cost");
  if (model.profile.decode.empty()) return bad("engine: the profile has no decode cost");
  for (std::size_t i = 0; i < model.profile.prefill.size(); ++i) {
    const auto& point = model.profile.prefill[i];
    if (!costs_time(point.per_token)) return bad("prefill_rate: must be above 0 and finite");
    if (i > 0 && point.depth < model.profile.prefill[i - 1].depth) {
      return bad("engine: depths of the prefill cost do not ascend");
    }
  }
  for (const auto& point : model.profile.decode) {
    if (!costs_time(point.step)) return bad("decode_rate: must be above 0 and finite");
    if (point.batch == 0) return bad("engine: a decode cost is for a batch of 0");
  }
  const auto time = [](Seconds s) { return std::isfinite(s.count()) && s.count() >= 0; };
  if (!time(model.profile.export_per_token)) return bad("export_per_token_s: must be at least 0");
  if (!time(model.profile.attach_per_token)) return bad("attach_per_token_s: must be at least 0");
  if (!time(model.profile.load)) return bad("load_s: must be at least 0");
  if (!time(model.activation)) return bad("activation_ms: must be at least 0");
  if (model.profile.chunk_tokens == 0) return bad("chunk_tokens: must be at least 1");
  if (model.kv_bytes_per_token == 0) return bad("kv_bytes_per_token: must be at least 1");
  if (model.block_tokens == 0) return bad("block_tokens: must be at least 1");
  if (model.context_tokens < 2) return bad("context_tokens: must be at least 2");
  if (model.slots == 0) return bad("slots: must be at least 1");
  if (model.slots > 65'535) return bad("slots: at most 65535");
  if (!(model.fused_decode_share >= 0 && model.fused_decode_share <= 1)) {
    return bad("fused_decode_share: must be in [0, 1]");
  }
  if (!(model.told_prefill_share > 0) || !std::isfinite(model.told_prefill_share)) {
    return bad("told_prefill_share: must be above 0");
  }
  return {};
}

}  // namespace pallas::sim
