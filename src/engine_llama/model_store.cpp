#include "engine_llama/model_store.h"

#include <llama.h>

#include <array>
#include <cstdlib>

#include "engine_llama/compatibility.h"
#include "engine_llama/decoder.h"
#include "engine_llama/log.h"
#include "engine_llama/measured_cache.h"
#include "engine_llama/model.h"

namespace pallas::engine {
namespace {

constexpr std::size_t kHashDigits = 12;  // of the source's hash in the prepared file's name

// Reads no weights.
Result<llama_ftype> type_of(const std::filesystem::path& path) {
  start_backend();
  gguf_init_params params{};
  params.no_alloc = true;
  gguf_context* file = gguf_init_from_file(path.c_str(), params);
  if (file == nullptr) return fail(Errc::kParse, path.string() + " is not a GGUF file");
  const std::int64_t key = gguf_find_key(file, "general.file_type");
  llama_ftype type = LLAMA_FTYPE_GUESSED;
  if (key >= 0 && gguf_get_kv_type(file, key) == GGUF_TYPE_UINT32) {
    type = static_cast<llama_ftype>(gguf_get_val_u32(file, key));
  }
  gguf_free(file);
  return type;
}

struct Format {
  llama_ftype type;
  const char* suffix;  // of the prepared file
};

Format format_of(WeightType type) {
  switch (type) {
    case WeightType::kQ4_0:
      return {LLAMA_FTYPE_MOSTLY_Q4_0, "Q4_0"};
    case WeightType::kQ8_0:
      return {LLAMA_FTYPE_MOSTLY_Q8_0, "Q8_0"};
    case WeightType::kF16:
      return {LLAMA_FTYPE_MOSTLY_F16, "F16"};
  }
  return {LLAMA_FTYPE_MOSTLY_Q4_0, "Q4_0"};
}

}  // namespace

std::filesystem::path default_cache_dir() {
  if (const char* dir = std::getenv("PALLAS_CACHE_DIR"); dir != nullptr && *dir != 0) return dir;
  if (const char* dir = std::getenv("XDG_CACHE_HOME"); dir != nullptr && *dir != 0) {
    return std::filesystem::path(dir) / "pallas";
  }
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr ? home : ".") / ".cache" / "pallas";
}

Result<std::filesystem::path> prepare_model(const std::filesystem::path& source,
                                            const std::filesystem::path& cache_dir,
                                            WeightType wanted) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(source, error)) {
    return fail(Errc::kNotFound, "model file " + source.string() + " does not exist");
  }
  const auto type = type_of(source);
  if (!type) return tl::unexpected(type.error());
  const auto [ftype, suffix] = format_of(wanted);
  if (*type == ftype) return source;

  const auto hash = hash_file(source);
  if (!hash) return tl::unexpected(hash.error());
  std::string stem = source.stem().string();
  if (stem.size() > 5 && stem.substr(stem.size() - 5) == ".Q4_1") stem.resize(stem.size() - 5);
  const std::filesystem::path target =
      cache_dir / (stem + "." + hash->substr(0, kHashDigits) + "." + suffix + ".gguf");
  if (std::filesystem::exists(target, error)) return target;

  const FileLock lock(cache_dir / "models.lock");
  if (std::filesystem::exists(target, error)) return target;
  std::filesystem::path unfinished = target;
  unfinished += ".new";
  llama_model_quantize_params params = llama_model_quantize_default_params();
  params.ftype = ftype;
  params.allow_requantize = true;
  take_backend_errors();
  std::string words;
  std::uint32_t code = 1;
  try {
    code = llama_model_quantize(source.c_str(), unfinished.c_str(), &params);
  } catch (const std::exception& e) {
    words = e.what();
  }
  if (code != 0) {
    std::filesystem::remove(unfinished, error);
    return fail(Errc::kIo, "making " + target.string() + ": " + words + take_backend_errors());
  }
  std::filesystem::rename(unfinished, target, error);
  if (error) return fail(Errc::kIo, target.string() + ": " + error.message());
  return target;
}

Result<ModelDescription> describe_model(const std::filesystem::path& path) {
  auto model = LlamaModel::load(path);
  if (!model) return tl::unexpected(model.error());
  ModelDescription d;
  d.name = model->metadata("general.name");
  d.architecture = model->architecture();
  d.quantization = llama_ftype_name(llama_model_ftype(model->get()));
  d.parameters = llama_model_n_params(model->get());
  d.weight_bytes = llama_model_size(model->get());
  d.layers = static_cast<std::uint32_t>(llama_model_n_layer(model->get()));
  d.kv_heads = static_cast<std::uint32_t>(llama_model_n_head_kv(model->get()));
  d.context_tokens = model->trained_context();
  DecoderConfig config;
  config.streams = 1;
  config.context_tokens = 64;
  auto decoder = Decoder::make(*model, config);
  if (decoder) {
    d.movable = true;
    d.kv_bytes_per_token = (*decoder)->rows().geometry().bytes_per_token();
  } else {
    d.why_not = decoder.error().message;
  }
  return d;
}

}  // namespace pallas::engine
