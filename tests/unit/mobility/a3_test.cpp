#include "mobility/a3.h"

#include <gtest/gtest.h>

#include <cmath>

namespace pallas::mobility {
namespace {

using namespace std::chrono_literals;

const std::vector<Site> kSites{{CellId("west"), {0, 0}}, {CellId("east"), {200, 0}}};

// At 10 m/s from the west site past the east one.
Trajectory eastward() {
  return {UeId("u"), {{Seconds(0), {10, 0}, {}, {}}, {Seconds(25), {260, 0}, {}, {}}}};
}

// Where the east site becomes better by `db`: distances in the ratio 10^(db / 10 n).
double crossing_s(double db, double exponent) {
  const double ratio = std::pow(10, db / (10 * exponent));
  return (200 * ratio / (1 + ratio) - 10) / 10;
}

TEST(A3, hands_over_where_the_neighbour_is_better_by_offset_and_hysteresis_for_the_whole_time) {
  for (const auto ttt : {0ms, 160ms, 1280ms}) {
    A3Settings settings;
    settings.time_to_trigger = ttt;
    const auto changes = a3_handovers(eastward(), kSites, settings);
    ASSERT_EQ(changes.size(), 1u);
    EXPECT_EQ(changes[0].from, CellId("west"));
    EXPECT_EQ(changes[0].to, CellId("east"));
    const double expected = crossing_s(4, 3.5) + to_seconds(ttt).count();
    EXPECT_GE(changes[0].at.count(), expected - 1e-9);
    EXPECT_LE(changes[0].at.count(), expected + 0.081);  // a measurement, and one more
  }
}

TEST(A3, a_neighbour_that_is_better_for_too_short_a_time_is_left_alone) {
  A3Settings settings;
  settings.time_to_trigger = 640ms;
  A3Monitor monitor(settings, kSites, CellId("west"));
  const Point near_west{20, 0}, near_east{180, 0};
  double t = 0;
  for (int round = 0; round < 10; ++round) {
    for (int k = 0; k < 15; ++k) EXPECT_FALSE(monitor.measure(Seconds(t += 0.04), near_east));
    EXPECT_FALSE(monitor.measure(Seconds(t += 0.04), near_west));
  }
  EXPECT_EQ(monitor.serving(), CellId("west"));
}

TEST(A3, hysteresis_keeps_a_ue_in_the_middle_from_going_to_and_fro) {
  A3Settings settings;
  settings.time_to_trigger = 0ms;
  settings.hysteresis_db = 3;
  settings.offset_db = 0;
  A3Monitor monitor(settings, kSites, CellId("west"));
  int handovers = 0;
  for (int k = 0; k < 1000; ++k) {
    const Point where{100 + 8 * std::sin(k * 0.1), 0};
    handovers += monitor.measure(Seconds(k * 0.04), where) ? 1 : 0;
  }
  EXPECT_EQ(handovers, 0);
}

TEST(A3, settings_outside_the_standard_are_refused_by_their_field) {
  const auto refused = [](const char* field, void (*change)(A3Settings&)) {
    A3Settings settings;
    change(settings);
    const Status ok = check(settings);
    ASSERT_FALSE(ok) << field;
    EXPECT_NE(ok.error().message.find(field), std::string::npos);
  };
  refused("hysteresis_db", [](A3Settings& s) { s.hysteresis_db = -1; });
  refused("offset_db", [](A3Settings& s) { s.offset_db = NAN; });
  refused("time_to_trigger_ms", [](A3Settings& s) { s.time_to_trigger = 50ms; });
  refused("measure_every_ms", [](A3Settings& s) { s.measure_every = 0ms; });
  refused("path_loss_exponent", [](A3Settings& s) { s.path_loss_exponent = 0; });
  EXPECT_TRUE(check(A3Settings{}));
}

}  // namespace
}  // namespace pallas::mobility
