// Profile and self-test: measured on this machine, once, and kept.
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine_llama/measured_cache.h"
#include "engine_llama/profiler.h"
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

TEST_F(Measuring, a_disturbed_profile_is_measured_again_by_a_later_start) {
  engine::LlamaConfig config = test_config();
  config.measured.reset();
  config.cache_dir = dir_;
  const engine::Post nowhere = [](std::unique_ptr<engine::Task>) {};
  ASSERT_TRUE(engine::make_llama_engine(config, nowhere));
  const auto files = std::filesystem::directory_iterator(dir_);
  const auto file = std::find_if(begin(files), end(files), [](const auto& entry) {
    return entry.path().extension() == ".json";
  });
  ASSERT_NE(file, end(files));
  // What a start on a busy machine would have left: a tenth of the speed, and it knows.
  std::ifstream in(file->path());
  auto kept = nlohmann::json::parse(in);
  kept["disturbed"] = true;
  for (auto& point : kept["profile"]["decode"]) point["step_s"] = 1.0;
  std::ofstream(file->path()) << kept;

  auto young = engine::make_llama_engine(config, nowhere);
  ASSERT_TRUE(young);
  EXPECT_EQ((*young)->info().profile.decode_step(1, 0), Seconds(1)) << "good enough for a while";
  std::filesystem::last_write_time(
      file->path(), std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  auto old = engine::make_llama_engine(config, nowhere);
  ASSERT_TRUE(old);
  EXPECT_LT((*old)->info().profile.decode_step(1, 0), Seconds(1));
  EXPECT_TRUE((*old)->info().capabilities.exact_attach);
}

TEST_F(Measuring, of_two_profiles_the_shorter_cost_of_each_point_holds) {
  engine::Profile slow = test_measured().profile;
  engine::Profile fast = slow;
  slow.decode.front().step = Seconds(2);
  fast.prefill.front().per_token = Seconds(1);
  const engine::Profile both = engine::shorter_of(slow, fast);
  EXPECT_EQ(both.decode.front().step, fast.decode.front().step);
  EXPECT_EQ(both.prefill.front().per_token, slow.prefill.front().per_token);
  fast.chunk_tokens *= 2;
  EXPECT_EQ(engine::shorter_of(slow, fast).decode.front().step, Seconds(2));
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
