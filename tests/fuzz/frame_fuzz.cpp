// libFuzzer target over the frame decoder and every message:
//   build/fuzz/bin/fuzz_frame -max_total_time=60 tests/fuzz/corpus/frame

#include <cstddef>
#include <cstdint>

#include "frame_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  pallas::wire::run_frame_input(std::as_bytes(std::span(data, size)));
  return 0;
}
