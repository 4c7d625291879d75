#include "mobility/cells.h"

#include <cmath>
#include <limits>

namespace pallas::mobility {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

std::unique_ptr<CellLayout> squares(double size = 100, double x = 50, double y = 50) {
  return std::move(make_square_cells(size, x, y).value());
}

std::unique_ptr<CellLayout> sites(std::vector<Site> list) {
  return std::move(make_nearest_site_cells(std::move(list)).value());
}

TEST(SquareCells, a_cell_owns_its_lower_edges_and_not_its_upper_ones) {
  const auto cells = squares();
  EXPECT_EQ(cells->cell_at({50, 50}).value, "cell_0_0");
  EXPECT_EQ(cells->cell_at({149.999, 149.999}).value, "cell_0_0");
  EXPECT_EQ(cells->cell_at({150, 50}).value, "cell_1_0");
  EXPECT_EQ(cells->cell_at({50, 150}).value, "cell_0_1");
  EXPECT_EQ(cells->cell_at({49.999, 50}).value, "cell_-1_0");
}

TEST(SquareCells, edges_decide_where_a_quotient_rounds) {
  const auto cells = squares(0.1, 0, 0);
  for (int k = -1000; k <= 1000; ++k) {
    const double edge = k * 0.1;
    const std::string right = "cell_" + std::to_string(k) + "_0";
    const std::string left = "cell_" + std::to_string(k - 1) + "_0";
    EXPECT_EQ(cells->cell_at({edge, 0}).value, right);
    EXPECT_EQ(cells->cell_at({std::nextafter(edge, -kInf), 0}).value, left);
  }
}

TEST(SquareCells, knows_each_cell_by_exactly_one_name) {
  const auto cells = squares();
  for (const char* name : {"cell_0_0", "cell_-1_0", "cell_12_-7"}) {
    EXPECT_TRUE(cells->knows(CellId(name))) << name;
  }
  for (const char* name :
       {"", "cell", "cell_", "cell_0", "cell_0_", "cell_00_0", "cell_-0_0", "cell_+1_0",
        "cell_0_0 ", "cell_0_0_0", "Cell_0_0", "cell_99999999999999999999_0"}) {
    EXPECT_FALSE(cells->knows(CellId(name))) << name;
  }
}

TEST(SquareCells, first_crossing_is_exact_in_each_direction) {
  const auto cells = squares();
  const auto east = cells->first_crossing({100, 100}, 10, 0, Seconds(30));
  ASSERT_TRUE(east);
  EXPECT_EQ(east->from.value, "cell_0_0");
  EXPECT_EQ(east->to.value, "cell_1_0");
  EXPECT_DOUBLE_EQ(east->in.count(), 5);
  const auto south = cells->first_crossing({100, 100}, 0, -20, Seconds(30));
  ASSERT_TRUE(south);
  EXPECT_EQ(south->to.value, "cell_0_-1");
  EXPECT_DOUBLE_EQ(south->in.count(), 2.5);
  const auto slanted = cells->first_crossing({100, 100}, -10, 20, Seconds(30));
  ASSERT_TRUE(slanted);
  EXPECT_EQ(slanted->to.value, "cell_0_1");
  EXPECT_DOUBLE_EQ(slanted->in.count(), 2.5);
}

TEST(SquareCells, a_way_through_a_corner_leads_to_the_diagonal_cell) {
  const auto corner = squares()->first_crossing({100, 100}, 10, -10, Seconds(30));
  ASSERT_TRUE(corner);
  EXPECT_EQ(corner->to.value, "cell_1_-1");
}

TEST(SquareCells, leaving_over_the_edge_one_stands_on_takes_no_time) {
  const auto west = squares()->first_crossing({50, 100}, -1, 0, Seconds(30));
  ASSERT_TRUE(west);
  EXPECT_EQ(west->to.value, "cell_-1_0");
  EXPECT_EQ(west->in.count(), 0);
}

TEST(SquareCells, nothing_is_crossed_at_rest_or_beyond_the_horizon) {
  const auto cells = squares();
  EXPECT_FALSE(cells->first_crossing({100, 100}, 0, 0, Seconds(30)));
  EXPECT_FALSE(cells->first_crossing({100, 100}, 1, 0, Seconds(49.9)));
  EXPECT_TRUE(cells->first_crossing({100, 100}, 1, 0, Seconds(50)));
  EXPECT_FALSE(cells->first_crossing({100, 100}, 1, 0, Seconds(-1)));
}

TEST(SquareCells, values_that_are_not_finite_lie_in_no_cell) {
  const auto cells = squares();
  for (const double bad : {kNan, kInf, -kInf}) {
    EXPECT_FALSE(cells->knows(cells->cell_at({bad, 0})));
    EXPECT_FALSE(cells->first_crossing({0, bad}, 1, 1, Seconds(30)));
    EXPECT_FALSE(cells->first_crossing({0, 0}, bad, 1, Seconds(30)));
  }
  EXPECT_TRUE(cells->knows(cells->cell_at({1e300, -1e300})));
}

TEST(SquareCells, a_bad_size_or_offset_is_refused_by_name) {
  for (const double bad : {0.0, -1.0, kNan, kInf}) {
    const auto made = make_square_cells(bad, 0, 0);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, Errc::kInvalidArgument);
    EXPECT_NE(made.error().message.find("size_m"), std::string::npos);
  }
  EXPECT_NE(make_square_cells(1, kNan, 0).error().message.find("offset_x_m"), std::string::npos);
  EXPECT_NE(make_square_cells(1, 0, kInf).error().message.find("offset_y_m"), std::string::npos);
}

TEST(NearestSite, the_bisector_divides_two_cells) {
  const auto cells = sites({{CellId("a"), {0, 0}}, {CellId("b"), {300, 0}}});
  EXPECT_EQ(cells->cell_at({149, 500}).value, "a");
  EXPECT_EQ(cells->cell_at({151, -500}).value, "b");
  EXPECT_EQ(cells->cell_at({150, 0}).value, "a");  // on it: the one listed first
  const auto crossing = cells->first_crossing({130, 7}, 20, 3, Seconds(30));
  ASSERT_TRUE(crossing);
  EXPECT_EQ(crossing->from.value, "a");
  EXPECT_EQ(crossing->to.value, "b");
  EXPECT_DOUBLE_EQ(crossing->in.count(), 1);
  EXPECT_FALSE(cells->first_crossing({130, 0}, -20, 0, Seconds(30)));
  EXPECT_FALSE(cells->first_crossing({130, 0}, 0, 20, Seconds(30)));
}

TEST(NearestSite, of_several_bisectors_the_first_counts) {
  const auto cells =
      sites({{CellId("a"), {0, 0}}, {CellId("far"), {400, 0}}, {CellId("near"), {100, 0}}});
  const auto crossing = cells->first_crossing({0, 0}, 10, 0, Seconds(60));
  ASSERT_TRUE(crossing);
  EXPECT_EQ(crossing->to.value, "near");
  EXPECT_DOUBLE_EQ(crossing->in.count(), 5);
}

TEST(NearestSite, through_a_vertex_the_cell_behind_it_is_entered) {
  const auto cells = sites({{CellId("sw"), {0, 0}},
                            {CellId("se"), {100, 0}},
                            {CellId("nw"), {0, 100}},
                            {CellId("ne"), {100, 100}}});
  const auto crossing = cells->first_crossing({10, 10}, 10, 10, Seconds(60));
  ASSERT_TRUE(crossing);
  EXPECT_EQ(crossing->to.value, "ne");
  EXPECT_DOUBLE_EQ(crossing->in.count(), 4);
}

TEST(NearestSite, one_site_covers_everything) {
  const auto cells = sites({{CellId("only"), {5, 5}}});
  EXPECT_EQ(cells->cell_at({-1e6, 1e6}).value, "only");
  EXPECT_FALSE(cells->first_crossing({0, 0}, 30, 30, Seconds(1e6)));
  EXPECT_TRUE(cells->knows(CellId("only")));
  EXPECT_FALSE(cells->knows(CellId("other")));
}

TEST(NearestSite, bad_lists_are_refused) {
  EXPECT_FALSE(make_nearest_site_cells({}));
  EXPECT_FALSE(make_nearest_site_cells({{CellId(""), {0, 0}}}));
  EXPECT_FALSE(make_nearest_site_cells({{CellId("a"), {kNan, 0}}}));
  EXPECT_FALSE(make_nearest_site_cells({{CellId("a"), {0, 0}}, {CellId("a"), {1, 0}}}));
  EXPECT_FALSE(make_nearest_site_cells({{CellId("a"), {0.0, 0}}, {CellId("b"), {-0.0, 0}}}));
}

}  // namespace
}  // namespace pallas::mobility
