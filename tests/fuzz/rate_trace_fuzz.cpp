// libFuzzer target over goodput traces: what is accepted has a period, finite rates, a next change
// that lies ahead, and lets bytes through in the end.

#include <cmath>
#include <cstdint>
#include <string_view>

#include "input_reader.h"
#include "kv/rate_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pallas;
  using fuzz::require;
  fuzz::InputReader input(data, size);
  const Duration begin = std::chrono::milliseconds(input.up_to(0xffff));
  const std::uint64_t bytes = input.up_to(0xffff);
  const auto trace = kv::RateTrace::parse(input.rest());
  if (!trace) {
    require(!trace.error().message.empty());
    return 0;
  }
  require(trace->period() > Duration{0});
  Duration at = begin;
  for (int i = 0; i < 8; ++i) {
    const double rate = trace->at(at).value;
    require(std::isfinite(rate) && rate >= 0);
    const auto change = trace->next_change(at);
    if (!change) break;
    require(*change > at);
    at = *change;
  }
  require(trace->finish(begin, bytes) >= begin);
  // But for what seconds as a double cannot tell apart.
  require(trace->finish(begin, bytes) <=
          trace->finish(begin, bytes + 1) + std::chrono::milliseconds(1));
  return 0;
}
