// Shadow decoding: the target goes with its source before the handover, and nobody sees a
// difference but in time.

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "scenario_checks.h"

namespace pallas::test {
namespace {

using namespace std::chrono_literals;
using mobility::HandoverPhase;
using node::Shadow;

constexpr Duration kDelays[] = {0us, 200us, 500us, 1ms, 3ms, 8ms, 16ms, 17ms, 18ms, 33ms, 60ms};

VirtualGnbs::Options with(Shadow shadow, const char* scheme = "two-front") {
  return {.scheme = scheme, .configure = [shadow](auto& c) {
            c.shadow = shadow;
            c.window_margin = 1s;  // so long before the handover two-front has caught up
          }};
}

VirtualUe& talk(VirtualGnbs& world, std::uint32_t max_tokens, double rate = 0) {
  VirtualUe& ue = world.open("a", 300, [&](auto& p) {
    p.max_tokens = max_tokens;
    p.max_token_rate = rate;
  });
  world.clock.run_for(2s);
  return ue;
}

Duration ordinary_interval(const VirtualUe& ue) {
  const auto& all = ue.transcript.entries();
  std::vector<Duration> intervals;
  for (std::size_t i = 10; i < 30; ++i) intervals.push_back(all[i].at - all[i - 1].at);
  std::nth_element(intervals.begin(), intervals.begin() + 10, intervals.end());
  return intervals[10];
}

const node::HandoverReport& only_report(VirtualGnbs& world, const std::string& gnb) {
  EXPECT_EQ(world.node(gnb).handovers().size(), 1u);
  return world.node(gnb).handovers().back();
}

TEST(ShadowDecoding, makes_the_gap_of_a_capped_session_an_ordinary_interval) {
  for (const Duration phase : kDelays) {
    SCOPED_TRACE(to_ms(phase));
    VirtualGnbs world(with(Shadow::kIdle));
    VirtualUe& ue = talk(world, 200, 25);
    world.clock.run_for(2s + phase);
    world.hand_over(ue, "a", "b", 2s);
    world.clock.run_for(1s);
    // A step takes 0.2 us longer with each position, and messages 200 us a way.
    EXPECT_NEAR(to_ms(ue.gap_at(Epoch(2))), 40, 1);
    const auto& report = only_report(world, "b");
    EXPECT_TRUE(report.shadow_used);
    EXPECT_TRUE(report.exact);
    EXPECT_GT(report.shadow_agreed, 5u);
    EXPECT_EQ(report.shadow_differed, 0u);
    expect_whole(world, ue);
  }
}

// The gap of an uncapped session over a link of so many rows a second, at a target whose steps take
// `slower` times as long as the source's, and what is ordinary.
struct Gap {
  double gap_ms = 0, ordinary_ms = 0;
  TokenPosition agreed = 0;
};
Gap uncapped_gap(Shadow shadow, double rows, double replay_share, Duration phase,
                 double slower = 1) {
  auto options = with(shadow);
  options.link.rate = BytesPerSecond(rows * 32);
  options.engine.replay_share = replay_share;
  VirtualGnbs world(options);
  world.engine("b").set_slow_factor(slower);
  VirtualUe& ue = talk(world, 390);
  world.predict(ue, "a", "b", 3s);
  world.clock.run_for(3s + phase);
  world.hand_over(ue, "a", "b", 0s);
  world.clock.run_for(1s);
  const Gap gap{to_ms(ue.gap_at(Epoch(2))), to_ms(ordinary_interval(ue)),
                only_report(world, "b").shadow_agreed};
  expect_whole(world, ue);
  return gap;
}

TEST(ShadowDecoding, makes_the_gap_of_an_uncapped_session_an_ordinary_interval) {
  // Rows that come in less than a step let the target fall into step; where they do not, steps that
  // are shorter for want of logits do.
  for (const Duration phase : kDelays) {
    SCOPED_TRACE(to_ms(phase));
    for (const auto& [rows, share] : {std::pair(2000., 1.), std::pair(120., 0.8)}) {
      const Gap on = uncapped_gap(Shadow::kIdle, rows, share, phase);
      EXPECT_LE(on.gap_ms, 1.1 * on.ordinary_ms) << rows;
      EXPECT_GT(on.agreed, 20u) << rows;
      // Where a row takes half a millisecond, there is little to gain.
      const double slack = rows > 1000 ? 0.2 : 0;
      EXPECT_LT(on.gap_ms, uncapped_gap(Shadow::kOff, rows, share, phase).gap_ms + slack) << rows;
    }
  }
}

TEST(ShadowDecoding, gets_the_session_without_waiting_for_the_sources_step) {
  double longest_wait = 0;
  int at_once = 0;
  for (const Duration phase : kDelays) {
    for (const Shadow shadow : {Shadow::kIdle, Shadow::kOff}) {
      SCOPED_TRACE(to_ms(phase));
      VirtualGnbs world(with(shadow));
      VirtualUe& ue = talk(world, 390);
      world.predict(ue, "a", "b", 3s);
      world.clock.run_for(3s + phase);
      world.hand_over(ue, "a", "b", 0s);
      world.clock.run_for(1s);
      const double status_ms = only_report(world, "b").status_ms.value_or(1000);
      if (shadow == Shadow::kOff) {
        longest_wait = std::max(longest_wait, status_ms);
      } else if (status_ms < 1) {
        ++at_once;
      }
      expect_whole(world, ue);
      expect_nothing_left(world);
    }
  }
  EXPECT_GT(longest_wait, 5);
  // All but one that met a token on its way: the target cannot have said yet that it goes on.
  EXPECT_GE(at_once, static_cast<int>(std::size(kDelays)) - 1);
}

TEST(ShadowDecoding, given_away_in_mid_step_is_whole_wherever_the_ue_goes_next) {
  for (const Duration delay : kDelays) {
    for (const char* next : {"a", "b", "c"}) {
      for (const bool radio : {false, true}) {
        SCOPED_TRACE(std::string(next) + std::to_string(to_ms(delay)));
        VirtualGnbs world(with(Shadow::kIdle));
        VirtualUe& ue = talk(world, 390);
        world.predict(ue, "a", "b", 3s);
        world.clock.run_for(3s);
        if (radio) {  // and the status comes before the UE
          world.ran(ue, HandoverPhase::kExecution, "a", "b");
          world.ran(ue, HandoverPhase::kCompleted, "a", "b");
          world.clock.run_for(delay);
        } else {
          world.hand_over(ue, "a", "b", 0s);
          world.clock.run_for(delay);
        }
        ASSERT_TRUE(world.attach(ue, next));
        expect_whole(world, ue);
        expect_nothing_left(world);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(ShadowDecoding, writes_the_tokens_in_hand_evenly_over_the_step_after_them) {
  int in_hand = 0;
  for (const Duration phase : kDelays) {
    SCOPED_TRACE(to_ms(phase));
    VirtualGnbs world(with(Shadow::kIdle));
    VirtualUe& ue = talk(world, 390);
    world.predict(ue, "a", "b", 3s);
    world.clock.run_for(3s + phase);
    world.hand_over(ue, "a", "b", 0s);
    world.clock.run_for(1s);
    if (only_report(world, "b").shadow_used) ++in_hand;
    const Duration ordinary = ordinary_interval(ue);
    const auto& all = ue.transcript.entries();
    auto own = std::find_if(all.begin(), all.end(), [](const auto& e) {
      return e.epoch == Epoch(2) && e.by == NodeId("b");
    });
    ASSERT_NE(own, all.end());
    for (int i = 0; i < 4; ++i, ++own) {
      const Duration interval = own->at - (own - 1)->at;
      EXPECT_GE(to_ms(interval), to_ms(ordinary) / 4) << i;
      EXPECT_LE(to_ms(interval), to_ms(ordinary) * 1.1) << i;
    }
    expect_whole(world, ue);
    expect_nothing_left(world);
  }
  EXPECT_GT(in_hand, 5);
}

TEST(ShadowDecoding, loses_no_token_in_hand_to_what_comes_before_it_is_written) {
  for (const Duration delay : kDelays) {
    for (const bool returns : {false, true}) {
      SCOPED_TRACE(to_ms(delay));
      VirtualGnbs world(with(Shadow::kIdle));
      VirtualUe& ue = talk(world, 390);
      world.hand_over(ue, "a", "b", 3s);
      world.clock.run_for(delay);
      if (returns) {
        ASSERT_TRUE(world.attach(ue, "b"));  // its connection broke
      } else {
        world.hand_over(ue, "b", "c", 0s);
      }
      expect_whole(world, ue);
      expect_nothing_left(world);
    }
  }
}

TEST(ShadowDecoding, is_never_worse_than_none) {
  for (const double rows : {2000., 400., 120., 80.}) {
    for (const double share : {1., 0.9}) {
      for (const Duration phase : kDelays) {
        EXPECT_LE(uncapped_gap(Shadow::kIdle, rows, share, phase).gap_ms,
                  uncapped_gap(Shadow::kOff, rows, share, phase).gap_ms + 0.2)
            << rows << " rows/s, share " << share << ", " << to_ms(phase) << " ms";
      }
    }
  }
}

TEST(ShadowDecoding,
     at_a_target_slower_than_its_source_costs_less_than_half_a_step_more_than_none) {
  for (const double rows : {2000., 120., 70.}) {
    for (const double slower : {1.05, 1.1, 1.3}) {
      for (const Duration phase : kDelays) {
        const Gap on = uncapped_gap(Shadow::kIdle, rows, 1, phase, slower);
        EXPECT_LT(on.gap_ms, uncapped_gap(Shadow::kOff, rows, 1, phase, slower).gap_ms +
                                 on.ordinary_ms * slower / 2)
            << rows << " rows/s, " << slower << ", " << to_ms(phase) << " ms";
      }
    }
  }
}

TEST(ShadowDecoding, at_a_target_that_was_held_up_catches_up_by_rows_before_the_handover) {
  auto options = with(Shadow::kIdle);
  options.link.rate = BytesPerSecond(120 * 32);
  options.engine.replay_share = 0.8;
  for (const double held : {40., 60., 90., 120.}) {
    VirtualGnbs world(options);
    VirtualUe& ue = talk(world, 390);
    world.predict(ue, "a", "b", 3s);
    world.clock.run_for(2700ms);
    EXPECT_GT(world.node("b").stats().shadow_tokens, 5u);
    world.engine("b").set_slow_factor(held / to_ms(ordinary_interval(ue)));  // its next step
    world.clock.run_for(20ms);
    world.engine("b").set_slow_factor(1);
    world.clock.run_for(280ms);
    world.hand_over(ue, "a", "b", 0s);
    world.clock.run_for(1s);
    EXPECT_LT(to_ms(ue.gap_at(Epoch(2))), 1.8 * to_ms(ordinary_interval(ue))) << held;
    expect_whole(world, ue);
  }
}

TEST(ShadowDecoding, changes_no_id_in_a_chain_of_handovers_with_any_delays) {
  for (const char* scheme : {"two-front", "pallas", "pallas-no-rc", "full-copy", "ctho"}) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      SCOPED_TRACE(std::string(scheme) + " " + std::to_string(seed));
      Random random(seed);
      std::vector<TokenId> ids[2];
      const double rate = random.below(2) == 0 ? 0 : 30;
      std::vector<Duration> spans;
      for (int i = 0; i < 8; ++i) spans.push_back(std::chrono::microseconds(random.below(900'000)));
      std::vector<Duration> delays;
      for (int i = 0; i < 4; ++i) delays.push_back(std::chrono::microseconds(random.below(40'000)));
      for (const bool on : {false, true}) {
        VirtualGnbs world(with(on ? Shadow::kIdle : Shadow::kOff, scheme));
        const auto delay = [&](std::size_t type, Duration by) { world.delay_messages(type, by); };
        delay(wire::Message(std::in_place_type<wire::TokenUpdate>).index(), delays[0] / 4);
        delay(wire::Message(std::in_place_type<wire::SnStatusTransfer>).index(), delays[1]);
        delay(wire::Message(std::in_place_type<wire::HandoverSuccess>).index(), delays[2]);
        delay(wire::Message(std::in_place_type<wire::PreparationProgress>).index(), delays[3]);
        VirtualUe& ue = world.open("a", 120, [&](auto& p) {
          p.max_tokens = 260;
          p.max_token_rate = rate;
          p.repeat_penalty = 1.2;
        });
        const char* at[] = {"a", "b", "c", "a", "b"};
        for (int i = 0; i < 4; ++i) {
          world.clock.run_for(spans[static_cast<std::size_t>(2 * i)]);
          world.hand_over(ue, at[i], at[i + 1], spans[static_cast<std::size_t>(2 * i + 1)]);
        }
        expect_whole(world, ue);
        ids[on ? 1 : 0] = ue.transcript.ids();
        for (const char* name : {"a", "b", "c"}) {
          EXPECT_EQ(world.node(name).stats().shadow_differed, 0u) << name;
          for (const auto& report : world.node(name).handovers()) EXPECT_TRUE(report.exact);
        }
        expect_nothing_left(world);
        if (testing::Test::HasFailure()) return;
      }
      EXPECT_EQ(ids[0], ids[1]);
    }
  }
}

TEST(ShadowDecoding, that_differs_is_dropped_and_the_ue_sees_the_sources_ids) {
  VirtualGnbs world(with(Shadow::kIdle));
  world.engine("b").sample_wrongly(true);
  VirtualUe& ue = talk(world, 200);
  world.predict(ue, "a", "b", 1s);
  world.clock.run_for(1s);
  EXPECT_EQ(world.node("b").stats().shadow_differed, 1u);
  const auto steps = world.node("b").stats().shadow_tokens;
  world.clock.run_for(500ms);
  EXPECT_EQ(world.node("b").stats().shadow_tokens, steps) << "one that is refuted goes on";
  world.engine("b").sample_wrongly(false);
  world.hand_over(ue, "a", "b", 0s);
  expect_whole(world, ue);
  const auto& report = only_report(world, "b");
  EXPECT_EQ(report.shadow_differed, 1u);
  EXPECT_FALSE(report.shadow_used);
  EXPECT_FALSE(report.exact) << "either the KV or the engine is not what it was taken for";
}

TEST(ShadowDecoding, on_recomputed_kv_of_a_fast_session_never_contradicts_the_source) {
  auto options = with(Shadow::kIdle);
  options.engine.replay_share = 0.8;
  VirtualGnbs world(options);
  VirtualUe& ue = world.open("a", 300, [](auto& p) {
    p.max_tokens = 390;
    p.consistency = wire::Consistency::kFast;
  });
  world.clock.run_for(3s);
  world.predict(ue, "a", "b", 2s);
  world.clock.run_for(2s);
  world.hand_over(ue, "a", "b", 0s);
  ASSERT_TRUE(world.clock.run_until([&] { return ue.finished.has_value(); }, 60s));
  expect_clean(world, ue);
  const auto& report = only_report(world, "b");
  EXPECT_GT(report.shadow_tokens, 0u);
  // FakeEngine's ids show any row that is not the source's.
  EXPECT_TRUE(report.exact || report.shadow_differed > 0);
}

// Four that leave at once: the source takes one step for all of them, and each one's row has its
// turn on the link after its id.
TEST(ShadowDecoding, of_a_group_gives_most_of_them_their_token_at_once) {
  for (const Duration phase : kDelays) {
    SCOPED_TRACE(to_ms(phase));
    auto options = with(Shadow::kIdle);
    options.link.rate = BytesPerSecond(271 * 32);  // SmolLM2-135M over 50 Mbit/s, on one core
    options.engine.info.profile.decode = {
        {1, 0, Seconds(0.023)}, {2, 0, Seconds(0.04)}, {4, 0, Seconds(0.075)}};
    const auto configure = options.configure;
    options.configure = [configure](auto& c) {
      configure(c);
      c.t_max = 30s;
    };
    VirtualGnbs world(options);
    std::vector<VirtualUe*> ues;
    for (int i = 0; i < 4; ++i) {
      ues.push_back(&world.open("a", 200, [](auto& p) { p.max_tokens = 800; }));
    }
    world.clock.run_for(1s);
    for (VirtualUe* ue : ues) world.predict(*ue, "a", "b", 20s);
    world.clock.run_for(20s + phase);
    for (VirtualUe* ue : ues) world.hand_over(*ue, "a", "b", 0s);
    world.clock.run_for(1s);
    std::vector<double> status_ms;
    for (const node::HandoverReport& report : world.node("b").handovers()) {
      EXPECT_TRUE(report.exact);
      status_ms.push_back(report.status_ms.value_or(1000));
    }
    ASSERT_EQ(status_ms.size(), 4u);
    std::sort(status_ms.begin(), status_ms.end());
    EXPECT_LT(status_ms[2], 5);
    for (VirtualUe* ue : ues) expect_whole(world, *ue);
    expect_nothing_left(world);
  }
}

TEST(ShadowDecoding, stays_away_where_the_engine_does_not_claim_exact_steps) {
  auto options = with(Shadow::kAlways);
  options.engine.info.capabilities.exact_single_step = false;
  VirtualGnbs world(options);
  VirtualUe& ue = talk(world, 200);
  world.hand_over(ue, "a", "b", 1s);
  expect_whole(world, ue);
  EXPECT_EQ(world.node("b").stats().shadow_tokens, 0u);
}

TEST(ShadowDecoding, is_off_where_it_is_switched_off_or_nothing_is_prepared) {
  for (const bool prepared : {true, false}) {
    VirtualGnbs world(with(prepared ? Shadow::kOff : Shadow::kAlways));
    VirtualUe& ue = talk(world, 200);
    world.hand_over(ue, "a", "b", prepared ? 1s : 0s);
    expect_whole(world, ue);
    EXPECT_EQ(world.node("b").stats().shadow_tokens, 0u);
  }
}

TEST(ShadowDecoding, gives_way_to_residents_and_comes_back_when_they_are_done) {
  VirtualGnbs world(with(Shadow::kIdle));
  VirtualUe& ue = talk(world, 390);
  world.predict(ue, "a", "b", 2s);
  world.clock.run_for(1500ms);
  EXPECT_GT(world.node("b").stats().shadow_tokens, 0u);
  VirtualUe& resident = world.open("b", 50, [](auto& p) { p.max_tokens = 40; });
  world.clock.run_for(100ms);
  const auto before = world.node("b").stats().shadow_tokens;
  world.clock.run_for(300ms);
  EXPECT_FALSE(resident.finished);
  EXPECT_EQ(world.node("b").stats().shadow_tokens, before);
  ASSERT_TRUE(world.clock.run_until([&] { return resident.finished.has_value(); }, 10s));
  world.clock.run_for(300ms);
  EXPECT_GT(world.node("b").stats().shadow_tokens, before);
  world.hand_over(ue, "a", "b", 0s);
  expect_whole(world, ue);
  EXPECT_TRUE(only_report(world, "b").exact);
}

TEST(ShadowDecoding, goes_on_beside_residents_where_it_is_always_on) {
  VirtualGnbs world(with(Shadow::kAlways));
  VirtualUe& resident = world.open("b", 50, [](auto& p) { p.max_tokens = 300; });
  VirtualUe& ue = talk(world, 200, 25);
  world.hand_over(ue, "a", "b", 1s);
  EXPECT_GT(world.node("b").stats().shadow_tokens, 0u);
  expect_whole(world, ue);
  expect_whole(world, resident);
}

TEST(ShadowDecoding, spares_the_link_the_rows_that_the_target_computes) {
  std::size_t blocks[2];
  for (const bool on : {false, true}) {
    VirtualGnbs world(with(on ? Shadow::kIdle : Shadow::kOff));
    VirtualUe& ue = talk(world, 390);
    world.predict(ue, "a", "b", 2s);
    world.clock.run_for(1500ms);
    const auto before = world.count("a", "b", "KvBlock");
    world.clock.run_for(500ms);
    blocks[on ? 1 : 0] = world.count("a", "b", "KvBlock") - before;
    world.hand_over(ue, "a", "b", 0s);
    expect_whole(world, ue);
  }
  EXPECT_GT(blocks[0], 20u);
  EXPECT_EQ(blocks[1], 0u);
}

TEST(ShadowDecoding, follows_a_capped_session_at_its_rate_and_one_token_ahead) {
  VirtualGnbs world(with(Shadow::kIdle));
  VirtualUe& ue = talk(world, 200, 10);
  world.predict(ue, "a", "b", 2s);
  world.clock.run_for(1500ms);
  const auto before = world.node("b").stats().shadow_tokens;
  const auto written = ue.transcript.entries().size();
  world.clock.run_for(1s);
  EXPECT_EQ(world.node("b").stats().shadow_tokens - before,
            ue.transcript.entries().size() - written);
  const auto stats = world.node("b").stats();
  EXPECT_EQ(stats.shadow_tokens, stats.shadow_agreed + 1) << "the last one is not compared yet";
}

TEST(ShadowDecoding, cancelled_at_any_moment_frees_the_target_or_is_taken_up_again) {
  for (const Duration delay : kDelays) {
    for (const bool again : {false, true}) {
      SCOPED_TRACE(testing::Message() << to_ms(delay) << (again ? " again" : ""));
      VirtualGnbs world(with(Shadow::kIdle));
      VirtualUe& ue = talk(world, 300);
      world.predict(ue, "a", "b", 2s);
      world.clock.run_for(1500ms + delay);
      const auto recomputed = world.engine("b").stats().prefilled_tokens;
      world.withdraw(ue, "a");
      if (again) {
        world.clock.run_for(delay);
        world.predict(ue, "a", "b", 1s);
        world.clock.run_for(500ms);
        world.hand_over(ue, "a", "b", 0s);
        EXPECT_EQ(world.engine("b").stats().prefilled_tokens, recomputed) << "rule 7: kept";
        expect_whole(world, ue);
        EXPECT_TRUE(only_report(world, "b").exact);
      } else {
        world.clock.run_for(2100ms);  // flap_s
        EXPECT_EQ(world.engine("b").live_slots(), 0u);
        expect_whole(world, ue);
      }
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(ShadowDecoding, withdrawn_and_arrived_all_the_same_at_any_moment) {
  for (const Duration delay : kDelays) {
    SCOPED_TRACE(to_ms(delay));
    VirtualGnbs world(with(Shadow::kIdle));
    VirtualUe& ue = talk(world, 300);
    world.predict(ue, "a", "b", 2s);
    world.clock.run_for(1700ms);
    world.withdraw(ue, "a");
    world.clock.run_for(delay);
    ASSERT_TRUE(world.attach(ue, "b"));
    expect_whole(world, ue);
    expect_nothing_left(world);
    if (testing::Test::HasFailure()) return;
  }
}

// The target is a token further than anybody has confirmed, and that token is wrong.
TEST(ShadowDecoding, withdrawn_on_a_wrong_token_never_uses_what_was_built_upon_it) {
  for (Duration wrong_for = 0ms; wrong_for < 60ms; wrong_for += 3ms) {
    for (const Duration delay : {0ms, 1ms, 7ms, 40ms}) {
      SCOPED_TRACE(testing::Message() << to_ms(wrong_for) << " " << to_ms(delay));
      VirtualGnbs world(with(Shadow::kIdle));
      VirtualUe& ue = talk(world, 300);
      world.predict(ue, "a", "b", 2s);
      world.clock.run_for(1700ms);
      world.engine("b").sample_wrongly(true);
      world.clock.run_for(wrong_for);
      world.withdraw(ue, "a");
      world.clock.run_for(delay);
      world.engine("b").sample_wrongly(false);
      ASSERT_TRUE(world.attach(ue, "b"));
      expect_whole(world, ue);
      expect_nothing_left(world);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(ShadowDecoding, outlives_a_source_that_dies_with_its_token_in_hand) {
  for (const Duration delay : kDelays) {
    SCOPED_TRACE(to_ms(delay));
    VirtualGnbs world(with(Shadow::kIdle));
    VirtualUe& ue = talk(world, 300);
    world.predict(ue, "a", "b", 2s);
    world.clock.run_for(1700ms + delay);
    world.kill("a");
    ASSERT_TRUE(world.attach(ue, "b"));
    expect_whole(world, ue);
    EXPECT_TRUE(only_report(world, "b").exact);
  }
}

TEST(ShadowDecoding, holds_its_token_for_the_reader_and_gives_it_up_to_the_next_handover) {
  // Two handovers within one interval: the second meets the token that is not due yet.
  for (const Duration delay : kDelays) {
    SCOPED_TRACE(to_ms(delay));
    VirtualGnbs world(with(Shadow::kIdle));
    VirtualUe& ue = talk(world, 60, 4);
    world.hand_over(ue, "a", "b", 2s);
    world.clock.run_for(delay);
    world.hand_over(ue, "b", "c", 0s);
    expect_whole(world, ue);
    expect_nothing_left(world);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(ShadowDecoding, of_the_last_tokens_ends_the_session_once) {
  for (std::uint32_t tokens = 100; tokens < 112; ++tokens) {
    SCOPED_TRACE(tokens);
    VirtualGnbs world(with(Shadow::kIdle));
    VirtualUe& ue = world.open("a", 100, [&](auto& p) { p.max_tokens = tokens; });
    world.predict(ue, "a", "b", 2500ms);
    world.clock.run_until([&] { return ue.transcript.entries().size() >= 99; }, 60s);
    world.hand_over(ue, "a", "b", 0s);
    expect_whole(world, ue);
    expect_nothing_left(world);
  }
}

TEST(ShadowDecoding, stopped_at_any_moment_leaves_nothing) {
  for (const Duration delay : kDelays) {
    VirtualGnbs world(with(Shadow::kIdle));
    VirtualUe& ue = talk(world, 300);
    world.predict(ue, "a", "b", 2s);
    world.clock.run_for(1500ms + delay);
    ASSERT_TRUE(world.node("b").stop(ue.session, "", NodeId()));
    world.clock.run_for(1s);
    EXPECT_TRUE(ue.finished);
    expect_nothing_left(world);
  }
}

TEST(ShadowDecoding, names_the_target_for_tokens_that_it_had_first) {
  VirtualGnbs world(with(Shadow::kIdle));
  VirtualUe& ue = talk(world, 200, 25);
  world.predict(ue, "a", "b", 1s);
  world.clock.run_for(1s);
  // The claim is late, so that the source decodes on for a while after the UE has come.
  world.delay_messages(wire::Message(std::in_place_type<wire::HandoverSuccess>).index(), 150ms);
  world.hand_over(ue, "a", "b", 0s);
  const auto attached = world.clock.now();
  expect_whole(world, ue);
  std::size_t from_source = 0, from_target = 0;
  for (const auto& entry : ue.transcript.entries()) {
    if (entry.at <= attached + 1ms || entry.at > attached + 150ms) continue;
    (entry.by == NodeId("b") ? from_target : from_source) += 1;
  }
  EXPECT_EQ(from_source, 0u);
  EXPECT_GE(from_target, 3u);
}

}  // namespace
}  // namespace pallas::test
