#include "engine_llama/model.h"

#include <llama.h>

#include <array>
#include <chrono>

#include "engine_llama/log.h"

namespace pallas::engine {

void LlamaModel::Free::operator()(llama_model* model) const {
  llama_model_free(model);
}

Result<LlamaModel> LlamaModel::load(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return fail(Errc::kNotFound, "model file " + path.string() + " does not exist");
  }
  start_backend();
  take_backend_errors();

  const auto before = std::chrono::steady_clock::now();
  LlamaModel loaded;
  llama_model_params params = llama_model_default_params();
  try {
    loaded.model_.reset(llama_model_load_from_file(path.c_str(), params));
  } catch (const std::exception& e) {
    return fail(Errc::kParse, "model file " + path.string() + ": " + e.what());
  }
  if (!loaded.model_) {
    return fail(Errc::kParse, "model file " + path.string() + ": " + take_backend_errors());
  }
  loaded.vocab_ = llama_model_get_vocab(loaded.model_.get());
  loaded.path_ = path;
  loaded.load_time_ = std::chrono::steady_clock::now() - before;
  return loaded;
}

TokenId LlamaModel::vocabulary_size() const {
  return llama_vocab_n_tokens(vocab_);
}

TokenPosition LlamaModel::trained_context() const {
  return static_cast<TokenPosition>(llama_model_n_ctx_train(model_.get()));
}

std::string LlamaModel::metadata(const std::string& key) const {
  std::array<char, 512> buffer{};
  const int length =
      llama_model_meta_val_str(model_.get(), key.c_str(), buffer.data(), buffer.size());
  return length < 0 ? std::string() : std::string(buffer.data());
}

}  // namespace pallas::engine
