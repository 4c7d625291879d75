#include "engine_llama/compatibility.h"

#include <build-info.h>
#include <ggml-cpu.h>
#include <ggml.h>
#include <llama.h>
#include <xxhash.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <vector>

#include "engine_llama/random.h"

namespace pallas::engine {
namespace {

constexpr std::size_t kReadBytes = 1 << 20;

struct FreeState {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

class Hasher {
 public:
  Hasher() : state_(XXH3_createState()) { XXH3_128bits_reset(state_.get()); }
  void add(const void* data, std::size_t size) { XXH3_128bits_update(state_.get(), data, size); }
  std::string hex() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    std::array<char, 33> text{};
    std::snprintf(text.data(), text.size(), "%016llx%016llx",
                  static_cast<unsigned long long>(hash.high64),
                  static_cast<unsigned long long>(hash.low64));
    return text.data();
  }

 private:
  std::unique_ptr<XXH3_state_t, FreeState> state_;
};

std::string hash_tokenizer(const llama_vocab* vocab) {
  Hasher hasher;
  const std::int32_t type = llama_vocab_type(vocab);
  hasher.add(&type, sizeof(type));
  for (TokenId id = 0; id < llama_vocab_n_tokens(vocab); ++id) {
    const std::string text = llama_vocab_get_text(vocab, id);
    const std::int32_t attributes = llama_vocab_get_attr(vocab, id);
    hasher.add(text.c_str(), text.size() + 1);
    hasher.add(&attributes, sizeof(attributes));
  }
  return hasher.hex();
}

std::string rope_of(const LlamaModel& model) {
  std::string type;
  switch (llama_model_rope_type(model.get())) {
    case LLAMA_ROPE_TYPE_NONE:
      return "none";
    case LLAMA_ROPE_TYPE_NORM:
      type = "norm";
      break;
    case LLAMA_ROPE_TYPE_NEOX:
      type = "neox";
      break;
    default:
      type = "other" + std::to_string(llama_model_rope_type(model.get()));
      break;
  }
  const std::string prefix = model.architecture() + ".rope.";
  const auto value = [&](const char* key, const char* otherwise) {
    const std::string text = model.metadata(prefix + key);
    return text.empty() ? std::string(otherwise) : text;
  };
  std::array<char, 32> scale{};
  std::snprintf(scale.data(), scale.size(), "%g",
                static_cast<double>(llama_model_rope_freq_scale_train(model.get())));
  return type + ",base=" + value("freq_base", "10000") + ",scale=" + scale.data() +
         ",scaling=" + value("scaling.type", "none");
}

}  // namespace

Result<std::string> hash_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(Errc::kIo, "cannot read " + path.string());
  Hasher hasher;
  std::vector<char> buffer(kReadBytes);
  while (in) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    hasher.add(buffer.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (!in.eof()) return fail(Errc::kIo, "reading " + path.string() + " failed");
  return hasher.hex();
}

std::string instruction_set() {
  struct Feature {
    int has;
    const char* name;
  };
  const std::array<Feature, 14> features{{{ggml_cpu_has_avx(), "AVX"},
                                          {ggml_cpu_has_avx2(), "AVX2"},
                                          {ggml_cpu_has_f16c(), "F16C"},
                                          {ggml_cpu_has_fma(), "FMA"},
                                          {ggml_cpu_has_avx_vnni(), "AVX_VNNI"},
                                          {ggml_cpu_has_avx512(), "AVX512"},
                                          {ggml_cpu_has_avx512_vbmi(), "AVX512_VBMI"},
                                          {ggml_cpu_has_avx512_vnni(), "AVX512_VNNI"},
                                          {ggml_cpu_has_avx512_bf16(), "AVX512_BF16"},
                                          {ggml_cpu_has_amx_int8(), "AMX_INT8"},
                                          {ggml_cpu_has_neon(), "NEON"},
                                          {ggml_cpu_has_dotprod(), "DOTPROD"},
                                          {ggml_cpu_has_matmul_int8(), "MATMUL_INT8"},
                                          {ggml_cpu_has_sve(), "SVE"}}};
  std::string text;
  for (const Feature& feature : features) {
    if (feature.has == 0) continue;
    if (!text.empty()) text += '+';
    text += feature.name;
  }
  return text.empty() ? "generic" : text;
}

std::string engine_build() {
  return std::string("llama.cpp ") + llama_version() + ", ggml " + ggml_version() + ", " +
         llama_compiler() + ", sampler " + std::to_string(kSamplerVersion);
}

Result<CompatibilityRecord> compatibility_of(const LlamaModel& model, const Decoder& decoder,
                                             const LlamaConfig& config) {
  auto hash = hash_file(model.path());
  if (!hash) return tl::unexpected(hash.error());
  CompatibilityRecord record;
  record.model_hash = std::move(*hash);
  record.tokenizer_hash = hash_tokenizer(model.vocab());
  record.context_tokens = config.context_tokens;
  record.rope = rope_of(model);
  record.kv_types = decoder.rows().types();
  record.kv_layout = decoder.rows().layout();
  record.block_tokens = config.block_tokens;
  record.instruction_set = instruction_set();
  record.engine_build = engine_build();
  record.threads = config.threads;
  record.flash_attention = config.flash_attention;
  return record;
}

}  // namespace pallas::engine
