#include "plan/ctho_users.h"

#include <algorithm>
#include <cmath>

namespace pallas::plan {
namespace {

double prefix(const CthoUser& user, double split) {
  return std::min({user.tokens, user.most, std::max(user.least, split)});
}

double suffix(const CthoUser& user, double split) {
  return user.tokens - prefix(user, split);
}

// What each user waits for its own work on something that serves them in order of time, one after
// another: w_k = max(w_{k-1} - (tau_k - tau_{k-1}), 0) + its work. 0 for one without work.
template <class Work>
std::vector<double> waits(const std::vector<CthoUser>& users, Work work) {
  std::vector<double> delays;
  delays.reserve(users.size());
  double waiting = 0;  // w_{k-1}
  double before = users.front().at;
  for (const CthoUser& user : users) {
    waiting = std::max(waiting - (user.at - before), 0.0);
    before = user.at;
    const double seconds = work(user);
    waiting += seconds;
    delays.push_back(seconds > 0 ? waiting : 0);
  }
  return delays;
}

double longest_of(const std::vector<double>& delays) {
  return *std::max_element(delays.begin(), delays.end());
}

double longest(const CthoProblem& problem) {
  double tokens = 0;
  for (const CthoUser& user : problem.users) {
    tokens = std::max(tokens, prefix(user, user.tokens));
  }
  return tokens;
}

CthoSolution solution_at(const CthoProblem& problem, double split, TransferDelay how) {
  return {split, std::max(prefill_delay(problem, split), transfer_delay(problem, split, how))};
}

Status finite(double value, bool zero_allowed, const char* field) {
  if (std::isfinite(value) && (value > 0 || (zero_allowed && value == 0))) return {};
  return fail(Errc::kInvalidArgument, std::string(field) + " must be finite and " +
                                          (zero_allowed ? "not negative" : "above 0"));
}

}  // namespace

Status check(const CthoProblem& problem) {
  if (problem.users.empty()) return fail(Errc::kInvalidArgument, "users must not be empty");
  double before = 0;
  for (const CthoUser& user : problem.users) {
    if (auto ok = finite(user.at, true, "users.at"); !ok) return ok;
    if (auto ok = finite(user.tokens, true, "users.tokens"); !ok) return ok;
    if (auto ok = finite(user.least, true, "users.least"); !ok) return ok;
    if (!(user.most >= 0)) return fail(Errc::kInvalidArgument, "users.most must not be negative");
    if (user.at < before) return fail(Errc::kInvalidArgument, "users.at must ascend");
    before = user.at;
  }
  if (auto ok = finite(problem.link, false, "link"); !ok) return ok;
  if (auto ok = finite(problem.seconds_per_token, false, "seconds_per_token"); !ok) return ok;
  if (auto ok = finite(problem.overhead_s, true, "overhead_s"); !ok) return ok;
  return finite(problem.cycle_s, true, "cycle_s");
}

double batch_start(const CthoProblem& problem) {
  const double last = problem.users.back().at;
  if (!(problem.cycle_s > 0)) return last;
  // A handover on a multiple, up to rounding, needs no further cycle.
  return std::ceil(last / problem.cycle_s - 1e-9) * problem.cycle_s;
}

double prefill_delay(const CthoProblem& problem, double split) {
  if (problem.in_turn) {
    return longest_of(waits(problem.users, [&](const CthoUser& user) {
      return problem.seconds_per_token * prefix(user, split);
    }));
  }
  if (!(split > 0)) return 0;
  const double batch = problem.seconds_per_token * split + problem.overhead_s;
  return batch_start(problem) + batch - problem.users.front().at;
}

std::vector<double> user_transfer_delays(const CthoProblem& problem, double split) {
  return waits(problem.users,
               [&](const CthoUser& user) { return suffix(user, split) / problem.link; });
}

double transfer_delay(const CthoProblem& problem, double split, TransferDelay how) {
  double worst = 0;
  if (how == TransferDelay::kPrinted) {
    double sum = 0;  // S_k
    for (const CthoUser& user : problem.users) {
      sum += suffix(user, split);
      worst = std::max(worst, sum / problem.link - (user.at - problem.users.front().at));
    }
    return worst;
  }
  return longest_of(user_transfer_delays(problem, split));
}

CthoSolution solve_ctho(const CthoProblem& problem, TransferDelay how) {
  const double end = longest(problem);
  const auto ahead = [&](double split) {  // f - g, grows with L
    return prefill_delay(problem, split) - transfer_delay(problem, split, how);
  };
  CthoSolution best = solution_at(problem, 0, how);
  if (!(end > 0)) return best;
  double low = 0, high = end;
  if (ahead(end) > 0) {
    for (int round = 0; round < 100 && low < high; ++round) {
      const double middle = (low + high) / 2;
      (ahead(middle) > 0 ? high : low) = middle;
    }
  }
  // The launch of a batch is a step at 0: not launching it may be better than the smallest one.
  const CthoSolution crossing = solution_at(problem, high, how);
  if (crossing.seconds < best.seconds) best = crossing;
  return best;
}

CthoSolution solve_ctho_blocks(const CthoProblem& problem, TokenPosition block, TransferDelay how) {
  const double end = longest(problem), size = block;
  CthoSolution best = solution_at(problem, 0, how);
  const auto consider = [&](double split) {
    const CthoSolution here = solution_at(problem, split, how);
    if (here.seconds < best.seconds) best = here;
  };
  // f - g grows with L: the last block before it changes its sign, and the next.
  double low = 0, high = std::floor(end / size);
  while (low < high) {
    const double middle = std::ceil((low + high) / 2);
    const double split = middle * size;
    if (prefill_delay(problem, split) <= transfer_delay(problem, split, how)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  consider(low * size);
  consider(std::min((low + 1) * size, end));
  return best;
}

CthoSolution send_all(const CthoProblem& problem) {
  return solution_at(problem, 0, TransferDelay::kExact);
}

CthoSolution prefill_all(const CthoProblem& problem) {
  return solution_at(problem, longest(problem), TransferDelay::kExact);
}

std::vector<LinkShare> link_schedule(const CthoProblem& problem, double split) {
  std::vector<LinkShare> shares;
  double free_at = 0;
  for (std::size_t k = 0; k < problem.users.size(); ++k) {
    const double tokens = suffix(problem.users[k], split);
    if (!(tokens > 0)) continue;
    const double from = std::max(free_at, problem.users[k].at);
    free_at = from + tokens / problem.link;
    shares.push_back({k, from, free_at, problem.link});
  }
  return shares;
}

}  // namespace pallas::plan
