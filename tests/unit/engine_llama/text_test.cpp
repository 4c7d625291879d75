// Codec and sampler: no engine, the model's vocabulary only.
#include <cmath>

#include "engine_llama/codec.h"
#include "engine_llama/random.h"
#include "engine_llama/sampler.h"
#include "session.h"

namespace pallas::test {
namespace {

class Text : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto model = engine::LlamaModel::load(test_model());
    ASSERT_TRUE(model);
    model_ = std::make_unique<engine::LlamaModel>(std::move(*model));
    auto codec = engine::LlamaTextCodec::make(*model_, 2048);
    ASSERT_TRUE(codec) << codec.error().describe();
    codec_ = std::move(*codec);
  }
  static void TearDownTestSuite() {
    codec_.reset();
    model_.reset();
  }
  static std::string text_of(const std::vector<TokenId>& ids) {
    std::string text;
    for (const TokenId id : ids) text += codec_->piece(id);
    return text;
  }
  static engine::TokenSampler sampler(const engine::SamplingParams& params,
                                      const std::vector<TokenId>& ids = {300}) {
    auto made = engine::TokenSampler::make(model_->vocab(), params, ids, 1);
    EXPECT_TRUE(made);
    return std::move(*made);
  }
  // All else is very unlikely.
  static std::vector<float> logits(std::initializer_list<std::pair<TokenId, float>> likely) {
    std::vector<float> all(static_cast<std::size_t>(codec_->vocabulary_size()), -100.0f);
    for (const auto& [id, value] : likely) all[static_cast<std::size_t>(id)] = value;
    return all;
  }

  static std::unique_ptr<engine::LlamaModel> model_;
  static std::unique_ptr<engine::LlamaTextCodec> codec_;
};
std::unique_ptr<engine::LlamaModel> Text::model_;
std::unique_ptr<engine::LlamaTextCodec> Text::codec_;

TEST_F(Text, a_text_that_cannot_fit_the_context_is_refused_at_once) {
  const std::string huge(8'000'000, ' ');
  const TimePoint begin = engine::steady_now();
  const auto prompt = codec_->tokenize(huge);
  const auto chat = codec_->render_chat({{"user", huge}});
  EXPECT_LT(engine::steady_now() - begin, std::chrono::milliseconds(50));
  ASSERT_FALSE(prompt);
  EXPECT_EQ(prompt.error().code, Errc::kContextExceeded);
  ASSERT_FALSE(chat);
  EXPECT_EQ(chat.error().code, Errc::kContextExceeded);
  // What is left to take apart costs less than a step or two.
  const TimePoint again = engine::steady_now();
  (void)codec_->tokenize(std::string(100'000, ' '));
  EXPECT_LT(engine::steady_now() - again, std::chrono::seconds(1));
}

TEST_F(Text, pieces_of_a_text_join_to_it) {
  for (const std::string text :
       {"Two trains meet.", " leading", "naïve – 漢字 🙂", "a\n\tb"}) {
    const auto ids = codec_->tokenize(text);
    ASSERT_TRUE(ids);
    EXPECT_EQ(text_of(*ids), text);
  }
}

TEST_F(Text, a_character_of_several_tokens_comes_in_parts) {
  const auto ids = codec_->tokenize("🙂");
  ASSERT_TRUE(ids);
  ASSERT_GT(ids->size(), 1u);
  EXPECT_LT(codec_->piece(ids->front()).size(), 4u);
}

TEST_F(Text, a_chat_is_rendered_with_the_models_template) {
  const auto ids = codec_->render_chat({{"system", "Be brief."}, {"user", "Hi"}});
  ASSERT_TRUE(ids) << ids.error().describe();
  // Control tokens are empty: what remains is roles and contents, and the assistant's turn begins.
  EXPECT_EQ(text_of(*ids), "system\nBe brief.\nuser\nHi\nassistant\n");
  EXPECT_FALSE(codec_->render_chat({}));
}

TEST_F(Text, ids_outside_the_vocabulary_have_no_text) {
  EXPECT_EQ(codec_->piece(-1), "");
  EXPECT_EQ(codec_->piece(codec_->vocabulary_size()), "");
  EXPECT_FALSE(codec_->is_end_of_generation(codec_->vocabulary_size()));
}

TEST_F(Text, a_schema_becomes_a_grammar_and_nonsense_an_error) {
  const auto grammar = codec_->grammar_of_schema(
      R"({"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]})");
  ASSERT_TRUE(grammar) << grammar.error().describe();
  EXPECT_NE(grammar->find("root ::="), std::string::npos);
  engine::SamplingParams params;
  params.grammar = *grammar;
  EXPECT_TRUE(engine::TokenSampler::make(model_->vocab(), params, std::vector<TokenId>{300}, 1));
  for (const char* wrong : {"{", "[1", R"({"type":"fish"})"}) {
    const auto refused = codec_->grammar_of_schema(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().code, Errc::kInvalidArgument);
  }
}

TEST_F(Text, choices_follow_the_probabilities) {
  engine::SamplingParams params;
  params.temperature = 1;
  params.seed = 11;
  auto s = sampler(params);
  const auto row = logits({{500, std::log(0.7f)}, {900, std::log(0.3f)}});
  int first = 0;
  const int draws = 2000;
  for (int i = 0; i < draws; ++i) first += *s.sample(row, static_cast<TokenIndex>(i)) == 500;
  EXPECT_NEAR(first / double{draws}, 0.7, 0.04);
}

TEST_F(Text, a_choice_depends_on_seed_and_index_not_on_what_was_drawn_before) {
  engine::SamplingParams params;
  params.seed = 5;
  auto long_run = sampler(params);
  const auto row = logits({{500, 1.0f}, {900, 1.0f}, {1000, 1.0f}, {2000, 1.0f}});
  std::vector<TokenId> chosen;
  for (TokenIndex i = 0; i < 40; ++i) chosen.push_back(*long_run.sample(row, i));
  for (TokenIndex i = 0; i < 40; i += 7) EXPECT_EQ(*sampler(params).sample(row, i), chosen[i]);
  EXPECT_GT(std::set<TokenId>(chosen.begin(), chosen.end()).size(), 2u);
}

TEST_F(Text, penalties_are_rebuilt_from_the_tokens_so_far) {
  engine::SamplingParams params;
  params.temperature = 0;
  params.presence_penalty = 2;
  const auto row = logits({{500, 10.0f}, {900, 9.0f}});
  EXPECT_EQ(*sampler(params, {300}).sample(row, 0), 500);
  EXPECT_EQ(*sampler(params, {300, 500}).sample(row, 1), 900);
  params.penalty_last_n = 1;
  EXPECT_EQ(*sampler(params, {500, 300}).sample(row, 1), 500) << "out of the window";
}

TEST_F(Text, equal_logits_go_to_the_lowest_id_when_greedy) {
  engine::SamplingParams params;
  params.temperature = 0;
  EXPECT_EQ(*sampler(params).sample(logits({{900, 1.0f}, {500, 1.0f}}), 0), 500);
}

TEST_F(Text, the_end_is_suppressed_until_min_tokens) {
  TokenId end = 0;
  while (!codec_->is_end_of_generation(end)) ++end;
  engine::SamplingParams params;
  params.temperature = 0;
  params.min_tokens = 3;
  auto s = sampler(params);
  const auto row = logits({{end, 50.0f}, {500, 1.0f}});
  EXPECT_EQ(*s.sample(row, 2), 500);
  EXPECT_EQ(*s.sample(row, 3), end);
}

TEST_F(Text, logits_that_are_no_numbers_are_an_error) {
  auto s = sampler({});
  EXPECT_FALSE(s.sample(logits({{500, std::nanf("")}}), 0));
  EXPECT_FALSE(s.sample(logits({{500, INFINITY}}), 0));
  EXPECT_FALSE(s.sample({}, 0));
}

TEST(Random, numbers_are_uniform_and_fixed_for_ever) {
  double sum = 0;
  std::set<double> seen;
  for (TokenIndex i = 0; i < 20000; ++i) {
    const double u = engine::uniform(42, i, 0);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    seen.insert(u);
  }
  EXPECT_NEAR(sum / 20000, 0.5, 0.01);
  EXPECT_EQ(seen.size(), 20000u);
  EXPECT_NE(engine::uniform(42, 0, 0), engine::uniform(42, 0, 1));
  EXPECT_NE(engine::uniform(42, 0, 0), engine::uniform(43, 0, 0));
  // Other values here mean that other nodes would continue a session differently.
  EXPECT_DOUBLE_EQ(engine::uniform(0, 0, 0), 0.65244848637403219);
  EXPECT_DOUBLE_EQ(engine::uniform(1234567890123ull, 77, 1), 0.24990693810311493);
}

}  // namespace
}  // namespace pallas::test
