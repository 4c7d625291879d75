#pragma once
// Who moves together, as one gNB learns of it: handovers come one by one, and the first of a group
// decides the split (plan/ctho_users.h) for all that are foreseen to follow at once.

#include <string>
#include <vector>

#include "base/units.h"
#include "plan/ctho_users.h"

namespace pallas::plan {

struct GroupUser {
  std::string id;
  Seconds at{0};      // its handover: past, now or foreseen
  double tokens = 0;  // its context
  double most = 0;    // of these, how many of the first may be recomputed
  double least = 0;   // and are in any case: decided before
};

// What the group shares. All above 0.
struct GroupRates {
  double link = 0;     // tokens/s
  double prefill = 0;  // r_p of the target for one user alone: users are prefilled in turn
};

class CthoGroup {
 public:
  // A group goes on as long as the next handover comes before the work for the last ones is done.
  // The common split for `mover`, who leaves now: what was decided with it, if it was foreseen; or
  // decided anew for the group so far, itself and those of `foreseen` (not before it) who belong to
  // it. Those who left before keep theirs.
  CthoSolution decide(const GroupUser& mover, const std::vector<GroupUser>& foreseen,
                      const GroupRates& rates, TokenPosition block);

 private:
  bool knows(const std::string& id) const;
  // The next handover at `at` is one of the group.
  bool belongs(Seconds at) const;
  void add(const GroupUser& user, const GroupRates& rates, TokenPosition block);
  CthoSolution take(const std::string& id);

  std::vector<GroupUser> users_;  // of the last group
  CthoSolution solution_;
};

}  // namespace pallas::plan
