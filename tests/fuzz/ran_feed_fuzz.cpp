// libFuzzer target over the RAN feed. The first byte says which object; what is accepted has times
// and places that the node may compute with.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "http/ran_parser.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pallas;
  if (size == 0) return 0;
  const std::string_view json(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto require = [](bool holds) {
    if (!holds) std::abort();
  };
  if (data[0] % 3 == 0) {
    const auto prediction = http::parse_prediction(json);
    if (!prediction) return 0;
    require(!prediction->ue.value.empty() && prediction->in.count() >= 0);
    require(!prediction->target || *prediction->target != prediction->serving);
    require(!prediction->confidence ||
            (*prediction->confidence >= 0 && *prediction->confidence <= 1));
  } else if (data[0] % 3 == 1) {
    const auto handover = http::parse_handover(json);
    require(!handover || !handover->ue.value.empty());
  } else {
    const auto position = http::parse_position(json);
    if (!position) return 0;
    require(std::isfinite(position->x_m) && std::isfinite(position->y_m));
    require(!position->speed_mps ||
            (std::isfinite(*position->speed_mps) && *position->speed_mps >= 0));
  }
  return 0;
}
