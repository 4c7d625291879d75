#pragma once
// What two nodes compare before a session moves between them.

#include <filesystem>
#include <string>

#include "base/result.h"
#include "engine/profile.h"
#include "engine_llama/decoder.h"
#include "engine_llama/llama_config.h"
#include "engine_llama/model.h"

namespace pallas::engine {

// Reads the whole weights file once, for its hash.
Result<CompatibilityRecord> compatibility_of(const LlamaModel& model, const Decoder& decoder,
                                             const LlamaConfig& config);

// XXH3-128 of a file, as 32 hex digits. kIo.
Result<std::string> hash_file(const std::filesystem::path& path);

// The instruction sets that llama.cpp was compiled for, e.g. "AVX512+AVX512_VNNI".
std::string instruction_set();
// llama.cpp, its compiler and our sampler: whatever can change a number or a choice.
std::string engine_build();

}  // namespace pallas::engine
