// A prediction's sigma and confidence reach the plan, unless the configuration says otherwise.

#include <gtest/gtest.h>

#include "virtual_gnbs.h"

namespace pallas::test {
namespace {

using namespace std::chrono_literals;

// The window with which a handover in 6 s is prepared; 0: it is not.
double window_of(std::optional<Duration> sigma, std::optional<double> confidence,
                 bool use_uncertainty, const char* scheme = "pallas") {
  VirtualGnbs::Options options;
  options.scheme = scheme;
  options.configure = [&](node::NodeConfig& c) { c.use_uncertainty = use_uncertainty; };
  VirtualGnbs world(std::move(options));
  VirtualUe& ue = world.open("a", 600, [](auto& p) {
    p.max_token_rate = 10;
    p.consistency = wire::Consistency::kFast;
  });
  world.clock.run_for(4s);
  mobility::Prediction p;
  p.ue = ue.id;
  p.seq = 1;
  p.serving = CellId("cell-a");
  p.target = CellId("cell-b");
  p.in = 6s;
  p.valid = 20s;
  p.sigma = sigma;
  p.confidence = confidence;
  EXPECT_TRUE(world.node("a").on_prediction(p));
  double window = 0;
  (void)world.clock.run_until(
      [&] {
        for (const auto& info : world.node("b").sessions()) {
          if (info.role == "preparing") window = info.window_s;
        }
        return window > 0;
      },
      5900ms);
  return window;
}

TEST(Uncertainty, a_prediction_that_is_not_exact_starts_the_preparation_earlier) {
  const double plain = window_of(std::nullopt, std::nullopt, true);
  ASSERT_GT(plain, 0.3);
  // alpha 0.8: by 0.84 sigma, less what is not generated yet.
  EXPECT_NEAR(window_of(1s, std::nullopt, true), plain + 0.84, 0.05);
  EXPECT_GT(window_of(1s, std::nullopt, true, "two-front"),
            window_of(std::nullopt, std::nullopt, true, "two-front") + 0.4);
}

TEST(Uncertainty, a_target_that_is_hardly_right_is_not_prepared) {
  EXPECT_GT(window_of(std::nullopt, 0.9, true), 0.3);
  EXPECT_EQ(window_of(std::nullopt, 0.1, true), 0);
}

TEST(Uncertainty, switched_off_it_is_the_papers_rule) {
  const double plain = window_of(std::nullopt, std::nullopt, true);
  EXPECT_EQ(window_of(1s, 0.1, false), plain);
}

}  // namespace
}  // namespace pallas::test
