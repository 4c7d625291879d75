#include "base/clock.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "virtual_clock.h"

namespace pallas {
namespace {

using test::VirtualClock;
using namespace std::chrono_literals;

TEST(VirtualClock, runs_events_in_order_of_time_and_ties_in_order_of_insertion) {
  VirtualClock clock;
  std::string order;
  clock.after(2ms, [&] { order += 'c'; });
  clock.after(1ms, [&] { order += 'a'; });
  clock.after(2ms, [&] { order += 'd'; });
  clock.after(1ms, [&] { order += 'b'; });
  EXPECT_TRUE(clock.run_until_idle(1s));
  EXPECT_EQ(order, "abcd");
  EXPECT_EQ(clock.now(), TimePoint(2ms));
}

TEST(VirtualClock, never_runs_a_callback_inside_the_call_that_schedules_it) {
  VirtualClock clock;
  clock.run_for(5ms);
  bool ran = false;
  clock.at(TimePoint(1ms), [&] { ran = true; });  // the past
  EXPECT_FALSE(ran);
  EXPECT_TRUE(clock.run_next());
  EXPECT_TRUE(ran);
  EXPECT_EQ(clock.now(), TimePoint(5ms));
}

TEST(VirtualClock, run_for_stops_at_its_end_with_later_events_left) {
  VirtualClock clock;
  int ran = 0;
  clock.after(3ms, [&] { ++ran; });
  clock.after(4ms, [&] { ++ran; });
  clock.run_for(3ms);
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(clock.now(), TimePoint(3ms));
  EXPECT_EQ(clock.pending(), 1u);
  clock.run_until(TimePoint(10ms));
  EXPECT_EQ(ran, 2);
  EXPECT_EQ(clock.now(), TimePoint(10ms));
}

TEST(VirtualClock, an_event_may_cancel_another_of_the_same_instant) {
  VirtualClock clock;
  TimerId second = 0;
  bool ran = false;
  clock.after(1ms, [&] { clock.cancel(second); });
  second = clock.after(1ms, [&] { ran = true; });
  EXPECT_TRUE(clock.run_until_idle(1s));
  EXPECT_FALSE(ran);
  clock.cancel(second);  // without effect
}

TEST(VirtualClock, says_when_the_limit_came_before_idle_or_the_condition) {
  VirtualClock clock;
  int ticks = 0;
  std::function<void()> tick = [&] {
    ++ticks;
    clock.after(1ms, tick);
  };
  tick();
  EXPECT_FALSE(clock.run_until_idle(10ms));
  EXPECT_TRUE(clock.run_until([&] { return ticks == 20; }, 1s));
  EXPECT_FALSE(clock.run_until([&] { return ticks == 1000; }, 10ms));
}

TEST(Timer, fires_once_and_is_no_longer_armed_then) {
  VirtualClock clock;
  Timer timer(clock);
  int fired = 0;
  timer.arm(5ms, [&] {
    ++fired;
    EXPECT_FALSE(timer.armed());
  });
  EXPECT_TRUE(timer.armed());
  EXPECT_EQ(timer.when(), TimePoint(5ms));
  clock.run_for(20ms);
  EXPECT_EQ(fired, 1);
}

TEST(Timer, re_arming_replaces_what_was_armed) {
  VirtualClock clock;
  Timer timer(clock);
  std::string fired;
  timer.arm(5ms, [&] { fired += "first"; });
  timer.arm(10ms, [&] { fired += "second"; });
  clock.run_for(7ms);
  EXPECT_EQ(fired, "");
  clock.run_for(7ms);
  EXPECT_EQ(fired, "second");
}

TEST(Timer, cancelled_lets_go_of_what_its_callback_holds) {
  VirtualClock clock;
  Timer timer(clock);
  const auto held = std::make_shared<int>(1);
  timer.arm(1ms, [held] {});
  EXPECT_EQ(held.use_count(), 2);
  timer.cancel();
  EXPECT_EQ(held.use_count(), 1);
}

TEST(Timer, may_re_arm_itself_in_its_own_callback) {
  VirtualClock clock;
  Timer timer(clock);
  std::vector<TimePoint> fired;
  // Captures of its own, which must outlive the re-arming.
  std::function<void()> again = [&clock, &timer, &fired, &again, text = std::string(64, 'x')] {
    fired.push_back(clock.now());
    if (fired.size() < 3) timer.arm(2ms, again);
    EXPECT_EQ(text, std::string(64, 'x'));
  };
  timer.arm(1ms, again);
  EXPECT_TRUE(clock.run_until_idle(1s));
  EXPECT_EQ(fired, (std::vector<TimePoint>{TimePoint(1ms), TimePoint(3ms), TimePoint(5ms)}));
}

TEST(Timer, may_be_destroyed_in_its_own_callback) {
  VirtualClock clock;
  auto timer = std::make_unique<Timer>(clock);
  bool fired = false;
  timer->arm(1ms, [&timer, &fired, text = std::string(64, 'x')] {
    timer.reset();
    fired = text.size() == 64;
  });
  clock.run_for(2ms);
  EXPECT_TRUE(fired);
}

TEST(Timer, is_cancelled_with_its_owner) {
  VirtualClock clock;
  bool fired = false;
  {
    Timer timer(clock);
    timer.arm(1ms, [&] { fired = true; });
  }
  EXPECT_EQ(clock.pending(), 0u);
  clock.run_for(2ms);
  EXPECT_FALSE(fired);
}

}  // namespace
}  // namespace pallas
