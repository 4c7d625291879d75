#include "bench_sizing.h"

#include <gtest/gtest.h>

#include <sstream>

namespace pallas::app {
namespace {

Sizing sizing() {
  Sizing s;
  s.step_ms = 12.5;  // 80 tokens/s
  s.tokens_per_word = 1.25;
  s.tokens_beside = 30;
  s.kv_bytes = 23'040;
  return s;
}

BenchSetting setting(const std::string& goodput = "20") {
  BenchSetting s;
  s.context = 1000;
  s.goodput = *parse_goodput(goodput);
  return s;
}

// What the layout comes to at the first handover.
double context_of(const RunLayout& layout, double rate) {
  return 30 + 1.25 * layout.prompt_words + rate * layout.handovers.front().count();
}

TEST(BenchSizing, prompt_and_generated_tokens_are_the_context_at_the_handover) {
  auto at = setting();
  auto layout = lay_out(at, sizing(), 2048);
  ASSERT_TRUE(layout);
  EXPECT_NEAR(context_of(*layout, 80), 1000, 1);
  EXPECT_LE(layout->handovers.front().count() * 80, 501);
  at.available_s = 2;
  layout = lay_out(at, sizing(), 2048);
  EXPECT_EQ(layout->available.count(), 2);
  EXPECT_NEAR(layout->handovers.front().count(), 2 + kLeadIn.count(), 1e-9);
  EXPECT_NEAR(context_of(*layout, 80), 1000, 1);
  at.max_token_rate = 25;
  EXPECT_NEAR(context_of(*lay_out(at, sizing(), 2048), 25), 1000, 1);
}

TEST(BenchSizing, movers_have_contexts_around_the_settings) {
  auto at = setting();
  at.movers = 3;
  const auto alike = lay_out(at, sizing(), 2048);
  ASSERT_TRUE(alike);
  EXPECT_EQ(alike->mover_words, std::vector<std::uint32_t>(3, alike->prompt_words));
  at.available_s = 2;
  at.mover_spread = 0.3;
  const auto layout = lay_out(at, sizing(), 2048);
  ASSERT_TRUE(layout);
  ASSERT_EQ(layout->mover_words.size(), 3u);
  EXPECT_EQ(layout->mover_words[1], layout->prompt_words);
  EXPECT_EQ(layout->mover_words[0], layout->prompt_words - 240);  // 300 tokens
  EXPECT_EQ(layout->mover_words[2], layout->prompt_words + 240);
  at.mover_spread = 0.8;
  const auto refused = lay_out(at, sizing(), 4096);
  ASSERT_FALSE(refused);  // the least would be shorter than what is generated
  EXPECT_EQ(refused.error().message.rfind("context: 200 ", 0), 0u) << refused.error().message;
  EXPECT_FALSE(lay_out(at, sizing(), 2048));
}

TEST(BenchSizing, a_window_is_how_long_a_prediction_is_available) {
  auto at = setting();
  at.window_s = 1.5;
  EXPECT_EQ(lay_out(at, sizing(), 2048)->available.count(), 1.5);
}

TEST(BenchSizing, a_multiple_is_of_the_decoders_own_kv_stream) {
  EXPECT_EQ(lay_out(setting("20"), sizing(), 2048)->goodput_mbps, 20);
  // 2 x 80 x 23,040 x 8 bits = 29.49 Mbit/s, three digits of it.
  EXPECT_NEAR(lay_out(setting("2x"), sizing(), 2048)->goodput_mbps, 29.5, 1e-9);
  auto capped = setting("1x");
  capped.max_token_rate = 25;
  EXPECT_NEAR(lay_out(capped, sizing(), 2048)->goodput_mbps, 4.61, 1e-9);
}

TEST(BenchSizing, a_way_to_and_fro_has_handovers_equally_far_apart) {
  auto at = setting();
  at.available_s = 1;
  at.trip_handovers = 3;
  const auto layout = lay_out(at, sizing(), 2048);
  ASSERT_TRUE(layout);
  ASSERT_EQ(layout->handovers.size(), 3u);
  EXPECT_NEAR(layout->handovers[2].count(), 3 * layout->handovers[0].count(), 1e-9);
  EXPECT_GT(layout->max_tokens, 3 * 80 * 1.3);
}

TEST(BenchSizing, what_cannot_fit_is_refused_by_name) {
  auto at = setting();
  at.context = 100;
  at.available_s = 5;
  EXPECT_NE(lay_out(at, sizing(), 2048).error().message.find("context: 100"), std::string::npos);
  at.context = 1900;
  EXPECT_NE(lay_out(at, sizing(), 2048).error().message.find("context_tokens: "),
            std::string::npos);
}

TEST(BenchSizing, a_prompt_has_its_words_and_begins_anywhere) {
  std::istringstream text(bench_prompt(2000, 5));
  int words = 0;
  for (std::string word; text >> word;) ++words;
  EXPECT_EQ(words, 2000);
  EXPECT_NE(bench_prompt(10, 0), bench_prompt(10, 1));
  EXPECT_EQ(bench_prompt(3, 1), bench_prompt(4, 0).substr(bench_prompt(1, 0).size() + 1));
  EXPECT_EQ(bench_prompt(0, 0), "");
}

TEST(BenchSizing, gnbs_share_the_cores_or_have_none) {
  using Shares = std::vector<std::vector<int>>;
  EXPECT_EQ(share_cores({0, 1}, 2), (Shares{{0}, {1}}));
  EXPECT_EQ(share_cores({2, 3, 5, 7, 9}, 2), (Shares{{2, 3}, {5, 7}}));
  EXPECT_EQ(share_cores({0, 1}, 3), Shares{});
  EXPECT_EQ(share_cores({}, 2), Shares{});
}

}  // namespace
}  // namespace pallas::app
