// Runs every committed input through its fuzz target, in every build. An input that breaks its
// target ends this program; its name is in the trace.

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <string>

#define PALLAS_FUZZ_TARGETS(each)                                                         \
  each(frame) each(gnb_config) each(handover_machines) each(http_server) each(kv_payload) \
      each(openai_request) each(ran_feed) each(rate_trace) each(secrets) each(trajectory) \
          each(ue_stream)

#define PALLAS_DECLARE(name) \
  extern "C" int pallas_fuzz_##name(const std::uint8_t* data, std::size_t size);
PALLAS_FUZZ_TARGETS(PALLAS_DECLARE)

namespace {

struct Target {
  const char* name;
  int (*run)(const std::uint8_t*, std::size_t);
};
#define PALLAS_ENTRY(name) Target{#name, pallas_fuzz_##name},
constexpr Target kTargets[] = {PALLAS_FUZZ_TARGETS(PALLAS_ENTRY)};

class FuzzCorpus : public ::testing::TestWithParam<Target> {};

TEST_P(FuzzCorpus, holds_only_inputs_that_are_taken_or_refused) {
  const auto folder = std::filesystem::path(PALLAS_CORPUS_DIR) / GetParam().name;
  // By name: a folder's own order differs from one file system to the next.
  std::set<std::filesystem::path> inputs;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) inputs.insert(entry.path());
  ASSERT_FALSE(inputs.empty());
  for (const auto& path : inputs) {
    std::ifstream file(path, std::ios::binary);
    const std::string data((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
    std::cerr << path.filename().string() << '\n';
    EXPECT_EQ(GetParam().run(reinterpret_cast<const std::uint8_t*>(data.data()), data.size()), 0);
  }
  EXPECT_EQ(GetParam().run(nullptr, 0), 0);
}

INSTANTIATE_TEST_SUITE_P(Every, FuzzCorpus, ::testing::ValuesIn(kTargets),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(FuzzCorpora, belong_to_a_target_each) {
  std::set<std::string> folders, targets;
  for (const auto& entry : std::filesystem::directory_iterator(PALLAS_CORPUS_DIR)) {
    folders.insert(entry.path().filename().string());
  }
  for (const auto& target : kTargets) targets.insert(target.name);
  EXPECT_EQ(folders, targets);
}

}  // namespace
