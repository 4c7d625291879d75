#include "session/handover_meter.h"

#include <gtest/gtest.h>

namespace pallas::session {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{10s};

TEST(HandoverMeter, sit_ends_with_the_first_token_of_the_target) {
  HandoverMeter meter(kStart, kStart - 20ms);
  EXPECT_FALSE(meter.sit_ms());
  meter.add(kStart + 10ms, false);  // the source's, forwarded
  EXPECT_TRUE(meter.relayed());
  meter.add(kStart + 300ms, true);
  EXPECT_FALSE(meter.relayed());
  EXPECT_DOUBLE_EQ(meter.sit_ms().value(), 300);
  EXPECT_DOUBLE_EQ(meter.gap_ms().value(), 290);
}

TEST(HandoverMeter, the_gap_reaches_to_the_eighth_token_of_the_target) {
  HandoverMeter meter(kStart, kStart - 10ms);
  TimePoint at = kStart;
  for (int i = 0; i < 7; ++i) meter.add(at += 50ms, true);
  EXPECT_FALSE(meter.settled());
  meter.add(at += 400ms, true);
  EXPECT_TRUE(meter.settled());
  meter.add(at += 900ms, true);
  EXPECT_DOUBLE_EQ(meter.gap_ms().value(), 400);
}

TEST(HandoverMeter, a_relay_is_measured_by_the_tokens_that_came) {
  HandoverMeter meter(kStart, std::nullopt);
  TimePoint at = kStart;
  for (int i = 0; i < 8; ++i) meter.add(at += 70ms, false);
  meter.add(at += 500ms, false);
  EXPECT_TRUE(meter.relayed());
  EXPECT_DOUBLE_EQ(meter.sit_ms().value(), 70);
  EXPECT_DOUBLE_EQ(meter.gap_ms().value(), 70);
}

}  // namespace
}  // namespace pallas::session
