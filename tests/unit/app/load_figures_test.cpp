#include "load_figures.h"

#include <gtest/gtest.h>

namespace pallas::app {
namespace {

using namespace std::chrono_literals;

TimePoint at(double ms) {
  return TimePoint(to_duration(Seconds(ms / 1000)));
}

LoadSession session_with(std::vector<double> arrivals_ms, std::vector<TokenIndex> began) {
  LoadSession session;
  for (const double ms : arrivals_ms) session.arrivals.push_back(at(ms));
  session.began = std::move(began);
  return session;
}

TEST(LoadFigures, a_token_is_late_against_the_most_punctual_one_of_its_stream) {
  // 4 a second; the first comes 30 ms late, the fourth 100 ms.
  const auto session = session_with({1030, 1250, 1500, 1850}, {0});
  std::vector<double> late;
  add_lateness(session, 4, at(0), at(5000), late);
  ASSERT_EQ(late.size(), 4u);
  EXPECT_NEAR(late[0], 30, 1e-6);
  EXPECT_NEAR(late[1], 0, 1e-6);
  EXPECT_NEAR(late[2], 0, 1e-6);
  EXPECT_NEAR(late[3], 100, 1e-6);
  late.clear();
  add_lateness(session, 4, at(1200), at(1850), late);
  EXPECT_EQ(late.size(), 2u);
}

TEST(LoadFigures, a_new_stream_has_a_clock_of_its_own_and_its_gap_is_what_was_added) {
  const auto session = session_with({1000, 1250, 1540, 1790}, {0, 2});
  std::vector<double> late;
  add_lateness(session, 4, at(0), at(5000), late);
  for (const double ms : late) EXPECT_NEAR(ms, 0, 1e-6);
  ASSERT_TRUE(added_gap_ms(session, 4));
  EXPECT_NEAR(*added_gap_ms(session, 4), 40, 1e-6);
  EXPECT_FALSE(added_gap_ms(session_with({1000, 1250}, {0}), 4));
  EXPECT_FALSE(added_gap_ms(session_with({1000, 1250}, {0, 2}), 4));
}

TEST(LoadFigures, quantiles_are_values_that_occurred) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  const Quantiles q = quantiles(values);
  EXPECT_EQ(q.count, 100u);
  EXPECT_EQ(q.p50, 50);
  EXPECT_EQ(q.p99, 99);
  EXPECT_EQ(q.max, 100);
  EXPECT_EQ(quantiles({}).max, 0);
}

TEST(LoadFigures, a_run_is_good_only_if_nothing_was_lost_and_every_refusal_had_its_reason) {
  LoadFigures f;
  f.handovers = f.handovers_done = 3;
  f.refusals_asked = f.refusals_in_order = 2;
  EXPECT_TRUE(f.good());
  for (auto* fault : {&f.lost, &f.repeated, &f.wrong, &f.broken}) {
    *fault = 1;
    EXPECT_FALSE(f.good());
    *fault = 0;
  }
  f.refusals_in_order = 1;
  EXPECT_FALSE(f.good());
  f.refusals_in_order = 2;
  f.handovers_done = 2;
  EXPECT_FALSE(f.good());
  EXPECT_NE(to_text(f).find("NOT GOOD"), std::string::npos);
  EXPECT_NE(to_json(f).find("\"good\":false"), std::string::npos);
}

}  // namespace
}  // namespace pallas::app
