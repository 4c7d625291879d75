#include "http/ran_parser.h"

#include <gtest/gtest.h>

#include <limits>

namespace pallas::http {
namespace {

using std::chrono::milliseconds;

TEST(RanParser, a_prediction_arrives_in_native_types) {
  const auto parsed = parse_prediction(
      R"({"ue":"u1","seq":18446744073709551615,"t_gen_ms":1.5,"serving":"a","target":"b",
          "in_ms":1500,"sigma_ms":200,"confidence":80,"valid_ms":2500,"oracle":true,"later":1})");
  ASSERT_TRUE(parsed) << parsed.error().detail;
  EXPECT_EQ(parsed->ue, UeId("u1"));
  EXPECT_EQ(parsed->seq, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parsed->serving, CellId("a"));
  EXPECT_EQ(parsed->target, CellId("b"));
  EXPECT_EQ(parsed->in, Duration(milliseconds(1500)));
  EXPECT_EQ(parsed->sigma, Duration(milliseconds(200)));
  EXPECT_EQ(parsed->confidence, 0.8);
  EXPECT_EQ(parsed->valid, Duration(milliseconds(2500)));
  EXPECT_TRUE(parsed->oracle);
}

TEST(RanParser, a_null_target_foresees_no_handover) {
  const auto parsed = parse_prediction(R"({"ue":"u","seq":0,"serving":"a","target":null})");
  ASSERT_TRUE(parsed) << parsed.error().detail;
  EXPECT_FALSE(parsed->target);
  EXPECT_FALSE(parsed->sigma);
  EXPECT_FALSE(parsed->confidence);
  EXPECT_EQ(parsed->valid, Duration(std::chrono::seconds(5)));
}

TEST(RanParser, handovers_and_positions_arrive_in_native_types) {
  const auto handover =
      parse_handover(R"({"ue":"u","seq":1,"phase":"completed","source":"a","target":"b"})");
  ASSERT_TRUE(handover);
  EXPECT_EQ(handover->phase, mobility::HandoverPhase::kCompleted);
  EXPECT_EQ(handover->target, CellId("b"));
  const auto position =
      parse_position(R"({"ue":"u","seq":1,"t_ms":500,"x":-1.5,"y":2,"speed":13.9,"heading":270})");
  ASSERT_TRUE(position);
  EXPECT_EQ(position->x_m, -1.5);
  EXPECT_EQ(position->speed_mps, 13.9);
  EXPECT_EQ(position->heading_deg, 270);
  EXPECT_FALSE(parse_position(R"({"ue":"u","seq":1,"t_ms":1,"x":0,"y":0})")->speed_mps);
}

TEST(RanParser, a_ue_may_be_reestablished_in_its_own_cell) {
  EXPECT_TRUE(
      parse_handover(R"({"ue":"u","seq":1,"phase":"reestablished","source":"a","target":"a"})"));
}

struct Bad {
  const char* field;
  int status;
  const char* json;
};
void PrintTo(const Bad& bad, std::ostream* out) {
  *out << bad.json;
}

class BadPredictions : public testing::TestWithParam<Bad> {};
TEST_P(BadPredictions, name_the_field) {
  const auto parsed = parse_prediction(GetParam().json);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().field, GetParam().field);
  EXPECT_EQ(parsed.error().status, GetParam().status);
}
INSTANTIATE_TEST_SUITE_P(
    RanParser, BadPredictions,
    testing::Values(
        Bad{"", 400, "x"}, Bad{"", 400, "[]"},
        Bad{"", 400, R"({"ue":"u","seq":1,"serving":"a","target":"b","in_ms":1e999})"},
        Bad{"ue", 400, R"({"seq":1,"serving":"a","target":"b","in_ms":1})"},
        Bad{"ue", 422, R"({"ue":"","seq":1,"serving":"a","target":"b","in_ms":1})"},
        Bad{"ue", 422, R"({"ue":"a\nb","seq":1,"serving":"a","target":"b","in_ms":1})"},
        Bad{"seq", 400, R"({"ue":"u","serving":"a","target":"b","in_ms":1})"},
        Bad{"seq", 422, R"({"ue":"u","seq":-1,"serving":"a","target":"b","in_ms":1})"},
        Bad{"seq", 400, R"({"ue":"u","seq":1.5,"serving":"a","target":"b","in_ms":1})"},
        Bad{"seq", 400,
            R"({"ue":"u","seq":18446744073709551616,"serving":"a","target":"b","in_ms":1})"},
        Bad{"serving", 400, R"({"ue":"u","seq":1,"target":"b","in_ms":1})"},
        Bad{"target", 400, R"({"ue":"u","seq":1,"serving":"a","in_ms":1})"},
        Bad{"target", 422, R"({"ue":"u","seq":1,"serving":"a","target":"a","in_ms":1})"},
        Bad{"target", 400, R"({"ue":"u","seq":1,"serving":"a","target":5,"in_ms":1})"},
        Bad{"in_ms", 400, R"({"ue":"u","seq":1,"serving":"a","target":"b"})"},
        Bad{"in_ms", 422, R"({"ue":"u","seq":1,"serving":"a","target":"b","in_ms":-1})"},
        Bad{"in_ms", 422, R"({"ue":"u","seq":1,"serving":"a","target":"b","in_ms":1e300})"},
        Bad{"in_ms", 400, R"({"ue":"u","seq":1,"serving":"a","target":"b","in_ms":"NaN"})"},
        Bad{"sigma_ms", 422,
            R"({"ue":"u","seq":1,"serving":"a","target":"b","in_ms":1,"sigma_ms":-1})"},
        Bad{"confidence", 422,
            R"({"ue":"u","seq":1,"serving":"a","target":"b","in_ms":1,"confidence":101})"},
        Bad{"valid_ms", 422,
            R"({"ue":"u","seq":1,"serving":"a","target":"b","in_ms":1,"valid_ms":1e18})"},
        Bad{"t_gen_ms", 422, R"({"ue":"u","seq":1,"serving":"a","target":null,"t_gen_ms":-1})"},
        Bad{"oracle", 400, R"({"ue":"u","seq":1,"serving":"a","target":null,"oracle":"yes"})"}));

class BadHandovers : public testing::TestWithParam<Bad> {};
TEST_P(BadHandovers, name_the_field) {
  const auto parsed = parse_handover(GetParam().json);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().field, GetParam().field);
  EXPECT_EQ(parsed.error().status, GetParam().status);
}
INSTANTIATE_TEST_SUITE_P(
    RanParser, BadHandovers,
    testing::Values(
        Bad{"phase", 400, R"({"ue":"u","seq":1,"source":"a","target":"b"})"},
        Bad{"phase", 422, R"({"ue":"u","seq":1,"phase":"done","source":"a","target":"b"})"},
        Bad{"source", 400, R"({"ue":"u","seq":1,"phase":"execution","target":"b"})"},
        Bad{"target", 400, R"({"ue":"u","seq":1,"phase":"execution","source":"b"})"},
        Bad{"target", 422, R"({"ue":"u","seq":1,"phase":"execution","source":"b","target":"b"})"}));

class BadPositions : public testing::TestWithParam<Bad> {};
TEST_P(BadPositions, name_the_field) {
  const auto parsed = parse_position(GetParam().json);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().field, GetParam().field);
  EXPECT_EQ(parsed.error().status, GetParam().status);
}
INSTANTIATE_TEST_SUITE_P(
    RanParser, BadPositions,
    testing::Values(Bad{"t_ms", 400, R"({"ue":"u","seq":1,"x":0,"y":0})"},
                    Bad{"x", 422, R"({"ue":"u","seq":1,"t_ms":1,"x":1e9,"y":0})"},
                    Bad{"y", 400, R"({"ue":"u","seq":1,"t_ms":1,"x":0})"},
                    Bad{"speed", 422, R"({"ue":"u","seq":1,"t_ms":1,"x":0,"y":0,"speed":-1})"},
                    Bad{"heading", 422,
                        R"({"ue":"u","seq":1,"t_ms":1,"x":0,"y":0,"heading":361})"}));

TEST(RanParser, what_the_node_refuses_becomes_a_problem_with_its_field) {
  const auto stale = ran_problem({Errc::kOutOfOrder, "seq: prediction 3 is not newer than 4"});
  EXPECT_EQ(stale.status, 409);
  EXPECT_EQ(stale.field, "seq");
  const auto unknown =
      ran_problem({Errc::kNotFound, "target: no gNB is configured for cell cell_9_9"});
  EXPECT_EQ(unknown.status, 422);
  EXPECT_EQ(unknown.field, "target");
  EXPECT_EQ(ran_problem({Errc::kInternal, "x"}).status, 500);
}

TEST(RanParser, a_problem_is_a_document_of_rfc_9457) {
  const auto response = problem_response({422, "invalid-value", "'in_ms' must be less.", "in_ms"});
  EXPECT_EQ(response.status, 422);
  EXPECT_EQ(response.content_type, "application/problem+json");
  EXPECT_EQ(response.body,
            R"({"type":"urn:pallas:problem:invalid-value","title":"Unprocessable Content",)"
            R"("status":422,"detail":"'in_ms' must be less.","field":"in_ms"})");
}

}  // namespace
}  // namespace pallas::http
