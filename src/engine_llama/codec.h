#pragma once
// Text to ids and back, with the model's own vocabulary and chat template.

#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine_llama/model.h"

namespace pallas::engine {

// Const use from any thread. `model` outlives it.
class LlamaTextCodec : public TextCodec {
 public:
  static Result<std::unique_ptr<LlamaTextCodec>> make(const LlamaModel& model);
  ~LlamaTextCodec() override;

  Result<std::vector<TokenId>> render_chat(const std::vector<ChatMessage>& messages) const override;
  Result<std::vector<TokenId>> tokenize(const std::string& text) const override;
  std::string piece(TokenId id) const override;
  bool is_end_of_generation(TokenId id) const override;
  TokenId vocabulary_size() const override;
  Result<std::string> grammar_of_schema(const std::string& json_schema) const override;

 private:
  struct Templates;
  LlamaTextCodec(const LlamaModel& model, std::unique_ptr<Templates> templates);

  const llama_vocab* vocab_;
  std::unique_ptr<Templates> templates_;
  std::vector<std::string> pieces_;
};

}  // namespace pallas::engine
