// ctHO for several users against a simulation of earliest deadline first.

#include <rapidcheck/gtest.h>

#include <algorithm>

#include "generators.h"
#include "plan/ctho_users.h"

namespace pallas::plan {
namespace {

constexpr int kCasesPerRun = 40;  // RapidCheck runs a property 100 times: 4,000 cases

CthoProblem any_problem() {
  CthoProblem problem;
  const int count = whole(1, 9);
  const double spread = *rc::gen::element(0.0, 0.5, 5.0);
  for (int k = 0; k < count; ++k) {
    const double tokens = whole(0, 5) == 0 ? 0 : even(0, 5'000);
    problem.users.push_back({even(0, 1) * spread, tokens});
  }
  std::sort(problem.users.begin(), problem.users.end(),
            [](const CthoUser& a, const CthoUser& b) { return a.at < b.at; });
  problem.link = scaled(50, 20'000);
  problem.seconds_per_token = 1 / scaled(100, 10'000);
  problem.overhead_s = *rc::gen::element(0.0, 2.4e-3, 0.2);
  problem.cycle_s = *rc::gen::element(0.0, 0.01);
  return problem;
}

// The longest transfer delay when the link serves, at every moment, the active user with the
// earliest deadline at + `common`; decided anew at arrivals and completions.
double simulate_edf(const CthoProblem& problem, double split, double common) {
  std::vector<double> left;
  for (const CthoUser& user : problem.users) left.push_back(std::max(0.0, user.tokens - split));
  double now = 0, worst = 0;
  while (true) {
    std::size_t serve = left.size();
    double arrival = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < left.size(); ++k) {
      if (!(left[k] > 0)) continue;
      if (problem.users[k].at > now) {
        arrival = std::min(arrival, problem.users[k].at);
      } else if (serve == left.size() ||
                 problem.users[k].at + common < problem.users[serve].at + common) {
        serve = k;
      }
    }
    if (serve == left.size()) {
      if (!std::isfinite(arrival)) return worst;
      now = arrival;
      continue;
    }
    const double done = now + left[serve] / problem.link;
    if (done <= arrival) {
      now = done;
      left[serve] = 0;
      worst = std::max(worst, now - problem.users[serve].at);
    } else {
      left[serve] -= (arrival - now) * problem.link;
      now = arrival;
    }
  }
}

RC_GTEST_PROP(CthoUsersProperty, the_recursion_is_what_earliest_deadline_first_attains, ()) {
  for (int k = 0; k < kCasesPerRun; ++k) {
    const CthoProblem problem = any_problem();
    RC_ASSERT(check(problem).has_value());
    const double split = even(0, 5'000);
    const double exact = transfer_delay(problem, split, TransferDelay::kExact);
    RC_ASSERT(std::abs(exact - simulate_edf(problem, split, exact)) <= 1e-9 * (1 + exact));
    RC_ASSERT(transfer_delay(problem, split, TransferDelay::kPrinted) <= exact + 1e-12);
  }
}

RC_GTEST_PROP(CthoUsersProperty, the_schedule_attains_the_delay_and_keeps_to_the_link, ()) {
  const CthoProblem problem = any_problem();
  const double split = even(0, 5'000);
  double worst = 0, before = 0;
  std::vector<double> sent(problem.users.size(), 0.0);
  for (const LinkShare& share : link_schedule(problem, split)) {
    RC_ASSERT(share.from >= before - 1e-12);  // one at a time
    RC_ASSERT(share.from >= problem.users[share.user].at);
    before = share.to;
    sent[share.user] += (share.to - share.from) * share.tokens_per_second;
    worst = std::max(worst, share.to - problem.users[share.user].at);
  }
  for (std::size_t k = 0; k < sent.size(); ++k) {
    const double wanted = std::max(0.0, problem.users[k].tokens - split);
    RC_ASSERT(std::abs(sent[k] - wanted) <= 1e-6);
  }
  RC_ASSERT(std::abs(worst - transfer_delay(problem, split, TransferDelay::kExact)) <= 1e-9);
}

RC_GTEST_PROP(CthoUsersProperty, no_other_split_is_better, ()) {
  const CthoProblem problem = any_problem();
  for (const TransferDelay how : {TransferDelay::kExact, TransferDelay::kPrinted}) {
    const CthoSolution best = solve_ctho(problem, how);
    const CthoSolution blocks = solve_ctho_blocks(problem, 16, how);
    double longest = 0;
    for (const CthoUser& user : problem.users) longest = std::max(longest, user.tokens);
    double best_block = std::numeric_limits<double>::infinity();
    for (double split = 0;; split += 16) {
      const double at = std::min(split, longest);
      const double there = std::max(prefill_delay(problem, at), transfer_delay(problem, at, how));
      RC_ASSERT(best.seconds <= there + 1e-9);
      best_block = std::min(best_block, there);
      if (split >= longest) break;
    }
    RC_ASSERT(std::abs(blocks.seconds - best_block) <= 1e-9);
    if (how == TransferDelay::kExact) {
      RC_ASSERT(best.seconds <= send_all(problem).seconds + 1e-9);
      RC_ASSERT(best.seconds <= prefill_all(problem).seconds + 1e-9);
    }
  }
}

RC_GTEST_PROP(CthoUsersProperty, in_turn_no_other_split_is_better, ()) {
  CthoProblem problem = any_problem();
  problem.in_turn = true;
  double longest = 0;
  for (CthoUser& user : problem.users) {
    longest = std::max(longest, user.tokens);
    if (whole(0, 3) == 0) user.most = even(0, 1) * user.tokens;
    // Decided before: no more and no less.
    if (whole(0, 4) == 0) user.least = user.most = even(0, 1) * user.tokens;
  }
  RC_ASSERT(check(problem).has_value());
  const auto delay = [&](double split) {
    return std::max(prefill_delay(problem, split),
                    transfer_delay(problem, split, TransferDelay::kExact));
  };
  const CthoSolution best = solve_ctho(problem), blocks = solve_ctho_blocks(problem, 16);
  RC_ASSERT(std::abs(best.seconds - delay(best.split)) <= 1e-12);
  for (int k = 0; k <= 100; ++k) {
    RC_ASSERT(best.seconds <= delay(longest * k / 100) + 1e-9 * (1 + best.seconds));
  }
  for (double split = 0; split < longest; split += 16) {
    RC_ASSERT(blocks.seconds <= delay(split) + 1e-12);
  }
}

}  // namespace
}  // namespace pallas::plan
