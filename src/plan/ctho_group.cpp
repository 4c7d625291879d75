#include "plan/ctho_group.h"

#include <algorithm>

namespace pallas::plan {

bool CthoGroup::knows(const std::string& id) const {
  return std::any_of(users_.begin(), users_.end(),
                     [&id](const GroupUser& user) { return user.id == id; });
}

CthoSolution CthoGroup::decide(const GroupUser& mover, const std::vector<GroupUser>& foreseen,
                               const GroupRates& rates, TokenPosition block) {
  const auto first = std::min_element(users_.begin(), users_.end(),
                                      [](const auto& a, const auto& b) { return a.at < b.at; });
  const bool joins = first != users_.end() && mover.at - first->at <= together_;
  if (joins && knows(mover.id)) return solution_;
  if (!joins) users_.clear();
  users_.push_back(mover);
  for (const GroupUser& user : foreseen) {
    if (user.at - mover.at <= together_ && !knows(user.id)) users_.push_back(user);
  }
  std::sort(users_.begin(), users_.end(), [](const GroupUser& a, const GroupUser& b) {
    return a.at != b.at ? a.at < b.at : a.id < b.id;
  });
  CthoProblem problem;
  for (const GroupUser& user : users_) {
    problem.users.push_back({(user.at - users_.front().at).count(), user.tokens});
  }
  problem.link = rates.link;
  problem.seconds_per_token = static_cast<double>(users_.size()) / rates.prefill;
  solution_ = solve_ctho_blocks(problem, block);
  return solution_;
}

}  // namespace pallas::plan
