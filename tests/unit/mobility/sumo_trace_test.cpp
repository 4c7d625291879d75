// The trace that the demo drives: 64 vehicles, 300 s, streets on multiples of 100 m.

#include <zlib.h>

#include <cstdio>
#include <sstream>

#include "mobility/predictor.h"
#include "mobility/trajectory.h"

namespace pallas::mobility {
namespace {

std::string decompressed(const std::string& path) {
  std::string text;
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return text;
  char buffer[1 << 16];
  for (int n = 0; (n = gzread(file, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(n));
  }
  gzclose(file);
  return text;
}

class SumoTrace : public testing::Test {
 protected:
  void SetUp() override {
    std::istringstream in(decompressed(PALLAS_SOURCE_DIR "/data/sumo_grid_64ue_300s_2hz.csv.gz"));
    auto read = parse_trajectories(in);
    ASSERT_TRUE(read) << read.error().message;
    all_ = std::move(*read);
  }
  std::unique_ptr<CellLayout> cells_ = std::move(make_square_cells(100, 50, 50).value());
  std::vector<Trajectory> all_;
};

TEST_F(SumoTrace, holds_64_vehicles) {
  EXPECT_EQ(all_.size(), 64u);
}

TEST_F(SumoTrace, vehicle_2_crosses_three_cells_between_104_and_117_s) {
  const Trajectory* vehicle = find_trajectory(all_, UeId("2"));
  ASSERT_NE(vehicle, nullptr);
  std::vector<CellChange> window;
  for (const CellChange& change : crossings(*vehicle, *cells_)) {
    std::printf("vehicle 2: %7.3f s  %s -> %s  at (%.2f, %.2f)\n", change.at.count(),
                change.from.value.c_str(), change.to.value.c_str(), change.where.x_m,
                change.where.y_m);
    if (change.at > Seconds(100) && change.at < Seconds(117)) window.push_back(change);
  }
  ASSERT_EQ(window.size(), 3u);
  EXPECT_NEAR(window[0].at.count(), 104, 0.5);
  EXPECT_NEAR(window[1].at.count(), 110, 0.5);
  EXPECT_NEAR(window[2].at.count(), 116, 0.5);
}

TEST_F(SumoTrace, every_change_leads_on_from_the_cell_before) {
  std::size_t changes = 0;
  for (const Trajectory& trajectory : all_) {
    CellId cell = cells_->cell_at(trajectory.samples.front().position);
    Seconds last = trajectory.begin();
    for (const CellChange& change : crossings(trajectory, *cells_)) {
      EXPECT_EQ(change.from, cell);
      EXPECT_GE(change.at, last);
      cell = change.to;
      last = change.at;
      ++changes;
    }
    EXPECT_EQ(cell, cells_->cell_at(trajectory.samples.back().position));
  }
  EXPECT_GT(changes, 300u);
}

TEST_F(SumoTrace, the_predictor_foresees_most_crossings_a_second_ahead) {
  const CvhPredictor predictor(*cells_, {});
  std::size_t right = 0, all = 0;
  for (const Trajectory& trajectory : all_) {
    for (const CellChange& change : crossings(trajectory, *cells_)) {
      const auto before = trajectory.at(change.at - Seconds(1));
      if (!before) continue;
      ++all;
      PositionReport report;
      report.x_m = before->position.x_m;
      report.y_m = before->position.y_m;
      report.speed_mps = before->speed_mps;
      report.heading_deg = before->heading_deg;
      const auto predicted = predictor.predict(report, nullptr);
      if (predicted && predicted->to == change.to) ++right;
    }
  }
  std::printf("CVH one second ahead: %zu of %zu targets right\n", right, all);
  EXPECT_GT(right * 10, all * 9);
}

}  // namespace
}  // namespace pallas::mobility
