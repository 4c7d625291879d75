// The event queue against a plain one, and what only it can do (tests/unit/base has its contract).
#include "sim/virtual_clock.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>

#include "base/random.h"

namespace pallas::sim {
namespace {

using namespace std::chrono_literals;

TEST(VirtualClock, runs_what_a_sorted_list_would_run_through_any_mix_of_timers_and_cancels) {
  Random random(7);
  VirtualClock clock;
  std::map<std::pair<TimePoint, int>, TimerId> expected;  // (when, number), number ascends
  std::map<int, std::pair<TimePoint, int>> by_number;
  std::vector<int> ran, wanted;
  int number = 0;
  for (int step = 0; step < 20'000; ++step) {
    const double what = random.uniform();
    if (what < 0.5) {
      const TimePoint when = clock.now() + 1ms * static_cast<int>(random.below(50));
      const int n = ++number;
      expected[{when, n}] = clock.schedule(when, [&ran, n] { ran.push_back(n); });
      by_number[n] = {when, n};
    } else if (what < 0.8) {
      if (by_number.empty()) continue;
      auto it = by_number.lower_bound(
          static_cast<int>(random.below(static_cast<std::uint64_t>(number)) + 1));
      if (it == by_number.end()) it = by_number.begin();
      clock.cancel(expected.at(it->second));
      expected.erase(it->second);
      by_number.erase(it);
    } else if (!expected.empty()) {
      wanted.push_back(expected.begin()->first.second);
      by_number.erase(expected.begin()->first.second);
      expected.erase(expected.begin());
      ASSERT_TRUE(clock.run_next());
    }
    ASSERT_EQ(clock.pending(), expected.size());
  }
  EXPECT_EQ(ran, wanted);
  EXPECT_GT(ran.size(), 3000u);
}

TEST(VirtualClock, a_cancelled_timer_frees_what_its_callback_holds_at_once) {
  VirtualClock clock;
  const auto held = std::make_shared<int>(1);
  const TimerId timer = clock.at(TimePoint(1s), [held] {});
  EXPECT_EQ(held.use_count(), 2);
  clock.cancel(timer);
  EXPECT_EQ(held.use_count(), 1);
  clock.cancel(timer);
  EXPECT_EQ(clock.pending(), 0u);
}

TEST(VirtualClock, an_old_id_never_cancels_the_timer_that_took_its_place) {
  VirtualClock clock;
  const TimerId first = clock.schedule(TimePoint(1s), [] {});
  ASSERT_TRUE(clock.run_next());
  bool ran = false;
  clock.schedule(TimePoint(2s), [&ran] { ran = true; });
  clock.cancel(first);
  clock.run_until(TimePoint(3s));
  EXPECT_TRUE(ran);
}

TEST(VirtualClock, keeps_no_more_keys_than_twice_its_live_timers) {
  VirtualClock clock;
  // A lease that is renewed a million times, as a node does it with each frame.
  TimerId lease = 0;
  bool expired = false;
  for (int i = 0; i < 1'000'000; ++i) {
    clock.cancel(lease);
    lease = clock.schedule_after(5s, [&expired] { expired = true; });
  }
  EXPECT_EQ(clock.pending(), 1u);
  ASSERT_TRUE(clock.run_next());
  EXPECT_TRUE(expired);
  EXPECT_EQ(clock.events_run(), 1u);
  EXPECT_FALSE(clock.run_next());
}

TEST(Callback, calls_and_destroys_what_it_holds_once_wherever_it_was_moved) {
  const auto held = std::make_shared<int>(0);
  struct Large {
    std::shared_ptr<int> count;
    std::array<char, 200> rest{};
    void operator()() { ++*count; }
  };
  {
    Callback small([held] { ++*held; });
    Callback large(Large{held, {}});
    Callback other = std::move(small);
    small = std::move(large);
    other();
    small();
    EXPECT_EQ(held.use_count(), 3);
  }
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(*held, 2);
}

}  // namespace
}  // namespace pallas::sim
