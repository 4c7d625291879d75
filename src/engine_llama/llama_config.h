#pragma once
// Settings of the llama.cpp engine.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/units.h"
#include "engine/profile.h"

namespace pallas::engine {

// What an engine measured of itself once; kept in LlamaConfig::cache_dir.
struct Measured {
  Profile profile;
  Capabilities capabilities;
  // Other work took the processor meanwhile: the profile is slower than this machine. Kept until a
  // next start measures again.
  bool disturbed = false;
};

struct LlamaConfig {
  std::filesystem::path model_path;     // a GGUF file, used as it is (model_store.h prepares one)
  std::string model_name;               // as in GET /v1/models; empty: the file's own name
  std::uint32_t slots = 4;              // sessions at once, 1 to 64
  TokenPosition context_tokens = 2048;  // positions of one session, up to the model's own context
  std::uint32_t threads = 1;            // part of what exactness depends on
  std::uint32_t block_tokens = 16;      // kv::Geometry::block_tokens
  bool flash_attention = false;         // faster on a GPU; on a CPU slower and in other classes

  // Largest prefill chunk; 0: the profile's choice.
  TokenPosition chunk_tokens = 0;
  // While others decode, a chunk is cut so that it should end within this, or before the next
  // paced token is due, whichever is later.
  Duration step_budget{std::chrono::milliseconds(50)};
  // Bytes of rows that exports and attaches may move between two steps.
  std::uint64_t transfer_bytes_per_step = 4ull << 20;

  // Where profile and self-test are kept; empty: measured at every start.
  std::filesystem::path cache_dir;
  // Instead of measuring.
  std::optional<Measured> measured;
};

}  // namespace pallas::engine
