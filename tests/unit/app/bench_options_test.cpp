#include "bench_options.h"

#include <gtest/gtest.h>

#include <map>

namespace pallas::app {
namespace {

BenchOptions quick() {
  BenchOptions options;
  options.engine = "fake";
  options.schemes = {"two-front", "pallas", "full-copy"};
  options.handovers = 4;
  options.handovers_slow = 2;
  return options;
}

std::string refusal(const BenchOptions& options) {
  const auto plan = make_plan(options);
  return plan ? "" : plan.error().message;
}

TEST(BenchOptions, a_goodput_is_a_rate_or_a_multiple) {
  EXPECT_EQ(parse_goodput("20")->value, 20);
  EXPECT_FALSE(parse_goodput("20")->multiple);
  EXPECT_EQ(parse_goodput("0.5x")->value, 0.5);
  EXPECT_TRUE(parse_goodput("0.5x")->multiple);
  EXPECT_EQ(parse_goodput("0")->value, 0);
  for (const char* bad : {"", "x", "0x", "-1", "nan", "inf", "2y", "1e999"}) {
    const auto goodput = parse_goodput(bad);
    ASSERT_FALSE(goodput) << bad;
    EXPECT_EQ(goodput.error().message.rfind("goodput_mbps: ", 0), 0u);
  }
}

TEST(BenchOptions, a_scheme_may_have_settings_of_its_own) {
  const auto choice = parse_scheme_choice("two-front:window_margin_ms=0:use_uncertainty=false");
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->scheme, "two-front");
  EXPECT_EQ(choice->flags,
            (std::vector<std::string>{"--window-margin-ms=0", "--no-use-uncertainty"}));
  EXPECT_FALSE(choice->slow);
  EXPECT_TRUE(parse_scheme_choice("full-copy")->slow);
  for (const char* bad : {"", "fast", "two-front:", "two-front:speed=1", "two-front:alpha",
                          "two-front:alpha=much", "two-front:use_uncertainty=1"}) {
    const auto refused = parse_scheme_choice(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().message.rfind("scheme: ", 0), 0u) << refused.error().message;
  }
}

TEST(BenchOptions, a_schemes_utility_is_that_of_its_gnbs) {
  auto options = quick();
  options.schemes = {"full-copy", "full-copy:link_sharing=equal:utility_threshold=0.3"};
  options.gnb_settings = {"utility_threshold=0.2", "utility_full=80"};
  const auto plan = make_plan(options);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->schemes[0].utility.threshold, 0.2);
  EXPECT_EQ(plan->schemes[1].utility.threshold, 0.3);
  EXPECT_EQ(plan->schemes[1].utility.full, 80);
  EXPECT_EQ(plan->schemes[1].flags,
            (std::vector<std::string>{"--link-sharing=equal", "--utility-threshold=0.3"}));
}

TEST(BenchOptions, only_several_movers_have_contexts_that_differ) {
  auto options = quick();
  options.mover_spread = 0.5;
  options.movers = {1, 4};
  const auto plan = make_plan(options);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->settings.size(), 2u);
  EXPECT_EQ(plan->settings[0].mover_spread, 0);
  EXPECT_EQ(plan->settings[1].mover_spread, 0.5);
  options.mover_spread = 0.9;
  EXPECT_FALSE(make_plan(options));
}

TEST(BenchOptions, a_round_has_every_scheme_that_lacks_handovers_and_the_control) {
  const auto plan = make_plan(quick());
  ASSERT_TRUE(plan);
  std::map<std::string, int> counts;
  for (const auto& run : plan->runs) {
    ++counts[run.scheme ? plan->schemes[*run.scheme].label : "control"];
  }
  EXPECT_EQ(counts, (std::map<std::string, int>{
                        {"two-front", 4}, {"pallas", 4}, {"full-copy", 2}, {"control", 4}}));
  for (std::size_t i = 1; i < plan->runs.size(); ++i) {
    EXPECT_LE(plan->runs[i - 1].round, plan->runs[i].round);
  }
  // Nobody is always the first.
  EXPECT_EQ(plan->runs[0].scheme, std::optional<std::size_t>(0));
  EXPECT_EQ(plan->runs[4].scheme, std::optional<std::size_t>(1));
}

TEST(BenchOptions, users_that_move_together_and_to_and_fro_share_a_run) {
  auto options = quick();
  options.schemes = {"two-front"};
  options.movers = {1, 3};
  options.trip_handovers = {1, 2};
  options.handovers = 7;
  const auto plan = make_plan(options);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->settings.size(), 4u);
  std::map<std::size_t, int> runs;
  for (const auto& run : plan->runs) runs[run.setting] += run.scheme ? 1 : 0;
  EXPECT_EQ(runs, (std::map<std::size_t, int>{{0, 7}, {1, 4}, {2, 3}, {3, 2}}));
}

TEST(BenchOptions, a_key_names_all_that_a_run_depends_on) {
  const auto key = [](const BenchOptions& options) {
    const auto plan = make_plan(options);
    return plan->key(plan->runs.front());
  };
  const auto base = key(quick());
  const auto differs = [&](auto change) {
    auto options = quick();
    change(options);
    return key(options) != base;
  };
  EXPECT_TRUE(differs([](BenchOptions& o) { o.seed = 8; }));
  EXPECT_TRUE(differs([](BenchOptions& o) { o.contexts = {999}; }));
  EXPECT_TRUE(differs([](BenchOptions& o) { o.goodputs = {"20x"}; }));
  EXPECT_TRUE(differs([](BenchOptions& o) { o.token_rates = {25}; }));
  EXPECT_TRUE(differs([](BenchOptions& o) { o.consistency = "fast"; }));
  EXPECT_TRUE(differs([](BenchOptions& o) { o.available_s = {1}; }));
  EXPECT_TRUE(differs([](BenchOptions& o) { o.window_s = {1}; }));
  EXPECT_TRUE(differs([](BenchOptions& o) { o.wrong_target = 0.5; }));
  EXPECT_TRUE(differs([](BenchOptions& o) { o.residents = {1}; }));
  EXPECT_TRUE(differs([](BenchOptions& o) { o.gnb_settings = {"alpha=0.5"}; }));
  EXPECT_TRUE(differs([](BenchOptions& o) { o.goodput_trace = "a.csv"; }));
  EXPECT_TRUE(differs([](BenchOptions& o) { o.pin = false; }));
  // More handovers go on where fewer ended.
  EXPECT_FALSE(differs([](BenchOptions& o) { o.handovers = 9; }));
  EXPECT_FALSE(differs([](BenchOptions& o) { o.schemes = {"two-front"}; }));
}

TEST(BenchOptions, bad_input_is_refused_by_name) {
  const auto refused = [](const std::string& field, auto change) {
    auto options = quick();
    change(options);
    EXPECT_EQ(refusal(options).rfind(field + ": ", 0), 0u) << field << ": " << refusal(options);
  };
  refused("context", [](BenchOptions& o) { o.contexts = {10}; });
  refused("context", [](BenchOptions& o) { o.contexts = {}; });
  refused("movers", [](BenchOptions& o) { o.movers = {5}; });
  refused("residents", [](BenchOptions& o) { o.residents = {4}; });
  refused("trip_handovers", [](BenchOptions& o) { o.trip_handovers = {9}; });
  refused("max_token_rate", [](BenchOptions& o) { o.token_rates = {-1}; });
  refused("available_s", [](BenchOptions& o) { o.available_s = {61}; });
  refused("window_s", [](BenchOptions& o) { o.window_s = {13}; });
  refused("window_s", [](BenchOptions& o) { o.window_s = o.available_s = {1}; });
  refused("wrong_target", [](BenchOptions& o) { o.wrong_target = 1.5; });
  refused("handovers", [](BenchOptions& o) { o.handovers = 0; });
  refused("handovers_slow", [](BenchOptions& o) { o.handovers_slow = 0; });
  refused("consistency", [](BenchOptions& o) { o.consistency = "maybe"; });
  refused("engine", [](BenchOptions& o) { o.engine = "vllm"; });
  refused("resume", [](BenchOptions& o) { o.resume = true; });
  refused("gnb", [](BenchOptions& o) { o.gnb_settings = {"speed=1"}; });
  refused("scheme", [](BenchOptions& o) { o.schemes = {"pallas", "pallas"}; });
  refused("scheme", [](BenchOptions& o) { o.schemes = {}; });
}

}  // namespace
}  // namespace pallas::app
