// The split of users who move together, as their handovers come one by one.

#include "plan/ctho_group.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace pallas::plan {
namespace {

const GroupRates kRates{1000, 500};

GroupUser user(const char* id, double at, double tokens) {
  return {id, Seconds(at), tokens, tokens, 0};
}

// The same by the problem that it stands for.
CthoSolution solve(std::vector<CthoUser> users) {
  CthoProblem problem;
  problem.in_turn = true;
  problem.link = kRates.link;
  problem.seconds_per_token = 1 / kRates.prefill;
  problem.users = std::move(users);
  return solve_ctho_blocks(problem, 16);
}

TEST(CthoGroup, of_one_is_the_single_users_split) {
  CthoGroup group;
  const auto solution = group.decide(user("a", 10, 960), {}, kRates, 16);
  EXPECT_EQ(solution.split, 320);  // a third: the link is twice as fast
  EXPECT_DOUBLE_EQ(solution.seconds, 0.64);
}

TEST(CthoGroup, is_decided_with_the_first_for_all_who_are_foreseen) {
  CthoGroup group;
  const auto first = group.decide(user("a", 10, 400), {user("b", 10.05, 1200)}, kRates, 16);
  EXPECT_EQ(first.split, solve({{0, 400}, {0.05, 1200}}).split);
  EXPECT_NE(first.split, solve({{0, 400}}).split);
  // What has changed meanwhile changes nothing.
  const auto second = group.decide(user("b", 10.06, 1300), {}, {10, 10}, 16);
  EXPECT_EQ(second.split, first.split);
  EXPECT_EQ(second.seconds, first.seconds);
}

TEST(CthoGroup, takes_in_one_that_nobody_foresaw) {
  CthoGroup group;
  const double first = group.decide(user("a", 10, 400), {}, kRates, 16).split;
  const auto second = group.decide(user("b", 10.05, 1200), {}, kRates, 16);
  // Of the first user no more is recomputed: that was told to the target.
  EXPECT_EQ(second.split, solve({{0, 400, first, first}, {0.05, 1200}}).split);
  EXPECT_GT(second.split, solve({{0, 400}, {0.05, 1200}}).split);
}

TEST(CthoGroup, ends_where_the_next_comes_after_its_work_is_done) {
  CthoGroup group;
  const auto first = group.decide(user("a", 10, 400), {user("b", 10.3, 1200)}, kRates, 16);
  EXPECT_LT(first.seconds, 0.3);
  EXPECT_EQ(first.split, solve({{0, 400}}).split);
  const auto second = group.decide(user("b", 10.3, 1200), {}, kRates, 16);
  EXPECT_EQ(second.split, solve({{0, 1200}}).split);
}

TEST(CthoGroup, knows_what_may_not_be_recomputed) {
  CthoGroup group;
  const GroupUser prompt_only{"a", Seconds(10), 960, 100, 0};
  const auto solution = group.decide(prompt_only, {user("b", 10, 960)}, kRates, 16);
  EXPECT_EQ(solution.split, solve({{0, 960, 0, 100}, {0, 960}}).split);
  EXPECT_GT(solution.split, solve({{0, 960}, {0, 960}}).split);
}

}  // namespace
}  // namespace pallas::plan
