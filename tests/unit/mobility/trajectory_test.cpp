#include "mobility/trajectory.h"

namespace pallas::mobility {
namespace {

Trajectory path(std::vector<std::pair<double, Point>> points) {
  Trajectory trajectory{UeId("ue"), {}};
  for (const auto& [t, p] : points) trajectory.samples.push_back({Seconds(t), p, {}, {}});
  return trajectory;
}

std::unique_ptr<CellLayout> squares() {
  return std::move(make_square_cells(100, 50, 50).value());
}

TEST(Trajectory, positions_between_samples_lie_on_the_line) {
  Trajectory t = path({{1, {0, 0}}, {3, {10, -20}}});
  t.samples[0].speed_mps = 4;
  t.samples[1].speed_mps = 6;
  t.samples[0].heading_deg = 90;
  const auto middle = t.at(Seconds(2));
  ASSERT_TRUE(middle);
  EXPECT_EQ(middle->position, (Point{5, -10}));
  EXPECT_EQ(middle->speed_mps, 5);
  EXPECT_EQ(middle->heading_deg, 90);
  EXPECT_EQ(t.at(Seconds(1))->position, (Point{0, 0}));
  EXPECT_EQ(t.at(Seconds(3))->position, (Point{10, -20}));
  EXPECT_FALSE(t.at(Seconds(0.999)));
  EXPECT_FALSE(t.at(Seconds(3.001)));
}

TEST(Trajectory, a_single_sample_is_a_trajectory_without_crossings) {
  const Trajectory t = path({{1, {0, 0}}});
  EXPECT_TRUE(t.at(Seconds(1)));
  EXPECT_FALSE(t.at(Seconds(2)));
  EXPECT_TRUE(crossings(t, *squares()).empty());
}

TEST(Crossings, the_time_is_interpolated_between_the_samples_that_straddle_the_boundary) {
  const auto found = crossings(path({{10, {140, 100}}, {10.5, {160, 100}}}), *squares());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR(found[0].at.count(), 10.25, 1e-9);
  EXPECT_EQ(found[0].from.value, "cell_0_0");
  EXPECT_EQ(found[0].to.value, "cell_1_0");
  EXPECT_NEAR(found[0].where.x_m, 150, 1e-9);
}

TEST(Crossings, one_segment_may_cross_several_cells) {
  const auto found = crossings(path({{0, {100, 100}}, {40, {500, 100}}}), *squares());
  ASSERT_EQ(found.size(), 4u);
  for (std::size_t k = 0; k < 4; ++k) {
    EXPECT_NEAR(found[k].at.count(), 5 + 10.0 * static_cast<double>(k), 1e-9);
    EXPECT_EQ(found[k].to.value, "cell_" + std::to_string(k + 1) + "_0");
  }
}

TEST(Crossings, samples_on_a_boundary_count_once_in_both_directions) {
  const auto east = crossings(
      path({{0, {140, 100}}, {1, {150, 100}}, {2, {150, 100}}, {3, {160, 100}}}), *squares());
  ASSERT_EQ(east.size(), 1u);
  EXPECT_NEAR(east[0].at.count(), 1, 1e-9);
  const auto west = crossings(
      path({{0, {160, 100}}, {1, {150, 100}}, {2, {150, 100}}, {3, {140, 100}}}), *squares());
  ASSERT_EQ(west.size(), 1u);
  EXPECT_NEAR(west[0].at.count(), 2, 1e-6);
  EXPECT_EQ(west[0].to.value, "cell_0_0");
}

TEST(Crossings, a_diagonal_through_a_corner_is_one_change) {
  const auto found = crossings(path({{0, {140, 140}}, {1, {160, 160}}}), *squares());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].to.value, "cell_1_1");
  EXPECT_NEAR(found[0].at.count(), 0.5, 1e-9);
}

TEST(Crossings, turning_back_at_the_boundary_changes_nothing) {
  EXPECT_TRUE(
      crossings(path({{0, {60, 100}}, {1, {50, 100}}, {2, {60, 100}}}), *squares()).empty());
}

}  // namespace
}  // namespace pallas::mobility
