// A target that serves others prepares a session: they are spared, and the source knows beforehand
// how slow the target will be for it.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "scenario_checks.h"

namespace pallas::test {
namespace {

using namespace std::chrono_literals;

struct Busy {
  std::vector<double> during_ms;  // intervals of the residents while the mover is prepared
  double ordinary_ms = 0;         // their median before
  double window_s = 0, gap_ms = 0;
  std::uint64_t told = 0;  // ResourceStatus from the target to the source before

  double share_disturbed() const {
    const auto disturbed = std::count_if(during_ms.begin(), during_ms.end(),
                                         [this](double ms) { return ms > 1.3 * ordinary_ms; });
    return static_cast<double>(disturbed) / static_cast<double>(during_ms.size());
  }
};

Busy prepare_at(int residents, std::uint32_t spacing, const char* scheme = "two-front") {
  VirtualGnbs::Options options;
  options.scheme = scheme;
  options.link.rate = BytesPerSecond(271 * 32);  // SmolLM2-135M over 50 Mbit/s
  options.configure = [spacing](node::NodeConfig& c) {
    c.preparation_spacing = spacing;
    c.t_max = 12s;
  };
  VirtualGnbs world(options);
  VirtualUe& mover = world.open("a", 700, [](auto& p) { p.max_tokens = 1000; });
  std::vector<VirtualUe*> others;
  for (int i = 0; i < residents; ++i) {
    others.push_back(&world.open("b", 100, [](auto& p) { p.max_tokens = 1000; }));
  }
  world.clock.run_for(3s);
  const TimePoint foretold = world.clock.now();
  Busy busy;
  busy.told = world.count("b", "a", "ResourceStatus");
  world.hand_over(mover, "a", "b", 8s);
  world.clock.run_for(1s);

  EXPECT_EQ(world.node("b").handovers().size(), 1u);
  const auto& report = world.node("b").handovers().back();
  EXPECT_TRUE(report.prepared);
  busy.window_s = report.window_s;
  busy.gap_ms = to_ms(mover.gap_at(Epoch(2)));
  const TimePoint begun = foretold + 8s - to_duration(Seconds(report.window_s));
  std::vector<double> before;
  for (const VirtualUe* ue : others) {
    const auto& all = ue->transcript.entries();
    for (std::size_t i = 1; i < all.size(); ++i) {
      const double ms = to_ms(all[i].at - all[i - 1].at);
      if (all[i].at < begun) before.push_back(ms);
      if (all[i - 1].at >= begun && all[i].at < foretold + 8s) busy.during_ms.push_back(ms);
    }
  }
  if (!before.empty()) {
    std::nth_element(before.begin(), before.begin() + before.size() / 2, before.end());
    busy.ordinary_ms = before[before.size() / 2];
  }
  return busy;
}

TEST(Residents, have_a_chunk_in_one_of_so_many_intervals_at_most) {
  const Busy spared = prepare_at(3, 12);
  ASSERT_GT(spared.during_ms.size(), 100u);
  EXPECT_LT(spared.share_disturbed(), 0.1);
  EXPECT_GT(spared.share_disturbed(), 0.02) << "the target prepares nothing";
  const Busy others = prepare_at(3, 1);
  EXPECT_GT(others.share_disturbed(), 0.3);
}

TEST(Residents, of_a_target_make_its_preparations_begin_earlier_by_its_own_word) {
  const Busy alone = prepare_at(0, 12);
  const Busy beside = prepare_at(3, 12);
  EXPECT_EQ(alone.told, 0u);
  EXPECT_GE(beside.told, 1u);
  EXPECT_LE(beside.told, 3u) << "only when it changes";
  EXPECT_GT(beside.window_s, 1.2 * alone.window_s);
  // It waits for the step that runs and takes one with all of them.
  EXPECT_LT(beside.gap_ms, 3 * beside.ordinary_ms + alone.gap_ms);
}

TEST(Residents, are_not_spared_by_schemes_that_cannot_do_without_prefill) {
  EXPECT_GT(prepare_at(3, 12, "pallas").share_disturbed(), 0.3);
}

}  // namespace
}  // namespace pallas::test
