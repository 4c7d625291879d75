#include "engine/fake_text.h"

#include <array>

#include "engine/fake_kv.h"

namespace pallas::engine {
namespace {

constexpr std::array<const char*, 9> kParts = {"\xC3", "\xA9",                   // é
                                               "\xE2", "\x82", "\xAC",           // €
                                               "\xF0", "\x9F", "\x98", "\x80"};  // 😀

std::string word(unsigned number) {
  static constexpr std::string_view kConsonants = "bdfghjklmnprstvwz";
  static constexpr std::string_view kVowels = "aeiou";
  const auto syllable = [](unsigned n) {
    return std::string{kConsonants[n / kVowels.size()], kVowels[n % kVowels.size()]};
  };
  const auto syllables = static_cast<unsigned>(kConsonants.size() * kVowels.size());
  return " " + syllable(number % syllables) + syllable(number / syllables);
}

}  // namespace

FakeTextCodec::FakeTextCodec() : pieces_(fake_id::kVocabulary) {
  for (std::size_t i = 0; i < kParts.size(); ++i) pieces_[fake_id::kFirstPart + i] = kParts[i];
  pieces_[fake_id::kStopWord] = " STOP";
  for (TokenId id = fake_id::kFirstWord; id < fake_id::kVocabulary; ++id) {
    pieces_[id] = word(static_cast<unsigned>(id - fake_id::kFirstWord));
  }
  for (TokenId id = fake_id::kStopWord; id < fake_id::kVocabulary; ++id) {
    ids_.emplace(pieces_[id].substr(1), id);
  }
}

Result<std::vector<TokenId>> FakeTextCodec::render_chat(
    const std::vector<ChatMessage>& messages) const {
  if (messages.empty()) return fail(Errc::kInvalidArgument, "messages is empty");
  std::vector<TokenId> ids{fake_id::kBegin};
  const auto append = [&](const std::string& text) {
    const auto more = tokenize(text);
    ids.insert(ids.end(), more->begin(), more->end());
  };
  for (const ChatMessage& message : messages) {
    ids.push_back(fake_id::kRole);
    append(message.role);
    append(message.content);
    ids.push_back(fake_id::kMessageEnd);
  }
  ids.push_back(fake_id::kRole);
  append("assistant");
  return ids;
}

Result<std::vector<TokenId>> FakeTextCodec::tokenize(const std::string& text) const {
  std::vector<TokenId> ids;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \n\t", begin), text.size());
    if (end > begin) {
      const std::string spelled = text.substr(begin, end - begin);
      const auto known = ids_.find(spelled);
      constexpr TokenId kWords = fake_id::kVocabulary - fake_id::kFirstWord;
      ids.push_back(known != ids_.end()
                        ? known->second
                        : fake_id::kFirstWord +
                              static_cast<TokenId>(HashInput().add(spelled).digest() % kWords));
    }
    begin = end + 1;
  }
  return ids;
}

std::string FakeTextCodec::piece(TokenId id) const {
  if (id < 0 || id >= vocabulary_size()) return {};
  return pieces_[static_cast<std::size_t>(id)];
}

Result<std::string> FakeTextCodec::grammar_of_schema(const std::string& json_schema) const {
  const std::size_t first = json_schema.find_first_not_of(" \n\t\r");
  if (first == std::string::npos || json_schema[first] != '{') {
    return fail(Errc::kInvalidArgument, "json_schema is not an object");
  }
  return "root ::= \"" + std::to_string(HashInput().add(json_schema).digest()) + "\"";
}

std::optional<TokenId> FakeTextCodec::continuation(TokenId id) {
  switch (id - fake_id::kFirstPart) {
    case 0:
    case 2:
    case 3:
    case 5:
    case 6:
    case 7:
      return id + 1;
    default:
      return std::nullopt;
  }
}

bool FakeTextCodec::is_continuation(TokenId id) {
  return continuation(id - 1).has_value();
}

}  // namespace pallas::engine
