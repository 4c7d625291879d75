#include "net/asio_clock.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <vector>

namespace pallas::net {
namespace {

using namespace std::chrono_literals;

class AsioClockTest : public ::testing::Test {
 protected:
  boost::asio::io_context io_{1};
  AsioClock clock_{io_};
  std::vector<int> fired_;
};

TEST_F(AsioClockTest, timers_fire_in_order_of_time_and_not_before) {
  const TimePoint begin = clock_.now();
  TimePoint last{};
  clock_.after(20ms, [&] {
    fired_.push_back(2);
    last = clock_.now();
  });
  clock_.after(5ms, [&] { fired_.push_back(1); });
  clock_.at(begin - 1s, [&] { fired_.push_back(0); });
  EXPECT_TRUE(fired_.empty());
  io_.run();
  EXPECT_EQ(fired_, (std::vector{0, 1, 2}));
  EXPECT_GE(last - begin, 20ms);
}

TEST_F(AsioClockTest, a_cancelled_timer_never_fires) {
  const TimerId first = clock_.after(1ms, [&] { fired_.push_back(1); });
  clock_.after(2ms, [&] { fired_.push_back(2); });
  clock_.cancel(first);
  clock_.cancel(first);
  clock_.cancel(0);
  io_.run();
  EXPECT_EQ(fired_, (std::vector{2}));
  EXPECT_EQ(clock_.pending(), 0u);
}

TEST_F(AsioClockTest, a_callback_may_cancel_and_set_others) {
  TimerId second = 0;
  clock_.after(1ms, [&] {
    clock_.cancel(second);
    clock_.after(0ms, [&] { fired_.push_back(3); });
  });
  second = clock_.after(1ms, [&] { fired_.push_back(2); });
  io_.run();
  EXPECT_EQ(fired_, (std::vector{3}));
}

TEST_F(AsioClockTest, a_timer_that_sets_itself_anew_leaves_room_for_others) {
  int rounds = 0;
  bool stop = false;
  Timer busy(clock_);
  std::function<void()> again = [&] {
    ++rounds;
    if (!stop) busy.arm_at(clock_.now() - 1s, again);
  };
  busy.arm(0ms, again);
  clock_.after(2ms, [&] { stop = true; });
  io_.run();
  EXPECT_GT(rounds, 1);
}

TEST_F(AsioClockTest, timers_end_with_the_clock) {
  {
    AsioClock other(io_);
    other.after(0ms, [&] { fired_.push_back(1); });
  }
  io_.run();
  EXPECT_TRUE(fired_.empty());
}

TEST_F(AsioClockTest, many_timers_set_and_cancelled_leave_nothing) {
  for (int i = 0; i < 10000; ++i) clock_.cancel(clock_.after(1h, [] {}));
  EXPECT_EQ(clock_.pending(), 0u);
}

}  // namespace
}  // namespace pallas::net
