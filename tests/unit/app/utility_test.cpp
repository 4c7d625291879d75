#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "engine/fake_text.h"
#include "utility_record.h"
#include "utility_task.h"

namespace pallas::app {
namespace {

// One token a word, and the words can be read back.
class WordCodec : public engine::FakeTextCodec {
 public:
  Result<std::vector<TokenId>> tokenize(const std::string& text) const override {
    std::vector<TokenId> ids;
    for (std::size_t begin = text.find_first_not_of(" \n"); begin != std::string::npos;) {
      const std::size_t end = std::min(text.find_first_of(" \n", begin), text.size());
      words_.push_back(text.substr(begin, end - begin));
      ids.push_back(static_cast<TokenId>(words_.size() - 1));
      begin = text.find_first_not_of(" \n", end);
    }
    return ids;
  }
  std::string text_of(const std::vector<TokenId>& ids) const {
    std::string text;
    for (const TokenId id : ids) text += words_[static_cast<std::size_t>(id)] + " ";
    return text;
  }

 private:
  mutable std::vector<std::string> words_;
};

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

TEST(NeedleTask, a_prompt_tells_the_number_once_and_ends_where_it_must_follow) {
  const WordCodec codec;
  QuestionMaker maker(codec);
  for (std::uint32_t i = 0; i < 20; ++i) {
    const auto question = maker.make({200, 1, 7}, i);
    ASSERT_TRUE(question) << question.error().describe();
    const std::string text = codec.text_of(question->prompt);
    EXPECT_EQ(count_of(text, question->answer), 1u);
    EXPECT_EQ(text.find_first_of("0123456789"), text.find(question->answer))
        << "another number would be a distractor";
    EXPECT_TRUE(text.ends_with(" is "));
    EXPECT_LE(question->prompt.size(), 200u);
    EXPECT_GT(question->prompt.size(), 185u) << "within a sentence";
    EXPECT_EQ(question->answer_tokens, 1u);
  }
}

TEST(NeedleTask, several_keys_have_different_names_and_one_is_asked_for) {
  const WordCodec codec;
  QuestionMaker maker(codec);
  const auto question = maker.make({200, 4, 7}, 0);
  ASSERT_TRUE(question);
  const std::string text = codec.text_of(question->prompt);
  EXPECT_EQ(count_of(text, "The magic number of the "), 4u + 1u);
  EXPECT_EQ(count_of(text, question->answer), 1u);
}

TEST(NeedleTask, questions_follow_from_seed_and_index) {
  const WordCodec codec;
  QuestionMaker maker(codec);
  const auto text = [&](std::uint64_t seed, std::uint32_t index) {
    return codec.text_of(maker.make({120, 1, seed}, index)->prompt);
  };
  EXPECT_EQ(text(7, 3), text(7, 3));
  EXPECT_NE(text(7, 3), text(7, 4));
  EXPECT_NE(text(7, 3), text(8, 3));
}

TEST(NeedleTask, a_context_too_short_is_refused_by_name) {
  const WordCodec codec;
  const auto question = QuestionMaker(codec).make({20, 1, 7}, 0);
  ASSERT_FALSE(question);
  EXPECT_EQ(question.error().code, Errc::kInvalidArgument);
  EXPECT_TRUE(question.error().message.starts_with("context: "));
}

TEST(NeedleTask, an_answer_may_begin_with_a_space_and_go_on) {
  EXPECT_TRUE(is_answer(" 4821.", "4821"));
  EXPECT_TRUE(is_answer("4821", "4821"));
  EXPECT_FALSE(is_answer(" 482", "4821"));
  EXPECT_FALSE(is_answer(" not 4821", "4821"));
  EXPECT_FALSE(is_answer("", "4821"));
}

QuestionRecord record(const std::string& key, bool full, bool at_two, bool at_six) {
  return {key, 100, full, {{"key-diff", {{"0.2", at_two}, {"0.6", at_six}}}}};
}

TEST(UtilityRecord, a_question_is_read_as_it_was_written_and_lines_of_one_question_add_up) {
  QuestionRecord more = record("q1", true, false, true);
  more.right = {{"key-diff", {{"0.4", true}}}, {"random", {{"0.2", false}}}};
  const std::string text = to_json(record("q1", true, false, true)) + "\n" +
                           to_json(record("q2", false, false, false)) + "\n" + to_json(more) +
                           "\n{\"question\": \"cut o";
  const auto read = parse_questions(text);
  ASSERT_TRUE(read) << read.error().describe();
  ASSERT_EQ(read->size(), 2u);
  const QuestionRecord& q1 = read->at("q1");
  EXPECT_TRUE(q1.full);
  EXPECT_EQ(q1.tokens, 100u);
  EXPECT_EQ(q1.right.at("key-diff"),
            (std::map<std::string, bool>{{"0.2", false}, {"0.4", true}, {"0.6", true}}));
  EXPECT_EQ(q1.right.at("random").size(), 1u);
  const auto broken = parse_questions("{}\n");
  ASSERT_FALSE(broken);
  EXPECT_TRUE(broken.error().message.starts_with("line 1: "));
}

TEST(UtilityRecord, accuracy_is_counted_by_fraction_and_all_kv_is_the_last_point) {
  std::vector<QuestionRecord> records;
  for (int i = 0; i < 10; ++i) records.push_back(record("q", i != 0, i < 2, i < 7));
  std::vector<const QuestionRecord*> questions;
  for (const auto& r : records) questions.push_back(&r);
  const auto summary = summarize_utility(1, {128}, questions, {"key-diff"}, {0.2, 0.6});
  EXPECT_DOUBLE_EQ(summary.full_accuracy, 90);
  EXPECT_TRUE(summary.counted);
  ASSERT_EQ(summary.curves.size(), 1u);
  const auto& points = summary.curves[0].points;
  ASSERT_EQ(points.size(), 3u);
  EXPECT_DOUBLE_EQ(points[0].accuracy, 20);
  EXPECT_DOUBLE_EQ(points[1].accuracy, 70);
  EXPECT_DOUBLE_EQ(points[2].fraction, 1);
  EXPECT_FALSE(summary.curves[0].fit) << "three points fit any curve";

  questions.pop_back();
  EXPECT_FALSE(summarize_utility(1, {128}, questions, {}, {}).counted) << "8 of 9";
}

TEST(UtilityRecord, the_fit_finds_the_curve_that_the_points_lie_on) {
  const plan::Utility truth{plan::UtilityShape::kLogistic, 96, 15, 0.3};
  std::vector<QuestionRecord> records(1000);
  std::vector<double> fractions{0.1, 0.2, 0.3, 0.4, 0.5, 0.7};
  std::vector<const QuestionRecord*> questions;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const double place = 100 * (static_cast<double>(i) + 0.5) / 1000;
    records[i].full = place < truth.value(1);
    for (const double f : fractions) {
      records[i].right["key-diff"][fraction_name(f)] = place < truth.value(f);
    }
    questions.push_back(&records[i]);
  }
  const auto summary = summarize_utility(1, {128}, questions, {"key-diff"}, fractions);
  const auto& fit = summary.curves[0].fit;
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->utility.shape, plan::UtilityShape::kLogistic);
  EXPECT_GT(fit->r_squared, 0.999);
  EXPECT_NEAR(fit->utility.threshold, 0.3, 0.005);

  const auto profile = nlohmann::json::parse(utility_profile_json("abc", 4, 32, summary));
  EXPECT_EQ(profile["model_hash"], "abc");
  EXPECT_EQ(profile["curves"][0]["ordering"], "key-diff");
  EXPECT_NEAR(profile["curves"][0]["fit"]["threshold"].get<double>(), 0.3, 0.005);
  const auto rows = nlohmann::json::parse(utility_json({summary}));
  EXPECT_EQ(rows[0]["points"].size(), 7u);
  EXPECT_TRUE(rows[0]["counted"]);
  EXPECT_NE(utility_table({summary}).find("key-diff"), std::string::npos);
  ASSERT_EQ(utility_figures({summary}).size(), 1u);
  EXPECT_EQ(utility_figures({summary})[0].curves[0].points.size(), 7u);
}

}  // namespace
}  // namespace pallas::app
