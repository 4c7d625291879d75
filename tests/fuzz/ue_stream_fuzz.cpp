// libFuzzer target over what a gNB sends to a UE: an event stream, split where the first byte says,
// gives the events that it gives unsplit; each is read as a stream event.

#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "ue/gnb_api.h"
#include "ue/sse_parser.h"

namespace {

using namespace pallas;

bool feed(std::string_view bytes, std::size_t piece, std::vector<ue::SseEvent>& events) {
  ue::SseParser parser(ue::SseLimits{4096, 16384});
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    if (!parser.feed(bytes.substr(at, piece), events)) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::vector<ue::SseEvent> whole, split;
  const bool good = feed(bytes, bytes.size(), whole);
  if (good != feed(bytes, std::size_t{data[0]} + 1, split)) std::abort();
  if (good && whole != split) std::abort();
  for (const auto& event : whole) (void)ue::parse_stream_event(event);
  (void)ue::parse_api_error(500, bytes);
  (void)ue::parse_first_model(200, bytes);
  (void)ue::prepare_request(bytes);
  return 0;
}
