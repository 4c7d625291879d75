#pragma once
// The promises of design.md, section 8, as one checker: what a UE received, token by token. Unit
// tests, scenarios, integration tests and the demo all judge a run by it.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace pallas::session {

class Transcript {
 public:
  struct Entry {
    TokenIndex index = 0;
    TokenId id = 0;
    Epoch epoch;
    NodeId by;       // whose engine sampled it
    NodeId emitter;  // who sent it to the UE; may be empty where that is not known
    TimePoint at{};
  };

  // A token as it reached the UE's reader. Breaches are kept as sentences.
  void add(Entry entry);

  const std::vector<Entry>& entries() const { return entries_; }
  // (1) each index once and in order; (2) never contradicted; (4) one emitter an epoch; epochs
  // grow.
  const std::vector<std::string>& breaches() const { return breaches_; }
  std::vector<TokenId> ids() const;
  // (3) the first index whose id differs from the reference, over what both have.
  std::optional<TokenIndex> first_difference(const std::vector<TokenId>& reference) const;

 private:
  std::vector<Entry> entries_;
  std::map<Epoch, NodeId> emitters_;
  std::vector<std::string> breaches_;
};

}  // namespace pallas::session
