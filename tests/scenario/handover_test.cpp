// Whole handovers on virtual time: every scheme, the usual corner cases, ping-pong.

#include <gtest/gtest.h>

#include <algorithm>

#include "scenario_checks.h"

namespace pallas::test {
namespace {

using namespace std::chrono_literals;
using mobility::HandoverPhase;

class EveryScheme : public testing::TestWithParam<const char*> {};

TEST_P(EveryScheme, carries_a_session_over_three_cells_with_each_token_once_and_in_order) {
  VirtualGnbs world({.scheme = GetParam()});
  VirtualUe& ue = world.open("a", 300, [](auto& p) {
    p.max_token_rate = 25;
    p.max_tokens = 700;
  });
  world.clock.run_for(5s);
  world.hand_over(ue, "a", "b", 3s);
  world.clock.run_for(6s);
  world.hand_over(ue, "b", "c", 3s);
  world.clock.run_for(6s);
  world.hand_over(ue, "c", "a", 3s);
  ASSERT_TRUE(world.clock.run_until([&] { return ue.finished.has_value(); }, 120s));
  expect_clean(world, ue);
  EXPECT_EQ(ue.transcript.entries().size(), 700u);
  EXPECT_EQ(ue.finishes, 1);
  // Consistency is exact: every id is the one that a run without handovers gives.
  EXPECT_EQ(ue.transcript.ids(), world.reference(ue, 700));
  const bool detour = std::string(GetParam()) == "detour";
  std::size_t reports = 0;
  for (const char* name : {"a", "b", "c"}) {
    for (const auto& report : world.node(name).handovers()) {
      EXPECT_TRUE(report.exact) << report.id;
      EXPECT_EQ(report.relay, detour);
      ++reports;
    }
  }
  EXPECT_GE(reports, detour ? 2u : 3u);
}

INSTANTIATE_TEST_SUITE_P(schemes, EveryScheme,
                         testing::Values("detour", "full-copy", "recompute", "ctho", "pallas",
                                         "pallas-no-rc", "pallas-no-sm", "two-front"),
                         [](const auto& p) {
                           std::string name = p.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(TwoFront, leaves_no_pause_at_a_prepared_handover) {
  VirtualGnbs world({});
  VirtualUe& ue = world.open("a", 800, [](auto& p) { p.max_token_rate = 25; });
  world.clock.run_for(6s);
  world.hand_over(ue, "a", "b", 4s);
  world.clock.run_for(2s);
  expect_clean(world, ue);
  EXPECT_LE(to_ms(ue.gap_at(Epoch(2))), 40 + 2 * 17);
  ASSERT_EQ(world.node("b").handovers().size(), 1u);
  const auto& report = world.node("b").handovers().front();
  EXPECT_TRUE(report.prepared);
  EXPECT_TRUE(report.exact);
  EXPECT_GT(report.tokens_recomputed, 0u);
  EXPECT_GT(report.tokens_received, 0u);
  EXPECT_LE(report.residual_tokens, 2u);
}

TEST(TwoFront, serves_an_unprepared_cell_by_retrieving_the_context) {
  VirtualGnbs world({});
  VirtualUe& ue = world.open("a", 200, [](auto& p) { p.max_tokens = 120; });
  world.clock.run_for(2s);
  world.hand_over(ue, "a", "b", 0s);
  ASSERT_TRUE(world.clock.run_until([&] { return ue.finished.has_value(); }, 60s));
  expect_clean(world, ue);
  EXPECT_EQ(ue.transcript.ids(), world.reference(ue, 120));
}

TEST(TwoFront, serves_a_radio_link_failure_that_nobody_announced) {
  VirtualGnbs world({});
  VirtualUe& ue = world.open("a", 200, [](auto& p) { p.max_tokens = 120; });
  world.clock.run_for(2s);
  ASSERT_TRUE(world.attach(ue, "c"));
  ASSERT_TRUE(world.clock.run_until([&] { return ue.finished.has_value(); }, 60s));
  expect_clean(world, ue);
  EXPECT_EQ(ue.transcript.ids(), world.reference(ue, 120));
  ASSERT_EQ(world.node("c").handovers().size(), 1u);
  EXPECT_EQ(world.node("c").handovers().front().recovery, "retrieved");
  EXPECT_FALSE(world.node("c").handovers().front().prepared);
}

struct Lengths {
  TokenPosition prompt;
  std::size_t generated;
};
class AnyLength : public testing::TestWithParam<Lengths> {};

TEST_P(AnyLength, moves_and_goes_on_with_the_same_ids) {
  for (const char* scheme : {"two-front", "full-copy", "recompute", "ctho", "pallas"}) {
    for (const Duration prediction : {Duration(0s), Duration(500ms)}) {
      VirtualGnbs world({.scheme = scheme});
      VirtualUe& ue = world.open("a", GetParam().prompt, [](auto& p) { p.max_tokens = 100; });
      if (prediction.count() > 0) world.predict(ue, "a", "b", prediction);
      world.clock.run_until([&] { return ue.transcript.entries().size() >= GetParam().generated; },
                            60s);
      world.hand_over(ue, "a", "b", 0s);
      ASSERT_TRUE(world.clock.run_until([&] { return ue.finished.has_value(); }, 60s)) << scheme;
      expect_clean(world, ue);
      EXPECT_EQ(ue.transcript.ids(), world.reference(ue, 100)) << scheme;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(lengths, AnyLength,
                         testing::Values(Lengths{1, 0}, Lengths{1, 1}, Lengths{15, 0},
                                         Lengths{15, 1}, Lengths{16, 0}, Lengths{16, 15},
                                         Lengths{17, 16}, Lengths{31, 17}, Lengths{32, 31},
                                         Lengths{33, 32}, Lengths{1, 33}, Lengths{400, 0},
                                         Lengths{2, 2}),
                         [](const auto& p) {
                           return "prompt_" + std::to_string(p.param.prompt) + "_generated_" +
                                  std::to_string(p.param.generated);
                         });

TEST(BeforeTheFirstToken, a_session_in_mid_prompt_moves_and_both_fronts_meet) {
  VirtualGnbs world({});
  VirtualUe& ue = world.open("a", 900, [](auto& p) { p.max_tokens = 60; });
  world.clock.run_for(1s);  // about 300 of 900 are prefilled
  world.predict(ue, "a", "b", 500ms);
  world.clock.run_for(500ms);
  world.hand_over(ue, "a", "b", 0s);
  ASSERT_TRUE(world.clock.run_until([&] { return ue.finished.has_value(); }, 60s));
  expect_clean(world, ue);
  EXPECT_EQ(ue.transcript.ids(), world.reference(ue, 60));
}

TEST(Prediction, withdrawn_before_the_handover_frees_the_target) {
  VirtualGnbs world({});
  VirtualUe& ue = world.open("a", 300, [](auto& p) { p.max_token_rate = 25; });
  world.clock.run_for(3s);
  const auto free = world.engine("b").free_slots();
  world.predict(ue, "a", "b", 1s);
  world.clock.run_for(800ms);
  EXPECT_LT(world.engine("b").free_slots(), free);
  world.withdraw(ue, "a");
  world.clock.run_for(2100ms);  // flap_s
  EXPECT_EQ(world.engine("b").free_slots(), free);
  world.clock.run_for(1s);
  EXPECT_EQ(ue.at, NodeId("a"));
  expect_clean(world, ue);
}

TEST(Prediction, that_changes_its_target_prepares_the_new_one_and_frees_the_old) {
  VirtualGnbs world({});
  VirtualUe& ue = world.open("a", 300, [](auto& p) { p.max_token_rate = 25; });
  world.clock.run_for(3s);
  world.predict(ue, "a", "b", 1s);
  world.clock.run_for(300ms);
  world.predict(ue, "a", "c", 1s);
  world.clock.run_for(1s);
  world.hand_over(ue, "a", "c", 0s);
  world.clock.run_for(3s);
  ASSERT_EQ(world.node("c").handovers().size(), 1u);
  EXPECT_TRUE(world.node("c").handovers().front().prepared);
  EXPECT_EQ(world.engine("b").live_slots(), 0u);
  expect_clean(world, ue);
}

TEST(Prediction, that_never_comes_true_ends_by_the_lease_of_its_validity) {
  VirtualGnbs world({});
  VirtualUe& ue = world.open("a", 300, [](auto& p) { p.max_token_rate = 10; });
  world.clock.run_for(3s);
  world.predict(ue, "a", "b", 500ms);
  world.clock.run_for(20s);
  EXPECT_EQ(world.engine("b").live_slots(), 0u);
  EXPECT_EQ(ue.at, NodeId("a"));
  expect_clean(world, ue);
}

TEST(PingPong, two_hundred_handovers_leave_nothing_behind) {
  VirtualGnbs world({.names = {"a", "b"}});
  const auto free_a = world.engine("a").free_slots();
  const auto free_b = world.engine("b").free_slots();
  VirtualUe& ue = world.open("a", 64, [](auto& p) {
    p.max_tokens = 900;
    p.max_token_rate = 4;
  });
  world.clock.run_for(1s);
  for (int i = 0; i < 200; ++i) {
    const bool there = i % 2 == 0;
    world.hand_over(ue, there ? "a" : "b", there ? "b" : "a", 500ms);
    world.clock.run_for(500ms);
    ASSERT_TRUE(ue.transcript.breaches().empty()) << i << ": " << ue.transcript.breaches().front();
    ASSERT_FALSE(ue.finished) << i;
  }
  expect_clean(world, ue);
  EXPECT_EQ(world.node("a").handovers().size() + world.node("b").handovers().size(), 200u);
  const auto ids = ue.transcript.ids();
  auto reference = world.reference(ue, 900);
  reference.resize(ids.size());
  EXPECT_EQ(ids, reference);
  EXPECT_TRUE(world.node("a").stop(ue.session, "", NodeId()));
  world.clock.run_for(11s);  // retain_s
  EXPECT_EQ(world.engine("a").free_slots(), free_a);
  EXPECT_EQ(world.engine("b").free_slots(), free_b);
  EXPECT_EQ(world.engine("a").live_slots(), 0u);
  EXPECT_EQ(world.node("a").stats().staged_bytes + world.node("b").stats().staged_bytes, 0u);
  EXPECT_TRUE(world.engine("a").consistent());
  EXPECT_TRUE(world.engine("b").consistent());
}

TEST(Death, of_the_target_in_preparation_goes_unnoticed_by_the_ue) {
  VirtualGnbs world({});
  VirtualUe& ue = world.open("a", 300, [](auto& p) { p.max_token_rate = 25; });
  world.clock.run_for(3s);
  world.predict(ue, "a", "b", 2s);
  world.clock.run_for(500ms);
  world.kill("b");
  world.clock.run_for(3s);
  expect_clean(world, ue);
  const auto& all = ue.transcript.entries();
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_LE(to_ms(all[i].at - all[i - 1].at), 60) << i;
  world.restart("b");
  world.hand_over(ue, "a", "b", 3s);
  world.clock.run_for(3s);
  EXPECT_TRUE(world.node("b").handovers().front().prepared);
  expect_clean(world, ue);
}

TEST(Death, of_the_source_after_the_release_goes_unnoticed) {
  VirtualGnbs world({});
  VirtualUe& ue = world.open("a", 300, [](auto& p) { p.max_token_rate = 25; });
  world.clock.run_for(3s);
  world.hand_over(ue, "a", "b", 3s);
  ASSERT_TRUE(
      world.clock.run_until([&] { return world.count("b", "a", "UeContextRelease") > 0; }, 5s));
  world.kill("a");
  ASSERT_TRUE(world.clock.run_until([&] { return ue.finished.has_value(); }, 60s));
  expect_clean(world, ue);
  EXPECT_EQ(ue.transcript.ids(), world.reference(ue, 400));
}

TEST(Death, of_the_source_in_preparation_costs_only_what_the_target_lacks) {
  VirtualGnbs world({});
  VirtualUe& ue = world.open("a", 300, [](auto& p) { p.max_token_rate = 25; });
  world.clock.run_for(3s);
  world.predict(ue, "a", "b", 2s);
  world.clock.run_for(1900ms);
  world.kill("a");
  ASSERT_TRUE(world.attach(ue, "b"));
  world.clock.run_for(1s);
  EXPECT_GE(ue.transcript.entries().back().epoch, Epoch(2));
  ASSERT_TRUE(world.clock.run_until([&] { return ue.finished.has_value(); }, 60s));
  expect_clean(world, ue);
  EXPECT_EQ(ue.transcript.ids(), world.reference(ue, 400));
  EXPECT_FALSE(world.node("b").handovers().empty());
}

TEST(Death, of_the_source_at_an_unprepared_cell_is_survived_with_what_the_ue_brings) {
  VirtualGnbs world({.configure = [](auto& c) { c.mirror_on_prediction = false; }});
  VirtualUe& ue = world.open("a", 100, [](auto& p) { p.max_tokens = 100; });
  world.clock.run_until([&] { return ue.transcript.entries().size() >= 30; }, 60s);
  world.kill("a");
  ASSERT_TRUE(world.attach(ue, "c"));
  ASSERT_TRUE(world.clock.run_until([&] { return ue.finished.has_value(); }, 60s));
  expect_clean(world, ue);
  EXPECT_EQ(ue.transcript.ids(), world.reference(ue, 100));
}

}  // namespace
}  // namespace pallas::test
