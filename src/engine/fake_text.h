#pragma once
// The text side of FakeEngine: a small made-up vocabulary with what makes text hard (characters
// split over tokens, a word to use as a stop string, control tokens).

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"

namespace pallas::engine {

// Ids of the made-up vocabulary.
namespace fake_id {
inline constexpr TokenId kEnd = 0;  // end of generation
inline constexpr TokenId kBegin = 1;
inline constexpr TokenId kRole = 2;        // begins a message
inline constexpr TokenId kMessageEnd = 3;  // these four have no text
inline constexpr TokenId kFirstPart = 4;   // parts of "é" (2), "€" (3), "😀" (4 tokens)
inline constexpr TokenId kLastPart = 12;
inline constexpr TokenId kStopWord = 13;   // " STOP"
inline constexpr TokenId kFirstWord = 14;  // words of two syllables from here on
inline constexpr TokenId kVocabulary = 1000;
}  // namespace fake_id

class FakeTextCodec : public TextCodec {
 public:
  FakeTextCodec();

  // kInvalidArgument for no messages. Roles and words become ids as in tokenize().
  Result<std::vector<TokenId>> render_chat(const std::vector<ChatMessage>& messages) const override;
  // Splits at spaces. A word of the vocabulary becomes its id, so that the text of ordinary tokens
  // survives the way back; any other word a hash.
  Result<std::vector<TokenId>> tokenize(const std::string& text) const override;
  std::string piece(TokenId id) const override;  // empty outside the vocabulary
  bool is_end_of_generation(TokenId id) const override { return id == fake_id::kEnd; }
  TokenId vocabulary_size() const override { return fake_id::kVocabulary; }
  // A made-up rule that depends on the schema; kInvalidArgument if that is no object.
  Result<std::string> grammar_of_schema(const std::string& json_schema) const override;

  // The only token that may follow `id`, which is the beginning of a character; none otherwise.
  static std::optional<TokenId> continuation(TokenId id);
  // Continues a character, so it never begins one.
  static bool is_continuation(TokenId id);

 private:
  std::vector<std::string> pieces_;
  std::unordered_map<std::string, TokenId> ids_;
};

}  // namespace pallas::engine
