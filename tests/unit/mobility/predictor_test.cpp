#include "mobility/predictor.h"

#include <limits>

namespace pallas::mobility {
namespace {

class Predictor : public testing::Test {
 protected:
  PositionReport at(double t_ms, double x, double y) const {
    PositionReport report;
    report.ue = UeId("ue");
    report.t_ms = t_ms;
    report.x_m = x;
    report.y_m = y;
    return report;
  }
  std::unique_ptr<CellLayout> cells_ = std::move(make_square_cells(100, 50, 50).value());
  CvhPredictor predictor_{*cells_, {}};
};

TEST_F(Predictor, heading_is_clockwise_from_north) {
  PositionReport report = at(0, 100, 100);
  report.speed_mps = 10;
  for (const auto& [heading, cell] :
       {std::pair{0.0, "cell_0_1"}, std::pair{90.0, "cell_1_0"}, std::pair{180.0, "cell_0_-1"},
        std::pair{270.0, "cell_-1_0"}}) {
    report.heading_deg = heading;
    const auto crossing = predictor_.predict(report, nullptr);
    ASSERT_TRUE(crossing) << heading;
    EXPECT_EQ(crossing->to.value, cell);
    EXPECT_NEAR(crossing->in.count(), 5, 1e-9);
  }
}

TEST_F(Predictor, two_positions_stand_in_for_a_report_without_speed_and_heading) {
  const PositionReport before = at(1000, 90, 100);
  const auto crossing = predictor_.predict(at(2000, 100, 100), &before);
  ASSERT_TRUE(crossing);
  EXPECT_EQ(crossing->to.value, "cell_1_0");
  EXPECT_NEAR(crossing->in.count(), 5, 1e-9);
}

TEST_F(Predictor, the_reported_part_wins_over_the_measured_one) {
  const PositionReport before = at(1000, 90, 100);
  PositionReport latest = at(2000, 100, 100);
  latest.speed_mps = 25;
  EXPECT_NEAR(predictor_.predict(latest, &before)->in.count(), 2, 1e-9);
  latest.speed_mps.reset();
  latest.heading_deg = 0;
  const auto north = predictor_.predict(latest, &before);
  ASSERT_TRUE(north);
  EXPECT_EQ(north->to.value, "cell_0_1");
  EXPECT_NEAR(north->in.count(), 5, 1e-9);
}

TEST_F(Predictor, a_slow_ue_has_no_prediction) {
  PositionReport report = at(0, 149.9, 100);
  report.heading_deg = 90;
  report.speed_mps = 0.49;
  EXPECT_FALSE(predictor_.predict(report, nullptr));
  report.speed_mps = 0.5;
  EXPECT_TRUE(predictor_.predict(report, nullptr));
}

TEST_F(Predictor, nothing_is_predicted_from_too_little) {
  PositionReport latest = at(1000, 100, 100);
  EXPECT_FALSE(predictor_.predict(latest, nullptr));
  const PositionReport same_time = at(1000, 90, 100);
  EXPECT_FALSE(predictor_.predict(latest, &same_time));
  const PositionReport later = at(2000, 90, 100);
  EXPECT_FALSE(predictor_.predict(latest, &later));
  latest.speed_mps = 10;  // no heading
  EXPECT_FALSE(predictor_.predict(latest, nullptr));
  latest.heading_deg = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(predictor_.predict(latest, nullptr));
}

TEST_F(Predictor, the_error_of_the_time_grows_with_its_square_and_falls_with_the_speed) {
  PositionReport report = at(0, 100, 100);
  report.heading_deg = 90;
  report.speed_mps = 10;
  EXPECT_NEAR(predictor_.sigma(report, nullptr, Seconds(1)).count(), 1.25 / 20, 1e-12);
  EXPECT_NEAR(predictor_.sigma(report, nullptr, Seconds(2)).count(), 4 * 1.25 / 20, 1e-12);
  report.speed_mps = 5;
  EXPECT_NEAR(predictor_.sigma(report, nullptr, Seconds(2)).count(), 4 * 1.25 / 10, 1e-12);
  // Never more than half the time, however slow.
  report.speed_mps = 0;
  EXPECT_NEAR(predictor_.sigma(report, nullptr, Seconds(8)).count(), 4, 1e-12);
  // From positions alone, too.
  const PositionReport before = at(-1000, 90, 100);
  EXPECT_NEAR(predictor_.sigma(at(0, 100, 100), &before, Seconds(1)).count(), 1.25 / 20, 1e-12);
}

TEST_F(Predictor, a_crossing_beyond_the_horizon_is_not_foreseen) {
  PositionReport report = at(0, 100, 100);
  report.heading_deg = 90;
  report.speed_mps = 1;
  EXPECT_FALSE(predictor_.predict(report, nullptr));
}

}  // namespace
}  // namespace pallas::mobility
