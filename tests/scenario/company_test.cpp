// Several users are foretold to leave for the same gNB: each begins so early that the link and the
// target have time for all.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "scenario_checks.h"

namespace pallas::test {
namespace {

using namespace std::chrono_literals;

// Of each mover, in the order in which they leave.
struct Moved {
  double window_s = 0, early_s = 0, gap_ms = 0;
};

std::vector<Moved> leave(int movers, Duration apart, const char* scheme = "two-front") {
  VirtualGnbs::Options options;
  options.scheme = scheme;
  options.link.rate = BytesPerSecond(271 * 32);  // SmolLM2-135M over 50 Mbit/s
  options.configure = [](node::NodeConfig& c) { c.t_max = 30s; };
  VirtualGnbs world(options);
  std::vector<VirtualUe*> ues;
  for (int i = 0; i < movers; ++i) {
    ues.push_back(&world.open("a", 400, [](auto& p) {
      p.max_tokens = 3000;
      p.max_token_rate = 10;
    }));
  }
  world.clock.run_for(1s);
  for (int i = 0; i < movers; ++i) world.predict(*ues[i], "a", "b", 30s + i * apart);
  world.clock.run_for(30s);
  for (int i = 0; i < movers; ++i) {
    if (i > 0) world.clock.run_for(apart);
    world.hand_over(*ues[i], "a", "b", 0s);
  }
  world.clock.run_for(5s);

  std::vector<Moved> all;
  for (VirtualUe* ue : ues) {
    const auto& reports = world.node("b").handovers();
    const auto found =
        std::find_if(reports.begin(), reports.end(),
                     [&](const node::HandoverReport& r) { return r.session == ue->session; });
    if (found == reports.end()) {
      ADD_FAILURE() << "no report of " << ue->session.value;
      continue;
    }
    EXPECT_TRUE(found->prepared);
    all.push_back({found->window_s, found->early_s, to_ms(ue->gap_at(Epoch(2)))});
  }
  return all;
}

TEST(Company, that_is_foretold_makes_each_begin_early_enough_for_all) {
  const auto alone = leave(1, 0s);
  const auto four = leave(4, 0s);
  ASSERT_EQ(alone.size(), 1u);
  ASSERT_EQ(four.size(), 4u);
  for (const Moved& one : four) {
    EXPECT_GT(one.window_s, 2.5 * alone[0].window_s);
    EXPECT_GT(one.early_s, 0) << "it was not prepared when its user left";
    EXPECT_LT(one.gap_ms, 2 * alone[0].gap_ms);
  }
}

TEST(Company, is_who_leaves_within_the_window_only) {
  const auto alone = leave(1, 0s);
  EXPECT_NEAR(leave(2, 20s)[0].window_s, alone[0].window_s, 0.6);
}

TEST(Company, counts_for_two_front_alone) {
  const auto alone = leave(1, 0s, "pallas");
  EXPECT_NEAR(leave(4, 0s, "pallas")[0].window_s, alone[0].window_s, 0.6);
}

}  // namespace
}  // namespace pallas::test
