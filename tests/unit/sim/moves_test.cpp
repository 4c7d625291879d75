// One handover under each scheme against the papers' formulas, with the papers' models.
#include "sim/moves.h"

#include <gtest/gtest.h>

namespace pallas::sim {
namespace {

using namespace std::chrono_literals;

constexpr double kMbps = 300;

// The papers' setting: rates are known, and nothing is held back for errors of the prediction.
Moves paper_moves(const std::string& scheme, TokenPosition context = 3000) {
  Moves m;
  m.scheme = scheme;
  m.engine = *paper_model("qwen3-14b");
  m.network.rate = FixedRate{BytesPerSecond::from_mbps(kMbps)};
  m.network.sight = GoodputSight::kCurrent;
  m.node.unmeasured_rate = 1;
  m.node.window_margin = 0ms;
  m.context = context;
  return m;
}

HandoverRecord only(const Moves& moves) {
  auto outcome = run(moves);
  EXPECT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->breaches, std::vector<std::string>{});
  EXPECT_EQ(outcome->handovers.size(), 1u);
  return outcome->handovers.at(0);
}

TEST(Moves, full_copy_takes_its_bytes_over_the_goodput) {
  const HandoverRecord h = only(paper_moves("full-copy"));
  ASSERT_TRUE(h.sit_ms);
  EXPECT_NEAR(*h.sit_ms / 1e3, 3000 * 163840 * 8.0 / (kMbps * 1e6) + 0.2355, 0.15);
  EXPECT_NEAR(h.bytes, 3000 * 163840.0, 20 * 163840.0);
  EXPECT_EQ(h.recomputed, 0u);
  EXPECT_NEAR(h.context, 3000, 3);
}

TEST(Moves, recomputation_takes_its_tokens_over_the_prefill_rate) {
  const HandoverRecord h = only(paper_moves("recompute"));
  EXPECT_NEAR(h.sit_ms.value() / 1e3, 3000 / 3431.0 + 0.2355, 0.08);
  EXPECT_NEAR(h.recomputed, 3000, 20);
  EXPECT_EQ(h.bytes, 0);
}

TEST(Moves, ctho_is_faster_than_either_alone) {
  const double ctho = only(paper_moves("ctho")).sit_ms.value();
  EXPECT_NEAR(ctho / 1e3, 3000 / (3431 + kMbps * 1e6 / 8 / 163840) + 0.2355, 0.12);
  EXPECT_LT(ctho, only(paper_moves("recompute")).sit_ms.value());
}

TEST(Moves, pallas_leaves_the_activation_and_the_last_block) {
  const HandoverRecord h = only(paper_moves("pallas"));
  EXPECT_TRUE(h.prepared);
  // At most a block of 16 rows is sent after the handover.
  EXPECT_GE(h.sit_ms.value(), 235.5);
  EXPECT_LE(h.sit_ms.value(), 235.5 + 16 * 163840 * 8.0 / (kMbps * 1e3) + 60);
  EXPECT_NEAR(h.lead_s.value(), 3000 / (3431.0 + 22), 0.15);
  EXPECT_NEAR(h.available_s.value(), 8, 1e-6);
  EXPECT_LE(h.residual, 16u);
}

TEST(Moves, two_front_leaves_no_more_than_pallas) {
  const HandoverRecord h = only(paper_moves("two-front"));
  EXPECT_TRUE(h.prepared);
  EXPECT_GE(h.sit_ms.value(), 235.5);
  EXPECT_LE(h.sit_ms.value(), 235.5 + 60);
}

TEST(Moves, detour_goes_on_at_the_source) {
  Moves m = paper_moves("detour");
  m.network.relay_hop_latency = 65ms;
  const HandoverRecord h = only(m);
  EXPECT_TRUE(h.relay);
  ASSERT_TRUE(h.sit_ms);
  EXPECT_LT(*h.sit_ms, 65 + 2 * 45.5 + 10);
  // The next tokens: a decode step and the hop.
  EXPECT_NEAR(h.after.latency.avg_ms(), 1e3 / 22 + 65, 1);
  EXPECT_NEAR(h.after.arrival.avg_ms(), 1e3 / 22, 1);
}

TEST(Moves, a_forced_window_triggers_exactly_then) {
  for (const double window : {0.2, 1.0, 4.0}) {
    Moves m = paper_moves("pallas");
    m.window = Seconds(window);
    const HandoverRecord h = only(m);
    EXPECT_NEAR(h.lead_s.value(), window, 1e-6);
    const double history = (3000 - 22 * window) / 3431;
    EXPECT_NEAR(h.early_s.value_or(0), std::max(window - history, 0.0), 0.12) << window;
    const double late = std::max(history - window, 0.0) * 1e3;
    EXPECT_NEAR(h.sit_ms.value(), 235.5 + late + 35, 90) << window;
  }
}

TEST(Moves, a_prediction_that_comes_late_costs_what_is_missing) {
  Moves m = paper_moves("pallas");
  m.predicted = Seconds(0.3);
  const HandoverRecord late = only(m);
  EXPECT_NEAR(late.lead_s.value(), 0.3, 1e-6);
  EXPECT_GT(late.sit_ms.value(), only(paper_moves("pallas")).sit_ms.value() + 200);
  m.predicted.reset();
  const HandoverRecord never = only(m);
  EXPECT_FALSE(never.available_s);
  EXPECT_GT(never.sit_ms.value(), late.sit_ms.value());
}

TEST(Moves, a_wrong_target_is_cancelled_and_recovered_from) {
  Moves m = paper_moves("pallas");
  m.wrong_target = "wrong";
  const auto outcome = run(m);
  ASSERT_TRUE(outcome);
  const HandoverRecord& h = outcome->handovers.at(0);
  EXPECT_FALSE(h.available_s);
  EXPECT_GT(h.waste_s, 0.5);
  EXPECT_TRUE(h.sit_ms);
  ASSERT_EQ(outcome->preparations.size(), 2u);  // the wrong one, and the one at the handover
  EXPECT_EQ(outcome->preparations[0].end, PreparationRecord::End::kCancelled);
  EXPECT_TRUE(outcome->preparations[0].freed_s);
  EXPECT_EQ(outcome->preparations[1].end, PreparationRecord::End::kClaimed);
}

TEST(Moves, sessions_that_move_at_once_share_target_and_link) {
  Moves m = paper_moves("ctho", 2000);
  m.network.sharing = Sharing::kIngress;
  m.network.shared = FixedRate{BytesPerSecond::from_mbps(1000)};
  m.network.rate = FixedRate{BytesPerSecond::from_mbps(1000)};
  m.engine.prefill_fcfs = true;
  double alone = 0;
  for (const std::uint32_t movers : {1u, 4u}) {
    m.movers = movers;
    const auto outcome = run(m);
    ASSERT_TRUE(outcome);
    ASSERT_EQ(outcome->handovers.size(), movers);
    const Summary sit = summarize(sits_ms(outcome->handovers));
    EXPECT_EQ(sit.count, movers);
    if (movers == 1) alone = sit.worst;
    if (movers == 4) {
      EXPECT_GT(sit.worst, 2 * alone);
    }
  }
}

TEST(Moves, residents_wait_for_no_more_than_a_chunk) {
  Moves m = paper_moves("pallas", 2000);
  m.residents = 3;
  m.engine.chunk_beside_decode = 128;
  const auto outcome = run(m);
  ASSERT_TRUE(outcome);
  ASSERT_FALSE(outcome->resident_itl_ms.empty());
  const double step = 1e3 / 22 * (1 + kPaperBatchCost * 3);
  for (const double itl : outcome->resident_itl_ms) {
    EXPECT_LE(itl, step + 128 / 3.431 + 1);
  }
}

TEST(Moves, the_same_seed_gives_the_same_records) {
  Moves m = paper_moves("two-front");
  m.network.rate = DrawnRate{};
  const auto describe = [&] {
    std::string all;
    const auto outcome = run(m);
    for (const auto& h : outcome->handovers) {
      all += std::to_string(*h.sit_ms) + " " + std::to_string(h.bytes) + " " + h.source + "\n";
    }
    return all;
  };
  const std::string once = describe();
  EXPECT_EQ(once, describe());
  m.seed = 2;
  EXPECT_NE(once, describe());
}

TEST(Moves, settings_that_make_no_run_are_refused_by_their_field) {
  Moves m = paper_moves("pallas");
  m.movers = 0;
  EXPECT_NE(run(m).error().message.find("movers"), std::string::npos);
  m = paper_moves("teleport");
  EXPECT_FALSE(run(m));
  m = paper_moves("pallas");
  m.window = Seconds(-1);
  EXPECT_NE(run(m).error().message.find("window"), std::string::npos);
  m = paper_moves("pallas");
  m.node.alpha = 1.5;
  EXPECT_NE(run(m).error().message.find("alpha"), std::string::npos);
}

}  // namespace
}  // namespace pallas::sim
