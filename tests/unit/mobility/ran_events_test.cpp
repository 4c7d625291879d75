#include "mobility/ran_events.h"

namespace pallas::mobility {
namespace {

TEST(RanEvents, every_phase_reads_back_from_its_name) {
  for (const HandoverPhase phase :
       {HandoverPhase::kPreparation, HandoverPhase::kExecution, HandoverPhase::kCompleted,
        HandoverPhase::kRejected, HandoverPhase::kCancelled, HandoverPhase::kReestablished}) {
    EXPECT_EQ(parse_handover_phase(to_string(phase)), phase) << to_string(phase);
  }
}

TEST(RanEvents, an_unknown_phase_is_none) {
  EXPECT_FALSE(parse_handover_phase(""));
  EXPECT_FALSE(parse_handover_phase("Execution"));
  EXPECT_FALSE(parse_handover_phase("unknown"));
}

}  // namespace
}  // namespace pallas::mobility
