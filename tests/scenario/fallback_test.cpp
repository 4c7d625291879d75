// What happens when the target cannot take the session, or not yet: a configured third node decodes
// in its place; a model must be loaded first; rates fall while others prepare, too.

#include <gtest/gtest.h>

#include "virtual_gnbs.h"

namespace pallas::test {
namespace {

using namespace std::chrono_literals;
using mobility::HandoverPhase;

VirtualGnbs::Options with_fallback(const char* scheme = "two-front") {
  VirtualGnbs::Options options;
  options.scheme = scheme;
  options.configure = [](node::NodeConfig& c) { c.fallback = NodeId("c"); };
  return options;
}

VirtualUe& talk(VirtualGnbs& world, std::uint32_t max_tokens = 200) {
  VirtualUe& ue = world.open("a", 200, [&](auto& p) {
    p.max_token_rate = 25;
    p.max_tokens = max_tokens;
  });
  world.clock.run_for(3s);
  return ue;
}

void expect_whole(VirtualGnbs& world, VirtualUe& ue) {
  ASSERT_TRUE(world.clock.run_until([&] { return ue.finished.has_value() || ue.failed; }, 60s));
  EXPECT_FALSE(ue.failed) << ue.failed->describe();
  EXPECT_EQ(ue.transcript.breaches(), std::vector<std::string>{});
  EXPECT_EQ(world.codec_faults(), std::vector<std::string>{});
  EXPECT_EQ(ue.transcript.ids(), world.reference(ue, 200));
}

TEST(Fallback, a_third_node_is_prepared_where_the_target_refuses_and_decodes_for_it) {
  VirtualGnbs world(with_fallback());
  VirtualUe& ue = talk(world);
  world.engine("b").refuse_reservations(true);
  world.hand_over(ue, "a", "b", 2s);
  EXPECT_EQ(world.count("a", "b", "HandoverRequest"), 1u);
  EXPECT_EQ(world.count("a", "c", "HandoverRequest"), 1u);
  EXPECT_EQ(ue.announced, NodeId("b"));  // the radio target, whoever decodes
  world.clock.run_for(2s);
  EXPECT_EQ(world.engine("a").live_slots(), 1u);  // retained, as after any handover
  EXPECT_EQ(world.engine("b").live_slots(), 0u);
  EXPECT_EQ(world.engine("c").live_slots(), 1u);
  EXPECT_EQ(world.count("c", "a", "UeContextRelease"), 1u);
  expect_whole(world, ue);
  EXPECT_EQ(ue.transcript.entries().back().emitter, NodeId("b"));
  EXPECT_EQ(ue.transcript.entries().back().by, NodeId("c"));
  world.clock.run_for(15s);
  EXPECT_EQ(world.engine("a").live_slots(), 0u);
  EXPECT_EQ(world.engine("c").live_slots(), 0u);
}

TEST(Fallback, the_third_node_stays_prepared_however_often_the_prediction_comes) {
  VirtualGnbs world(with_fallback());
  VirtualUe& ue = world.open("a", 900, [](auto& p) {
    p.max_token_rate = 25;
    p.max_tokens = 400;
  });
  world.clock.run_for(6s);
  world.engine("b").refuse_reservations(true);
  world.clock.run_for(1s);
  for (Duration in = 6s; in > 0s; in -= 250ms) {
    world.predict(ue, "a", "b", in);
    world.clock.run_for(250ms);
  }
  for (int k = 0; k < 12; ++k) {  // it is late
    world.predict(ue, "a", "b", 200ms);
    world.clock.run_for(250ms);
  }
  EXPECT_EQ(world.count("a", "b", "HandoverRequest"), 1u);
  EXPECT_EQ(world.count("a", "c", "HandoverRequest"), 1u);
  EXPECT_EQ(world.count("a", "c", "HandoverCancel"), 0u);
  // It goes when the prediction does.
  world.withdraw(ue, "a");
  world.clock.run_for(100ms);
  EXPECT_EQ(world.count("a", "c", "HandoverCancel"), 1u);
}

TEST(Fallback, claim_and_end_of_the_radio_handover_may_come_in_any_order) {
  for (const char* scheme : {"two-front", "pallas", "pallas-no-rc"}) {
    for (const Duration completed : {Duration(0ms), Duration(1ms), Duration(30ms), Duration(2s)}) {
      for (const Duration attached : {Duration(0ms), Duration(20ms), Duration(100ms)}) {
        VirtualGnbs world(with_fallback(scheme));
        VirtualUe& ue = talk(world);
        world.engine("b").refuse_reservations(true);
        world.predict(ue, "a", "b", 3s);
        world.clock.run_for(3s);
        world.ran(ue, HandoverPhase::kExecution, "a", "b");
        world.clock.after(attached, [&] { ASSERT_TRUE(world.attach(ue, "b")); });
        world.clock.after(completed, [&] { world.ran(ue, HandoverPhase::kCompleted, "a", "b"); });
        expect_whole(world, ue);
        EXPECT_EQ(ue.transcript.entries().back().by, NodeId("c")) << scheme;
        if (testing::Test::HasFailure()) {
          FAIL() << scheme << ", completed after " << to_ms(completed) << " ms, attached after "
                 << to_ms(attached) << " ms";
        }
      }
    }
  }
}

TEST(Fallback, the_session_moves_on_from_the_third_node) {
  VirtualGnbs world(with_fallback());
  VirtualUe& ue = talk(world);
  world.engine("b").refuse_reservations(true);
  world.hand_over(ue, "a", "b", 2s);
  world.clock.run_for(500ms);
  ASSERT_TRUE(world.attach(ue, "a"));  // back again
  expect_whole(world, ue);
  EXPECT_EQ(ue.transcript.entries().back().by, NodeId("a"));
}

TEST(Fallback, the_ue_may_come_to_the_third_node_itself) {
  // At 700 us it has been asked to take the session over and has not yet.
  for (const Duration delay : {Duration(700us), Duration(1ms), Duration(500ms)}) {
    VirtualGnbs world(with_fallback());
    VirtualUe& ue = talk(world);
    world.engine("b").refuse_reservations(true);
    world.predict(ue, "a", "b", 2s);
    world.clock.run_for(2s);
    world.ran(ue, HandoverPhase::kExecution, "a", "b");
    ASSERT_TRUE(world.attach(ue, "b"));
    world.clock.run_for(delay);
    ASSERT_TRUE(world.attach(ue, "c"));
    world.clock.run_for(100ms);
    // Nobody relays any more.
    const std::size_t told = world.count("c", "b", "TokenUpdate");
    world.clock.run_for(1s);
    EXPECT_EQ(world.count("c", "b", "TokenUpdate"), told) << to_ms(delay);
    EXPECT_GE(world.count("c", "a", "UeContextRelease"), 1u) << to_ms(delay);
    expect_whole(world, ue);
    EXPECT_EQ(ue.transcript.entries().back().emitter, NodeId("c"));
    EXPECT_EQ(ue.transcript.entries().back().by, NodeId("c"));
  }
}

TEST(Fallback, where_the_third_node_refuses_too_the_source_decodes_on) {
  VirtualGnbs world(with_fallback());
  VirtualUe& ue = talk(world);
  world.engine("b").refuse_reservations(true);
  world.engine("c").refuse_reservations(true);
  world.hand_over(ue, "a", "b", 2s);
  EXPECT_GE(world.count("a", "c", "HandoverRequest"), 1u);
  expect_whole(world, ue);
  EXPECT_EQ(ue.transcript.entries().back().emitter, NodeId("b"));
  EXPECT_EQ(ue.transcript.entries().back().by, NodeId("a"));
}

TEST(Fallback, where_the_third_node_died_meanwhile_the_source_decodes_on) {
  VirtualGnbs world(with_fallback());
  VirtualUe& ue = talk(world);
  world.engine("b").refuse_reservations(true);
  world.predict(ue, "a", "b", 2s);
  world.clock.run_for(1900ms);
  world.kill("c");
  world.clock.run_for(100ms);
  world.ran(ue, HandoverPhase::kExecution, "a", "b");
  ASSERT_TRUE(world.attach(ue, "b"));
  world.ran(ue, HandoverPhase::kCompleted, "a", "b");
  expect_whole(world, ue);
  EXPECT_EQ(ue.transcript.entries().back().by, NodeId("a"));
}

TEST(Fallback, a_target_that_can_take_it_after_all_gets_it) {
  VirtualGnbs world(with_fallback());
  VirtualUe& ue = talk(world);
  world.engine("b").refuse_reservations(true);
  world.predict(ue, "a", "b", 2s);
  world.clock.run_for(2s);
  world.engine("b").refuse_reservations(false);
  world.ran(ue, HandoverPhase::kExecution, "a", "b");
  ASSERT_TRUE(world.attach(ue, "b"));
  expect_whole(world, ue);
  EXPECT_EQ(ue.transcript.entries().back().by, NodeId("b"));
  EXPECT_EQ(world.engine("c").live_slots(), 0u);
}

TEST(Load, a_model_that_must_be_loaded_first_starts_the_preparation_earlier) {
  double windows[2] = {};
  for (const bool cold : {false, true}) {
    VirtualGnbs::Options options;
    if (cold) options.engine.info.profile.load = Seconds(1.2);
    VirtualGnbs world(std::move(options));
    VirtualUe& ue = talk(world, 700);
    world.clock.run_for(2s);  // the source has loaded, too
    world.hand_over(ue, "a", "b", 4s);
    world.clock.run_for(2s);
    ASSERT_EQ(world.node("b").handovers().size(), 1u);
    const node::HandoverReport report = world.node("b").handovers().front();
    EXPECT_EQ(report.load_s, cold ? 1.2 : 0);
    EXPECT_TRUE(report.prepared);
    ASSERT_TRUE(report.first_token_ms);
    EXPECT_LT(*report.first_token_ms, 100);  // it was loaded in time
    windows[cold ? 1 : 0] = report.window_s;
    if (!cold) continue;
    // Once it computes, it is loaded.
    world.hand_over(ue, "b", "a", 4s);
    world.hand_over(ue, "a", "b", 4s);
    world.clock.run_for(1s);
    EXPECT_EQ(world.node("b").handovers().back().load_s, 0);
    EXPECT_LT(world.node("b").handovers().back().window_s, report.window_s);
  }
  EXPECT_GT(windows[1], windows[0] + 0.3);
}

// The window planned for a session that moves a little after another one, or alone.
double window_beside(bool another) {
  VirtualGnbs world({.scheme = "pallas"});
  const auto open = [&]() -> VirtualUe& {
    return world.open("a", 600, [](auto& p) {
      p.max_token_rate = 10;
      p.max_tokens = 400;
      p.consistency = wire::Consistency::kFast;
    });
  };
  VirtualUe& first = open();
  VirtualUe& second = open();
  world.clock.run_for(8s);
  if (another) world.predict(first, "a", "b", 6s);
  world.predict(second, "a", "b", 6500ms);
  double window = 0;
  EXPECT_TRUE(world.clock.run_until(
      [&] {
        for (const auto& info : world.node("b").sessions()) {
          if (info.session == second.session) window = info.window_s;
        }
        return window > 0;
      },
      7s));
  return window;
}

TEST(Contention, one_more_preparation_at_a_target_is_planned_at_its_share) {
  const double alone = window_beside(false);
  ASSERT_GT(alone, 0.6);
  // The other's prefill runs until 0.5 s before this handover, so this one starts with it.
  EXPECT_GT(window_beside(true), alone + 0.3);
}

}  // namespace
}  // namespace pallas::test
