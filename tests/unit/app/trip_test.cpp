#include "trip.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "gzip_file.h"

namespace pallas::app {
namespace {

constexpr const char* kTrace =
    "t_s,ue,x_m,y_m\n"
    "0,parked,5,5\n0,fast,5,5\n1,parked,5,5\n1,fast,25,5\n2,fast,45,5\n";

class TripTest : public testing::Test {
 protected:
  TripTest() {
    path_ = testing::TempDir() + "trip_test_" +
            testing::UnitTest::GetInstance()->current_test_info()->name() + ".csv";
  }
  ~TripTest() override { std::filesystem::remove(path_); }
  void write(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }
  Result<Trip> load(const std::string& vehicle, std::optional<double> from = {},
                    std::optional<double> to = {}) {
    return load_trip({path_, vehicle, from, to}, *cells_);
  }
  std::string error(const Result<Trip>& trip) { return trip ? "" : trip.error().message; }

  std::unique_ptr<mobility::CellLayout> cells_ = *mobility::make_square_cells(10, 0, 0);
  std::string path_;
};

TEST_F(TripTest, a_vehicle_is_picked_with_its_crossings) {
  write(kTrace);
  const auto trip = load("fast");
  ASSERT_TRUE(trip) << error(trip);
  EXPECT_EQ(trip->first_cell, CellId("cell_0_0"));
  ASSERT_EQ(trip->crossings.size(), 4u);
  EXPECT_NEAR(trip->crossings[0].at.count(), 0.25, 1e-6);
  EXPECT_EQ(trip->crossings[0].to, CellId("cell_1_0"));
}

TEST_F(TripTest, a_part_of_the_trace_begins_and_ends_between_samples) {
  write(kTrace);
  const auto trip = load("fast", 0.5, 1.5);
  ASSERT_TRUE(trip) << error(trip);
  EXPECT_EQ(trip->begin(), Seconds(0.5));
  EXPECT_EQ(trip->end(), Seconds(1.5));
  EXPECT_EQ(trip->first_cell, CellId("cell_1_0"));
  EXPECT_EQ(trip->crossings.size(), 2u);
}

TEST_F(TripTest, gzip_is_unpacked) {
  const auto file = gzopen(path_.c_str(), "wb");
  gzwrite(file, kTrace, static_cast<unsigned>(std::char_traits<char>::length(kTrace)));
  gzclose(file);
  EXPECT_TRUE(load("fast"));
}

TEST_F(TripTest, damaged_gzip_is_an_error) {
  const auto file = gzopen(path_.c_str(), "wb");
  gzwrite(file, kTrace, static_cast<unsigned>(std::char_traits<char>::length(kTrace)));
  gzclose(file);
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 12);
  const auto text = read_text_file(path_);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, Errc::kParse);
}

TEST_F(TripTest, a_vehicle_that_never_crosses_is_an_error_that_names_it) {
  write(kTrace);
  const auto trip = load("parked");
  ASSERT_FALSE(trip);
  EXPECT_NE(error(trip).find("'parked' never leaves its cell cell_0_0"), std::string::npos);
}

TEST_F(TripTest, an_unknown_vehicle_is_answered_with_those_there_are) {
  write(kTrace);
  const auto trip = load("slow");
  ASSERT_FALSE(trip);
  EXPECT_EQ(trip.error().code, Errc::kNotFound);
  EXPECT_NE(error(trip).find("parked, fast"), std::string::npos) << error(trip);
}

TEST_F(TripTest, several_vehicles_and_none_chosen_is_an_error) {
  write(kTrace);
  EXPECT_NE(error(load("")).find("choose one"), std::string::npos);
}

TEST_F(TripTest, a_malformed_line_is_named_by_file_and_number) {
  write("t_s,ue,x_m,y_m\n0,fast,5,5\n1,fast,abc,5\n");
  const auto trip = load("fast");
  ASSERT_FALSE(trip);
  EXPECT_NE(error(trip).find(path_), std::string::npos);
  EXPECT_NE(error(trip).find("3"), std::string::npos) << error(trip);
}

TEST_F(TripTest, a_time_outside_the_trace_is_an_error) {
  write(kTrace);
  EXPECT_EQ(load("fast", 10, 20).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(load("fast", 1.5, 1.0).error().code, Errc::kInvalidArgument);
}

TEST_F(TripTest, a_missing_file_is_named) {
  EXPECT_NE(error(load("fast")).find(path_), std::string::npos);
}

TEST_F(TripTest, a_size_limit_holds_for_what_is_unpacked) {
  write(std::string(1000, 'a'));
  EXPECT_EQ(read_text_file(path_, 999).error().code, Errc::kTooLarge);
  EXPECT_TRUE(read_text_file(path_, 1000));
}

}  // namespace
}  // namespace pallas::app
