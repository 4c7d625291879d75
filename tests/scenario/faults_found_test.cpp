// Crossings that random runs with faults found first (faults_test.cpp), each as a scenario of its
// own.

#include <gtest/gtest.h>

#include "scenario_checks.h"

namespace pallas::test {
namespace {

using namespace std::chrono_literals;
using mobility::HandoverPhase;

VirtualUe& talk(VirtualGnbs& world, std::uint32_t max_tokens = 200) {
  VirtualUe& ue = world.open("a", 100, [&](auto& p) {
    p.max_tokens = max_tokens;
    p.max_token_rate = 20;
  });
  world.clock.run_for(2s);
  return ue;
}

TEST(FaultsFound, a_ue_that_goes_there_back_and_there_again_loses_no_token) {
  for (const Duration stay : {30ms, 60ms, 100ms, 140ms, 250ms}) {
    VirtualGnbs world({});
    VirtualUe& ue = talk(world);
    world.predict(ue, "a", "b", 1s);
    world.clock.run_for(1s);
    ASSERT_TRUE(world.attach(ue, "b"));
    world.predict(ue, "b", "a", stay);
    world.clock.run_for(stay);
    ASSERT_TRUE(world.attach(ue, "a"));
    world.clock.run_for(stay);
    ASSERT_TRUE(world.attach(ue, "b"));
    world.clock.run_for(1s);
    ASSERT_TRUE(world.attach(ue, "a"));
    expect_whole(world, ue);
    expect_nothing_left(world);
    if (testing::Test::HasFailure()) FAIL() << to_ms(stay) << " ms";
  }
}

TEST(FaultsFound, an_owner_that_was_left_in_a_partition_takes_the_ids_of_the_ue_that_returns) {
  VirtualGnbs world({});
  VirtualUe& ue = talk(world);
  world.cut("a", "b");
  ASSERT_TRUE(world.attach(ue, "b"));
  world.clock.run_for(4s);
  const auto known = ue.transcript.entries().size();
  EXPECT_EQ(ue.transcript.entries().back().by, NodeId("b"));
  world.clock.run_for(1s);
  ASSERT_TRUE(world.attach(ue, "a"));
  EXPECT_GE(ue.transcript.entries().size(), known);
  expect_whole(world, ue);
  expect_nothing_left(world);
}

TEST(FaultsFound, a_ue_that_returns_after_the_grace_goes_on) {
  VirtualGnbs world({.configure = [](node::NodeConfig& c) { c.grace = 1s; }});
  VirtualUe& ue = talk(world);
  world.leave(ue);
  world.clock.run_for(3s);
  EXPECT_EQ(world.engine("a").live_slots(), 0u);
  ASSERT_TRUE(world.attach(ue, "a"));
  expect_whole(world, ue);
  expect_nothing_left(world);
}

TEST(FaultsFound, a_session_that_was_stopped_does_not_go_on) {
  VirtualGnbs world({});
  VirtualUe& ue = talk(world);
  ASSERT_TRUE(world.node("a").stop(ue.session, ue.resume_token, NodeId()));
  EXPECT_TRUE(ue.finished);
  ASSERT_TRUE(world.attach(ue, "a"));
  world.clock.run_for(1s);
  EXPECT_EQ(world.engine("a").live_slots(), 0u);
}

TEST(FaultsFound, who_decodes_for_a_relay_stops_when_the_relays_ue_is_gone) {
  VirtualGnbs world({.scheme = "detour", .configure = [](node::NodeConfig& c) { c.grace = 1s; }});
  VirtualUe& ue = talk(world, 2000);
  world.hand_over(ue, "a", "b", 0s);
  world.clock.run_for(1s);
  EXPECT_EQ(world.engine("a").live_slots(), 1u);
  world.leave(ue);
  world.clock.run_for(2s);
  EXPECT_EQ(world.engine("a").live_slots(), 0u);
}

TEST(FaultsFound, who_decodes_for_a_relay_stops_when_the_link_to_it_is_gone) {
  VirtualGnbs world({.scheme = "detour", .configure = [](node::NodeConfig& c) { c.grace = 1s; }});
  VirtualUe& ue = talk(world, 400);
  world.hand_over(ue, "a", "b", 0s);
  world.clock.run_for(1s);
  world.cut("a", "b");
  world.clock.run_for(2s);
  EXPECT_EQ(world.engine("a").live_slots(), 0u);
  expect_whole(world, ue);
}

TEST(FaultsFound, the_record_of_a_relayed_session_ends_with_its_time) {
  VirtualGnbs world({.scheme = "detour", .configure = [](node::NodeConfig& c) { c.resume = 5s; }});
  VirtualUe& ue = talk(world, 80);
  world.hand_over(ue, "a", "b", 0s);
  expect_whole(world, ue);
  world.clock.run_for(10s);
  EXPECT_TRUE(world.node("b").sessions().empty());
}

TEST(FaultsFound, an_engine_that_fails_while_a_claim_waits_gives_the_session_away) {
  VirtualGnbs world({});
  VirtualUe& ue = talk(world);
  world.engine("a").fail_next(engine::FakeEngine::CommandKind::kPause,
                              Error{Errc::kInternal, "planned"});
  ASSERT_TRUE(world.attach(ue, "b"));
  world.clock.run_for(3s);
  EXPECT_EQ(world.engine("a").live_slots(), 0u);
  expect_whole(world, ue);
  expect_nothing_left(world);
}

TEST(FaultsFound, delete_at_a_gnb_of_the_past_goes_where_the_ue_says) {
  VirtualGnbs world({});
  VirtualUe& ue = talk(world, 2000);
  world.cut("a", "b");
  ASSERT_TRUE(world.attach(ue, "b"));
  world.clock.run_for(15s);  // a has given up by now, and does not know where it went
  world.join("a", "b");
  ASSERT_TRUE(world.node("a").stop(ue.session, ue.resume_token, NodeId("b")));
  world.clock.run_for(100ms);
  ASSERT_TRUE(ue.finished);
  EXPECT_EQ(world.engine("b").live_slots(), 0u);
}

TEST(FaultsFound, a_claim_that_was_pointed_elsewhere_gives_no_second_command_to_a_busy_slot) {
  // b is in the middle of a chunk of a's preparation when the UE comes, and a has given the session
  // to c by then.
  VirtualGnbs world({});
  VirtualUe& ue = talk(world);
  world.predict(ue, "a", "b", 100ms);
  world.clock.run_for(20ms);
  ASSERT_TRUE(world.attach(ue, "c"));
  world.clock.run_for(60ms);
  ASSERT_TRUE(world.attach(ue, "b"));
  expect_whole(world, ue);
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(world.engine(name).stats().misused, 0u);
  expect_nothing_left(world);
}

}  // namespace
}  // namespace pallas::test
