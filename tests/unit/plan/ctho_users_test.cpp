// ctHO for several users: the numbers of the paper, and where its Proposition 2 falls short.

#include "plan/ctho_users.h"

#include "plan/ctho_split.h"

namespace pallas::plan {
namespace {

// p(L) of the paper, Qwen2.5-7B at 458,752 bits a token.
CthoProblem paper(double gigabits, std::vector<CthoUser> users) {
  CthoProblem problem;
  problem.users = std::move(users);
  problem.link = gigabits * 1e9 / 458'752;
  problem.seconds_per_token = 9.4267e-5;
  problem.overhead_s = 2.4e-3;
  problem.cycle_s = 0.01;
  return problem;
}

// Without overhead and cycles: prefill at r_p.
CthoProblem plain(double prefill, double link, std::vector<CthoUser> users) {
  CthoProblem problem;
  problem.users = std::move(users);
  problem.link = link;
  problem.seconds_per_token = 1 / prefill;
  return problem;
}

TEST(CthoUsers, a_context_of_3072_tokens_has_the_papers_bytes) {
  EXPECT_NEAR(3072 * 458'752 / 8.0 / 1e6, 176.16, 0.005);
}

TEST(CthoUsers, the_printed_proposition_uses_the_link_before_anybody_needs_it) {
  const CthoProblem problem = plain(1e6, 1000, {{0, 0}, {10, 1000}});
  EXPECT_EQ(transfer_delay(problem, 0, TransferDelay::kPrinted), 0);
  EXPECT_EQ(transfer_delay(problem, 0, TransferDelay::kExact), 1);
}

TEST(CthoUsers, both_agree_while_the_link_is_never_idle) {
  const CthoProblem problem = plain(1e6, 1000, {{0, 3000}, {1, 2000}, {2, 500}});
  EXPECT_NEAR(transfer_delay(problem, 0, TransferDelay::kPrinted), 4, 1e-12);
  EXPECT_NEAR(transfer_delay(problem, 0, TransferDelay::kExact), 4, 1e-12);
}

TEST(CthoUsers, one_user_gets_the_single_user_optimum) {
  const CthoSolution one = solve_ctho(plain(1948, 143.0511, {{0, 4096}}));
  EXPECT_NEAR(one.split, 3815.79, 0.005);
  EXPECT_NEAR(one.seconds, 1.958823, 1e-6);
  const FluidSplit with_overhead = fluid_split(4096, 9.4267e-5, 2.4e-3, 4359.65);
  CthoProblem problem = plain(1 / 9.4267e-5, 4359.65, {{0, 4096}});
  problem.overhead_s = 2.4e-3;
  EXPECT_NEAR(solve_ctho(problem).split, with_overhead.recompute, 1e-6);
  EXPECT_NEAR(solve_ctho(problem).seconds, with_overhead.seconds, 1e-9);
}

TEST(CthoUsers, equal_users_have_the_closed_form) {
  for (const int count : {1, 2, 5, 12}) {
    const double tokens = 3000, prefill = 2000, link = 800;
    const CthoSolution solution =
        solve_ctho(plain(prefill, link, std::vector<CthoUser>(count, CthoUser{0, tokens})));
    EXPECT_NEAR(solution.split, count * tokens * prefill / (link + count * prefill), 1e-6);
    EXPECT_NEAR(solution.seconds, count * tokens / (link + count * prefill), 1e-9);
  }
}

TEST(CthoUsers, a_batch_starts_at_the_next_cycle_after_the_last_handover) {
  EXPECT_NEAR(batch_start(paper(2, {{0, 1}, {0.123, 1}})), 0.13, 1e-12);
  EXPECT_NEAR(batch_start(paper(2, {{0, 1}, {0.13, 1}})), 0.13, 1e-12);
  const CthoProblem problem = paper(2, {{0.05, 2000}, {0.123, 2000}});
  EXPECT_NEAR(prefill_delay(problem, 1000), 0.13 + 0.0942670 + 0.0024 - 0.05, 1e-9);
}

TEST(CthoUsers, without_a_batch_nobody_waits_for_one) {
  const CthoProblem problem = paper(2, {{0, 2000}, {0.123, 2000}});
  EXPECT_EQ(prefill_delay(problem, 0), 0);
  EXPECT_EQ(send_all(problem).seconds, transfer_delay(problem, 0, TransferDelay::kExact));
}

TEST(CthoUsers, a_link_faster_than_any_batch_carries_everything) {
  CthoProblem problem = plain(1000, 1e6, {{0, 1000}});
  problem.overhead_s = 1;
  EXPECT_EQ(solve_ctho(problem).split, 0);
  EXPECT_EQ(solve_ctho(problem).seconds, 1e-3);
}

TEST(CthoUsers, a_hopeless_link_carries_nothing) {
  const CthoSolution solution = solve_ctho(plain(1000, 1e-6, {{0, 1000}, {0, 400}}));
  EXPECT_NEAR(solution.split, 1000, 1e-3);
  EXPECT_NEAR(solution.seconds, 1, 1e-3);
}

TEST(CthoUsers, the_schedule_gives_the_link_to_one_after_the_other) {
  const CthoProblem problem = plain(1e6, 1000, {{0, 1500}, {1, 100}, {1, 2100}, {9, 1100}});
  const auto shares = link_schedule(problem, 100);
  ASSERT_EQ(shares.size(), 3u);
  EXPECT_EQ(shares[0].user, 0u);
  EXPECT_NEAR(shares[0].to, 1.4, 1e-12);
  EXPECT_EQ(shares[1].user, 2u);
  EXPECT_NEAR(shares[1].from, 1.4, 1e-12);
  EXPECT_NEAR(shares[1].to, 3.4, 1e-12);
  EXPECT_EQ(shares[2].user, 3u);
  EXPECT_NEAR(shares[2].from, 9, 1e-12);
  EXPECT_EQ(shares[2].tokens_per_second, 1000);
  const auto delays = user_transfer_delays(problem, 100);
  EXPECT_NEAR(delays[0], 1.4, 1e-12);
  EXPECT_EQ(delays[1], 0);
  EXPECT_NEAR(delays[2], 2.4, 1e-12);
  EXPECT_NEAR(delays[3], 1, 1e-12);
}

TEST(CthoUsers, bad_problems_are_refused_by_field) {
  const auto refused = [](CthoProblem problem) { return check(problem).error().message; };
  EXPECT_NE(refused({}).find("users"), std::string::npos);
  EXPECT_NE(refused(plain(1, 1, {{1, 1}, {0, 1}})).find("users.at"), std::string::npos);
  EXPECT_NE(refused(plain(1, 1, {{0, -1}})).find("users.tokens"), std::string::npos);
  EXPECT_NE(refused(plain(1, 0, {{0, 1}})).find("link"), std::string::npos);
  CthoProblem problem = plain(1, 1, {{0, 1}});
  problem.overhead_s = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(refused(problem).find("overhead_s"), std::string::npos);
  EXPECT_TRUE(check(plain(1, 1, {{0, 1}})).has_value());
}

}  // namespace
}  // namespace pallas::plan
