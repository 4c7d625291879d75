// Profile and self-test: measured on this machine, once, and kept.
#include <fstream>

#include "engine_llama/measured_cache.h"
#include "session.h"

namespace pallas::test {
namespace {

class Measuring : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = std::filesystem::path(testing::TempDir()) / "pallas_measure_test";
    std::filesystem::remove_all(dir_);
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  std::filesystem::path dir_;
};

TEST_F(Measuring, an_engine_measures_itself_once_and_claims_what_it_proved) {
  engine::LlamaConfig config = test_config();
  config.measured.reset();
  config.cache_dir = dir_;
  const engine::Post nowhere = [](std::unique_ptr<engine::Task>) {};
  const TimePoint begin = engine::steady_now();
  const auto first = engine::make_llama_engine(config, nowhere);
  const TimePoint measured = engine::steady_now();
  ASSERT_TRUE(first) << first.error().describe();
  const auto second = engine::make_llama_engine(config, nowhere);
  const TimePoint end = engine::steady_now();
  ASSERT_TRUE(second);
  RecordProperty("measuring_ms", static_cast<int>(to_ms(measured - begin)));

  const engine::Profile& profile = (*first)->info().profile;
  EXPECT_GE(profile.chunk_tokens, 16u);
  EXPECT_GE(profile.prefill.size(), 1u);
  EXPECT_GT(profile.prefill_rate(0, 300).value, 10);
  EXPECT_GT(profile.decode_step(1, 300).count(), 0);
  EXPECT_GT(profile.export_per_token.count(), 0);
  EXPECT_GT(profile.attach_per_token.count(), 0);
  EXPECT_LT((profile.export_per_token * 16).count(), 0.005);

  const engine::Capabilities& can = (*first)->info().capabilities;
  EXPECT_TRUE(can.exact_attach);
  EXPECT_TRUE(can.exact_single_step);
  EXPECT_TRUE(can.exact_chunked_prompt);
  EXPECT_FALSE(can.exact_chunked_generated) << "then generated tokens need not be replayed";

  EXPECT_LT(end - measured, measured - begin);
  EXPECT_EQ((*second)->info().profile.decode_step(1, 300), profile.decode_step(1, 300));
  EXPECT_EQ((*second)->info().profile.chunk_tokens, profile.chunk_tokens);
}

TEST_F(Measuring, a_cache_of_another_key_or_damaged_is_no_cache) {
  const engine::Measured measured = test_measured();
  const engine::MeasuredCache cache(dir_, "one");
  EXPECT_FALSE(cache.load());
  cache.store(measured);
  const auto kept = cache.load();
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->profile.prefill_time(0, 500), measured.profile.prefill_time(0, 500));
  EXPECT_EQ(kept->profile.decode_step(4, 0), measured.profile.decode_step(4, 0));
  EXPECT_EQ(kept->capabilities.exact_attach, measured.capabilities.exact_attach);

  const engine::MeasuredCache other(dir_, "other");
  EXPECT_FALSE(other.load());
  std::filesystem::copy_file(cache.path(), other.path());
  EXPECT_FALSE(other.load()) << "the key inside decides";
  std::ofstream(cache.path()) << "{ half";
  EXPECT_FALSE(cache.load());
}

}  // namespace
}  // namespace pallas::test
