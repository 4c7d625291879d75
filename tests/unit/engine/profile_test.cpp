#include "engine/profile.h"

#include "engine/fake_engine.h"

namespace pallas::engine {
namespace {

Profile linear_profile() {
  Profile profile;
  // 1 ms a token at depth 0, rising to 3 ms at 1,000, then to 4 ms at 3,000.
  profile.prefill = {{0, Seconds(0.001)}, {1000, Seconds(0.003)}, {3000, Seconds(0.004)}};
  profile.decode = {{1, 0, Seconds(0.010)},
                    {1, 1000, Seconds(0.020)},
                    {4, 0, Seconds(0.040)},
                    {4, 2000, Seconds(0.060)}};
  return profile;
}

TEST(Profile, prefill_time_is_the_area_under_the_curve) {
  const Profile profile = linear_profile();
  EXPECT_NEAR(profile.prefill_time(0, 1000).count(), 2.0, 1e-9);
  EXPECT_NEAR(profile.prefill_time(0, 500).count(), 0.5 * (0.001 + 0.002) * 1000 / 2 * 1, 1e-9);
  EXPECT_NEAR(profile.prefill_time(500, 2000).count(), 500 * 0.0025 + 1000 * 0.00325, 1e-9);
  EXPECT_NEAR(profile.prefill_time(3000, 5000).count(), 2000 * 0.004, 1e-9);  // constant beyond
  EXPECT_EQ(profile.prefill_time(7, 7).count(), 0);
  EXPECT_EQ(profile.prefill_time(9, 7).count(), 0);
}

TEST(Profile, prefill_times_of_adjacent_ranges_add_up) {
  const Profile profile = linear_profile();
  double sum = 0;
  for (TokenPosition p = 0; p < 4000; p += 16) sum += profile.prefill_time(p, p + 16).count();
  EXPECT_NEAR(sum, profile.prefill_time(0, 4000).count(), 1e-9);
}

TEST(Profile, prefill_rate_is_the_mean_over_the_range) {
  const Profile profile = linear_profile();
  EXPECT_NEAR(profile.prefill_rate(0, 1000).value, 500, 1e-6);
  EXPECT_NEAR(profile.prefill_rate(1000, 1000).value, 1 / 0.003, 1e-6);  // of a point
  EXPECT_EQ(Profile{}.prefill_rate(0, 100).value, 0);                    // unknown
}

TEST(Profile, a_step_of_few_comes_first_where_it_takes_at_most_half_of_the_common_one) {
  Profile profile;
  profile.decode = {{1, 0, Seconds(0.02)}, {4, 0, Seconds(0.08)}};
  EXPECT_TRUE(profile.step_first(1, 4, 100));
  EXPECT_TRUE(profile.step_first(2, 4, 100));
  EXPECT_FALSE(profile.step_first(3, 4, 100));
  EXPECT_FALSE(profile.step_first(4, 4, 100)) << "no others";
  EXPECT_FALSE(profile.step_first(0, 4, 100)) << "nobody waits";
  profile.decode = {{1, 0, Seconds(0.02)}, {4, 0, Seconds(0.03)}};
  EXPECT_FALSE(profile.step_first(1, 4, 100)) << "the others would wait for long";
}

TEST(Profile, decode_step_is_linear_in_depth_and_batch_and_constant_beyond) {
  const Profile profile = linear_profile();
  EXPECT_NEAR(profile.decode_step(1, 0).count(), 0.010, 1e-9);
  EXPECT_NEAR(profile.decode_step(1, 500).count(), 0.015, 1e-9);
  EXPECT_NEAR(profile.decode_step(1, 9000).count(), 0.020, 1e-9);
  EXPECT_NEAR(profile.decode_step(4, 1000).count(), 0.050, 1e-9);
  EXPECT_NEAR(profile.decode_step(2, 1000).count(), 0.030, 1e-9);
  EXPECT_NEAR(profile.decode_step(9, 1000).count(), 0.050, 1e-9);
  EXPECT_NEAR(profile.decode_step(0, 0).count(), 0.010, 1e-9);
}

TEST(Profile, a_profile_without_points_costs_nothing) {
  EXPECT_EQ(Profile{}.prefill_time(0, 100).count(), 0);
  EXPECT_EQ(Profile{}.decode_step(1, 100).count(), 0);
}

TEST(Profile, two_points_at_one_depth_make_a_step) {
  Profile profile;
  profile.prefill = {{0, Seconds(1)}, {10, Seconds(1)}, {10, Seconds(2)}};
  EXPECT_NEAR(profile.prefill_time(10, 12).count(), 4, 1e-9);
  EXPECT_NEAR(profile.prefill_time(0, 9).count(), 9, 1e-9);
}

TEST(CompatibilityRecord, equal_records_are_compatible_and_exact) {
  const CompatibilityRecord ours = fake_engine_info().compatibility;
  EXPECT_TRUE(check_compatible(ours, ours));
  EXPECT_EQ(why_not_exact(ours, ours), "");
}

TEST(CompatibilityRecord, the_first_field_that_must_agree_is_named_with_both_values) {
  const CompatibilityRecord ours = fake_engine_info().compatibility;
  using Change = void (*)(CompatibilityRecord&);
  const std::vector<std::pair<std::string, Change>> changes{
      {"model_hash", [](CompatibilityRecord& r) { r.model_hash = "other"; }},
      {"tokenizer_hash", [](CompatibilityRecord& r) { r.tokenizer_hash = "other"; }},
      {"context_tokens", [](CompatibilityRecord& r) { r.context_tokens = 77; }},
      {"rope", [](CompatibilityRecord& r) { r.rope = "other"; }},
      {"kv_types", [](CompatibilityRecord& r) { r.kv_types = "other"; }},
      {"kv_layout", [](CompatibilityRecord& r) { r.kv_layout = "other"; }},
      {"block_tokens", [](CompatibilityRecord& r) { r.block_tokens = 77; }},
      {"adapter", [](CompatibilityRecord& r) { r.adapter = "other"; }},
  };
  for (const auto& [field, change] : changes) {
    CompatibilityRecord theirs = ours;
    theirs.threads = 99;  // of the second part: not named here
    change(theirs);
    const Status status = check_compatible(ours, theirs);
    ASSERT_FALSE(status) << field;
    EXPECT_EQ(status.error().code, Errc::kIncompatible);
    EXPECT_EQ(status.error().message.rfind(field + " differs", 0), 0u) << status.error().message;
  }
  CompatibilityRecord theirs = ours;
  theirs.kv_types = "k=q8";
  theirs.adapter = "later field";
  EXPECT_EQ(check_compatible(ours, theirs).error().message,
            "kv_types differs: ours \"k=hash,v=hash\", theirs \"k=q8\"");
  theirs = ours;
  theirs.context_tokens = 77;
  EXPECT_EQ(check_compatible(ours, theirs).error().message,
            "context_tokens differs: ours 4096, theirs 77");
}

TEST(CompatibilityRecord, what_exactness_needs_is_named_and_refuses_no_move) {
  const CompatibilityRecord ours = fake_engine_info().compatibility;
  using Change = void (*)(CompatibilityRecord&);
  const std::vector<std::pair<std::string, Change>> changes{
      {"instruction_set", [](CompatibilityRecord& r) { r.instruction_set = "other"; }},
      {"engine_build", [](CompatibilityRecord& r) { r.engine_build = "other"; }},
      {"threads", [](CompatibilityRecord& r) { r.threads = 77; }},
      {"flash_attention", [](CompatibilityRecord& r) { r.flash_attention = true; }},
  };
  for (const auto& [field, change] : changes) {
    CompatibilityRecord theirs = ours;
    change(theirs);
    EXPECT_TRUE(check_compatible(ours, theirs)) << field;
    EXPECT_EQ(why_not_exact(ours, theirs), field);
  }
}

}  // namespace
}  // namespace pallas::engine
