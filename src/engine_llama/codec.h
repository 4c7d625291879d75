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
  // `context_tokens` of a session: a text that has too many bytes to fit is refused
  // (kContextExceeded) before it costs seconds to take apart.
  static Result<std::unique_ptr<LlamaTextCodec>> make(const LlamaModel& model,
                                                      TokenPosition context_tokens);
  ~LlamaTextCodec() override;

  Result<std::vector<TokenId>> render_chat(const std::vector<ChatMessage>& messages) const override;
  Result<std::vector<TokenId>> tokenize(const std::string& text) const override;
  std::string piece(TokenId id) const override;
  bool is_end_of_generation(TokenId id) const override;
  TokenId vocabulary_size() const override;
  Result<std::string> grammar_of_schema(const std::string& json_schema) const override;

 private:
  struct Templates;
  LlamaTextCodec(const LlamaModel& model, std::unique_ptr<Templates> templates,
                 TokenPosition context_tokens);
  Status check_size(std::size_t bytes, const char* field) const;

  const llama_vocab* vocab_;
  std::unique_ptr<Templates> templates_;
  std::vector<std::string> pieces_;
  TokenPosition context_tokens_;
  std::size_t longest_piece_ = 1;  // bytes
};

}  // namespace pallas::engine
