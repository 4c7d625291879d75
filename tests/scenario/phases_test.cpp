// What source and target report about the phases of one handover, on virtual time: complete and in
// order under every scheme, whether the handover was foreseen or not.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "virtual_gnbs.h"

namespace pallas::test {
namespace {

using namespace std::chrono_literals;
using node::Mark;
using node::Stretch;

struct Both {
  node::HandoverReport target;
  node::DepartureReport source;
};

// The only handover of a world from a to b.
Both reports_of(VirtualGnbs& world) {
  EXPECT_EQ(world.node("b").handovers().size(), 1u);
  EXPECT_EQ(world.node("a").departures().size(), 1u);
  EXPECT_TRUE(world.node("b").departures().empty());
  EXPECT_TRUE(world.node("a").handovers().empty());
  if (world.node("b").handovers().empty() || world.node("a").departures().empty()) return {};
  Both both{world.node("b").handovers().front(), world.node("a").departures().front()};
  EXPECT_EQ(both.source.id, both.target.id);
  EXPECT_EQ(both.source.scheme, both.target.scheme);
  EXPECT_EQ(both.source.relay, both.target.relay);
  EXPECT_EQ(both.source.target, both.target.target);
  EXPECT_EQ(both.source.source, both.target.source);
  return both;
}

struct Step {
  const char* name;
  Mark mark;
};

// All of them happened, each at or after the one before.
void expect_in_order(const std::vector<Step>& steps) {
  const Step* before = nullptr;
  for (const Step& step : steps) {
    EXPECT_TRUE(step.mark.happened()) << step.name;
    if (!step.mark.happened()) continue;
    if (before != nullptr) {
      EXPECT_LE(before->mark.at(), step.mark.at()) << before->name << " after " << step.name;
    }
    before = &step;
  }
}

// `claimed_with`: what the target sent. The radio's word that the UE has left may end the source's
// step, and send its status, before the claim arrives (rule 1).
void expect_handover_in_order(const Both& both, const Mark& claimed_with) {
  const auto& s = both.source.phases;
  const auto t = both.target.phases.value();
  expect_in_order({{"ran_execution", s.ran_execution},
                   {"attached", t.attached},
                   {"the claim", claimed_with},
                   {"claim_received", s.claim_received},
                   {"released", s.released}});
  expect_in_order({{"ran_execution", s.ran_execution},
                   {"step_ended", s.step_ended},
                   {"status_sent", s.status_sent},
                   {"status_received", t.status_received},
                   {"covered", t.covered}});
  if (both.target.shadow_used) {
    EXPECT_FALSE(t.decode_asked.happened());
    EXPECT_FALSE(t.first_step_begun.happened());
  } else {
    expect_in_order({{"covered", t.covered},
                     {"decode_asked", t.decode_asked},
                     {"first_step_begun", t.first_step_begun},
                     {"first_step_ended", t.first_step_ended},
                     {"first_token_written", t.first_token_written}});
  }
  expect_in_order({{"covered", t.covered},
                   {"first_token_written", t.first_token_written},
                   {"release_sent", t.release_sent},
                   {"released", s.released},
                   {"release_acknowledged", t.release_acknowledged}});
}

void expect_within(const char* name, const Stretch& stretch, const Mark& from, const Mark& to) {
  if (stretch.count == 0) return;
  EXPECT_GT(stretch.tokens, 0u) << name;
  expect_in_order({{"its boundary", from}, {name, stretch.begin}, {name, stretch.end}});
  EXPECT_LE(stretch.end.at(), to.at()) << name;
}

// What is counted twice is counted alike.
void expect_counts_agree(const Both& both) {
  const auto& s = both.source.phases;
  const auto t = both.target.phases.value();
  EXPECT_EQ(t.prefill.tokens, both.target.tokens_recomputed);
  EXPECT_EQ(t.replay.tokens, both.target.tokens_replayed);
  EXPECT_EQ(t.rows_attached.tokens + t.tail_attached.tokens, both.target.tokens_received);
  EXPECT_GE(s.rows_sent.tokens + s.tail_sent.tokens,
            t.rows_received.tokens + t.tail_received.tokens);
  EXPECT_GE(both.source.bytes, both.target.bytes);
  EXPECT_EQ(t.prefill.count > 0, t.prefill.busy.count() > 0);
  EXPECT_EQ(t.shadow.tokens, both.target.shadow_tokens);
  if (both.target.status_ms) {
    EXPECT_EQ(*both.target.status_ms, to_ms(t.status_received.at() - t.attached.at()));
  }
}

class PhasesUnderEachScheme : public testing::TestWithParam<const char*> {
 protected:
  Both hand_over(Duration prediction) {
    VirtualGnbs world({.scheme = GetParam()});
    VirtualUe& ue = world.open("a", 300, [](auto& p) {
      p.max_token_rate = 25;
      p.max_tokens = 300;
    });
    world.clock.run_for(5s);
    world.hand_over(ue, "a", "b", prediction);
    EXPECT_TRUE(world.clock.run_until([&] { return ue.finished.has_value(); }, 120s));
    EXPECT_EQ(ue.transcript.breaches(), std::vector<std::string>{});
    return reports_of(world);
  }
  bool is_one_of(const std::set<std::string>& schemes) const {
    return schemes.contains(GetParam());
  }
};

TEST_P(PhasesUnderEachScheme, of_a_foreseen_handover_are_complete_and_in_order) {
  const Both both = hand_over(3s);
  const auto& s = both.source.phases;
  const auto t = both.target.phases.value();
  expect_counts_agree(both);
  const bool prepares = is_one_of({"pallas", "pallas-no-rc", "pallas-no-sm", "two-front"});
  EXPECT_EQ(both.target.prepared, prepares);
  EXPECT_EQ(both.source.prepared, prepares);
  if (!prepares) {
    expect_handover_in_order(both, t.retrieve_sent);
    EXPECT_EQ(s.rows_sent.count, 0u);
    EXPECT_EQ(t.rows_received.count, 0u);
    return;
  }
  expect_in_order({{"request_sent", s.request_sent},
                   {"request_received", t.request_received},
                   {"acknowledge_sent", t.acknowledge_sent},
                   {"acknowledged", s.acknowledged},
                   {"ran_execution", s.ran_execution}});
  expect_handover_in_order(both, t.claim_sent);
  EXPECT_TRUE(t.ran_execution.happened());
  expect_in_order({{"fronts_met", t.fronts_met}, {"covered", t.covered}});
  const bool recomputes = !is_one_of({"pallas-no-rc"});
  EXPECT_EQ(t.prefill.count > 0, recomputes);
  const bool sends = !is_one_of({"pallas-no-sm"});
  EXPECT_EQ(s.rows_sent.count > 0, sends);
  EXPECT_EQ(t.rows_received.count > 0, sends);
  expect_within("rows_sent", s.rows_sent, s.acknowledged, s.ran_execution);
  expect_within("rows_received", t.rows_received, s.rows_sent.begin, t.attached);
  expect_within("rows_attached", t.rows_attached, t.rows_received.begin, t.attached);
  expect_within("prefill", t.prefill, t.request_received, t.covered);
  expect_within("shadow", t.shadow, t.acknowledge_sent, t.covered);
  expect_within("tail_sent", s.tail_sent, s.ran_execution, t.release_sent);
  expect_within("tail_received", t.tail_received, t.attached, t.covered);
  expect_within("tail_attached", t.tail_attached, t.attached, t.covered);
  expect_within("replay", t.replay, t.request_received, t.covered);
  EXPECT_EQ(*both.target.request_ms, to_ms(t.request_received.at() - t.attached.at()));
}

TEST_P(PhasesUnderEachScheme, of_a_handover_that_nobody_foresaw_are_complete_and_in_order) {
  const Both both = hand_over(0s);
  const auto& s = both.source.phases;
  const auto t = both.target.phases.value();
  EXPECT_FALSE(both.target.prepared);
  expect_counts_agree(both);
  expect_handover_in_order(both, t.retrieve_sent);
  EXPECT_TRUE(s.response_sent.happened());
  EXPECT_EQ(t.rows_received.count, 0u);
  EXPECT_EQ(t.rows_attached.count, 0u);
  expect_within("tail_sent", s.tail_sent, s.claim_received, t.release_sent);
  expect_within("tail_received", t.tail_received, t.attached, t.covered);
  expect_within("tail_attached", t.tail_attached, t.tail_received.begin, t.covered);
  expect_within("prefill", t.prefill, t.attached, t.covered);
  EXPECT_EQ(s.tail_sent.count > 0, !is_one_of({"recompute", "pallas-no-sm"}));
}

INSTANTIATE_TEST_SUITE_P(schemes, PhasesUnderEachScheme,
                         testing::Values("full-copy", "recompute", "ctho", "pallas", "pallas-no-rc",
                                         "pallas-no-sm", "two-front"),
                         [](const auto& p) {
                           std::string name = p.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Phases, of_a_relay_end_with_the_owners_first_token) {
  VirtualGnbs world({.scheme = "detour"});
  VirtualUe& ue = world.open("a", 100, [](auto& p) { p.max_token_rate = 25; });
  world.clock.run_for(3s);
  world.hand_over(ue, "a", "b", 1s);
  world.clock.run_for(2s);
  const Both both = reports_of(world);
  EXPECT_TRUE(both.source.relay);
  const auto t = both.target.phases.value();
  expect_in_order({{"ran_execution", both.source.phases.ran_execution},
                   {"attached", t.attached},
                   {"claim_received", both.source.phases.claim_received},
                   {"first_token_written", t.first_token_written}});
  EXPECT_FALSE(t.covered.happened());
  EXPECT_FALSE(both.source.phases.status_sent.happened());
}

TEST(Phases, belong_to_the_preparation_that_the_handover_used) {
  VirtualGnbs world({});
  VirtualUe& ue = world.open("a", 300, [](auto& p) { p.max_token_rate = 25; });
  world.clock.run_for(3s);
  world.predict(ue, "a", "c", 400ms);
  world.clock.run_for(300ms);
  world.withdraw(ue, "a");
  EXPECT_GT(world.count("a", "c", "KvBlock"), 0u);
  world.clock.run_for(3s);
  EXPECT_TRUE(world.node("a").departures().empty());  // nobody claimed anything
  const TimePoint second = world.clock.now();
  world.hand_over(ue, "a", "b", 2s);
  world.clock.run_for(2s);
  const Both both = reports_of(world);
  EXPECT_GE(both.source.phases.request_sent.at(), second);
  EXPECT_GE(both.source.phases.rows_sent.begin.at(), second);
  EXPECT_GE(both.target.phases.value().prefill.begin.at(), second);
}

TEST(Phases, of_a_way_gone_again_are_its_own) {
  VirtualGnbs world({});
  VirtualUe& ue = world.open("a", 200, [](auto& p) { p.max_token_rate = 25; });
  world.clock.run_for(3s);
  world.hand_over(ue, "a", "b", 2s);
  world.clock.run_for(3s);
  world.hand_over(ue, "b", "a", 2s);
  world.clock.run_for(3s);
  const TimePoint again = world.clock.now();
  world.hand_over(ue, "a", "b", 2s);
  world.clock.run_for(3s);
  ASSERT_EQ(world.node("a").departures().size(), 2u);
  ASSERT_EQ(world.node("b").handovers().size(), 2u);
  const auto check = [&](const auto& phases) {
    node::for_each_phase(phases, [&](const char* name, const auto& phase) {
      if constexpr (std::is_same_v<std::decay_t<decltype(phase)>, Mark>) {
        if (phase.happened()) {
          EXPECT_GE(phase.at(), again) << name;
        }
      } else if (phase.count > 0) {
        EXPECT_GE(phase.begin.at(), again) << name;
      }
    });
  };
  check(world.node("a").departures().back().phases);
  check(world.node("b").handovers().back().phases.value());
}

TEST(Phases, of_a_target_that_dies_are_kept_by_the_source_until_it_gives_up) {
  VirtualGnbs world({.configure = [](auto& c) { c.frozen = 5s; }});
  VirtualUe& ue = world.open("a", 300, [](auto& p) { p.max_token_rate = 25; });
  world.clock.run_for(3s);
  world.delay_messages(wire::Message(wire::UeContextRelease{}).index(), 20s);
  world.hand_over(ue, "a", "b", 2s);
  world.clock.run_for(1s);
  world.kill("b");
  world.clock.run_for(8s);
  ASSERT_EQ(world.node("a").departures().size(), 1u);
  const auto& s = world.node("a").departures().front().phases;
  expect_in_order({{"ran_execution", s.ran_execution}, {"status_sent", s.status_sent}});
  EXPECT_TRUE(s.claim_received.happened());
  EXPECT_FALSE(s.released.happened());
}

}  // namespace
}  // namespace pallas::test
