#pragma once
// The weights and vocabulary of one GGUF file, loaded.

#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/units.h"

struct llama_model;
struct llama_vocab;

namespace pallas::engine {

// Owns llama.cpp's model. Movable; the pointers stay valid while it lives. Const use from any
// thread.
class LlamaModel {
 public:
  // kNotFound, or kParse with llama.cpp's own words.
  static Result<LlamaModel> load(const std::filesystem::path& path);

  llama_model* get() const { return model_.get(); }
  const llama_vocab* vocab() const { return vocab_; }
  const std::filesystem::path& path() const { return path_; }
  Seconds load_time() const { return load_time_; }
  TokenId vocabulary_size() const;
  TokenPosition trained_context() const;
  // A metadata value of the file as text, empty if it has none.
  std::string metadata(const std::string& key) const;
  std::string architecture() const { return metadata("general.architecture"); }

 private:
  struct Free {
    void operator()(llama_model* model) const;
  };
  LlamaModel() = default;

  std::unique_ptr<llama_model, Free> model_;
  const llama_vocab* vocab_ = nullptr;
  std::filesystem::path path_;
  Seconds load_time_{0};
};

}  // namespace pallas::engine
