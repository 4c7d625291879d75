#include "http/wall_clock.h"

#include <chrono>
#include <fstream>

namespace pallas::http {

ClockAnchor read_clock_anchor() {
  ClockAnchor anchor;
  anchor.monotonic = TimePoint(std::chrono::steady_clock::now().time_since_epoch());
  anchor.unix_us = to_us(std::chrono::system_clock::now().time_since_epoch());
  // Linux counts its monotonic clock from the boot, and names each boot.
  std::ifstream("/proc/sys/kernel/random/boot_id") >> anchor.id;
  return anchor;
}

void write_clock(JsonWriter& json, const ClockAnchor& anchor, TimePoint zero) {
  json.key("clock")
      .begin_object()
      .member("id", anchor.id)
      .member("monotonic_us", to_us(zero.time_since_epoch()))
      .member("unix_us", anchor.unix_us_at(zero))
      .end_object();
}

}  // namespace pallas::http
