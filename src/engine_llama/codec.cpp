#include "engine_llama/codec.h"

#include <chat.h>
#include <common.h>
#include <json-schema-to-grammar.h>
#include <llama.h>

#include <algorithm>
#include <exception>
#include <limits>

namespace pallas::engine {
namespace {

constexpr std::size_t kMaxTextBytes = std::numeric_limits<std::int32_t>::max() / 4;
constexpr std::size_t kMaxSchemaBytes = 256 * 1024;

Result<std::vector<TokenId>> tokens_of(const llama_vocab* vocab, const std::string& text,
                                       bool with_control_tokens, const char* field) {
  if (text.size() > kMaxTextBytes)
    return fail(Errc::kTooLarge, std::string(field) + " is too long");
  try {
    return common_tokenize(vocab, text, true, with_control_tokens);
  } catch (const std::exception& e) {
    return fail(Errc::kInvalidArgument, std::string(field) + ": " + e.what());
  }
}

}  // namespace

struct LlamaTextCodec::Templates {
  common_chat_templates_ptr chat;
};

LlamaTextCodec::LlamaTextCodec(const LlamaModel& model, std::unique_ptr<Templates> templates,
                               TokenPosition context_tokens)
    : vocab_(model.vocab()), templates_(std::move(templates)), context_tokens_(context_tokens) {
  pieces_.reserve(static_cast<std::size_t>(model.vocabulary_size()));
  for (TokenId id = 0; id < model.vocabulary_size(); ++id) {
    pieces_.push_back(common_token_to_piece(vocab_, id, false));
    longest_piece_ = std::max(longest_piece_, pieces_.back().size());
  }
}

Status LlamaTextCodec::check_size(std::size_t bytes, const char* field) const {
  if (bytes <= longest_piece_ * context_tokens_) return {};
  return fail(Errc::kContextExceeded, std::string(field) + ": " + std::to_string(bytes) +
                                          " bytes cannot fit the context of " +
                                          std::to_string(context_tokens_) + " tokens");
}

LlamaTextCodec::~LlamaTextCodec() = default;

Result<std::unique_ptr<LlamaTextCodec>> LlamaTextCodec::make(const LlamaModel& model,
                                                             TokenPosition context_tokens) {
  try {
    auto templates = std::make_unique<Templates>();
    templates->chat = common_chat_templates_init(model.get(), "");
    return std::unique_ptr<LlamaTextCodec>(
        new LlamaTextCodec(model, std::move(templates), context_tokens));
  } catch (const std::exception& e) {
    return fail(Errc::kParse, std::string("the model's chat template: ") + e.what());
  }
}

Result<std::vector<TokenId>> LlamaTextCodec::render_chat(
    const std::vector<ChatMessage>& messages) const {
  if (messages.empty()) return fail(Errc::kInvalidArgument, "messages is empty");
  std::size_t bytes = 0;
  for (const ChatMessage& m : messages) bytes += m.role.size() + m.content.size();
  if (auto fits = check_size(bytes, "messages"); !fits) return Failure(fits.error());
  common_chat_templates_inputs inputs;
  inputs.add_generation_prompt = true;
  inputs.use_jinja = true;
  for (const ChatMessage& m : messages) {
    common_chat_msg message;
    message.role = m.role;
    message.content = m.content;
    inputs.messages.push_back(std::move(message));
  }
  std::string prompt;
  try {
    prompt = common_chat_templates_apply(templates_->chat.get(), inputs).prompt;
  } catch (const std::exception& e) {
    return fail(Errc::kInvalidArgument,
                std::string("messages do not fit the model's chat template: ") + e.what());
  }
  return tokens_of(vocab_, prompt, true, "messages");
}

Result<std::vector<TokenId>> LlamaTextCodec::tokenize(const std::string& text) const {
  if (auto fits = check_size(text.size(), "prompt"); !fits) return Failure(fits.error());
  return tokens_of(vocab_, text, true, "prompt");
}

std::string LlamaTextCodec::piece(TokenId id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= pieces_.size()) return {};
  return pieces_[static_cast<std::size_t>(id)];
}

bool LlamaTextCodec::is_end_of_generation(TokenId id) const {
  return id >= 0 && static_cast<std::size_t>(id) < pieces_.size() && llama_vocab_is_eog(vocab_, id);
}

TokenId LlamaTextCodec::vocabulary_size() const {
  return static_cast<TokenId>(pieces_.size());
}

Result<std::string> LlamaTextCodec::grammar_of_schema(const std::string& json_schema) const {
  if (json_schema.size() > kMaxSchemaBytes) {
    return fail(Errc::kTooLarge, "json_schema is too long");
  }
  try {
    return json_schema_to_grammar(common_json::parse(json_schema), true);
  } catch (const std::exception& e) {
    return fail(Errc::kInvalidArgument, std::string("json_schema: ") + e.what());
  }
}

}  // namespace pallas::engine
