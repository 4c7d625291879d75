// Faults that users of such systems met (docs/failure-cases.md), where a scenario of several gNBs
// shows that they do not arise here.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "base/random.h"
#include "scenario_checks.h"

namespace pallas::test {
namespace {

using namespace std::chrono_literals;
using mobility::HandoverPhase;

bool runs_until_tokens(VirtualGnbs& world, VirtualUe& ue, std::size_t tokens) {
  return world.clock.run_until([&] { return ue.transcript.entries().size() >= tokens; }, 60s);
}

// A counter says nothing: what the engine computed is what nobody brought.
TEST(Failures, kv_that_was_moved_is_not_computed_again) {
  VirtualGnbs world({.scheme = "full-copy"});
  VirtualUe& ue = world.open("a", 200, [](auto& p) { p.max_tokens = 100; });
  ASSERT_TRUE(runs_until_tokens(world, ue, 40));
  world.hand_over(ue, "a", "b", 0s);
  expect_whole(world, ue);
  const auto& report = world.node("b").handovers().at(0);
  const auto& stats = world.engine("b").stats();
  EXPECT_EQ(stats.prefilled_tokens + stats.replayed_tokens,
            report.tokens_recomputed + report.tokens_replayed);
  EXPECT_EQ(stats.attached_tokens, report.tokens_received);
  // All that it had at the handover came, and only what it sampled itself came beside it.
  EXPECT_EQ(report.tokens_received, report.tokens_total);
  EXPECT_EQ(stats.prefilled_tokens + stats.replayed_tokens, 0u);
}

TEST(Failures, two_hundred_prompts_give_the_same_greedy_text_moved_and_unmoved) {
  Random draws(9);
  for (int i = 0; i < 200; ++i) {
    VirtualGnbs world({.names = {"a", "b"}});
    const auto prompt = static_cast<TokenPosition>(1 + draws.bits() % 120);
    const std::size_t at = draws.bits() % 30;
    VirtualUe& ue = world.open("a", prompt, [&](auto& p) {
      p.max_tokens = 40;
      p.temperature = 0;
    });
    ASSERT_TRUE(runs_until_tokens(world, ue, at));
    world.hand_over(ue, "a", "b", draws.bits() % 2 == 0 ? 0ms : 100ms);
    expect_whole(world, ue);
    if (HasFailure()) return;
  }
}

TEST(Failures, sampling_with_every_parameter_goes_on_as_if_nothing_had_been) {
  VirtualGnbs world({});
  VirtualUe& ue = world.open("a", 100, [](auto& p) {
    p.max_tokens = 200;
    p.temperature = 0.8;
    p.top_p = 0.9;
    p.repeat_penalty = 1.2;
    p.presence_penalty = 0.5;
    p.frequency_penalty = 0.5;
    p.seed = 42;
  });
  ASSERT_TRUE(runs_until_tokens(world, ue, 50));
  world.hand_over(ue, "a", "b", 0s);
  expect_whole(world, ue);
}

TEST(Failures, a_client_that_is_cut_off_at_any_token_gets_the_rest_at_the_next_gnb) {
  Random draws(17);
  for (int i = 0; i < 30; ++i) {
    VirtualGnbs world({});
    VirtualUe& ue = world.open("a", 60, [](auto& p) { p.max_tokens = 80; });
    ASSERT_TRUE(runs_until_tokens(world, ue, 1 + draws.bits() % 70));
    world.leave(ue);
    world.clock.run_for(std::chrono::milliseconds(draws.bits() % 500));
    ASSERT_TRUE(world.attach(ue, "b"));
    expect_whole(world, ue);
    if (HasFailure()) return;
  }
}

TEST(Failures, a_ue_that_waits_for_a_long_prefill_sees_life_and_can_stop_it) {
  VirtualGnbs world({});
  VirtualUe& ue = world.open("a", 1500, [](auto& p) { p.max_tokens = 100; });
  ASSERT_TRUE(runs_until_tokens(world, ue, 5));
  world.leave(ue);
  world.kill("a");
  ASSERT_TRUE(world.attach(ue, "b"));  // computes 1,500 tokens anew
  world.clock.run_for(3s);
  EXPECT_EQ(ue.transcript.entries().size(), 5u);
  EXPECT_GE(ue.keep_alives, 4);
  ASSERT_TRUE(world.node("b").stop(ue.session, ue.resume_token, NodeId()));
  world.clock.run_for(2s);
  EXPECT_EQ(world.engine("b").live_slots(), 0u);
  EXPECT_TRUE(ue.finished);
}

// Five things that may end a preparation or make it a handover, in every order: what was reserved
// is free again, once.
TEST(Failures, every_order_of_cancel_attach_lost_link_stop_and_lease_end_leaves_nothing) {
  std::string order = "aclse";
  do {
    for (const Duration between : {Duration(0), Duration(1ms), Duration(30ms)}) {
      VirtualGnbs world({});
      VirtualUe& ue = world.open("a", 300, [](auto& p) { p.max_tokens = 3000; });
      ASSERT_TRUE(runs_until_tokens(world, ue, 10));
      world.predict(ue, "a", "b", 1s);
      world.clock.run_for(900ms);
      for (const char event : order) {
        switch (event) {
          case 'a':
            (void)world.attach(ue, "b");
            break;
          case 'c':
            world.withdraw(ue, "a");
            break;
          case 'l':
            world.cut("a", "b");
            break;
          case 's':
            (void)world.node("a").stop(ue.session, ue.resume_token, NodeId());
            (void)world.node("b").stop(ue.session, ue.resume_token, NodeId());
            break;
          default:
            world.clock.run_for(6s);  // lease_s and what extends it
        }
        world.clock.run_for(between);
      }
      expect_nothing_left(world);
      for (const char* name : {"a", "b"}) {
        const auto& stats = world.engine(name).stats();
        EXPECT_EQ(stats.reservations, stats.releases) << name << " " << order;
      }
      if (testing::Test::HasFailure()) {
        ADD_FAILURE() << order;
        return;
      }
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Failures, a_refused_request_strands_nothing_at_the_source) {
  VirtualGnbs world({});
  VirtualUe& ue = world.open("a", 300, [](auto& p) { p.max_tokens = 200; });
  ASSERT_TRUE(runs_until_tokens(world, ue, 10));
  world.engine("b").refuse_reservations(true);
  world.predict(ue, "a", "b", 3s);
  ASSERT_TRUE(world.clock.run_until(
      [&] { return world.count("b", "a", "HandoverPreparationFailure") > 0; }, 5s));
  const auto tokens = ue.transcript.entries().size();
  world.clock.run_for(1s);
  for (const auto& session : world.node("a").sessions()) EXPECT_EQ(session.peer, "");
  EXPECT_EQ(world.count("a", "b", "KvBlock"), 0u);
  EXPECT_GT(ue.transcript.entries().size(), tokens + 10);
  expect_whole(world, ue);
}

// What must agree is named before any byte of KV moves.
TEST(Failures, another_model_or_another_cache_is_refused_by_its_name) {
  using Change = std::function<void(wire::Compatibility&)>;
  const std::pair<const char*, Change> changes[] = {
      {"model_hash", [](auto& c) { c.model_hash += "x"; }},
      {"tokenizer_hash", [](auto& c) { c.tokenizer_hash += "x"; }},
      {"context", [](auto& c) { c.context_tokens += 1; }},
      {"rope", [](auto& c) { c.rope += "x"; }},
      {"kv_types", [](auto& c) { c.kv_types = "q8_0"; }},
      {"kv_layout", [](auto& c) { c.kv_layout += "x"; }},
      {"block_tokens", [](auto& c) { c.block_tokens *= 2; }},
      {"adapter", [](auto& c) { c.adapter = "lora"; }},
  };
  for (const auto& [name, change] : changes) {
    VirtualGnbs world({.names = {"a", "b"}});
    wire::HandoverRequest request;
    request.session = SessionId("s");
    request.attempt = Attempt{NodeId("a"), BootId(1), 1};
    request.snapshot.params.max_tokens = 10;
    request.snapshot.prompt_tokens = 4;
    request.snapshot.tokens = {20, 21, 22, 23};
    request.compatibility = world.node("a").compatibility();
    change(request.compatibility);
    world.node("b").on_message(NodeId("a"), request);
    EXPECT_EQ(world.count("b", "a", "HandoverPreparationFailure"), 1u) << name;
    EXPECT_NE(world.last_reason().find(name), std::string::npos)
        << name << ": " << world.last_reason();
    EXPECT_EQ(world.engine("b").live_slots(), 0u);
    EXPECT_TRUE(world.node("b").sessions().empty());
  }
}

}  // namespace
}  // namespace pallas::test
