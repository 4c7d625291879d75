// Moving UEs over many cells: predictors, bounds, determinism, refusals.
#include "sim/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

namespace pallas::sim {
namespace {

using namespace std::chrono_literals;

Scenario walks(std::uint32_t ues = 30) {
  Scenario s;
  s.schemes = {"two-front"};
  s.grid = GridCells{100, 0, 0, 5, 5};
  s.engine = *paper_model("qwen3-14b");
  s.engine.slots = 200;
  s.network.rate = FixedRate{BytesPerSecond::from_mbps(2000)};
  s.session.prompt_tokens = 500;
  s.session.max_token_rate = 5;
  s.walks = Walks{.ues = ues};
  s.duration = Seconds(40);
  return s;
}

ScenarioRun only(const Scenario& s) {
  const auto ok = check(s);
  EXPECT_TRUE(ok) << ok.error().message;
  auto runs = run(s);
  EXPECT_TRUE(runs) << runs.error().message;
  EXPECT_EQ(runs->size(), 1u);
  EXPECT_EQ(runs->at(0).breaches, std::vector<std::string>{});
  return std::move(runs->at(0));
}

// To the last bit of each number.
std::string describe(const ScenarioRun& run) {
  std::ostringstream all;
  all << std::hexfloat << run.scheme << " " << run.events << " " << run.tokens << "\n";
  for (const HandoverRecord& h : run.records) {
    all << h.ue << " " << h.source << ">" << h.target << " " << h.at_s << " "
        << h.sit_ms.value_or(-1) << " " << h.gap_ms.value_or(-1) << " " << h.early_s.value_or(-1)
        << " " << h.window_s.value_or(-1) << " " << h.bytes << " " << h.recomputed << "\n";
  }
  return all.str();
}

TEST(Scenario, every_token_of_every_ue_comes_once_and_in_order_under_every_scheme) {
  for (const char* scheme : {"detour", "full-copy", "recompute", "ctho", "pallas", "two-front"}) {
    Scenario s = walks();
    s.schemes = {scheme};
    const ScenarioRun r = only(s);  // and checks that no promise was broken
    EXPECT_GT(r.handovers, 50u) << scheme;
    EXPECT_LE(r.failed, r.handovers / 20) << scheme;  // two borders at once, at a corner
    EXPECT_GT(r.tokens, 30u * 5 * 30) << scheme;
  }
}

TEST(Scenario, the_same_seed_gives_the_same_bytes_and_another_seed_others) {
  Scenario s = walks();
  s.network.rate = DrawnRate{};
  const std::string once = describe(only(s));
  EXPECT_EQ(once, describe(only(s)));
  s.seeds = {2};
  EXPECT_NE(once, describe(only(s)));
}

// tools/stage compares the file with that of another compiler's and build type's.
TEST(Scenario, what_a_run_gives_is_written_for_other_builds_to_compare) {
  Scenario s = walks();
  s.schemes = {"full-copy", "recompute", "ctho", "pallas", "two-front"};
  s.network.rate = DrawnRate{};
  const auto runs = run(s);
  ASSERT_TRUE(runs) << runs.error().message;
  std::ofstream file("same-seed.txt");
  for (const ScenarioRun& r : *runs) {
    EXPECT_GT(r.records.size(), 50u) << r.scheme;
    file << describe(r);
  }
  EXPECT_TRUE(file.flush());
}

TEST(Scenario, a_better_prediction_interrupts_less) {
  Scenario s = walks();
  s.schemes = {"pallas"};
  s.predictor = PredictorKind::kOracle;
  const ScenarioRun oracle = only(s);
  s.predictor = PredictorKind::kNone;
  const ScenarioRun none = only(s);
  EXPECT_EQ(oracle.handovers, none.handovers);
  EXPECT_EQ(oracle.wrong_target, 0u);
  EXPECT_LT(oracle.sit_ms.avg, none.sit_ms.avg);
  EXPECT_GT(oracle.available_s.p50, 2);
  EXPECT_EQ(none.available_s.worst, 0);
}

TEST(Scenario, given_errors_make_early_handovers_and_wrong_targets) {
  Scenario s = walks();
  s.predictor = PredictorKind::kGiven;
  s.error.sd = Seconds(1);
  s.error.wrong_target = 0.3;
  const ScenarioRun r = only(s);
  EXPECT_GT(r.wrong_target, r.handovers / 8);
  EXPECT_LT(r.wrong_target, r.handovers / 2);
  double early = 0;
  for (const auto& h : r.records) early = std::max(early, h.early_error_s.value_or(0));
  EXPECT_GT(early, 0.3);
}

TEST(Scenario, a3_hands_over_behind_the_boundary_and_less_often) {
  Scenario s = walks();
  const ScenarioRun boundary = only(s);
  s.a3 = mobility::A3Settings{};
  const ScenarioRun a3 = only(s);
  EXPECT_GT(a3.handovers, 20u);
  EXPECT_LT(a3.handovers, boundary.handovers);
}

// The bound of Eq. 10, one control period and the cancel's round trip.
TEST(Scenario, no_preparation_in_vain_lasts_longer_than_its_bound) {
  for (const char* scheme : {"pallas", "two-front"}) {
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
      Scenario s = walks(60);
      s.schemes = {scheme};
      s.seeds = {seed};
      const ScenarioRun r = only(s);
      EXPECT_GT(r.waste_s.worst, 0) << "nothing was in vain: nothing is tested";
      EXPECT_EQ(r.waste_over_bound_s, 0) << scheme << " seed " << seed;
    }
  }
}

TEST(World, a_preparation_whose_ue_never_comes_ends_by_the_lease) {
  WorldSettings settings;
  for (const char* name : {"a", "b"}) settings.gnbs.push_back({name, {}, {}});
  settings.engine = *paper_model("qwen3-14b");
  World world(std::move(settings));
  Ue& ue = world.open("a", {.prompt_tokens = 500, .max_token_rate = 5});
  world.clock.run_for(2s);
  world.predict(ue, {.target = "b", .in = 500ms});
  world.clock.run_for(1s);
  ASSERT_EQ(world.totals().sessions_prepared, 1u);
  world.kill("a");  // nobody is left who could cancel
  world.clock.run_for(60s);
  EXPECT_EQ(world.totals().sessions_prepared, 0u);
  EXPECT_EQ(dynamic_cast<Engine&>(world.engine("b")).live_slots(), 0u);
  EXPECT_EQ(world.totals().leases_expired, 1u);
}

TEST(World, a_ue_moves_on_through_cut_links_and_dead_gnbs_without_losing_a_token) {
  WorldSettings settings;
  for (const char* name : {"a", "b", "c"}) settings.gnbs.push_back({name, {}, {}});
  settings.engine = *paper_model("llama-3-8b");
  settings.check_codec = true;
  World world(std::move(settings));
  Ue& ue = world.open("a", {.prompt_tokens = 300, .max_tokens = 400, .max_token_rate = 20});
  world.clock.run_for(2s);
  world.cut("a", "b");
  EXPECT_TRUE(world.hand_over(ue, "b"));
  world.clock.run_for(2s);
  world.join("a", "b");
  world.clock.run_for(2s);
  world.kill("b");
  EXPECT_FALSE(world.hand_over(ue, "b"));  // it is down
  EXPECT_TRUE(world.hand_over(ue, "c"));
  world.clock.run_for(60s);
  EXPECT_TRUE(ue.finished);
  EXPECT_EQ(ue.received(), 400u);
  EXPECT_EQ(world.breaches(), std::vector<std::string>{});
  world.finish();
  ASSERT_EQ(world.handovers().size(), 3u);
  EXPECT_FALSE(world.handovers()[1].error.empty());
}

TEST(Scenario, what_makes_no_run_is_refused_by_its_field) {
  const auto refused = [](const char* field, const std::function<void(Scenario&)>& change) {
    Scenario s = walks();
    change(s);
    const Status ok = check(s);
    ASSERT_FALSE(ok) << field;
    EXPECT_THAT(ok.error().message, testing::HasSubstr(field));
  };
  refused("schemes", [](Scenario& s) { s.schemes = {"teleport"}; });
  refused("schemes", [](Scenario& s) { s.schemes.clear(); });
  refused("scheme", [](Scenario& s) { s.schemes = {"two-front", "partial"}; });
  refused("seeds", [](Scenario& s) { s.seeds.clear(); });
  refused("duration_s", [](Scenario& s) { s.duration = Seconds(NAN); });
  refused("size_m", [](Scenario& s) { s.grid->size_m = -1; });
  refused("columns", [](Scenario& s) { s.grid->columns = 0; });
  refused("alpha", [](Scenario& s) { s.node.alpha = NAN; });
  refused("t_max_s", [](Scenario& s) { s.node.t_max = 0s; });
  refused("mbps", [](Scenario& s) { s.network.rate = FixedRate{BytesPerSecond(0)}; });
  refused("exactly one", [](Scenario& s) { s.sites = {{CellId("x"), {0, 0}}}; });
  refused("ues", [](Scenario& s) { s.walks->ues = 0; });
  refused("exclude", [](Scenario& s) {
    s.trajectories = {{UeId("x"), {{Seconds(0), {0, 0}, {}, {}}}}};
  });
  refused("trajectories", [](Scenario& s) { s.walks.reset(); });
  refused("overlaps", [](Scenario& s) {
    s.grid.reset();
    s.walks.reset();
    s.trajectories = {{UeId("x"), {{Seconds(0), {0, 0}, {}, {}}}}};
    s.rectangles = {{CellId("p"), 0, 0, 10, 10}, {CellId("q"), 5, 5, 10, 10}};
  });
  refused("cvh_sigma", [](Scenario& s) {
    s.predictor = PredictorKind::kOracle;
    s.cvh_sigma = 100ms;
  });
  refused("time_to_trigger_ms", [](Scenario& s) {
    s.a3 = mobility::A3Settings{};
    s.a3->time_to_trigger = 50ms;
  });
  refused("prompt_tokens", [](Scenario& s) { s.session.prompt_tokens = 40'000; });
}

TEST(Trajectories, turned_and_shifted_ones_keep_their_lengths_and_headings) {
  const mobility::Trajectory way{
      UeId("u"), {{Seconds(0), {0, 0}, 10.0, 0.0}, {Seconds(10), {0, 100}, 10.0, 0.0}}};
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    const auto turned = rotated_and_shifted({way}, 100, seed);
    const auto& a = turned[0].samples[0];
    const auto& b = turned[0].samples[1];
    const double dx = b.position.x_m - a.position.x_m, dy = b.position.y_m - a.position.y_m;
    EXPECT_NEAR(std::hypot(dx, dy), 100, 1e-9);
    const double angle = *a.heading_deg * 3.14159265358979 / 180;
    EXPECT_NEAR(dx, 100 * std::sin(angle), 1e-6);
    EXPECT_NEAR(dy, 100 * std::cos(angle), 1e-6);
  }
}

TEST(Trajectories, walks_stay_in_their_square_at_their_speed) {
  for (const auto& t : random_walks({.ues = 50, .side_m = 300, .duration = Seconds(60)}, 3)) {
    ASSERT_GE(t.samples.size(), 2u);
    EXPECT_NEAR(t.end().count(), 60, 1e-2);
    for (std::size_t i = 1; i < t.samples.size(); ++i) {
      const auto& a = t.samples[i - 1];
      const auto& b = t.samples[i];
      ASSERT_LT(a.t, b.t);
      EXPECT_GE(b.position.x_m, 0);
      EXPECT_LE(b.position.y_m, 300);
      const double moved =
          std::hypot(b.position.x_m - a.position.x_m, b.position.y_m - a.position.y_m);
      EXPECT_NEAR(moved, *a.speed_mps * (b.t - a.t).count(), 0.05);
    }
  }
}

}  // namespace
}  // namespace pallas::sim
