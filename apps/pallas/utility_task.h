#pragma once
// A retrieval task that measures how much of a prompt's KV an answer needs, in the manner of
// RULER's needle in a haystack (arXiv 2404.06654): one sentence tells a number, the others tell
// none, and the prompt ends where the number must follow. Pure.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"

namespace pallas::app {

struct NeedleTask {
  std::uint32_t context = 256;  // tokens of the prompt, within a sentence
  std::uint32_t keys = 1;       // sentences with a number each, of which one is asked for; 1 to 8
  std::uint64_t seed = 7;
};

struct NeedleQuestion {
  std::vector<TokenId> prompt;
  std::string answer;               // its digits
  std::uint32_t answer_tokens = 0;  // that spell it
};

// Makes the questions of one vocabulary.
class QuestionMaker {
 public:
  explicit QuestionMaker(const engine::TextCodec& text) : text_(text) {}
  // The same for the same task and index. kInvalidArgument, naming `context`, when it does not hold
  // the question.
  Result<NeedleQuestion> make(const NeedleTask& task, std::uint32_t index);

 private:
  Result<std::uint32_t> tokens_of(const std::string& sentence);

  const engine::TextCodec& text_;
  std::map<std::string, std::uint32_t> known_tokens_;
};

// Does what was generated begin with the answer?
bool is_answer(std::string_view generated, std::string_view answer);

}  // namespace pallas::app
