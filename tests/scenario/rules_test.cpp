// The protocol rules of docs/protocol.md, each with the crossings of events that it is about, in
// both orders and with any delay between them.

#include <gtest/gtest.h>

#include <variant>

#include "scenario_checks.h"

namespace pallas::test {
namespace {

using namespace std::chrono_literals;
using mobility::HandoverPhase;

constexpr Duration kDelays[] = {0us, 100us, 200us, 300us, 500us, 1ms, 3ms, 10ms, 18ms, 40ms, 90ms};

template <class M>
constexpr std::size_t type_index() {
  return wire::Message(std::in_place_type<M>).index();
}

class Rules : public testing::Test {
 protected:
  explicit Rules(VirtualGnbs::Options options = {}) : world(std::move(options)) {}

  VirtualUe& talk(std::uint32_t max_tokens = 150, TokenPosition prompt = 200) {
    VirtualUe& ue = world.open("a", prompt, [&](auto& p) { p.max_tokens = max_tokens; });
    world.clock.run_for(2s);
    return ue;
  }

  VirtualGnbs world;
};

// --- 1: the source before the claim ---

TEST_F(Rules, r1_the_source_decodes_on_after_execution_until_the_claim) {
  VirtualUe& ue = talk();
  world.predict(ue, "a", "b", 1s);
  world.clock.run_for(1s);
  const auto written = ue.transcript.entries().size();
  world.ran(ue, HandoverPhase::kExecution, "a", "b");
  const auto sampled = world.engine("a").stats().sampled_tokens;
  world.clock.run_for(300ms);
  EXPECT_GT(world.engine("a").stats().sampled_tokens, sampled + 5);
  EXPECT_LE(ue.transcript.entries().size(), written + 1);  // but no longer writes
  ASSERT_TRUE(world.attach(ue, "b"));
  expect_whole(world, ue);
}

TEST_F(Rules, r1_a_rejected_handover_resumes_writing_at_the_first_unwritten_index) {
  for (const auto phase : {HandoverPhase::kRejected, HandoverPhase::kCancelled}) {
    VirtualGnbs w({});
    VirtualUe& ue = w.open("a", 200, [](auto& p) { p.max_tokens = 150; });
    w.clock.run_for(2s);
    w.ran(ue, HandoverPhase::kExecution, "a", "b");
    w.clock.run_for(200ms);
    w.ran(ue, phase, "a", "b");
    expect_whole(w, ue);
    EXPECT_EQ(ue.at, NodeId("a"));
    EXPECT_TRUE(w.node("b").handovers().empty());
  }
}

TEST_F(Rules, r1_completed_without_a_claim_sends_the_status_early) {
  VirtualUe& ue = talk();
  world.predict(ue, "a", "b", 1s);
  world.clock.run_for(1s);
  world.ran(ue, HandoverPhase::kExecution, "a", "b");
  world.ran(ue, HandoverPhase::kCompleted, "a", "b");
  world.clock.run_for(100ms);
  EXPECT_EQ(world.count("a", "b", "SnStatusTransfer"), 1u);
  EXPECT_EQ(world.count("b", "a", "HandoverSuccess"), 0u);
  ASSERT_TRUE(world.attach(ue, "b"));
  expect_whole(world, ue);
}

TEST_F(Rules, r1_the_ue_that_comes_back_after_completed_is_served_by_the_source_again) {
  VirtualUe& ue = talk();
  world.predict(ue, "a", "b", 1s);
  world.clock.run_for(1s);
  world.ran(ue, HandoverPhase::kExecution, "a", "b");
  world.ran(ue, HandoverPhase::kCompleted, "a", "b");
  world.clock.run_for(100ms);
  ASSERT_TRUE(world.attach(ue, "a"));
  expect_whole(world, ue);
}

// --- 2: the target ---

TEST_F(Rules, r2_the_target_emits_the_sources_tokens_at_once_and_its_own_after_coverage) {
  world.set_rate("a", "b", BytesPerSecond(1600));  // 50 rows a second: coverage takes seconds
  VirtualUe& ue = talk();
  world.predict(ue, "a", "b", 100ms);
  world.clock.run_for(100ms);
  world.ran(ue, HandoverPhase::kExecution, "a", "b");
  world.clock.run_for(200ms);  // the source goes on, the target hears
  const auto before = ue.transcript.entries().size();
  ASSERT_TRUE(world.attach(ue, "b"));
  EXPECT_GT(ue.transcript.entries().size(), before);
  EXPECT_EQ(ue.transcript.entries().back().by, NodeId("a"));
  world.clock.run_for(50ms);
  EXPECT_EQ(ue.transcript.entries().back().by, NodeId("a"));
  expect_whole(world, ue);
  EXPECT_EQ(ue.transcript.entries().back().by, NodeId("b"));
}

// --- 3: content decides ---

TEST_F(Rules, r3_rows_of_other_ids_lineage_or_size_are_refused_and_nothing_is_lost) {
  VirtualUe& ue = talk();
  world.predict(ue, "a", "b", 500ms);
  world.clock.run_for(400ms);
  const auto held = world.node("b").held_from(NodeId("a"));
  ASSERT_EQ(held.size(), 1u);
  wire::KvBlock forged;
  forged.session = ue.session;
  forged.attempt = held.front().attempt;
  forged.first = 160;
  forged.count = 16;
  forged.token_hash = 12345;
  world.node("b").on_kv(NodeId("a"), forged, kv::Bytes(16 * 32, std::byte{}));
  forged.count = 15;  // size is not 15 rows
  world.node("b").on_kv(NodeId("a"), forged, kv::Bytes(16 * 32, std::byte{}));
  forged.first = 4'000'000'000u;
  forged.count = 400'000'000u;
  world.node("b").on_kv(NodeId("a"), forged, kv::Bytes(16 * 32, std::byte{}));
  EXPECT_GE(world.node("b").stats().kv_blocks_refused, 2u);
  world.clock.run_for(100ms);
  world.hand_over(ue, "a", "b", 0s);
  expect_whole(world, ue);
}

// --- 4: the frozen source, 5: committed tokens ---

TEST_F(Rules, r4_the_ue_returns_to_the_source_at_any_time_after_its_attach) {
  for (const Duration delay : kDelays) {
    for (const Duration prediction : {Duration(0s), Duration(1s)}) {
      VirtualGnbs w({});
      VirtualUe& ue = w.open("a", 200, [](auto& p) { p.max_tokens = 150; });
      w.clock.run_for(2s);
      w.hand_over(ue, "a", "b", prediction);
      w.clock.run_for(delay);
      ASSERT_TRUE(w.attach(ue, "a")) << to_ms(delay);
      expect_whole(w, ue);
      expect_nothing_left(w);
      if (testing::Test::HasFailure()) FAIL() << "delay " << to_ms(delay) << " ms";
    }
  }
}

TEST_F(Rules, r4_the_ue_goes_on_to_a_third_cell_at_any_time_after_its_attach) {
  for (const Duration delay : kDelays) {
    for (const Duration prediction : {Duration(0s), Duration(1s)}) {
      VirtualGnbs w({});
      VirtualUe& ue = w.open("a", 200, [](auto& p) { p.max_tokens = 150; });
      w.clock.run_for(2s);
      w.hand_over(ue, "a", "b", prediction);
      w.clock.run_for(delay);
      ASSERT_TRUE(w.attach(ue, "c")) << to_ms(delay);
      expect_whole(w, ue);
      expect_nothing_left(w);
      if (testing::Test::HasFailure()) FAIL() << "delay " << to_ms(delay) << " ms";
    }
  }
}

TEST_F(Rules, r4_a_stale_epoch_is_answered_with_the_current_one) {
  VirtualUe& ue = talk();
  world.hand_over(ue, "a", "b", 1s);
  world.clock.run_for(500ms);
  ue.epoch = Epoch(1);  // tries 2, which is taken
  const auto attached = world.attach(ue, "b");
  ASSERT_FALSE(attached);
  EXPECT_EQ(attached.error().code, Errc::kStaleEpoch);
}

TEST_F(Rules, r5_the_target_adopts_ids_of_the_ue_that_its_log_does_not_have_yet) {
  world.delay_messages(type_index<wire::TokenUpdate>(), 120ms);
  VirtualUe& ue = talk();
  world.predict(ue, "a", "b", 1s);
  world.clock.run_for(1s);
  world.hand_over(ue, "a", "b", 0s);
  world.delay_messages(type_index<wire::TokenUpdate>(), 0s);
  expect_whole(world, ue);
}

TEST_F(Rules, r5_a_ue_that_returns_to_an_owner_who_fell_behind_brings_what_it_saw_elsewhere) {
  for (const bool joined : {true, false}) {
    VirtualGnbs w({});
    VirtualUe& ue = w.open("a", 200, [](auto& p) {
      p.max_tokens = 400;
      p.max_token_rate = 25;
    });
    w.clock.run_for(2s);
    // The source neither decodes nor hears that another gNB serves its session now.
    w.cut("a", "b");
    w.engine("a").stop_answering();
    ASSERT_TRUE(w.attach(ue, "b"));
    const std::size_t before = ue.received();
    ASSERT_TRUE(w.clock.run_until([&] { return ue.received() >= before + 30; }, 60s));
    w.engine("a").resume_answering();
    if (joined) w.join("a", "b");
    ASSERT_TRUE(w.attach(ue, "a"));
    expect_whole(w, ue);
    w.join("a", "b");
    expect_nothing_left(w);
    if (testing::Test::HasFailure()) FAIL() << "joined before: " << joined;
  }
}

// --- 6: cancel crossing attach ---

TEST_F(Rules, r6_a_cancel_that_crosses_the_attach_becomes_the_handover) {
  for (const Duration delay : kDelays) {
    for (const bool cancel_first : {true, false}) {
      VirtualGnbs w({});
      VirtualUe& ue = w.open("a", 200, [](auto& p) { p.max_tokens = 150; });
      w.clock.run_for(2s);
      w.predict(ue, "a", "b", 1s);
      w.clock.run_for(950ms);
      if (cancel_first) {
        w.withdraw(ue, "a");
        w.clock.run_for(delay);
        ASSERT_TRUE(w.attach(ue, "b"));
      } else {
        ASSERT_TRUE(w.attach(ue, "b"));
        w.clock.run_for(delay);
        w.withdraw(ue, "a");
      }
      expect_whole(w, ue);
      expect_nothing_left(w);
      if (testing::Test::HasFailure()) FAIL() << "delay " << to_ms(delay) << " ms";
    }
  }
}

// --- 7: push meeting pull ---

TEST_F(Rules, r7_a_request_that_meets_a_pull_joins_its_reservation) {
  for (const char* scheme : {"two-front", "full-copy", "recompute", "ctho", "pallas", "detour"}) {
    for (const Duration delay : kDelays) {
      for (const bool push_first : {true, false}) {
        VirtualGnbs w({.scheme = scheme});
        VirtualUe& ue = w.open("a", 200, [](auto& p) { p.max_tokens = 150; });
        w.clock.run_for(2s);
        if (push_first) {
          w.ran(ue, HandoverPhase::kExecution, "a", "b");
          w.clock.run_for(delay);
          ASSERT_TRUE(w.attach(ue, "b"));
        } else {
          ASSERT_TRUE(w.attach(ue, "b"));
          w.clock.run_for(delay);
          w.ran(ue, HandoverPhase::kExecution, "a", "b");
        }
        w.ran(ue, HandoverPhase::kCompleted, "a", "b");
        EXPECT_LE(w.engine("b").live_slots(), 1u);
        w.clock.run_for(100ms);
        if (std::string(scheme) == "detour") {
          // One relay, whichever came first: nothing is computed at the target.
          EXPECT_EQ(w.engine("b").live_slots(), 0u);
          EXPECT_EQ(ue.transcript.entries().back().by, NodeId("a"));
        }
        expect_whole(w, ue);
        expect_nothing_left(w);
        if (testing::Test::HasFailure()) FAIL() << scheme << " delay " << to_ms(delay) << " ms";
      }
    }
  }
}

TEST_F(Rules, r7_a_cancelled_preparation_is_re_armed_by_hash_within_flap) {
  VirtualUe& ue = talk(300);
  world.predict(ue, "a", "b", 400ms);
  world.clock.run_for(350ms);
  world.withdraw(ue, "a");
  world.clock.run_for(500ms);
  const auto computed =
      world.engine("b").stats().prefilled_tokens + world.engine("b").stats().attached_tokens;
  EXPECT_GT(computed, 50u);
  world.predict(ue, "a", "b", 300ms);
  world.clock.run_for(300ms);
  world.hand_over(ue, "a", "b", 0s);
  expect_whole(world, ue);
  // What the first attempt computed was not computed again.
  const auto all =
      world.engine("b").stats().prefilled_tokens + world.engine("b").stats().attached_tokens;
  EXPECT_LE(all, 200u + 300u + 32u);
}

// --- 8: lease ---

TEST_F(Rules, r8_a_source_that_falls_silent_loses_the_reservation_at_the_leases_end) {
  VirtualUe& ue = talk(4000);
  world.predict(ue, "a", "b", 500ms);
  world.clock.run_for(400ms);
  ASSERT_EQ(world.engine("b").live_slots(), 1u);
  world.engine("a").stop_answering();
  world.delay_messages(type_index<wire::LeaseRenew>(), 1h);
  world.clock.run_for(6s);
  EXPECT_EQ(world.engine("b").live_slots(), 0u);
}

TEST_F(Rules, r8_losing_the_source_extends_the_lease_once_to_the_predicted_handover) {
  VirtualUe& ue = talk(600);
  world.predict(ue, "a", "b", 4s);
  world.clock.run_for(3900ms);
  world.kill("a");
  world.clock.run_for(7s);  // longer than lease_s
  EXPECT_EQ(world.engine("b").live_slots(), 1u);
  world.clock.run_for(10s);
  EXPECT_EQ(world.engine("b").live_slots(), 0u);
  EXPECT_EQ(ue.at, NodeId("a"));
}

TEST_F(Rules, r8_a_source_stops_relying_on_a_lease_that_it_cannot_renew) {
  VirtualUe& ue = talk(600, 600);
  world.predict(ue, "a", "b", 1s);
  world.clock.run_for(700ms);
  const auto peer_of_a = [&] { return world.node("a").sessions().front().peer; };
  ASSERT_EQ(peer_of_a(), "b");
  ASSERT_EQ(ue.announced, NodeId("b"));
  const auto requests = world.count("a", "b", "HandoverRequest");
  world.cut("a", "b");
  world.clock.run_for(2s);
  EXPECT_EQ(peer_of_a(), "b") << "the link may come back, and then it goes on";
  world.clock.run_for(2s);
  EXPECT_EQ(peer_of_a(), "") << "0.8 x 5 s after the last frame";
  EXPECT_EQ(ue.announced, NodeId());
  world.join("a", "b");
  world.predict(ue, "a", "b", 1s);
  world.clock.run_for(900ms);
  EXPECT_EQ(world.count("a", "b", "HandoverRequest"), requests + 1);
  EXPECT_EQ(peer_of_a(), "b");
  world.hand_over(ue, "a", "b", 0s);
  expect_whole(world, ue);
  expect_nothing_left(world);
}

TEST_F(Rules, r8_a_handover_over_a_link_that_was_down_for_any_time_loses_no_token) {
  for (const Duration down : {Duration(1s), Duration(3900ms), Duration(4100ms), Duration(6s)}) {
    for (const Duration attach : {Duration(100ms), Duration(3950ms), Duration(4500ms)}) {
      VirtualGnbs w({});
      VirtualUe& ue = w.open("a", 300, [](auto& p) { p.max_tokens = 400; });
      w.clock.run_for(2s);
      w.predict(ue, "a", "b", 1s);
      w.clock.run_for(700ms);
      w.cut("a", "b");
      w.clock.after(down, [&] { w.join("a", "b"); });
      w.clock.run_for(attach);
      w.hand_over(ue, "a", "b", 0s);
      expect_whole(w, ue);
      expect_nothing_left(w);
      if (HasFailure()) FAIL() << "down " << to_ms(down) << " ms, attach " << to_ms(attach);
    }
  }
}

// --- 9: finished session ---

TEST_F(Rules, r9_a_session_that_ends_around_the_handover_delivers_its_tail_once) {
  for (const Duration delay : kDelays) {
    for (const Duration prediction : {Duration(0s), Duration(400ms)}) {
      VirtualGnbs w({});
      VirtualUe& ue = w.open("a", 200, [](auto& p) { p.max_tokens = 60; });
      w.clock.run_until([&] { return ue.transcript.entries().size() >= 35; }, 30s);
      if (prediction.count() > 0) w.predict(ue, "a", "b", prediction);
      w.clock.run_until([&] { return ue.transcript.entries().size() >= 56; }, 30s);
      w.ran(ue, HandoverPhase::kExecution, "a", "b");
      w.clock.run_for(delay * 2);
      ASSERT_TRUE(w.attach(ue, "b"));
      expect_whole(w, ue);
      expect_nothing_left(w);
      if (testing::Test::HasFailure()) FAIL() << "delay " << to_ms(delay) << " ms";
    }
  }
}

// --- 10: stop ---

TEST_F(Rules, r10_a_stop_works_at_every_gnb_that_knows_the_session_and_twice) {
  for (const char* where : {"a", "b"}) {
    for (const bool before : {true, false}) {
      VirtualGnbs w({});
      VirtualUe& ue = w.open("a", 200, [](auto& p) { p.max_tokens = 3000; });
      w.clock.run_for(2s);
      if (before) {
        w.predict(ue, "a", "b", 1s);
        w.clock.run_for(900ms);
      } else {
        w.hand_over(ue, "a", "b", 1s);
        w.clock.run_for(500ms);
      }
      EXPECT_TRUE(w.node(where).stop(ue.session, ue.resume_token, NodeId()));
      w.clock.run_for(200ms);
      EXPECT_TRUE(w.node(where).stop(ue.session, ue.resume_token, NodeId()));
      ASSERT_TRUE(ue.finished) << where << " before " << before;
      EXPECT_EQ(ue.finished->reason, wire::FinishReason::kCancelled);
      EXPECT_EQ(ue.finishes, 1);
      expect_nothing_left(w);
    }
  }
  EXPECT_EQ(world.node("c").stop(SessionId(std::string(32, '9')), "", NodeId()).error().code,
            Errc::kNotFound);
}

TEST_F(Rules, r10_a_stop_follows_tombstones_from_node_to_node) {
  for (const char* where : {"a", "b", "c"}) {
    VirtualGnbs w({});
    VirtualUe& ue = w.open("a", 200, [](auto& p) { p.max_tokens = 3000; });
    w.clock.run_for(2s);
    w.hand_over(ue, "a", "b", 1s);
    w.clock.run_for(1s);
    w.hand_over(ue, "b", "c", 1s);
    w.clock.run_for(1s);
    EXPECT_TRUE(w.node(where).stop(ue.session, ue.resume_token, NodeId()));
    w.clock.run_for(100ms);
    ASSERT_TRUE(ue.finished) << where;
    EXPECT_EQ(ue.finished->reason, wire::FinishReason::kCancelled);
    EXPECT_EQ(ue.transcript.breaches(), std::vector<std::string>{});
    expect_nothing_left(w);
  }
}

TEST_F(Rules, r10_a_ue_that_disappears_is_served_for_its_grace_time_and_not_longer) {
  VirtualUe& ue = talk(4000);
  world.leave(ue);
  world.clock.run_for(5s);
  EXPECT_EQ(world.engine("a").live_slots(), 1u);
  world.clock.run_for(6s);
  EXPECT_EQ(world.engine("a").live_slots(), 0u);
}

TEST_F(Rules, r10_a_grace_time_that_ends_where_the_ue_was_does_not_end_it_where_it_is) {
  for (const bool joined : {true, false}) {
    VirtualGnbs w({.configure = [](node::NodeConfig& c) { c.grace = 2s; }});
    VirtualUe& ue = w.open("a", 200, [](auto& p) {
      p.max_tokens = 400;
      p.max_token_rate = 25;
    });
    w.clock.run_for(2s);
    w.cut("a", "b");
    ASSERT_TRUE(w.attach(ue, "b"));
    w.clock.run_for(4s);
    EXPECT_EQ(w.engine("a").live_slots(), 0u);
    if (joined) w.join("a", "b");
    ASSERT_TRUE(w.attach(ue, "a"));
    expect_whole(w, ue);
    w.join("a", "b");
    expect_nothing_left(w);
    if (testing::Test::HasFailure()) FAIL() << "joined before: " << joined;
  }
}

// --- 12: links ---

TEST_F(Rules, r12_a_link_that_comes_back_goes_on_where_it_was) {
  for (const Duration delay : kDelays) {
    VirtualGnbs w({});
    VirtualUe& ue = w.open("a", 600, [](auto& p) {
      p.max_tokens = 150;
      p.max_token_rate = 25;
    });
    w.clock.run_for(4s);
    w.predict(ue, "a", "b", 1s);
    w.clock.run_for(700ms);
    w.cut("a", "b");
    w.clock.run_for(delay);
    w.join("a", "b");
    w.clock.run_for(300ms);
    w.hand_over(ue, "a", "b", 0s);
    expect_whole(w, ue);
    expect_nothing_left(w);
    if (testing::Test::HasFailure()) FAIL() << "delay " << to_ms(delay) << " ms";
  }
}

TEST_F(Rules, r12_a_link_cut_anywhere_around_the_claim_loses_no_token) {
  for (const Duration at : kDelays) {
    for (const Duration down : {Duration(5ms), Duration(600ms), Duration(3s)}) {
      VirtualGnbs w({});
      VirtualUe& ue = w.open("a", 300, [](auto& p) { p.max_tokens = 150; });
      w.clock.run_for(2500ms);
      w.hand_over(ue, "a", "b", 600ms);
      w.clock.run_for(at);
      w.cut("a", "b");
      w.clock.run_for(down);
      w.join("a", "b");
      expect_whole(w, ue);
      expect_nothing_left(w);
      if (testing::Test::HasFailure()) FAIL() << "cut at " << to_ms(at) << ", down " << to_ms(down);
    }
  }
}

// --- 13: ping-pong ---

TEST_F(Rules, r13_a_return_within_retention_needs_only_the_tokens_since) {
  VirtualUe& ue = talk(300, 600);
  world.hand_over(ue, "a", "b", 2s);
  world.clock.run_for(1s);
  world.hand_over(ue, "b", "a", 1s);
  world.clock.run_for(500ms);
  ASSERT_EQ(world.node("a").handovers().size(), 1u);
  const auto& report = world.node("a").handovers().front();
  EXPECT_EQ(report.tokens_recomputed, 0u);
  EXPECT_LT(report.tokens_received + report.tokens_replayed, 140u);
  expect_whole(world, ue);
}

// --- 14: detour ---

TEST_F(Rules, r14_a_second_handover_re_points_the_relay_to_the_node_that_decodes) {
  VirtualGnbs w({.scheme = "detour"});
  VirtualUe& ue = w.open("a", 200, [](auto& p) { p.max_tokens = 150; });
  w.clock.run_for(2s);
  w.hand_over(ue, "a", "b", 0s);
  w.clock.run_for(300ms);
  w.hand_over(ue, "b", "c", 0s);
  w.clock.run_for(300ms);
  EXPECT_EQ(ue.transcript.entries().back().emitter, NodeId("c"));
  EXPECT_EQ(ue.transcript.entries().back().by, NodeId("a"));
  EXPECT_EQ(w.engine("b").live_slots() + w.engine("c").live_slots(), 0u);
  expect_whole(w, ue);
}

TEST_F(Rules, r14_a_relay_that_loses_the_decoder_goes_on_from_its_log) {
  VirtualGnbs w({.scheme = "detour"});
  VirtualUe& ue = w.open("a", 200, [](auto& p) { p.max_tokens = 150; });
  w.clock.run_for(2s);
  w.hand_over(ue, "a", "b", 0s);
  w.clock.run_for(300ms);
  w.kill("a");
  expect_whole(w, ue);
  EXPECT_EQ(ue.transcript.entries().back().by, NodeId("b"));
}

TEST_F(Rules, r14_a_full_target_relays_instead_of_failing) {
  VirtualUe& ue = talk();
  world.engine("b").refuse_reservations(true);
  world.hand_over(ue, "a", "b", 500ms);
  expect_whole(world, ue);
  EXPECT_EQ(ue.transcript.entries().back().emitter, NodeId("b"));
  EXPECT_EQ(ue.transcript.entries().back().by, NodeId("a"));
}

// --- 16: mirror ---

TEST_F(Rules, r16_a_mirror_serves_a_ue_that_brings_nothing_after_the_sources_death) {
  VirtualUe& ue = talk();
  ue.brings_context = false;
  world.predict(ue, "a", "b", 60s);  // far from the trigger: ids only
  world.clock.run_for(500ms);
  EXPECT_EQ(world.engine("b").live_slots(), 0u);
  world.kill("a");
  ASSERT_TRUE(world.attach(ue, "b"));
  expect_whole(world, ue);
}

// --- 18: cells ---

TEST_F(Rules, r18_a_handover_inside_one_gnb_does_nothing_to_the_session) {
  VirtualGnbs w({.configure = [](auto& c) { c.cells[CellId("cell-b")] = NodeId("a"); }});
  VirtualUe& ue = w.open("a", 200, [](auto& p) { p.max_tokens = 150; });
  w.clock.run_for(2s);
  w.predict(ue, "a", "b", 500ms);
  w.clock.run_for(500ms);
  w.ran(ue, HandoverPhase::kExecution, "a", "b");
  w.ran(ue, HandoverPhase::kCompleted, "a", "b");
  expect_whole(w, ue);
  EXPECT_EQ(w.count("a", "b", "HandoverRequest"), 0u);
}

}  // namespace
}  // namespace pallas::test
