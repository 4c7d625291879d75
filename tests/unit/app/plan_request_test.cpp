#include "plan_request.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plan_output.h"

namespace pallas::app {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string refusal(const PlanOptions& options) {
  const auto request = to_request(options);
  return request ? "" : request.error().message;
}

TEST(PlanRequest, without_flags_it_is_the_papers_central_case_under_every_scheme) {
  const auto request = to_request({});
  ASSERT_TRUE(request);
  EXPECT_EQ(request->model, "qwen3-14b");
  EXPECT_EQ(request->input.context, 3000u);
  EXPECT_EQ(request->input.kv_bytes_per_token, 163'840u);
  EXPECT_EQ(request->input.prefill_rate.value, 3434);
  EXPECT_EQ(request->input.goodput->mbps(), 300);
  EXPECT_EQ(request->schemes.size(), plan::scheme_names().size());
  EXPECT_FALSE(request->input.sigma);
}

TEST(PlanRequest, every_bad_number_is_refused_by_its_flag) {
  struct Case {
    const char* flag;
    std::optional<double> PlanOptions::*field;
    std::vector<double> bad;
  };
  const std::vector<Case> cases = {
      {"--prefill-rate", &PlanOptions::prefill_rate, {0, -1, kNan, kInfinity}},
      {"--decode-rate", &PlanOptions::decode_rate, {-1, kNan, kInfinity}},
      {"--goodput-mbps", &PlanOptions::goodput_mbps, {0, -1, kNan, kInfinity}},
      {"--remaining", &PlanOptions::remaining, {-0.1, kNan, kInfinity}},
      {"--alpha", &PlanOptions::alpha, {-0.1, 1.1, kNan, kInfinity}},
      {"--step", &PlanOptions::step, {0, -1, kNan, kInfinity, 5.1, 1e-9}},
      {"--t-max", &PlanOptions::t_max, {0, -1, kNan, kInfinity}},
      {"--activation", &PlanOptions::activation, {-1, kNan, kInfinity}},
      {"--load", &PlanOptions::load, {-1, kNan, kInfinity}},
      {"--sigma", &PlanOptions::sigma, {-1, kNan, kInfinity}},
      {"--confidence", &PlanOptions::confidence, {-0.1, 1.1, kNan}},
  };
  for (const Case& c : cases) {
    for (const double value : c.bad) {
      PlanOptions options;
      options.*(c.field) = value;
      EXPECT_EQ(refusal(options).rfind(std::string(c.flag) + ":", 0), 0u)
          << c.flag << " " << value << ": " << refusal(options);
    }
  }
  for (const std::int64_t value : {-1ll, 1ll << 40}) {
    PlanOptions options;
    options.context = value;
    EXPECT_EQ(refusal(options).rfind("--context:", 0), 0u) << value;
  }
  for (const std::int64_t value : {-1ll, 0ll, 1ll << 50}) {
    PlanOptions options;
    options.kv_bytes_per_token = value;
    EXPECT_EQ(refusal(options).rfind("--kv-bytes-per-token:", 0), 0u) << value;
  }
}

TEST(PlanRequest, unknown_names_and_contradictions_are_refused_by_their_flag) {
  PlanOptions options;
  options.schemes = {"teleport"};
  EXPECT_NE(refusal(options).find("--scheme: no scheme 'teleport'"), std::string::npos);
  options.schemes = {"pallas", "pallas"};
  EXPECT_NE(refusal(options).find("--scheme: 'pallas' is given twice"), std::string::npos);
  options = {};
  options.model_shape = "gpt-17";
  EXPECT_NE(refusal(options).find("--model-shape: 'gpt-17'"), std::string::npos);
  options.model_shape = "qwen3-32b";
  options.kv_bytes_per_token = 1000;
  EXPECT_NE(refusal(options).find("together with --model-shape"), std::string::npos);
  options = {};
  options.plot = "window.pdf";
  EXPECT_NE(refusal(options).find("--plot"), std::string::npos);
  options.plot = "window.svg";
  EXPECT_EQ(refusal(options), "");
  options.schemes = {"detour"};
  EXPECT_NE(refusal(options).find("--plot"), std::string::npos);
}

TEST(PlanRequest, bytes_alone_need_the_rates) {
  PlanOptions options;
  options.kv_bytes_per_token = 23'040;
  EXPECT_NE(refusal(options).find("--prefill-rate: is needed"), std::string::npos);
  options.prefill_rate = 270;
  EXPECT_NE(refusal(options).find("--decode-rate: is needed"), std::string::npos);
  options.decode_rate = 25;
  const auto request = to_request(options);
  ASSERT_TRUE(request);
  EXPECT_NEAR(request->input.activation.count(), 0.04, 1e-12);  // a decode step
}

TEST(PlanOutput, the_json_has_each_scheme_with_the_fields_promised) {
  PlanOptions options;
  options.schemes = {"pallas"};
  options.context = 1500;
  options.prefill_rate = 1000;
  options.decode_rate = 0;
  options.activation = 0.25;
  const auto request = to_request(options);
  ASSERT_TRUE(request);
  // 1500 / 1000 s of window; nothing to send where nothing is generated.
  EXPECT_EQ(plans_json(*request, make_plans(*request)),
            "[{\"scheme\":\"pallas\",\"window_s\":1.5,\"split_tokens\":1500,"
            "\"sit_s\":0.25,\"early_s\":0,\"bytes\":0,\"trigger_now\":false}]");
}

TEST(PlanOutput, splits_are_what_the_target_computes) {
  PlanOptions options;
  options.remaining = 0;
  const auto request = to_request(options);
  ASSERT_TRUE(request);
  const double link = 37.5e6 / 163'840;
  for (const SchemePlan& plan : make_plans(*request)) {
    const double recomputed = plan.decision.expected_recomputed;
    if (plan.scheme == "detour" || plan.scheme == "full-copy" || plan.scheme == "partial" ||
        plan.scheme == "pallas-no-rc") {
      EXPECT_EQ(recomputed, 0) << plan.scheme;
    } else if (plan.scheme == "recompute" || plan.scheme == "pallas-no-sm") {
      EXPECT_EQ(recomputed, 3000) << plan.scheme;
    } else {
      EXPECT_NEAR(recomputed, 3000 * 3434 / (3434 + link), 16) << plan.scheme;
    }
    EXPECT_TRUE(plan.decision.trigger);
  }
}

TEST(PlanOutput, the_trade_off_covers_all_windows) {
  PlanOptions options;
  options.remaining = 3;
  const auto request = to_request(options);
  ASSERT_TRUE(request);
  const auto figure = tradeoff(*request);
  ASSERT_EQ(figure.curves.size(), 4u);
  for (const auto& curve : figure.curves) {
    EXPECT_EQ(curve.points.front().first, 0);
    EXPECT_EQ(curve.points.back().first, 3);
  }
  EXPECT_GT(figure.curves[0].points.front().second, figure.curves[0].points.back().second);
}

}  // namespace
}  // namespace pallas::app
