#pragma once
// Fleets that are kept for their next use, since starting one takes seconds.

#include <list>
#include <memory>
#include <string>

#include "fleet.h"

namespace pallas::app {

class FleetPool {
 public:
  // Of those that nobody asked for lately, all but `most` are ended.
  FleetPool(EventLoop& loop, std::size_t most) : loop_(loop), most_(most) {}

  // The running one of that name, or a new one. Stays valid until `most` others were asked for.
  Result<Fleet*> get(const std::string& name, const FleetPlan& plan, const FleetStart& how);
  bool has(const std::string& name) const;

 private:
  struct Entry {
    std::string name;
    std::unique_ptr<Fleet> fleet;
  };
  EventLoop& loop_;
  std::size_t most_;
  std::list<Entry> entries_;  // latest first
};

}  // namespace pallas::app
