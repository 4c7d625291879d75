// Partial handover: the target decodes on a part of the KV and becomes whole later (rule 15).

#include <gtest/gtest.h>

#include <algorithm>

#include "scenario_checks.h"

namespace pallas::test {
namespace {

using namespace std::chrono_literals;
using mobility::HandoverPhase;

constexpr Duration kDelays[] = {0us, 200us, 500us, 1ms, 10ms, 40ms, 300ms, 1s, 1300ms, 2s};

// `rows` a second over each link: all of the session's take about 2.5 s at 150.
VirtualGnbs::Options with(double rows = 150,
                          std::function<void(node::NodeConfig&)> configure = {}) {
  VirtualGnbs::Options options;
  options.scheme = "partial";
  options.link.rate = BytesPerSecond(32 * rows);
  options.configure = std::move(configure);
  return options;
}

VirtualUe& talk(VirtualGnbs& world, std::uint32_t max_tokens = 250, double rate = 20,
                wire::Consistency consistency = wire::Consistency::kPreferExact) {
  VirtualUe& ue = world.open("a", 300, [&](auto& p) {
    p.max_token_rate = rate;
    p.max_tokens = max_tokens;
    p.consistency = consistency;
  });
  world.clock.run_for(4s);
  return ue;
}

void finish(VirtualGnbs& world, VirtualUe& ue) {
  ASSERT_TRUE(world.clock.run_until([&] { return ue.finished || ue.failed; }, 120s));
  expect_clean(world, ue);
  EXPECT_EQ(ue.transcript.entries().size(), ue.params.max_tokens);
  EXPECT_EQ(ue.finishes, 1);
}

const node::HandoverReport& last_report(VirtualGnbs& world, const std::string& gnb) {
  static const node::HandoverReport kNone;
  const auto& reports = world.node(gnb).handovers();
  EXPECT_FALSE(reports.empty()) << gnb;
  return reports.empty() ? kNone : reports.back();
}

std::size_t sampled_by(const VirtualUe& ue, const std::string& gnb) {
  const auto& all = ue.transcript.entries();
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [&](const auto& e) { return e.by == NodeId(gnb); }));
}

Duration longest_interval(const VirtualUe& ue, std::size_t from) {
  Duration longest{0};
  const auto& all = ue.transcript.entries();
  for (std::size_t i = from; i < all.size(); ++i) {
    longest = std::max(longest, Duration(all[i].at - all[i - 1].at));
  }
  return longest;
}

bool is_partial(VirtualGnbs& world, const std::string& gnb) {
  for (const auto& info : world.node(gnb).sessions()) {
    if (info.partial) return true;
  }
  return false;
}

// Runs the session, which moved from a to b, to its end: b decoded on a part, and from the moment
// at which it was whole as a gNB that always had all KV.
void expect_completed(VirtualGnbs& world, VirtualUe& ue) {
  finish(world, ue);
  const node::HandoverReport report = last_report(world, "b");
  ASSERT_TRUE(report.partial);
  const node::PartialReport& part = *report.partial;
  EXPECT_FALSE(report.exact);
  ASSERT_TRUE(part.complete_ms);
  ASSERT_TRUE(report.first_token_ms);
  EXPECT_GT(*part.complete_ms, *report.first_token_ms);
  EXPECT_GT(part.tokens, 0u);
  EXPECT_GE(part.tokens_replayed, part.tokens);
  const std::size_t known = sampled_by(ue, "a") + part.tokens;
  ASSERT_LT(known, ue.params.max_tokens);
  EXPECT_EQ(ue.transcript.ids(), world.reference_after(ue, known, ue.params.max_tokens));
  EXPECT_NE(ue.transcript.ids(), world.reference(ue, ue.params.max_tokens));
}

// --- how it begins ---

TEST(Partial, an_unprepared_cell_decodes_on_the_fraction_and_becomes_whole) {
  VirtualGnbs world(with());
  VirtualUe& ue = talk(world);
  const auto attached = world.clock.now();
  ASSERT_TRUE(world.attach(ue, "b"));
  ASSERT_TRUE(world.clock.run_until([&] { return is_partial(world, "b"); }, 10s));
  // 0.4 of about 370 positions at 150 a second.
  EXPECT_GT(world.clock.now() - attached, 900ms);
  EXPECT_LT(world.clock.now() - attached, 1300ms);
  world.clock.run_for(100ms);
  EXPECT_EQ(world.count("b", "a", "UeContextRelease"), 0u);  // the source has the only whole KV
  EXPECT_EQ(world.node("b").stats().sessions_partial, 1u);
  EXPECT_EQ(world.engine("b").live_slots(), 1u);
  ASSERT_TRUE(world.clock.run_until([&] { return !is_partial(world, "b"); }, 10s));
  EXPECT_LT(world.clock.now() - attached, 3500ms);
  EXPECT_EQ(world.engine("b").live_slots(), 1u);
  world.clock.run_for(10ms);
  EXPECT_EQ(world.count("b", "a", "UeContextRelease"), 1u);
  expect_completed(world, ue);
  const node::HandoverReport report = last_report(world, "b");
  EXPECT_EQ(report.scheme, "partial");
  EXPECT_EQ(report.recovery, "retrieved");
  EXPECT_NEAR(report.partial->fraction, 0.42, 0.03);
  EXPECT_TRUE(report.partial->second_slot);
  EXPECT_LT(report.partial->positions, report.tokens_total);
  EXPECT_EQ(report.tokens_recomputed, 0u);
  EXPECT_EQ(report.partial->complete_ms, report.covered_ms);
  const node::NodeStats stats = world.node("b").stats();
  EXPECT_EQ(stats.partial_handovers, 1u);
  EXPECT_EQ(stats.partial_completed, 1u);
  EXPECT_EQ(stats.partial_tokens, report.partial->tokens);
  EXPECT_EQ(stats.sessions_partial, 0u);
  expect_nothing_left(world);
}

TEST(Partial, a_prepared_cell_begins_sooner_by_what_came_before_the_ue) {
  VirtualGnbs world(with());
  VirtualUe& ue = talk(world);
  world.ran(ue, HandoverPhase::kExecution, "a", "b");
  world.clock.run_for(600ms);
  EXPECT_EQ(world.count("a", "b", "HandoverRequest"), 1u);
  ASSERT_TRUE(world.attach(ue, "b"));
  expect_completed(world, ue);
  const node::HandoverReport report = last_report(world, "b");
  EXPECT_TRUE(report.prepared);
  EXPECT_LT(*report.first_token_ms, 700);
  expect_nothing_left(world);
}

TEST(Partial, decoding_goes_on_at_its_pace_when_the_whole_takes_over) {
  VirtualGnbs world(with());
  VirtualUe& ue = talk(world);
  ASSERT_TRUE(world.attach(ue, "b"));
  ASSERT_TRUE(world.clock.run_until([&] { return is_partial(world, "b"); }, 10s));
  world.clock.run_for(100ms);
  const auto begun = ue.transcript.entries().size();
  expect_completed(world, ue);
  EXPECT_LT(longest_interval(ue, begun), 75ms);  // at 20 tokens a second
}

TEST(Partial, a_deadline_begins_with_what_is_always_sent) {
  VirtualGnbs world(with(150, [](node::NodeConfig& c) {
    c.partial_fraction = 0.95;
    c.partial_deadline = 500ms;
  }));
  VirtualUe& ue = talk(world);
  ASSERT_TRUE(world.attach(ue, "b"));
  expect_completed(world, ue);
  const node::HandoverReport report = last_report(world, "b");
  EXPECT_GT(*report.first_token_ms, 500);
  EXPECT_LT(*report.first_token_ms, 600);
  EXPECT_LT(report.partial->fraction, 0.3);
  EXPECT_GE(report.partial->positions, 36u);
}

TEST(Partial, a_deadline_that_passed_before_the_answer_came_counts) {
  VirtualGnbs world(with(150, [](node::NodeConfig& c) {
    c.partial_fraction = 0.95;
    c.partial_deadline = 1ms;
  }));
  world.delay_messages(wire::Message(std::in_place_type<wire::RetrieveUeContextResponse>).index(),
                       50ms);
  VirtualUe& ue = talk(world);
  ASSERT_TRUE(world.attach(ue, "b"));
  expect_completed(world, ue);
  EXPECT_LE(last_report(world, "b").partial->positions, 48u);  // three blocks
}

TEST(Partial, a_session_that_wants_to_be_exact_waits_for_all_of_it) {
  VirtualGnbs world(with());
  VirtualUe& ue = talk(world, 250, 20, wire::Consistency::kExact);
  ASSERT_TRUE(world.attach(ue, "b"));
  expect_whole(world, ue);
  EXPECT_FALSE(last_report(world, "b").partial);
  EXPECT_TRUE(last_report(world, "b").exact);
}

TEST(Partial, a_peer_that_knows_no_positions_is_sent_none) {
  for (const bool prepared : {false, true}) {
    VirtualGnbs world(with());
    VirtualUe& ue = talk(world);
    // As of minor version 0.
    world.node("a").on_peer_up(
        {NodeId("b"), BootId(77), world.node("b").compatibility(), {}, false});
    if (prepared) {
      world.ran(ue, HandoverPhase::kExecution, "a", "b");
      world.clock.run_for(100ms);
    }
    ASSERT_TRUE(world.attach(ue, "b"));
    expect_whole(world, ue);
    EXPECT_FALSE(last_report(world, "b").partial);
    EXPECT_EQ(world.node("b").stats().partial_handovers, 0u);
  }
}

TEST(Partial, every_ordering_brings_all_of_it) {
  for (const auto ordering : engine::kOrderings) {
    SCOPED_TRACE(name_of(ordering));
    VirtualGnbs world(with(150, [&](node::NodeConfig& c) { c.partial_ordering = ordering; }));
    VirtualUe& ue = talk(world);
    ASSERT_TRUE(world.attach(ue, "b"));
    expect_completed(world, ue);
  }
}

TEST(Partial, an_observation_window_without_room_above_the_front_gives_way) {
  VirtualGnbs world(with(
      150, [](node::NodeConfig& c) { c.partial_ordering = engine::Ordering::kObservationWindow; }));
  VirtualUe& ue = talk(world, 90);
  world.clock.run_until([&] { return ue.transcript.entries().size() >= 84; }, 5s);
  ASSERT_TRUE(world.attach(ue, "b"));
  finish(world, ue);
  EXPECT_EQ(world.engine("a").stats().failures, 0u);
}

TEST(Partial, without_holes_in_the_engine_it_is_never_tried) {
  VirtualGnbs::Options options = with();
  options.engine.info.capabilities.holes = false;
  VirtualGnbs world(std::move(options));
  VirtualUe& ue = talk(world);
  ASSERT_TRUE(world.attach(ue, "b"));
  expect_whole(world, ue);
}

TEST(Partial, a_scheme_that_would_be_too_slow_for_an_unprepared_cell_falls_back_to_it) {
  for (const Duration limit : {Duration(0ms), Duration(1100ms), Duration(20s)}) {
    VirtualGnbs::Options options =
        with(200, [&](node::NodeConfig& c) { c.partial_fallback = limit; });
    options.scheme = "full-copy";
    options.engine.info.profile.prefill = {{0, Seconds(0.02)}};  // ctHO takes longer, too
    VirtualGnbs world(std::move(options));
    VirtualUe& ue = talk(world, 250, 20, wire::Consistency::kPreferExact);
    world.clock.run_for(4s);
    ASSERT_TRUE(world.attach(ue, "b"));
    world.clock.run_for(5s);
    const node::HandoverReport report = last_report(world, "b");
    EXPECT_EQ(report.partial.has_value(), limit == 1100ms) << to_ms(limit);
    EXPECT_EQ(report.scheme, limit == 1100ms ? "partial" : "full-copy");
  }
}

// --- without a second slot ---

TEST(Partial, without_a_second_slot_the_session_pauses_once_and_is_completed_in_place) {
  VirtualGnbs::Options options = with();
  options.engine.info.slots = 1;
  VirtualGnbs world(std::move(options));
  VirtualUe& ue = talk(world);
  ASSERT_TRUE(world.attach(ue, "b"));
  expect_completed(world, ue);
  EXPECT_FALSE(last_report(world, "b").partial->second_slot);
  EXPECT_EQ(world.engine("b").stats().failures, 0u);
  expect_nothing_left(world);
}

TEST(Partial, a_stream_without_a_cap_on_its_rate_is_slowed_down_until_the_whole_has_caught_up) {
  VirtualGnbs world(with());
  VirtualUe& ue = talk(world, 1500, 0);
  ASSERT_TRUE(world.attach(ue, "b"));
  ASSERT_TRUE(world.clock.run_until([&] { return is_partial(world, "b"); }, 10s));
  world.clock.run_for(100ms);
  const auto begun = ue.transcript.entries().size();
  expect_completed(world, ue);
  EXPECT_TRUE(last_report(world, "b").partial->second_slot);
  EXPECT_LT(longest_interval(ue, begun), 100ms);
}

TEST(Partial, kv_that_the_target_kept_is_used_and_completed_in_place) {
  VirtualGnbs world(with(150, [](node::NodeConfig& c) { c.retain = 60s; }));
  VirtualUe& ue = talk(world, 600);
  ASSERT_TRUE(world.attach(ue, "b"));
  world.clock.run_for(8s);
  ASSERT_FALSE(is_partial(world, "b"));
  ASSERT_TRUE(world.attach(ue, "a"));  // which has all but the last
  ASSERT_TRUE(world.clock.run_until([&] { return is_partial(world, "a"); }, 3s));
  world.clock.run_for(5s);
  EXPECT_FALSE(is_partial(world, "a"));
  EXPECT_FALSE(last_report(world, "a").partial->second_slot);
  EXPECT_EQ(world.engine("a").stats().failures, 0u);
  finish(world, ue);
}

// --- what happens meanwhile ---

TEST(Partial, a_source_lost_at_any_moment_is_made_up_for_from_the_ids) {
  for (const bool dies : {false, true}) {
    for (const Duration delay : kDelays) {
      SCOPED_TRACE(to_ms(delay));
      VirtualGnbs world(with());
      VirtualUe& ue = talk(world);
      ASSERT_TRUE(world.attach(ue, "b"));
      ASSERT_TRUE(world.clock.run_until([&] { return is_partial(world, "b"); }, 10s));
      world.clock.run_for(delay);
      if (dies) {
        world.kill("a");
      } else {
        world.cut("a", "b");
      }
      expect_completed(world, ue);
      if (delay <= 500ms) {
        EXPECT_GT(last_report(world, "b").tokens_recomputed, 0u);
      }
      expect_nothing_left(world);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(Partial, a_source_lost_before_the_first_token_costs_the_prefill_of_what_is_missing) {
  VirtualGnbs world(with());
  VirtualUe& ue = talk(world);
  ASSERT_TRUE(world.attach(ue, "b"));
  world.clock.run_for(500ms);
  world.kill("a");
  finish(world, ue);
  EXPECT_FALSE(last_report(world, "b").partial);
}

TEST(Partial, a_link_that_comes_back_brings_what_is_missing_or_finds_it_done) {
  for (const Duration away : {Duration(1ms), Duration(100ms), Duration(3s)}) {
    SCOPED_TRACE(to_ms(away));
    VirtualGnbs world(with());
    VirtualUe& ue = talk(world);
    ASSERT_TRUE(world.attach(ue, "b"));
    ASSERT_TRUE(world.clock.run_until([&] { return is_partial(world, "b"); }, 10s));
    world.cut("a", "b");
    world.clock.run_for(away);
    world.join("a", "b");
    expect_completed(world, ue);
    expect_nothing_left(world);
  }
}

TEST(Partial, a_source_that_sends_nothing_more_is_not_waited_for) {
  VirtualGnbs world(with());
  VirtualUe& ue = talk(world, 400);
  ASSERT_TRUE(world.attach(ue, "b"));
  ASSERT_TRUE(world.clock.run_until([&] { return is_partial(world, "b"); }, 10s));
  world.engine("a").stop_answering();
  expect_completed(world, ue);
  EXPECT_GT(*last_report(world, "b").partial->complete_ms, 5000);
}

TEST(Partial, back_filling_may_take_longer_than_a_frozen_source_is_kept_without_progress) {
  VirtualGnbs world(with(60, [](node::NodeConfig& c) { c.frozen = 1s; }));
  VirtualUe& ue = talk(world, 400);
  ASSERT_TRUE(world.attach(ue, "b"));
  expect_completed(world, ue);
  EXPECT_EQ(last_report(world, "b").tokens_recomputed, 0u);
  EXPECT_EQ(world.node("b").stats().recoveries, 0u);
}

TEST(Partial, the_ue_moves_on_at_any_moment_and_the_ids_are_enough) {
  for (const Duration delay : kDelays) {
    SCOPED_TRACE(to_ms(delay));
    VirtualGnbs world(with());
    VirtualUe& ue = talk(world);
    ASSERT_TRUE(world.attach(ue, "b"));
    ASSERT_TRUE(world.clock.run_until([&] { return is_partial(world, "b"); }, 10s));
    world.clock.run_for(delay);
    const bool whole = !is_partial(world, "b");
    ASSERT_TRUE(world.attach(ue, "c"));
    world.clock.run_for(1s);
    if (!whole) {
      EXPECT_EQ(world.count("b", "c", "KvBlock"), 0u);
      EXPECT_EQ(world.engine("b").live_slots(), 0u);
      EXPECT_EQ(world.count("b", "a", "UeContextRelease"), 1u);
    }
    finish(world, ue);
    EXPECT_EQ(ue.transcript.entries().back().by, NodeId("c"));
    expect_nothing_left(world);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Partial, the_ue_that_returns_to_the_source_finds_its_kv) {
  for (const Duration delay : kDelays) {
    SCOPED_TRACE(to_ms(delay));
    VirtualGnbs world(with());
    VirtualUe& ue = talk(world);
    ASSERT_TRUE(world.attach(ue, "b"));
    ASSERT_TRUE(world.clock.run_until([&] { return is_partial(world, "b"); }, 10s));
    world.clock.run_for(delay);
    ASSERT_TRUE(world.attach(ue, "a"));
    const auto before = world.engine("a").stats().prefilled_tokens;
    finish(world, ue);
    EXPECT_EQ(ue.transcript.entries().back().by, NodeId("a"));
    // At most the tokens decoded at b.
    EXPECT_LT(world.engine("a").stats().prefilled_tokens, before + 100);
    expect_nothing_left(world);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Partial, a_claim_at_the_source_itself_is_served_from_its_kv_and_fences_the_part) {
  for (const Duration delay : kDelays) {
    SCOPED_TRACE(to_ms(delay));
    VirtualGnbs world(with());
    VirtualUe& ue = talk(world);
    ASSERT_TRUE(world.attach(ue, "b"));
    ASSERT_TRUE(world.clock.run_until([&] { return is_partial(world, "b"); }, 10s));
    world.clock.run_for(delay);
    ue.at = NodeId("a");  // it remembers where it was before
    ASSERT_TRUE(world.attach(ue, "c"));
    world.clock.run_for(100ms);
    EXPECT_FALSE(is_partial(world, "b"));
    finish(world, ue);
    expect_nothing_left(world);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Partial, before_the_first_token_the_prompt_is_computed_and_received_as_ever) {
  VirtualGnbs world(with());
  VirtualUe& ue = world.open("a", 600, [](auto& p) {
    p.max_tokens = 100;
    p.consistency = wire::Consistency::kPreferExact;
  });
  world.clock.run_for(500ms);
  ASSERT_TRUE(ue.transcript.entries().empty());
  ASSERT_TRUE(world.attach(ue, "b"));
  finish(world, ue);
  EXPECT_EQ(ue.transcript.ids(), world.reference(ue, 100));
}

TEST(Partial, the_next_cell_is_prepared_only_when_the_session_is_whole) {
  VirtualGnbs world(with());
  VirtualUe& ue = talk(world);
  ASSERT_TRUE(world.attach(ue, "b"));
  ASSERT_TRUE(world.clock.run_until([&] { return is_partial(world, "b"); }, 10s));
  world.predict(ue, "b", "c", 5s);
  world.ran(ue, HandoverPhase::kExecution, "b", "c");
  world.clock.run_for(100ms);
  EXPECT_EQ(world.count("b", "c", "HandoverRequest"), 0u);
  ASSERT_TRUE(world.clock.run_until([&] { return !is_partial(world, "b"); }, 10s));
  world.clock.run_for(100ms);
  EXPECT_EQ(world.count("b", "c", "HandoverRequest"), 1u);
  ASSERT_TRUE(world.attach(ue, "c"));
  world.ran(ue, HandoverPhase::kCompleted, "b", "c");
  finish(world, ue);
  EXPECT_GT(world.count("b", "c", "KvBlock"), 0u);
  expect_nothing_left(world);
}

TEST(Partial, stopped_anywhere_at_any_moment_it_leaves_nothing) {
  for (const char* where : {"a", "b"}) {
    for (const Duration delay : kDelays) {
      SCOPED_TRACE(std::string(where) + " " + std::to_string(to_ms(delay)));
      VirtualGnbs world(with());
      VirtualUe& ue = talk(world);
      ASSERT_TRUE(world.attach(ue, "b"));
      ASSERT_TRUE(world.clock.run_until([&] { return is_partial(world, "b"); }, 10s));
      world.clock.run_for(delay);
      ASSERT_TRUE(world.node(where).stop(ue.session, "", NodeId()));
      world.clock.run_for(100ms);
      EXPECT_TRUE(ue.finished);
      EXPECT_FALSE(is_partial(world, "b"));
      expect_clean(world, ue);
      expect_nothing_left(world);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(Partial, a_ue_that_leaves_ends_it_after_the_grace) {
  VirtualGnbs world(with(40, [](node::NodeConfig& c) { c.grace = 1s; }));
  VirtualUe& ue = talk(world, 600);
  ASSERT_TRUE(world.attach(ue, "b"));
  ASSERT_TRUE(world.clock.run_until([&] { return is_partial(world, "b"); }, 20s));
  world.leave(ue);
  world.clock.run_for(900ms);
  EXPECT_TRUE(is_partial(world, "b"));
  world.clock.run_for(200ms);
  EXPECT_FALSE(is_partial(world, "b"));
  expect_nothing_left(world);
}

TEST(Partial, the_last_tokens_of_a_session_may_all_be_decoded_on_a_part) {
  VirtualGnbs world(with());
  VirtualUe& ue = talk(world, 90);
  ASSERT_TRUE(world.attach(ue, "b"));
  finish(world, ue);
  const node::HandoverReport report = last_report(world, "b");
  ASSERT_TRUE(report.partial);
  EXPECT_FALSE(report.partial->complete_ms);
  EXPECT_GT(report.partial->tokens, 0u);
  EXPECT_EQ(world.engine("b").live_slots(), 0u);
  expect_nothing_left(world);
}

TEST(Partial, an_engine_that_fails_in_either_slot_is_made_up_for) {
  using Kind = engine::FakeEngine::CommandKind;
  for (const Kind kind : {Kind::kScatter, Kind::kAttach, Kind::kReplay}) {
    VirtualGnbs world(with());
    VirtualUe& ue = talk(world);
    world.engine("b").fail_next(kind, Error{Errc::kEngine, "broken"});
    ASSERT_TRUE(world.attach(ue, "b"));
    finish(world, ue);
    EXPECT_EQ(world.engine("b").stats().failures, 1u);
    expect_nothing_left(world);
  }
}

TEST(Partial, the_ue_attaches_again_where_it_is) {
  VirtualGnbs world(with());
  VirtualUe& ue = talk(world);
  ASSERT_TRUE(world.attach(ue, "b"));
  ASSERT_TRUE(world.clock.run_until([&] { return is_partial(world, "b"); }, 10s));
  world.leave(ue);
  world.clock.run_for(100ms);
  ASSERT_TRUE(world.attach(ue, "b"));
  EXPECT_TRUE(is_partial(world, "b"));
  expect_completed(world, ue);
  EXPECT_EQ(world.count("b", "a", "UeContextRelease"), 1u);
  expect_nothing_left(world);
}

TEST(Partial, several_at_once_become_whole) {
  for (const auto sharing : {plan::LinkSharing::kTurns, plan::LinkSharing::kWaterFilling}) {
    VirtualGnbs::Options options =
        with(300, [&](node::NodeConfig& c) { c.link_sharing = sharing; });
    options.engine.info.slots = 6;
    VirtualGnbs world(std::move(options));
    std::vector<VirtualUe*> ues;
    for (int i = 0; i < 3; ++i) {
      ues.push_back(&world.open("a", 200, [](auto& p) {
        p.max_token_rate = 10;
        p.max_tokens = 150;
        p.consistency = wire::Consistency::kPreferExact;
      }));
    }
    world.clock.run_for(4s);
    for (VirtualUe* ue : ues) ASSERT_TRUE(world.attach(*ue, "b"));
    for (VirtualUe* ue : ues) finish(world, *ue);
    const node::NodeStats stats = world.node("b").stats();
    EXPECT_EQ(stats.partial_handovers, 3u);
    EXPECT_EQ(stats.partial_completed, 3u);
    EXPECT_EQ(stats.recoveries, 0u);
    expect_nothing_left(world);
  }
}

TEST(Partial, phases_tell_when_the_session_was_on_a_part) {
  VirtualGnbs world(with());
  VirtualUe& ue = talk(world);
  ASSERT_TRUE(world.attach(ue, "b"));
  expect_completed(world, ue);
  const node::HandoverReport report = last_report(world, "b");
  const node::TargetPhases phases = report.phases.value();
  ASSERT_TRUE(phases.part_attached.happened());
  ASSERT_TRUE(phases.covered.happened());
  EXPECT_LT(phases.part_attached.at(), phases.first_token_written.at());
  EXPECT_EQ(phases.partial_decode.begin.at(), phases.part_attached.at());
  EXPECT_EQ(phases.partial_decode.end.at(), phases.covered.at());
  EXPECT_EQ(phases.partial_decode.tokens, report.partial->tokens);
  EXPECT_GT(phases.back_fill.tokens, 100u);
  EXPECT_LE(phases.back_fill.end.at(), phases.rebuild.begin.at());
  EXPECT_EQ(phases.rebuild.tokens, report.tokens_total + report.partial->tokens_replayed);
  ASSERT_TRUE(phases.release_acknowledged.happened());
  EXPECT_GT(phases.release_acknowledged.at(), phases.covered.at());
}

}  // namespace
}  // namespace pallas::test
