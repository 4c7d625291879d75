#include <sstream>

#include "mobility/trajectory.h"

namespace pallas::mobility {
namespace {

using Parser = Result<std::vector<Trajectory>> (*)(std::istream&);

Result<std::vector<Trajectory>> read(Parser parser, const std::string& text) {
  std::istringstream in(text);
  return parser(in);
}

const std::string kSumo =
    "timestep_time;vehicle_id;vehicle_x;vehicle_y;vehicle_angle;vehicle_speed\n";

// `fragment` must be in the message, which must begin by naming the line.
void expect_refused(Parser parser, const std::string& text, const std::string& line,
                    const std::string& fragment) {
  const auto result = read(parser, text);
  ASSERT_FALSE(result) << text;
  EXPECT_EQ(result.error().code, Errc::kParse);
  EXPECT_TRUE(result.error().message.starts_with("line " + line + ": ")) << result.error().message;
  EXPECT_NE(result.error().message.find(fragment), std::string::npos) << result.error().message;
}

TEST(SumoCsv, vehicles_are_told_apart_and_empty_rows_skipped) {
  const auto result = read(parse_sumo_csv, kSumo +
                                               "0.00;a;1;2;90;3\r\n"
                                               "0.00;b;5;6;0;0\r\n"
                                               "0.50;;;;;\r\n"
                                               "1.00;a;4;2;90;3\r\n");
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(result->size(), 2u);
  const Trajectory* a = find_trajectory(*result, UeId("a"));
  ASSERT_NE(a, nullptr);
  ASSERT_EQ(a->samples.size(), 2u);
  EXPECT_EQ(a->samples[1].t, Seconds(1));
  EXPECT_EQ(a->samples[1].position, (Point{4, 2}));
  EXPECT_EQ(a->samples[1].heading_deg, 90);
  EXPECT_EQ(a->samples[1].speed_mps, 3);
  EXPECT_EQ(find_trajectory(*result, UeId("c")), nullptr);
}

TEST(SumoCsv, columns_come_in_any_order_with_sumos_others_between) {
  const auto result =
      read(parse_sumo_csv,
           "vehicle_y;vehicle_type;vehicle_id;timestep_time;vehicle_lane;vehicle_x\n"
           "7;car;z;2.5;A1;8\n");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ((*result)[0].samples[0].position, (Point{8, 7}));
  EXPECT_FALSE((*result)[0].samples[0].speed_mps);
}

TEST(SumoCsv, pedestrians_have_columns_and_names_of_their_own) {
  const auto result =
      read(parse_sumo_csv,
           "timestep_time;vehicle_id;vehicle_x;vehicle_y;person_id;person_x;person_y;person_speed\n"
           "0;0;1;1;;;;\n"
           "0;;;;0;2;2;1.5\n");
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(result->size(), 2u);
  EXPECT_EQ((*result)[0].ue.value, "0");
  EXPECT_EQ((*result)[1].ue.value, "person_0");
  EXPECT_EQ((*result)[1].samples[0].speed_mps, 1.5);
  EXPECT_TRUE(read(parse_sumo_csv, "timestep_time;person_id;person_x;person_y\n0;p;2;2\n"));
}

TEST(SumoCsv, faults_name_their_line) {
  expect_refused(parse_sumo_csv, "", "1", "header");
  expect_refused(parse_sumo_csv, kSumo, "1", "no samples");
  expect_refused(parse_sumo_csv, "timestep_time;vehicle_id;vehicle_x\n", "1", "vehicle_y");
  expect_refused(parse_sumo_csv, "vehicle_id;vehicle_x;vehicle_y\n", "1", "timestep_time");
  expect_refused(parse_sumo_csv, "timestep_time;vehicle_id;vehicle_x;vehicle_y;colour\n", "1",
                 "colour");
  expect_refused(parse_sumo_csv, "timestep_time;vehicle_id;vehicle_x;vehicle_x;vehicle_y\n", "1",
                 "twice");
  expect_refused(parse_sumo_csv, kSumo + "0;a;1;2;90;3\n0.5;a;nan;2;90;3\n", "3", "x");
  expect_refused(parse_sumo_csv, kSumo + "0;a;1;inf;90;3\n", "2", "y");
  expect_refused(parse_sumo_csv, kSumo + "0;a;1;2;90;-3\n", "2", "negative");
  expect_refused(parse_sumo_csv, kSumo + "0;a;1;;90;3\n", "2", "y");
  expect_refused(parse_sumo_csv, kSumo + "0;;1;2;90;3\n", "2", "id is empty");
  expect_refused(parse_sumo_csv, kSumo + "0;a;1;2;90\n", "2", "5 fields");
  expect_refused(parse_sumo_csv, kSumo + ";a;1;2;90;3\n", "2", "time");
  expect_refused(parse_sumo_csv, kSumo + "1;a;1;2;90;3\n0.5;b;1;2;90;3\n", "3", "backwards");
  expect_refused(parse_sumo_csv, kSumo + "1;a;1;2;90;3\n1;a;1;2;90;3\n", "3", "second sample");
  expect_refused(parse_sumo_csv, kSumo + "1;a;1 ;2;90;3\n", "2", "x");
  expect_refused(parse_sumo_csv, std::string("\x1f\x8b\x00\x00", 4) + "\n", "1", "decompressed");
}

TEST(PlainCsv, reads_with_and_without_speed_and_heading) {
  const auto result = read(parse_plain_csv,
                           "t_s,ue,x_m,y_m,speed_mps,heading_deg\n"
                           "0,u1,1,2,,\n"
                           "0,u2,3,4,5.5,270\n"
                           "1,u1,2,2,1,90\n");
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(result->size(), 2u);
  EXPECT_FALSE((*result)[0].samples[0].speed_mps);
  EXPECT_EQ((*result)[0].samples[1].heading_deg, 90);
  EXPECT_EQ((*result)[1].samples[0].speed_mps, 5.5);
  EXPECT_TRUE(read(parse_plain_csv, "t_s,ue,x_m,y_m\n0,u,1,2\n"));
}

TEST(PlainCsv, ues_may_follow_one_another) {
  const auto result = read(parse_plain_csv, "t_s,ue,x_m,y_m\n0,a,1,1\n9,a,2,2\n0,b,1,1\n9,b,2,2\n");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->size(), 2u);
}

TEST(PlainCsv, faults_name_their_line) {
  expect_refused(parse_plain_csv, "t_s,ue,x_m\n", "1", "y_m");
  expect_refused(parse_plain_csv, "t_s,ue,x_m,y_m,z_m\n", "1", "z_m");
  expect_refused(parse_plain_csv, "t_s,ue,x_m,y_m\n0,a,1,1\n-1,a,1,1\n", "3", "backwards");
  expect_refused(parse_plain_csv, "t_s,ue,x_m,y_m\n0,,1,1\n", "2", "name is empty");
  expect_refused(parse_plain_csv, "t_s,ue,x_m,y_m\n0,a,1e999,1\n", "2", "x");
  expect_refused(parse_plain_csv, "t_s,ue,x_m,y_m\n0,a,1,1,1\n", "2", "5 fields");
}

TEST(Trajectories, the_header_says_which_format_it_is) {
  EXPECT_TRUE(read(parse_trajectories, kSumo + "0;a;1;2;90;3\n"));
  EXPECT_TRUE(read(parse_trajectories, "\xEF\xBB\xBFt_s,ue,x_m,y_m\n0,u,1,2\n"));
  expect_refused(parse_trajectories, "hello\n", "1", "hello");
}

}  // namespace
}  // namespace pallas::mobility
