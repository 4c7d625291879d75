// libFuzzer target over the two machines of one handover. Each byte is an event: of the engines, of
// the link (in order, late, twice, lost, broken and made anew), of the UE, of a peer that lies
// within what the codec lets through. Two worlds check the machines: see handover_world.h.

#include <cstdint>

#include "handover_world.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  pallas::fuzz::InputReader input(data, size);
  pallas::fuzz::HandoverWorld world(input);
  for (int step = 0; step < 400 && !input.empty(); ++step) world.step(input);
  world.end_well();
  return 0;
}
