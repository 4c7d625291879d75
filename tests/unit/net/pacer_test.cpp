#include "net/pacer.h"

#include <gtest/gtest.h>

namespace pallas::net {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kOrigin{1000s};

Pacer pacer_of(double bytes_per_s) {
  return Pacer(*kv::RateTrace::constant(BytesPerSecond(bytes_per_s)), kOrigin);
}

TEST(Pacer, without_a_rate_nothing_waits) {
  Pacer pacer(std::nullopt, kOrigin);
  pacer.spend(kOrigin, 1'000'000'000);
  EXPECT_LE(pacer.ready_at(), kOrigin);
}

TEST(Pacer, bytes_are_spaced_by_the_rate) {
  Pacer pacer = pacer_of(1000);
  pacer.spend(kOrigin, 100);
  EXPECT_EQ(pacer.ready_at(), kOrigin + 100ms);
  pacer.spend(kOrigin + 100ms, 50);
  EXPECT_EQ(pacer.ready_at(), kOrigin + 150ms);
}

TEST(Pacer, a_late_sender_catches_up) {
  Pacer pacer = pacer_of(1000);
  pacer.spend(kOrigin, 100);
  pacer.spend(kOrigin + 130ms, 100);  // 30 ms late
  EXPECT_EQ(pacer.ready_at(), kOrigin + 200ms);
}

TEST(Pacer, a_long_stall_does_not_become_a_burst) {
  Pacer pacer = pacer_of(1000);
  pacer.spend(kOrigin, 100);
  pacer.spend(kOrigin + 10s, 100);
  EXPECT_GE(pacer.ready_at(), kOrigin + 10s);
}

TEST(Pacer, time_without_anything_to_send_is_lost) {
  Pacer pacer = pacer_of(1000);
  pacer.restart(kOrigin + 20ms);
  pacer.spend(kOrigin + 20ms, 100);
  EXPECT_EQ(pacer.ready_at(), kOrigin + 120ms);
}

}  // namespace
}  // namespace pallas::net
