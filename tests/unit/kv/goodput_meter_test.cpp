#include "kv/goodput_meter.h"

#include <gtest/gtest.h>

namespace pallas::kv {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{5s};

TEST(GoodputMeter, shows_the_configured_value_until_there_is_a_sample) {
  GoodputMeter meter(BytesPerSecond(7));
  EXPECT_DOUBLE_EQ(meter.estimate()->value, 7);
  EXPECT_FALSE(meter.age(kStart));
  EXPECT_FALSE(GoodputMeter(std::nullopt).estimate());
}

TEST(GoodputMeter, the_first_sample_replaces_the_configured_value) {
  GoodputMeter meter(BytesPerSecond(7));
  meter.busy(kStart, 1000);
  meter.progress(kStart + 100ms, 1000 + 1'000'000);
  EXPECT_DOUBLE_EQ(meter.estimate()->value, 1e7);
  EXPECT_EQ(*meter.age(kStart + 300ms), 200ms);
}

TEST(GoodputMeter, later_samples_move_the_estimate_both_ways) {
  GoodputMeter meter(std::nullopt);
  meter.busy(kStart, 0);
  meter.progress(kStart + 100ms, 1'000'000);
  meter.progress(kStart + 200ms, 1'500'000);
  EXPECT_DOUBLE_EQ(meter.estimate()->value, 0.7 * 1e7 + 0.3 * 5e6);
}

TEST(GoodputMeter, time_with_an_empty_queue_does_not_count) {
  GoodputMeter meter(std::nullopt);
  meter.busy(kStart, 0);
  meter.progress(kStart + 100ms, 1'000'000);
  meter.idle(kStart + 110ms, 1'050'000);
  meter.busy(kStart + 10s, 1'050'000);
  meter.progress(kStart + 10s + 100ms, 2'050'000);
  EXPECT_DOUBLE_EQ(meter.estimate()->value, 1e7);
}

TEST(GoodputMeter, a_stretch_cut_off_by_an_empty_queue_may_only_raise) {
  GoodputMeter meter(std::nullopt);
  meter.busy(kStart, 0);
  meter.progress(kStart + 100ms, 1'000'000);
  meter.idle(kStart + 140ms, 1'100'000);  // 2.5 MB/s
  EXPECT_DOUBLE_EQ(meter.estimate()->value, 1e7);
  meter.busy(kStart + 1s, 2'000'000);
  meter.idle(kStart + 1s + 60ms, 3'200'000);  // 20 MB/s
  EXPECT_DOUBLE_EQ(meter.estimate()->value, 2e7);
  meter.busy(kStart + 2s, 4'000'000);
  meter.idle(kStart + 2s + 10ms, 4'400'000);  // too short to believe
  EXPECT_DOUBLE_EQ(meter.estimate()->value, 2e7);
}

TEST(GoodputMeter, an_outage_is_a_sample_too) {
  GoodputMeter meter(std::nullopt);
  meter.busy(kStart, 0);
  meter.progress(kStart + 100ms, 1'000'000);
  meter.progress(kStart + 400ms, 1'000'000);
  EXPECT_DOUBLE_EQ(meter.estimate()->value, 7e6);
}

}  // namespace
}  // namespace pallas::kv
