#pragma once
// Lines of a trace: a message in a few words, and the end of a run as far as a violation is about
// it.

#include <string>
#include <vector>

#include "base/units.h"
#include "wire/messages.h"

namespace pallas::sim {

struct TraceLine {
  TimePoint at{};
  int gnb = -1, ue = -1;  // -1: of none
  std::string what;
};

std::string summary_of(const wire::Message& message);
// The last `most` lines up to `until` of this session (-1: of any), one string each; `gnbs` names
// the gNBs by index.
std::vector<std::string> last_lines(const std::vector<TraceLine>& trace, int ue, TimePoint until,
                                    std::size_t most);

}  // namespace pallas::sim
