#include <limits>

#include "inputs.h"

namespace pallas::plan {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

template <class Change>
void expect_refused(const std::string& field, Change change) {
  PlanInput input = qwen_14b();
  change(input);
  const Status status = check(input);
  ASSERT_FALSE(status) << field;
  EXPECT_EQ(status.error().code, Errc::kInvalidArgument);
  EXPECT_TRUE(status.error().message.starts_with(field + " ")) << status.error().message;
}

TEST(Check, a_sound_input_passes) {
  EXPECT_TRUE(check(qwen_14b()));
  PlanInput input = qwen_14b();
  input.goodput.reset();
  input.context = 0;
  input.decode_rate = TokensPerSecond(0);
  EXPECT_TRUE(check(input));
}

TEST(Check, each_bad_field_is_refused_by_name) {
  expect_refused("block_tokens", [](PlanInput& in) { in.block_tokens = 0; });
  expect_refused("kv_bytes_per_token", [](PlanInput& in) { in.kv_bytes_per_token = 0; });
  expect_refused("alpha", [](PlanInput& in) { in.alpha = 1.01; });
  expect_refused("alpha", [](PlanInput& in) { in.alpha = -0.01; });
  expect_refused("step", [](PlanInput& in) { in.step = in.t_max / 1e6; });
  for (const double bad : {kNan, kInf, -1.0}) {
    expect_refused("alpha", [&](PlanInput& in) { in.alpha = bad; });
    expect_refused("prefill_rate", [&](PlanInput& in) { in.prefill_rate = TokensPerSecond(bad); });
    expect_refused("decode_rate", [&](PlanInput& in) { in.decode_rate = TokensPerSecond(bad); });
    expect_refused("goodput", [&](PlanInput& in) { in.goodput = BytesPerSecond(bad); });
    expect_refused("remaining", [&](PlanInput& in) { in.remaining = Seconds(bad); });
    expect_refused("load", [&](PlanInput& in) { in.load = Seconds(bad); });
    expect_refused("activation", [&](PlanInput& in) { in.activation = Seconds(bad); });
    expect_refused("step", [&](PlanInput& in) { in.step = Seconds(bad); });
    expect_refused("t_max", [&](PlanInput& in) { in.t_max = Seconds(bad); });
    expect_refused("margin", [&](PlanInput& in) { in.margin = Seconds(bad); });
    expect_refused("margin_share", [&](PlanInput& in) { in.margin_share = bad; });
  }
  for (const double bad : {0.0, 1.01, -0.1, kNan}) {
    expect_refused("partial_fraction", [&](PlanInput& in) { in.partial_fraction = bad; });
  }
  expect_refused("partial_deadline", [](PlanInput& in) { in.partial_deadline = Seconds(-1); });
  expect_refused("prefill_rate", [](PlanInput& in) { in.prefill_rate = TokensPerSecond(0); });
  expect_refused("goodput", [](PlanInput& in) { in.goodput = BytesPerSecond(0); });
}

}  // namespace
}  // namespace pallas::plan
