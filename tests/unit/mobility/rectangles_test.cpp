#include <gtest/gtest.h>

#include <cmath>

#include "mobility/cells.h"
#include "mobility/trajectory.h"

namespace pallas::mobility {
namespace {

const std::vector<Rectangle> kTwo{{CellId("left"), 0, 0, 100, 50},
                                  {CellId("right"), 100, 0, 60, 50}};

TEST(RectangleCells, cover_their_area_and_nothing_else) {
  const auto cells = make_rectangle_cells(kTwo);
  ASSERT_TRUE(cells);
  EXPECT_EQ((*cells)->cell_at({0, 0}), CellId("left"));
  EXPECT_EQ((*cells)->cell_at({100, 49}), CellId("right"));
  EXPECT_EQ((*cells)->cell_at({160, 10}), CellId());
  EXPECT_TRUE((*cells)->knows(CellId("left")));
  EXPECT_FALSE((*cells)->knows(CellId("up")));
}

TEST(RectangleCells, the_first_crossing_is_exact_and_may_lead_outside) {
  const auto cells = make_rectangle_cells(kTwo);
  const auto next = (*cells)->first_crossing({50, 25}, 10, 0, Seconds(60));
  ASSERT_TRUE(next);
  EXPECT_EQ(next->to, CellId("right"));
  EXPECT_NEAR(next->in.count(), 5, 1e-9);
  const auto out = (*cells)->first_crossing({50, 25}, 0, 5, Seconds(60));
  ASSERT_TRUE(out);
  EXPECT_EQ(out->to, CellId());
  const auto in = (*cells)->first_crossing({-10, 25}, 2, 0, Seconds(60));
  ASSERT_TRUE(in);
  EXPECT_EQ(in->to, CellId("left"));
  EXPECT_NEAR(in->in.count(), 5, 1e-9);
  EXPECT_FALSE((*cells)->first_crossing({50, 25}, 1, 0, Seconds(10)));
  EXPECT_FALSE((*cells)->first_crossing({50, 25}, 0, 0, Seconds(10)));
}

TEST(RectangleCells, a_trajectory_passes_them_in_order) {
  const auto cells = make_rectangle_cells(kTwo);
  const Trajectory way{UeId("u"),
                       {{Seconds(0), {10, 10}, {}, {}}, {Seconds(20), {210, 10}, {}, {}}}};
  const auto changes = crossings(way, **cells);
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].to, CellId("right"));
  EXPECT_NEAR(changes[0].at.count(), 9, 1e-6);
  EXPECT_EQ(changes[1].to, CellId());
}

TEST(RectangleCells, overlaps_and_empty_cells_are_refused_by_name) {
  const auto refused = [](std::vector<Rectangle> all, const char* why) {
    const auto made = make_rectangle_cells(std::move(all));
    ASSERT_FALSE(made) << why;
    EXPECT_NE(made.error().message.find(why), std::string::npos) << made.error().message;
  };
  refused({}, "none");
  refused({{CellId("a"), 0, 0, 10, 10}, {CellId("b"), 9, 9, 10, 10}}, "b overlaps a");
  refused({{CellId("a"), 0, 0, 10, 10}, {CellId("a"), 20, 0, 10, 10}}, "named twice");
  refused({{CellId("a"), 0, 0, 0, 10}}, "no area");
  refused({{CellId("a"), NAN, 0, 1, 10}}, "not finite");
  refused({{CellId(""), 0, 0, 1, 10}}, "no cell name");
}

}  // namespace
}  // namespace pallas::mobility
