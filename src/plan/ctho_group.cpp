#include "plan/ctho_group.h"

#include <algorithm>

namespace pallas::plan {

bool CthoGroup::knows(const std::string& id) const {
  return std::any_of(users_.begin(), users_.end(),
                     [&id](const GroupUser& user) { return user.id == id; });
}

bool CthoGroup::belongs(Seconds at) const {
  return !users_.empty() && at - users_.front().at <= Seconds(solution_.seconds);
}

void CthoGroup::add(const GroupUser& user, const GroupRates& rates, TokenPosition block) {
  users_.push_back(user);
  std::stable_sort(users_.begin(), users_.end(),
                   [](const GroupUser& a, const GroupUser& b) { return a.at < b.at; });
  CthoProblem problem;
  problem.in_turn = true;
  problem.link = rates.link;
  problem.seconds_per_token = 1 / rates.prefill;
  for (const GroupUser& one : users_) {
    problem.users.push_back(
        {(one.at - users_.front().at).count(), one.tokens, one.least, one.most});
  }
  solution_ = solve_ctho_blocks(problem, block);
}

// It moves now: its part is what it is, whoever joins later.
CthoSolution CthoGroup::take(const std::string& id) {
  for (GroupUser& user : users_) {
    if (user.id == id) user.least = user.most = std::min({user.tokens, user.most, solution_.split});
  }
  return solution_;
}

CthoSolution CthoGroup::decide(const GroupUser& mover, const std::vector<GroupUser>& foreseen,
                               const GroupRates& rates, TokenPosition block) {
  const bool joins = belongs(mover.at);
  if (joins && knows(mover.id)) return take(mover.id);
  if (!joins) users_.clear();
  add(mover, rates, block);
  std::vector<GroupUser> later = foreseen;
  std::sort(later.begin(), later.end(), [](const GroupUser& a, const GroupUser& b) {
    return a.at != b.at ? a.at < b.at : a.id < b.id;
  });
  for (const GroupUser& user : later) {
    if (!belongs(user.at)) break;
    if (!knows(user.id)) add(user, rates, block);
  }
  return take(mover.id);
}

}  // namespace pallas::plan
