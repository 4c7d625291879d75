#include "ue/report.h"

#include <gtest/gtest.h>

namespace pallas::ue {
namespace {

using namespace std::chrono_literals;

const NodeId kA("gnb-a"), kB("gnb-b");
const SessionId kSession("5e55");

TimePoint at_ms(int ms) {
  return TimePoint(std::chrono::milliseconds(ms));
}

std::vector<TokenRecord> tokens_at(const std::vector<std::pair<int, NodeId>>& arrivals) {
  std::vector<TokenRecord> tokens;
  for (const auto& [ms, by] : arrivals) {
    const auto index = static_cast<TokenIndex>(tokens.size());
    tokens.push_back({index, static_cast<TokenId>(index), by, Epoch(1), at_ms(ms), "t"});
  }
  return tokens;
}

TEST(Report, gap_and_sit_of_a_handover_in_mid_stream) {
  // Forwarded tokens of the source arrive first; they do not end the SIT.
  const auto tokens = tokens_at({{0, kA}, {40, kA}, {130, kA}, {140, kA}, {200, kB}, {240, kB}});
  const auto stats =
      measure_handovers(kSession, tokens, {{kA, kB, Epoch(2), at_ms(50), TokenIndex{1}}});
  ASSERT_EQ(stats.size(), 1u);
  EXPECT_DOUBLE_EQ(*stats[0].gap_ms, 90);
  EXPECT_DOUBLE_EQ(*stats[0].sit_ms, 150);
  EXPECT_FALSE(stats[0].relayed);
  EXPECT_EQ(stats[0].tokens, 4u);
}

TEST(Report, the_gap_is_over_at_the_eighth_token_of_the_target) {
  std::vector<std::pair<int, NodeId>> arrivals = {{0, kA}};
  for (int i = 1; i <= 8; ++i) arrivals.emplace_back(i * 10, kB);
  arrivals.emplace_back(5000, kB);
  const auto stats = measure_handovers(kSession, tokens_at(arrivals),
                                       {{kA, kB, Epoch(2), at_ms(5), TokenIndex{0}}});
  EXPECT_DOUBLE_EQ(*stats[0].gap_ms, 10);
}

TEST(Report, a_relayed_session_ends_its_sit_with_the_first_arrival) {
  const auto tokens = tokens_at({{0, kA}, {90, kA}, {120, kA}});
  const auto stats =
      measure_handovers(kSession, tokens, {{kA, kB, Epoch(2), at_ms(10), TokenIndex{0}}});
  EXPECT_TRUE(stats[0].relayed);
  EXPECT_DOUBLE_EQ(*stats[0].sit_ms, 80);
  EXPECT_DOUBLE_EQ(*stats[0].gap_ms, 90);
}

TEST(Report, a_handover_before_the_first_token_has_no_gap_from_nothing) {
  const auto tokens = tokens_at({{100, kB}, {130, kB}});
  const auto stats = measure_handovers(kSession, tokens, {{kA, kB, Epoch(2), at_ms(20), {}}});
  EXPECT_DOUBLE_EQ(*stats[0].sit_ms, 80);
  EXPECT_DOUBLE_EQ(*stats[0].gap_ms, 30);
}

TEST(Report, a_handover_that_no_token_followed_has_no_figures) {
  const auto tokens = tokens_at({{0, kA}});
  const auto stats = measure_handovers(
      kSession, tokens,
      {{kA, kB, Epoch(2), at_ms(5), TokenIndex{0}}, {kB, kA, Epoch(3), at_ms(6), TokenIndex{0}}});
  EXPECT_FALSE(stats[0].gap_ms);
  EXPECT_FALSE(stats[0].sit_ms);
  EXPECT_FALSE(stats[1].sit_ms);
}

TEST(Report, the_gap_of_one_handover_does_not_reach_into_the_next) {
  const auto tokens = tokens_at({{0, kA}, {20, kB}, {40, kB}, {900, kA}});
  const auto stats = measure_handovers(
      kSession, tokens,
      {{kA, kB, Epoch(2), at_ms(5), TokenIndex{0}}, {kB, kA, Epoch(3), at_ms(50), TokenIndex{2}}});
  EXPECT_DOUBLE_EQ(*stats[0].gap_ms, 20);
  EXPECT_DOUBLE_EQ(*stats[1].gap_ms, 860);
  EXPECT_DOUBLE_EQ(*stats[1].sit_ms, 850);
}

TEST(Report, percentiles_interpolate_between_ranks) {
  const auto stats =
      measure_intervals(tokens_at({{0, kA}, {10, kA}, {30, kA}, {60, kA}, {100, kA}}));
  EXPECT_EQ(stats.count, 4u);
  EXPECT_DOUBLE_EQ(stats.p50_ms, 25);
  EXPECT_DOUBLE_EQ(stats.p95_ms, 38.5);
  EXPECT_DOUBLE_EQ(stats.max_ms, 40);
  EXPECT_EQ(measure_intervals(tokens_at({{0, kA}})).count, 0u);
}

TEST(Report, the_phases_of_a_handover_count_from_its_execution_which_is_dated) {
  const auto tokens = tokens_at({{0, kA}, {40, kA}, {130, kA}, {200, kB}});
  const auto stats = measure_handovers(
      kSession, tokens, {{kA, kB, Epoch(2), at_ms(50), TokenIndex{1}, at_ms(51), at_ms(54)}});
  UeReport report{UeId("veh2"), CellId("c1"), kB, {}};
  report.sessions.emplace_back().handovers = stats;
  const std::string json = handovers_to_json(report, {"boot", at_ms(1050), 9'000'000});
  for (const char* name :
       {"\"role\":\"ue\"", "\"last_token_ms\":-10.0", "\"execution_ms\":0.0",
        "\"attach_sent_ms\":1.0", "\"attach_granted_ms\":4.0", "\"first_token_ms\":80.0",
        "\"first_own_token_ms\":150.0", "\"unix_us\":8000000", "\"monotonic_us\":50000"}) {
    EXPECT_NE(json.find(name), std::string::npos) << name << " in " << json;
  }
}

TEST(Report, the_json_has_no_resume_token_and_names_every_figure) {
  UeReport report{UeId("veh2"), CellId("c1"), kB, {}};
  SessionReport session;
  session.session = kSession;
  session.state = "finished";
  session.tokens = tokens_at({{0, kA}, {40, kB}});
  session.handovers =
      measure_handovers(kSession, session.tokens, {{kA, kB, Epoch(2), at_ms(10), TokenIndex{0}}});
  report.sessions.push_back(session);
  const std::string json = to_json(report, true);
  for (const char* name : {"\"gap_ms\":40", "\"sit_ms\":30", "\"ue\":\"veh2\"", "\"by\":\"gnb-b\"",
                           "\"executed_at_ms\":10"}) {
    EXPECT_NE(json.find(name), std::string::npos) << name << " in " << json;
  }
  EXPECT_EQ(json.find("resume"), std::string::npos);
}

}  // namespace
}  // namespace pallas::ue
