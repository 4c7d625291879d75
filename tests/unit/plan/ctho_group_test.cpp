// The split of users who move together, as their handovers come one by one.

#include "plan/ctho_group.h"

#include <gtest/gtest.h>

namespace pallas::plan {
namespace {

const GroupRates kRates{1000, 500};

// The same by the problem that it stands for.
double split_of(std::vector<CthoUser> users) {
  CthoProblem problem;
  problem.link = kRates.link;
  problem.seconds_per_token = static_cast<double>(users.size()) / kRates.prefill;
  problem.users = std::move(users);
  return solve_ctho_blocks(problem, 16).split;
}

TEST(CthoGroup, of_one_is_the_single_users_split) {
  CthoGroup group(Seconds(0.1));
  const auto solution = group.decide({"a", Seconds(10), 900}, {}, kRates, 16);
  EXPECT_EQ(solution.split, split_of({{0, 900}}));
  EXPECT_GT(solution.split, 0);
}

TEST(CthoGroup, is_decided_with_the_first_for_all_who_are_foreseen) {
  CthoGroup group(Seconds(0.1));
  const auto first =
      group.decide({"a", Seconds(10), 400}, {{"b", Seconds(10.05), 1200}}, kRates, 16);
  EXPECT_EQ(first.split, split_of({{0, 400}, {0.05, 1200}}));
  // What has changed meanwhile changes nothing.
  const auto second = group.decide({"b", Seconds(10.06), 1300}, {}, {10, 10}, 16);
  EXPECT_EQ(second.split, first.split);
  EXPECT_EQ(second.seconds, first.seconds);
}

TEST(CthoGroup, takes_in_one_that_nobody_foresaw) {
  CthoGroup group(Seconds(0.1));
  group.decide({"a", Seconds(10), 400}, {}, kRates, 16);
  const auto second = group.decide({"b", Seconds(10.05), 1200}, {}, kRates, 16);
  EXPECT_EQ(second.split, split_of({{0, 400}, {0.05, 1200}}));
}

TEST(CthoGroup, leaves_out_those_who_follow_later) {
  CthoGroup group(Seconds(0.1));
  const auto first =
      group.decide({"a", Seconds(10), 400}, {{"b", Seconds(10.2), 1200}}, kRates, 16);
  EXPECT_EQ(first.split, split_of({{0, 400}}));
  const auto second = group.decide({"b", Seconds(10.2), 1200}, {}, kRates, 16);
  EXPECT_EQ(second.split, split_of({{0, 1200}}));
}

}  // namespace
}  // namespace pallas::plan
