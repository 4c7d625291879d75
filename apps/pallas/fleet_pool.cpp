#include "fleet_pool.h"

#include <algorithm>
#include <utility>

namespace pallas::app {

bool FleetPool::has(const std::string& name) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return entry.name == name; });
}

Result<Fleet*> FleetPool::get(const std::string& name, const FleetPlan& plan,
                              const FleetStart& how) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.name == name; });
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
    return entries_.front().fleet.get();
  }
  // Before the new one needs its memory.
  while (entries_.size() >= most_) entries_.pop_back();
  auto fleet = Fleet::start(loop_, plan, how);
  if (!fleet) return Failure(fleet.error());
  entries_.push_front({name, std::move(*fleet)});
  return entries_.front().fleet.get();
}

}  // namespace pallas::app
