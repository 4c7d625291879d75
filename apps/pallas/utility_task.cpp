#include "utility_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/random.h"

namespace pallas::app {
namespace {

constexpr const char* kKeys[] = {"lamp",   "river",  "castle", "bridge", "violin",  "anchor",
                                 "basket", "candle", "dragon", "engine", "feather", "guitar",
                                 "hammer", "island", "jacket", "kettle", "ladder",  "mirror",
                                 "needle", "orange", "pencil", "quilt",  "rocket",  "saddle"};
constexpr const char* kWho[] = {"The baker",   "A farmer",     "The teacher", "My neighbour",
                                "The old man", "A young girl", "The sailor",  "The doctor",
                                "A painter",   "The gardener", "Our guest",   "The driver"};
constexpr const char* kDoes[] = {
    "walks along the street in the evening", "listens to the birds near the house",
    "writes a long letter to a friend",      "sits under the tree and reads",
    "opens the door and looks at the sky",   "sells fresh bread in the market",
    "remembers the summer by the sea",       "paints the fence behind the garden",
    "waits for the train in the rain",       "sings a quiet song in the kitchen",
    "carries water from the well",           "tells a story about the mountains"};

template <class List>
std::string one_of(const List& list, Random& random) {
  return list[random.below(std::size(list))];
}

std::string needle(const std::string& key, const std::string& number) {
  return "The magic number of the " + key + " is " + number + ".";
}

}  // namespace

Result<std::uint32_t> QuestionMaker::tokens_of(const std::string& sentence) {
  const auto known = known_tokens_.find(sentence);
  if (known != known_tokens_.end()) return known->second;
  const auto ids = text_.tokenize(sentence);
  if (!ids) return Failure(ids.error());
  return known_tokens_[sentence] = static_cast<std::uint32_t>(ids->size());
}

Result<NeedleQuestion> QuestionMaker::make(const NeedleTask& task, std::uint32_t index) {
  Random random(mix(mix(task.seed, "needle"), (std::uint64_t{task.context} << 40) ^
                                                  (std::uint64_t{task.keys} << 32) ^ index));
  std::vector<std::string> keys(std::begin(kKeys), std::end(kKeys));
  std::vector<std::string> needles;
  NeedleQuestion question;
  std::string asked;
  for (std::uint32_t i = 0; i < task.keys; ++i) {
    const auto chosen = keys.begin() + static_cast<std::ptrdiff_t>(random.below(keys.size()));
    const std::string number = std::to_string(1000 + random.below(9000));
    needles.push_back(needle(*chosen, number));
    if (i == 0) {
      asked = *chosen;
      question.answer = number;
    }
    keys.erase(chosen);
  }
  const std::string end = fmt::format(
      "\n\nQuestion: What is the magic number of the {0}?\nAnswer: The magic number of the {0} is",
      asked);

  std::uint32_t used = 0;
  for (const std::string& text : needles) {
    const auto tokens = tokens_of(" " + text);
    if (!tokens) return Failure(tokens.error());
    used += *tokens;
  }
  const auto last = tokens_of(end);
  if (!last) return Failure(last.error());
  used += *last;
  if (used > task.context) {
    return fail(Errc::kInvalidArgument,
                fmt::format("context: {} tokens do not hold the question, which has {}",
                            task.context, used));
  }
  std::vector<std::string> sentences;
  for (;;) {
    std::string sentence = one_of(kWho, random) + " " + one_of(kDoes, random) + ".";
    const auto tokens = tokens_of(" " + sentence);
    if (!tokens) return Failure(tokens.error());
    if (used + *tokens > task.context) break;
    used += *tokens;
    sentences.push_back(std::move(sentence));
  }
  for (std::string& text : needles) {
    const std::size_t place = random.below(sentences.size() + 1);
    sentences.insert(sentences.begin() + static_cast<std::ptrdiff_t>(place), std::move(text));
  }
  std::string whole;
  for (const std::string& sentence : sentences) whole += (whole.empty() ? "" : " ") + sentence;
  auto prompt = text_.tokenize(whole + end);
  if (!prompt) return Failure(prompt.error());
  question.prompt = std::move(*prompt);
  const auto answer = tokens_of(" " + question.answer);
  if (!answer) return Failure(answer.error());
  question.answer_tokens = *answer;
  return question;
}

bool is_answer(std::string_view generated, std::string_view answer) {
  generated.remove_prefix(std::min(generated.find_first_not_of(" \n"), generated.size()));
  return generated.starts_with(answer);
}

}  // namespace pallas::app
