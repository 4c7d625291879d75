#pragma once
// Model files: preparing one for a CPU, and telling what one is.

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "base/units.h"

namespace pallas::engine {

// $PALLAS_CACHE_DIR, else $XDG_CACHE_HOME/pallas, else ~/.cache/pallas: prepared models, profiles.
std::filesystem::path default_cache_dir();

enum class WeightType : std::uint8_t { kQ4_0, kQ8_0, kF16 };

// The model in `type`; Q4_0 runs twice as fast on a CPU as the shipped Q4_1. `source` itself if it
// is that already, else a file in `cache_dir` that is made from it once (a few seconds; other
// processes wait; it appears complete or not at all). kNotFound, kParse, kIo.
Result<std::filesystem::path> prepare_model(const std::filesystem::path& source,
                                            const std::filesystem::path& cache_dir,
                                            WeightType type = WeightType::kQ4_0);

struct ModelDescription {
  std::string name;
  std::string architecture;
  std::string quantization;  // e.g. "Q4_0"
  std::uint64_t parameters = 0;
  std::uint64_t weight_bytes = 0;
  std::uint32_t layers = 0;
  std::uint32_t kv_heads = 0;
  TokenPosition context_tokens = 0;      // that it was trained for
  std::uint64_t kv_bytes_per_token = 0;  // 0 when not movable
  bool movable = false;
  std::string why_not;  // empty when movable
};

// Loads the file to tell.
Result<ModelDescription> describe_model(const std::filesystem::path& path);

}  // namespace pallas::engine
