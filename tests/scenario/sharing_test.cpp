// Several sessions move from one gNB to another at a time, over one link: how each rule shares it
// (docs/schemes.md, "Sharing a link").

#include <gtest/gtest.h>

#include <algorithm>
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
  Duration apart{0};         // from one handover to the next
  Duration foreseen{2s};     // zero: not at all
  Duration deadline{4s};     // of fraction_at_deadline
  double rows_per_second = kRowsPerSecond;
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
  TokenPosition overlap() const {
    TokenPosition sum = 0;
    for (const auto& r : reports) sum += r.tokens_overlap;
    return sum;
  }
};

// Each mover's session is whole, and what each gNB holds is none of it.
Outcome move(const Moves& moves) {
  VirtualGnbs::Options options;
  options.scheme = moves.scheme;
  options.engine.info.slots = 8;
  options.link.rate = BytesPerSecond(moves.rows_per_second * 32);
  options.configure = [&moves](node::NodeConfig& c) {
    c.link_sharing = moves.sharing;
    c.fraction_deadline = moves.deadline;
    c.shadow = node::Shadow::kOff;
    c.peer_answer = 30s;
  };
  Outcome outcome;
  VirtualGnbs world(options);
  outcome.utility = world.node("a").config().utility;
  std::vector<VirtualUe*> ues;
  for (const TokenPosition prompt : moves.prompts) {
    ues.push_back(&world.open("a", prompt, [](wire::SessionParams& p) {
      p.max_tokens = 240;
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
  const Outcome outcome = move(moves);
  printf("%-12s %-14s", moves.scheme.c_str(), name_of(sharing).c_str());
  for (const auto& r : outcome.reports) {
    printf(" | %6.0f ms rec %4u ovl %3u f %.3f", r.first_token_ms.value_or(-1), r.tokens_recomputed, r.tokens_overlap, r.fraction_at_deadline.value_or(-1));
  }
  printf(" || worst %.0f acc %.2f\n", outcome.worst_ms(), outcome.mean_accuracy());
  return outcome;
}

TEST(Sharing, explore) {
  for (const char* scheme : {"ctho", "full-copy", "two-front"}) {
    for (Duration apart : {Duration(0s), Duration(300ms)}) {
      for (const auto& prompts : {std::vector<TokenPosition>{240,480,720,960}, std::vector<TokenPosition>{960,720,480,240}, std::vector<TokenPosition>{600,600,600,600}}) {
        for (int k = 0; k < 5; ++k) {
          move_by(static_cast<LinkSharing>(k), {.scheme = scheme, .prompts = prompts, .apart = apart});
        }
        printf("\n");
      }
    }
  }
}

}  // namespace
}  // namespace pallas::test
