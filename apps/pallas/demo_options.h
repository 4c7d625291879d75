#pragma once
// What the demo was asked for.

#include <cstdint>
#include <optional>
#include <string>

#include "request_choices.h"
#include "trip.h"

namespace pallas::app {

struct DemoOptions {
  std::string scheme = "two-front";
  std::optional<std::string> consistency;  // none: default_consistency()
  TripOptions trip{"", "2", 98, 119};      // file: empty means the project's trace
  double cell_size_m = 100, cell_offset_m = 50;
  double goodput_mbps = 50;
  double max_token_rate = 25;
  std::string shadow = "idle";  // as of `pallas gnb`
  double hz = 10;               // positions a second
  bool oracle = false;
  std::uint64_t seed = 7;
  std::string engine = "llama";
  std::string model;
  std::uint32_t context_tokens = 2048;

  bool plain = false;
  bool compare = false;
  bool json = false;  // results as JSON on standard output, no text
  std::string report_file;
  std::string log_level = "info";  // of the gNBs
  std::string keep_logs;           // folder for the gNBs' logs; empty: a temporary one
};

// Sessions that each gNB of the demo can take: the trip's, the reference's, and one to spare.
inline constexpr std::uint32_t kDemoSlots = 3;

inline std::string consistency_of(const DemoOptions& options, const std::string& scheme) {
  return options.consistency.value_or(default_consistency(scheme));
}

}  // namespace pallas::app
