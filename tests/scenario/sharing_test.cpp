// Several sessions move from one gNB to another at a time, over one link: how each rule shares it
// (docs/schemes.md, "Sharing a link").

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "scenario_checks.h"

namespace pallas::test {
namespace {

using namespace std::chrono_literals;
using mobility::HandoverPhase;
using plan::LinkSharing;

// As SmolLM2-135M over 50 Mbit/s: a little more than the target prefills.
constexpr double kRowsPerSecond = 271;

struct Moves {
  std::string scheme = "ctho";
  LinkSharing sharing = LinkSharing::kTurns;
  std::vector<TokenPosition> prompts = {240, 480, 720, 960};
  Duration apart{0};      // from one handover to the next
  Duration foreseen{2s};  // zero: not at all
  Duration deadline{4s};  // of fraction_at_deadline
  double rows_per_second = kRowsPerSecond;
  std::uint32_t max_tokens = 240;
  Duration frozen_at_a{30s};
};

struct Outcome {
  std::vector<node::HandoverReport> reports;  // of the movers, in their order
  plan::Utility utility;

  double worst_ms() const {
    double worst = 0;
    for (const auto& r : reports) worst = std::max(worst, r.first_token_ms.value_or(1e9));
    return worst;
  }
  double mean_accuracy() const {
    double sum = 0;
    for (const auto& r : reports) sum += utility.value(r.fraction_at_deadline.value_or(0));
    return sum / static_cast<double>(reports.size());
  }
  double least_fraction() const {
    double least = 1;
    for (const auto& r : reports) least = std::min(least, r.fraction_at_deadline.value_or(0));
    return least;
  }
};

// Each mover's session is whole, and what each gNB holds is none of it.
Outcome move(const Moves& moves) {
  VirtualGnbs::Options options;
  options.scheme = moves.scheme;
  options.engine.info.slots = std::max<std::uint32_t>(8, moves.prompts.size());
  options.link.rate = BytesPerSecond(moves.rows_per_second * 32);
  options.configure = [&moves](node::NodeConfig& c) {
    c.link_sharing = moves.sharing;
    c.fraction_deadline = moves.deadline;
    c.shadow = node::Shadow::kOff;
    c.peer_answer = 30s;
    if (c.name == NodeId("a")) c.frozen = moves.frozen_at_a;
  };
  Outcome outcome;
  VirtualGnbs world(options);
  outcome.utility = world.node("a").config().utility;
  std::vector<VirtualUe*> ues;
  for (const TokenPosition prompt : moves.prompts) {
    ues.push_back(&world.open("a", prompt, [&moves](wire::SessionParams& p) {
      p.max_tokens = moves.max_tokens;
      p.max_token_rate = 4;
    }));
  }
  world.clock.run_for(20s);
  const TimePoint first = world.clock.now() + std::max(moves.foreseen, Duration(1ms));
  for (std::size_t i = 0; moves.foreseen > 0s && i < ues.size(); ++i) {
    const Duration later = moves.apart * static_cast<std::int64_t>(i);
    world.predict(*ues[i], "a", "b", first + later - world.clock.now());
  }
  for (std::size_t i = 0; i < ues.size(); ++i) {
    const TimePoint at = first + moves.apart * static_cast<std::int64_t>(i);
    world.clock.run_for(std::max(Duration(at - world.clock.now()), Duration(0)));
    world.hand_over(*ues[i], "a", "b", 0s);
  }
  for (VirtualUe* ue : ues) expect_whole(world, *ue);
  for (const VirtualUe* ue : ues) {
    for (const auto& report : world.node("b").handovers()) {
      if (report.session == ue->session) outcome.reports.push_back(report);
    }
  }
  EXPECT_EQ(outcome.reports.size(), moves.prompts.size());
  expect_nothing_left(world);
  return outcome;
}

std::string name_of(LinkSharing sharing) {
  return std::string(plan::to_string(sharing));
}

class EverySharing : public testing::TestWithParam<LinkSharing> {};

TEST_P(EverySharing, brings_every_session_over_whole) {
  for (const char* scheme : {"two-front", "pallas", "ctho", "full-copy"}) {
    SCOPED_TRACE(scheme);
    const Outcome outcome = move({.scheme = scheme, .sharing = GetParam()});
    for (const auto& report : outcome.reports) EXPECT_TRUE(report.exact);
  }
}

TEST_P(EverySharing, keeps_the_link_as_busy_as_turns_do) {
  const Moves moves{.scheme = "full-copy"};
  Moves shared = moves;
  shared.sharing = GetParam();
  // The last byte of all comes when it must, whoever is the last.
  const double turns = move(moves).worst_ms();
  EXPECT_NEAR(move(shared).worst_ms(), turns, 0.02 * turns) << name_of(GetParam());
}

INSTANTIATE_TEST_SUITE_P(rules, EverySharing,
                         testing::Values(LinkSharing::kTurns, LinkSharing::kFirstCome,
                                         LinkSharing::kEqual, LinkSharing::kCtho,
                                         LinkSharing::kWaterFilling),
                         [](const auto& p) {
                           std::string name = name_of(p.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

Outcome move_by(LinkSharing sharing, Moves moves) {
  moves.sharing = sharing;
  return move(moves);
}

const std::vector<std::vector<TokenPosition>> kOrders = {
    {240, 480, 720, 960}, {960, 720, 480, 240}, {600, 600, 600, 600}};
// What the link needs for a block.
constexpr double kBlockMs = 16 / kRowsPerSecond * 1000;

TEST(Sharing, by_ctho_makes_the_worst_user_wait_no_longer_than_first_come) {
  for (const auto& prompts : kOrders) {
    for (const Duration foreseen : {Duration(2s), Duration(0s)}) {
      const Moves moves{.prompts = prompts, .foreseen = foreseen};
      const double first_come = move_by(LinkSharing::kFirstCome, moves).worst_ms();
      const double ctho = move_by(LinkSharing::kCtho, moves).worst_ms();
      // Splits of single users are whole blocks, and may round either way.
      EXPECT_LE(ctho, first_come + 2 * kBlockMs);
    }
  }
}

TEST(Sharing, by_ctho_knows_who_follows) {
  for (const auto& prompts : kOrders) {
    const Moves moves{.prompts = prompts, .apart = 300ms};
    const double first_come = move_by(LinkSharing::kFirstCome, moves).worst_ms();
    const double ctho = move_by(LinkSharing::kCtho, moves).worst_ms();
    EXPECT_LT(ctho, 0.9 * first_come);
  }
}

TEST(Sharing, by_ctho_recomputes_the_same_part_of_all) {
  const Outcome outcome = move_by(LinkSharing::kCtho, {.prompts = {400, 600, 800, 960}});
  for (const auto& report : outcome.reports) {
    EXPECT_EQ(report.tokens_recomputed, outcome.reports.front().tokens_recomputed);
  }
}

TEST(Sharing, by_first_come_serves_one_after_the_other) {
  const Outcome outcome =
      move_by(LinkSharing::kFirstCome, {.scheme = "full-copy", .prompts = kOrders[2]});
  EXPECT_EQ(outcome.reports[0].fraction_at_deadline, 1);
  EXPECT_LT(outcome.reports[1].fraction_at_deadline, 1);
  EXPECT_EQ(outcome.reports[2].fraction_at_deadline, 0);
  EXPECT_EQ(outcome.reports[3].fraction_at_deadline, 0);
}

TEST(Sharing, does_not_take_a_source_that_serves_others_first_for_one_that_stands_still) {
  const Outcome outcome = move_by(LinkSharing::kFirstCome, {.scheme = "full-copy"});
  EXPECT_GT(outcome.worst_ms(), 9000);  // the last one waits longer than a stall is suffered
  for (const auto& report : outcome.reports) {
    EXPECT_EQ(report.tokens_recomputed, 0u);
    EXPECT_EQ(report.tokens_overlap, 0u);
  }
}

TEST(Sharing, by_turns_lets_nobody_starve) {
  const Moves moves{.scheme = "full-copy", .prompts = std::vector<TokenPosition>(20, 220)};
  const Outcome outcome = move(moves);
  EXPECT_GT(outcome.worst_ms(), 15000);
  for (const auto& report : outcome.reports) {
    EXPECT_EQ(report.tokens_recomputed, 0u);
    // All come to their end at about the same time.
    EXPECT_GT(report.first_token_ms.value_or(0), 0.8 * outcome.worst_ms());
  }
}

TEST(Sharing, by_turns_takes_no_queueing_for_a_stall_however_long_a_round) {
  // A round of all takes longer than a target suffers silence, and than a source keeps its KV for a
  // target that shows no progress.
  const Moves moves{.scheme = "full-copy",
                    .prompts = std::vector<TokenPosition>(20, 100),
                    .rows_per_second = 60,
                    .max_tokens = 120,
                    .frozen_at_a = 4s};
  const Outcome outcome = move(moves);
  EXPECT_GT(outcome.worst_ms(), 50000);
  for (const auto& report : outcome.reports) EXPECT_EQ(report.tokens_recomputed, 0u);
}

TEST(Sharing, goes_on_with_the_next_when_a_session_ends_in_the_middle) {
  // At many moments, so that rows of it are being exported, wait in the link, or are on it.
  for (int step = 0; step < 40; ++step) {
    VirtualGnbs world({.scheme = "full-copy", .configure = [](node::NodeConfig& c) {
                         c.link_sharing = LinkSharing::kFirstCome;
                       }});
    std::vector<VirtualUe*> ues;
    for (int i = 0; i < 2; ++i) {
      ues.push_back(&world.open("a", 400, [](auto& p) { p.max_tokens = 60; }));
    }
    world.clock.run_until([&] { return ues[1]->received() >= 4; }, 60s);
    for (VirtualUe* ue : ues) world.hand_over(*ue, "a", "b", 0s);
    world.clock.run_for(20ms + step * 500us);
    ASSERT_TRUE(world.node("a").stop(ues[0]->session, ues[0]->resume_token, NodeId("b")));
    ASSERT_TRUE(world.node("b").stop(ues[0]->session, ues[0]->resume_token, NodeId("a")));
    expect_whole(world, *ues[1]);
    const auto& reports = world.node("b").handovers();
    const auto second = std::find_if(reports.begin(), reports.end(), [&](const auto& report) {
      return report.session == ues[1]->session;
    });
    ASSERT_TRUE(second != reports.end()) << step;
    // 400 rows and a few at 2,000 a second; it did not give up waiting.
    EXPECT_LT(*second->first_token_ms, 900) << step;
    EXPECT_EQ(second->tokens_recomputed, 0u) << step;
  }
}

TEST(Sharing, by_water_filling_is_at_least_as_accurate_as_equal_bytes) {
  for (const auto& prompts : kOrders) {
    for (const Duration apart : {Duration(0s), Duration(300ms)}) {
      for (const Duration deadline : {Duration(1s), Duration(2s), Duration(4s)}) {
        const Moves moves{
            .scheme = "full-copy", .prompts = prompts, .apart = apart, .deadline = deadline};
        const double equal = move_by(LinkSharing::kEqual, moves).mean_accuracy();
        const double filled = move_by(LinkSharing::kWaterFilling, moves).mean_accuracy();
        // It looks no further than a slot: where some come later, it may lose a little.
        EXPECT_GE(filled, equal - (apart > 0s ? 0.2 : 1e-9));
      }
    }
  }
}

TEST(Sharing, by_water_filling_leaves_nobody_below_its_threshold_when_the_link_carries_enough) {
  for (const auto& prompts : kOrders) {
    double rows = 0;  // that lift everybody to its threshold, in whole blocks
    for (const TokenPosition prompt : prompts) {
      rows += std::ceil((prompt + 90) * plan::Utility().threshold / 16) * 16;
    }
    // Two blocks are on the way.
    const Duration enough = to_duration(Seconds((rows + 2 * 16) / kRowsPerSecond));
    const Moves moves{.scheme = "full-copy", .prompts = prompts, .deadline = enough};
    const Outcome filled = move_by(LinkSharing::kWaterFilling, moves);
    const Outcome first_come = move_by(LinkSharing::kFirstCome, moves);
    EXPECT_GE(filled.least_fraction(), filled.utility.threshold);
    EXPECT_LT(first_come.least_fraction(), filled.utility.threshold);
  }
}

TEST(Sharing, reports_how_much_of_the_kv_was_there) {
  const Moves one{.scheme = "two-front", .prompts = {480}, .foreseen = 5s, .deadline = 100ms};
  const auto prepared = move(one).reports.at(0);
  EXPECT_GT(prepared.fraction_at_attach, 0.95);
  EXPECT_EQ(prepared.fraction_at_deadline, 1);
  Moves all = one;
  all.scheme = "full-copy";
  all.deadline = 500ms;
  const auto copied = move(all).reports.at(0);
  EXPECT_EQ(copied.fraction_at_attach, 0);
  ASSERT_TRUE(copied.fraction_at_deadline.has_value());
  const double rows = *copied.fraction_at_deadline * copied.tokens_total;
  EXPECT_NEAR(rows, 0.5 * kRowsPerSecond, 24);
}

}  // namespace
}  // namespace pallas::test
