#pragma once
// The RAN feed's handover object as a UE reads it: where is the radio now?

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace pallas::ue {

// Why an object was not taken; becomes an RFC 9457 problem document.
struct FeedProblem {
  int status = 400;
  std::string field;  // may be empty
  std::string detail;
};

class RanFeed {
 public:
  explicit RanFeed(UeId ue) : ue_(std::move(ue)) {}

  struct Outcome {
    std::optional<FeedProblem> problem;
    std::optional<CellId> cell;  // where the radio is now, as far as this object tells
  };
  // `serving`: where the UE believes to be. A refused object changes nothing. The last writer wins:
  // an older `seq` is a 409.
  Outcome take(std::string_view json, const CellId& serving, const std::map<CellId, NodeId>& cells);

 private:
  UeId ue_;
  std::optional<std::uint64_t> last_seq_;
};

// application/problem+json
std::string to_json(const FeedProblem& problem);

}  // namespace pallas::ue
