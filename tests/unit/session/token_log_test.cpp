#include "session/token_log.h"

#include <gtest/gtest.h>

#include <limits>

namespace pallas::session {
namespace {

const NodeId kA("gnb-a");
const NodeId kB("gnb-b");

TEST(TokenLog, starts_with_the_prompt_and_counts_generated_ids_apart) {
  TokenLog log({10, 11, 12});
  EXPECT_EQ(log.size(), 3u);
  EXPECT_EQ(log.generated(), 0u);
  log.append(13, kA);
  EXPECT_EQ(log.size(), 4u);
  EXPECT_EQ(log.prompt_tokens(), 3u);
  EXPECT_EQ(log.generated(), 1u);
  EXPECT_EQ(log.generated_at(0), 13);
  EXPECT_EQ(log.copy(2, 4), (std::vector<TokenId>{12, 13}));
}

// These numbers are the format: another implementation must get the same.
TEST(TokenLog, hash_chain_has_the_documented_values) {
  TokenLog log({1, 2, -1});
  EXPECT_EQ(log.hash(0), 0u);
  EXPECT_EQ(log.hash(1), 0x90975cbfd972ea5full);
  EXPECT_EQ(log.hash(2), 0x856193e17c10953bull);
  EXPECT_EQ(log.hash(3), 0xf78b2a7b4693925cull);
}

TEST(TokenLog, hash_of_a_prefix_depends_on_every_id_in_it_and_on_nothing_else) {
  TokenLog log({5, 6, 7, 8});
  TokenLog same_ids({5, 6});
  same_ids.append(7, kA);
  same_ids.append(9, kB);
  EXPECT_EQ(log.hash(3), same_ids.hash(3));
  EXPECT_NE(log.hash(4), same_ids.hash(4));
  EXPECT_NE(TokenLog({6, 5, 7}).hash(3), log.hash(3));
  EXPECT_NE(TokenLog({0}).hash(1), TokenLog({0, 0}).hash(2));
}

TEST(TokenLog, truncate_then_append_gives_the_hashes_of_a_fresh_log) {
  TokenLog log({5, 6});
  for (TokenId id = 7; id < 20; ++id) log.append(id, kA);
  log.truncate(4);
  log.append(99, kB);
  TokenLog fresh({5, 6, 7, 8, 99});
  ASSERT_EQ(log.size(), fresh.size());
  for (TokenPosition end = 0; end <= log.size(); ++end) EXPECT_EQ(log.hash(end), fresh.hash(end));
}

TEST(TokenLog, hashes_that_were_asked_for_before_a_cut_do_not_outlive_it) {
  TokenLog log({5, 6});
  for (TokenId id = 7; id < 60; ++id) log.append(id, kA);
  log.hash(log.size());
  log.truncate(20);
  std::vector<TokenId> ids(log.ids().begin(), log.ids().end());
  for (TokenId id = 100; id < 140; ++id) {
    log.append(id, kB);
    ids.push_back(id);
  }
  const TokenLog fresh(ids);
  for (TokenPosition end = log.size() + 1; end-- > 0;) EXPECT_EQ(log.hash(end), fresh.hash(end));
}

TEST(TokenLog, truncate_keeps_the_prompt) {
  TokenLog log({5, 6, 7});
  log.append(8, kA);
  log.truncate(1);
  EXPECT_EQ(log.size(), 3u);
  EXPECT_TRUE(log.sampled_by().empty());
  log.truncate(100);
  EXPECT_EQ(log.size(), 3u);
}

TEST(TokenLog, says_who_sampled_each_index_in_runs) {
  TokenLog log({1});
  for (int i = 0; i < 3; ++i) log.append(i, kA);
  for (int i = 0; i < 2; ++i) log.append(i, kB);
  log.append(9, kA);
  EXPECT_EQ(log.sampled_by(), (TokenLog::SampledBy{{kA, 3}, {kB, 2}, {kA, 1}}));
  EXPECT_EQ(log.by(0), kA);
  EXPECT_EQ(log.by(2), kA);
  EXPECT_EQ(log.by(3), kB);
  EXPECT_EQ(log.by(4), kB);
  EXPECT_EQ(log.by(5), kA);
  log.truncate(5);  // four generated ids are left
  EXPECT_EQ(log.sampled_by(), (TokenLog::SampledBy{{kA, 3}, {kB, 1}}));
  log.truncate(3);
  EXPECT_EQ(log.sampled_by(), (TokenLog::SampledBy{{kA, 2}}));
}

TEST(TokenLog, restores_what_another_node_sent) {
  TokenLog log({1, 2});
  log.append(3, kA);
  log.append(4, kB);
  const auto ids = log.copy(0, log.size());
  const auto restored = TokenLog::restore(ids, 2, log.sampled_by());
  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->prompt_tokens(), 2u);
  EXPECT_EQ(restored->hash(4), log.hash(4));
  EXPECT_EQ(restored->by(1), kB);
}

TEST(TokenLog, restore_joins_equal_neighbours_and_drops_empty_runs) {
  const auto log = TokenLog::restore({1, 2, 3, 4}, 1, {{kA, 1}, {kB, 0}, {kA, 2}});
  ASSERT_TRUE(log);
  EXPECT_EQ(log->sampled_by(), (TokenLog::SampledBy{{kA, 3}}));
}

TEST(TokenLog, restore_refuses_counts_that_do_not_add_up_by_name) {
  const auto short_log = TokenLog::restore({1, 2}, 3, {});
  ASSERT_FALSE(short_log);
  EXPECT_EQ(short_log.error().code, Errc::kInvalidArgument);
  EXPECT_NE(short_log.error().message.find("prompt_tokens"), std::string::npos);

  for (const TokenLog::SampledBy& runs :
       {TokenLog::SampledBy{}, TokenLog::SampledBy{{kA, 3}},
        TokenLog::SampledBy{{kA, std::numeric_limits<std::uint32_t>::max()}, {kB, 3}}}) {
    const auto log = TokenLog::restore({1, 2, 3}, 1, runs);
    ASSERT_FALSE(log);
    EXPECT_NE(log.error().message.find("sampled_by"), std::string::npos);
  }
}

TEST(TokenLog, tells_where_another_list_of_ids_first_differs) {
  TokenLog log({1, 2, 3, 4});
  const std::vector<TokenId> equal{3, 4}, longer{3, 4, 5}, differs{3, 9, 5}, none;
  EXPECT_EQ(log.agrees_until(2, equal), 4u);
  EXPECT_EQ(log.agrees_until(2, longer), 4u);
  EXPECT_EQ(log.agrees_until(2, differs), 3u);
  EXPECT_EQ(log.agrees_until(2, none), 2u);
  EXPECT_EQ(log.agrees_until(4, longer), 4u);
}

TEST(TokenLog, ids_are_cut_to_what_there_is) {
  const TokenLog log({1, 2, 3});
  EXPECT_EQ(log.copy(1, 99), (std::vector<TokenId>{2, 3}));
  EXPECT_TRUE(log.ids(3, 4).empty());
  EXPECT_TRUE(log.ids(7, 9).empty());
}

}  // namespace
}  // namespace pallas::session
