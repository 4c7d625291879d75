#include "scenario_checks.h"

#include <gtest/gtest.h>

namespace pallas::test {

using namespace std::chrono_literals;

void expect_clean(VirtualGnbs& world, const VirtualUe& ue) {
  EXPECT_EQ(ue.transcript.breaches(), std::vector<std::string>{});
  EXPECT_EQ(world.codec_faults(), std::vector<std::string>{});
  EXPECT_FALSE(ue.failed) << ue.failed->describe();
}

void expect_whole(VirtualGnbs& world, VirtualUe& ue) {
  ASSERT_TRUE(world.clock.run_until([&] { return ue.finished || ue.failed; }, 120s));
  expect_clean(world, ue);
  EXPECT_EQ(ue.transcript.ids(), world.reference(ue, ue.params.max_tokens));
  EXPECT_EQ(ue.finishes, 1);
}

void expect_nothing_left(VirtualGnbs& world) {
  world.clock.run_for(60s);
  for (const char* name : {"a", "b", "c"}) {
    if (!world.alive(name)) continue;
    EXPECT_EQ(world.engine(name).live_slots(), 0u) << name;
    EXPECT_EQ(world.node(name).stats().staged_bytes, 0u) << name;
    EXPECT_TRUE(world.engine(name).consistent()) << name;
  }
}

}  // namespace pallas::test
