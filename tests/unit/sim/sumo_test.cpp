// The shipped SUMO trace with the CVH predictor: what must hold for every handover of a run.
#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <sstream>

#include "sim/scenario.h"

namespace pallas::sim {
namespace {

std::vector<mobility::Trajectory> sumo() {
  std::string text;
  const gzFile file = gzopen(PALLAS_SOURCE_DIR "/data/sumo_grid_64ue_300s_2hz.csv.gz", "rb");
  std::array<char, 65536> chunk;
  for (int got = 0; (got = gzread(file, chunk.data(), chunk.size())) > 0;) {
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  gzclose(file);
  std::istringstream in(text);
  return *mobility::parse_trajectories(in);
}

Scenario town(std::uint64_t seed) {
  Scenario s;
  s.seeds = {seed};
  s.duration = Seconds(120);
  s.grid = GridCells{100, -100, -100, 11, 11};
  s.trajectories = sumo();
  s.rotate_and_shift = true;
  s.engine = *paper_model("qwen3-14b");
  s.network.rate = DrawnRate{};
  s.session.max_token_rate = 5;
  s.session.prompt_tokens = 6000;  // windows of some 2 s, so that turns come within them
  return s;
}

TEST(Sumo, every_preparation_in_vain_keeps_to_equation_10_and_none_is_left_over) {
  for (const char* scheme : {"pallas", "two-front"}) {
    for (const std::uint64_t seed : {1u, 2u}) {
      Scenario s = town(seed);
      s.schemes = {scheme};
      ASSERT_TRUE(check(s)) << check(s).error().message;
      const auto runs = run(s);
      ASSERT_TRUE(runs) << runs.error().message;
      const ScenarioRun& r = runs->at(0);
      EXPECT_EQ(r.breaches, std::vector<std::string>{});
      EXPECT_GT(r.handovers, 100u);
      EXPECT_GT(r.prepared, r.handovers / 3);
      EXPECT_GT(r.wrong_target, 0u);
      EXPECT_EQ(r.waste_over_bound_s, 0) << scheme << " seed " << seed;
      for (const PreparationRecord& p : r.preparations) {
        if (p.end == PreparationRecord::End::kCancelled) {
          ASSERT_TRUE(p.freed_s) << p.ue << " at " << p.requested_s;
          EXPECT_LE(*p.freed_s - p.ended_s, 0.001);
        }
      }
    }
  }
}

}  // namespace
}  // namespace pallas::sim
