#include "demo_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace pallas::app {
namespace {

TimePoint at_ms(double ms) {
  return TimePoint(to_duration(Seconds(ms / 1000)));
}

// 20 tokens 40 ms apart; a handover from a to b at 380 ms, between tokens 9 and 10.
DemoInput trip() {
  DemoInput input;
  input.scheme = "two-front";
  input.consistency = "exact";
  for (TokenIndex i = 0; i < 20; ++i) {
    input.tokens.push_back(
        {i, static_cast<TokenId>(100 + i), at_ms(40.0 * i), NodeId(i < 10 ? "a" : "b")});
    input.reference.push_back(static_cast<TokenId>(100 + i));
  }
  input.reference_itl_ms = {17, 16, 18};
  input.handovers.push_back({Epoch(2), NodeId("a"), NodeId("b"), at_ms(380), 45.0, 20.0});
  GnbReport report;
  report.epoch = Epoch(2);
  report.scheme = "two-front";
  report.source = "a";
  report.target = "b";
  report.prepared = report.exact = true;
  report.request_ms = -160;
  report.bytes = 1000;
  input.reports.push_back(report);
  input.expected_tokens = 20;
  return input;
}

TEST(Percentiles, are_by_nearest_rank) {
  std::vector<double> hundred;
  for (int i = 100; i >= 1; --i) hundred.push_back(i);
  EXPECT_EQ(percentiles(hundred).p50, 50);
  EXPECT_EQ(percentiles(hundred).p95, 95);
  EXPECT_EQ(percentiles({7}).p50, 7);
  EXPECT_EQ(percentiles({7}).p95, 7);
  EXPECT_FALSE(percentiles({}).p50);
}

TEST(DemoReport, a_good_trip_has_no_fault) {
  const auto report = judge(trip());
  EXPECT_TRUE(report.faults.empty()) << report.faults.front();
  EXPECT_TRUE(report.text_identical);
  EXPECT_TRUE(report.every_exact);
  EXPECT_NEAR(*report.itl.p50, 40, 1e-6);
  EXPECT_EQ(report.step.p50, 17);
  ASSERT_EQ(report.handovers.size(), 1u);
  EXPECT_EQ(report.handovers[0].gnb->bytes, 1000u);
}

TEST(DemoReport, a_lost_token_is_a_fault) {
  auto input = trip();
  input.tokens.erase(input.tokens.begin() + 5);
  EXPECT_FALSE(judge(input).faults.empty());
  EXPECT_FALSE(judge(input).text_identical);
}

TEST(DemoReport, a_repeated_token_is_a_fault) {
  auto input = trip();
  input.tokens.insert(input.tokens.begin() + 5, input.tokens[5]);
  EXPECT_FALSE(judge(input).faults.empty());
}

TEST(DemoReport, a_stream_that_ends_short_is_a_fault) {
  auto input = trip();
  input.tokens.pop_back();
  EXPECT_FALSE(judge(input).faults.empty());
}

TEST(DemoReport, ids_that_differ_where_all_was_exact_are_a_fault) {
  auto input = trip();
  input.tokens[15].id = 1;
  const auto report = judge(input);
  EXPECT_FALSE(report.text_identical);
  EXPECT_EQ(report.first_difference, 15u);
  EXPECT_FALSE(report.faults.empty());
}

TEST(DemoReport, ids_may_differ_after_a_handover_that_was_not_exact) {
  auto input = trip();
  input.reports[0].exact = false;
  input.tokens[10].id = 1;
  EXPECT_TRUE(judge(input).faults.empty());
  EXPECT_FALSE(judge(input).text_identical);
  input.tokens[9].id = 1;  // but not before it
  EXPECT_FALSE(judge(input).faults.empty());
}

TEST(DemoReport, a_handover_without_a_report_is_a_fault) {
  auto input = trip();
  input.reports[0].epoch = Epoch(3);
  const auto report = judge(input);
  EXPECT_FALSE(report.handovers[0].gnb);
  EXPECT_FALSE(report.every_exact);
  EXPECT_FALSE(report.faults.empty());
}

TEST(DemoReport, intervals_are_told_apart_by_preparation_and_handover) {
  auto input = trip();
  // Preparation from 220 ms, handover at 380, its eighth token at 680.
  for (auto& token : input.tokens) {
    if (token.index >= 10) token.at += std::chrono::milliseconds(30);
  }
  const auto report = judge(input);
  EXPECT_NEAR(*report.itl_before.p50, 40, 1e-6);
  EXPECT_NEAR(*report.itl_during.p95, 70, 1e-6);
  EXPECT_NEAR(*report.itl_after.p95, 40, 1e-6);
}

TEST(DemoReport, json_has_the_documented_members) {
  const auto json = nlohmann::json::parse(to_json(judge(trip())));
  EXPECT_EQ(json["text_identical"], true);
  EXPECT_EQ(json["tokens"], 20);
  EXPECT_NEAR(json["itl_ms"]["p95"].get<double>(), 40, 1e-6);
  EXPECT_EQ(json["step_ms"]["p50"], 17);
  const auto& handover = json["handovers"][0];
  for (const char* key : {"scheme", "source", "target", "prepared", "exact", "gap_ms", "sit_ms",
                          "window_s", "early_s", "tokens_recomputed", "tokens_replayed", "bytes",
                          "shadow_tokens", "shadow_agreed", "shadow_differed", "shadow_used"}) {
    EXPECT_TRUE(handover.contains(key)) << key;
  }
  EXPECT_EQ(handover["gap_ms"], 45);
}

TEST(GnbReports, those_of_other_sessions_are_left_out) {
  const auto reports = parse_gnb_reports(
      R"([{"session":"s1","epoch":2,"target":"b","exact":true,"bytes":7,"request_ms":-5.5},
          {"session":"s2","epoch":2,"target":"b"}])",
      SessionId("s1"));
  ASSERT_TRUE(reports);
  ASSERT_EQ(reports->size(), 1u);
  EXPECT_TRUE(reports->front().exact);
  EXPECT_EQ(reports->front().bytes, 7u);
  EXPECT_EQ(reports->front().request_ms, -5.5);
}

TEST(GnbReports, of_the_source_stand_in_the_same_answer_and_reach_the_report) {
  const std::string answer =
      R"({"object":"list","data":[{"session":"s1","epoch":2,"source":"a","target":"b","exact":true}],
          "departures":[{"session":"s1","epoch":2,"mine":1},{"session":"s2","epoch":2}]})";
  const auto targets = parse_gnb_reports(answer, SessionId("s1"));
  const auto sources = parse_source_reports(answer, SessionId("s1"));
  ASSERT_TRUE(targets && sources);
  ASSERT_EQ(targets->size(), 1u);
  ASSERT_EQ(sources->size(), 1u);
  auto input = trip();
  input.handovers[0].json = R"({"role":"ue"})";
  input.reports = *targets;
  input.source_reports = *sources;
  const auto reports = nlohmann::json::parse(to_json(judge(input)))["handovers"][0]["reports"];
  ASSERT_EQ(reports.size(), 3u);
  EXPECT_EQ(reports[0]["target"], "b");
  EXPECT_EQ(reports[1]["mine"], 1);
  EXPECT_EQ(reports[2]["role"], "ue");
}

TEST(GnbReports, anything_else_is_refused) {
  EXPECT_FALSE(parse_gnb_reports("nonsense", SessionId("s")));
  EXPECT_FALSE(parse_gnb_reports("7", SessionId("s")));
  EXPECT_FALSE(parse_gnb_reports("[7]", SessionId("s")));
}

TEST(Tables, name_every_handover_and_every_scheme) {
  const auto report = judge(trip());
  EXPECT_NE(handover_table(report).find("a -> b"), std::string::npos);
  EXPECT_NE(comparison_table({report}).find("two-front"), std::string::npos);
}

}  // namespace
}  // namespace pallas::app
