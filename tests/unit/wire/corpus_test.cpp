#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "frame_input.h"

namespace pallas::wire {
namespace {

TEST(FrameCorpus, every_input_is_decoded_or_refused) {
  std::size_t inputs = 0, decoded = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(PALLAS_CORPUS_DIR) + "/frame")) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string data((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
    if (run_frame_input(std::as_bytes(std::span(data)))) ++decoded;
    ++inputs;
  }
  EXPECT_GE(inputs, std::variant_size_v<Message>);
  EXPECT_GE(decoded, std::variant_size_v<Message>);
}

}  // namespace
}  // namespace pallas::wire
