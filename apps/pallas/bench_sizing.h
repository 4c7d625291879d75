#pragma once
// How a run is laid out in time and tokens, from what the engine was measured to do. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "bench_options.h"

namespace pallas::app {

// The engine as a few short requests show it, at a setting's depth and number of users.
struct Sizing {
  double step_ms = 0;          // median interval of an uncapped stream
  double tokens_per_word = 0;  // of bench_prompt()
  double tokens_beside = 0;    // of the chat template
  std::uint64_t kv_bytes = 0;  // of a token
  std::string model;
};

// Sessions decode so long before a handover is predicted.
inline constexpr Seconds kLeadIn{0.3};
// A run ends so many tokens after its last handover.
inline constexpr std::size_t kTailTokens = 32;

struct RunLayout {
  double goodput_mbps = 0;         // 0: not paced
  Seconds available{0};            // predictions are given so long before each handover
  std::vector<Seconds> handovers;  // from the moment when every session has its first token
  std::uint32_t prompt_words = 0;
  // Of each mover: its context is the setting's times 1 - spread to 1 + spread, the first's least.
  std::vector<std::uint32_t> mover_words;
  std::uint32_t max_tokens = 0;  // far more than will be asked for
  std::uint32_t resident_words = 0;
};

// So that prompt and generated tokens together are about the setting's context at the first
// handover. kInvalidArgument, naming the field, when a context is too small for the time that
// predictions are to be available, or the whole session too long for `context_tokens`.
Result<RunLayout> lay_out(const BenchSetting& setting, const Sizing& sizing,
                          std::uint32_t context_tokens);

// The first `words` words of an endless text, from another place in it for each `start`.
std::string bench_prompt(std::uint32_t words, std::uint32_t start);

// The cores of each of `gnbs` processes: the allowed ones in equal parts. Empty when there are
// fewer cores than processes.
std::vector<std::vector<int>> share_cores(const std::vector<int>& allowed, std::size_t gnbs);

}  // namespace pallas::app
