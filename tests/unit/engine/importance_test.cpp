#include "engine/importance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace pallas::engine {
namespace {

using Ranges = std::vector<kv::TokenRange>;

TEST(Importance, orderings_are_known_by_their_names) {
  std::set<std::string_view> names;
  for (const Ordering ordering : kOrderings) {
    names.insert(name_of(ordering));
    const auto parsed = parse_ordering(name_of(ordering));
    ASSERT_TRUE(parsed);
    EXPECT_EQ(*parsed, ordering);
  }
  EXPECT_EQ(names.size(), std::size(kOrderings));
  const auto unknown = parse_ordering("attention");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Errc::kInvalidArgument);
  EXPECT_NE(unknown.error().message.find("key-diff"), std::string::npos);
}

TEST(Importance, sinks_come_first_and_then_the_latest) {
  const auto scores = sinks_recency_scores(20);
  EXPECT_EQ(most_important(scores, 7, {0, 0}).ranges(), (Ranges{{0, 4}, {17, 20}}));
}

TEST(Importance, random_scores_follow_from_the_seed) {
  EXPECT_EQ(random_scores(50, 1), random_scores(50, 1));
  EXPECT_NE(random_scores(50, 1), random_scores(50, 2));
}

TEST(Importance, keys_of_small_norm_score_high) {
  const std::vector<float> keys{3, 4, 0, 1, 6, 8};  // norms 5, 1, 10
  EXPECT_EQ(key_norm_scores(keys, 2), (std::vector<double>{-5, -1, -10}));
}

TEST(Importance, keys_unlike_the_mean_direction_score_high) {
  // Two of one direction, whatever their length, and one across.
  const std::vector<float> keys{1, 0, 5, 0, 0, 1};
  const auto scores = key_diff_scores(keys, 2);
  EXPECT_NEAR(scores[0], -2 / std::sqrt(5.0), 1e-12);
  EXPECT_NEAR(scores[1], scores[0], 1e-12);
  EXPECT_NEAR(scores[2], -1 / std::sqrt(5.0), 1e-12);
}

TEST(Importance, keys_of_zeros_score_nothing) {
  for (const double score : key_diff_scores(std::vector<float>(6, 0.0F), 2)) EXPECT_EQ(score, 0);
  EXPECT_TRUE(key_diff_scores({}, 2).empty());
}

TEST(Importance, ranks_are_averaged_over_heads_and_equal_scores_rank_by_position) {
  RankMean ranks(3);
  ranks.add(std::vector<double>{10, 30, 20});
  ranks.add(std::vector<double>{0.3, 0.1, 0.2});
  EXPECT_EQ(ranks.mean(), (std::vector<double>{0.5, 0.5, 0.5}));
  ranks.add(std::vector<double>{1, 1, 1});
  EXPECT_EQ(ranks.mean(), (std::vector<double>{1.0 / 3, 0.5, 2.0 / 3}));
}

TEST(Importance, a_token_that_is_attended_to_brings_its_neighbours) {
  std::vector<std::vector<double>> heads(2, std::vector<double>(10, 0.0));
  heads[0][5] = 4;
  heads[1][0] = 1;
  EXPECT_EQ(attention_scores(heads), (std::vector<double>{1, 5, 5, 5, 5, 4, 4, 4, 4, 4}));
}

TEST(Importance, what_is_always_sent_comes_before_any_score) {
  std::vector<double> scores(30, 0.0);
  scores[12] = 2;
  scores[20] = 1;
  const AlwaysSent always{2, 3};
  EXPECT_EQ(most_important(scores, 6, always).ranges(), (Ranges{{0, 2}, {12, 13}, {27, 30}}));
  EXPECT_EQ(most_important(scores, 7, always).ranges(),
            (Ranges{{0, 2}, {12, 13}, {20, 21}, {27, 30}}));
}

TEST(Importance, positions_come_in_the_order_of_their_scores_the_later_first) {
  EXPECT_EQ(by_importance(std::vector<double>{1, 3, 2, 3}),
            (std::vector<TokenPosition>{3, 1, 2, 0}));
  EXPECT_TRUE(by_importance({}).empty());
}

TEST(Importance, the_last_position_is_never_left_out) {
  const std::vector<double> scores(30, 0.0);
  EXPECT_EQ(most_important(scores, 1, {}).ranges(), (Ranges{{29, 30}}));
  EXPECT_EQ(most_important(scores, 3, {4, 16}).ranges(), (Ranges{{0, 2}, {29, 30}}));
  EXPECT_EQ(most_important(scores, 99, {4, 16}).ranges(), (Ranges{{0, 30}}));
  EXPECT_TRUE(most_important({}, 3, {4, 16}).empty());
}

}  // namespace
}  // namespace pallas::engine
