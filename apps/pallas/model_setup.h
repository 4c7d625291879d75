#pragma once
// Where this program finds what came with it: the shipped model and traces.

#include <filesystem>
#include <string>

#include "base/result.h"

namespace pallas::app {

// What clients call the shipped model.
inline constexpr const char* kShippedModel = "SmolLM2-135M-Instruct";

// Whether this program was built with the llama.cpp engine.
bool has_llama();

// Prepared models, profiles and self-tests are kept there ($PALLAS_CACHE_DIR or the user's cache).
std::filesystem::path cache_folder();

// A file of the project's data folder, found from where this program lies; kNotFound otherwise.
Result<std::filesystem::path> data_file(const std::string& name);
// A script of the project's folder bench, found in the same way.
Result<std::filesystem::path> bench_script(const std::string& name);

// `path` itself when it is given (any GGUF file, as it is); else the shipped model, which the first
// call re-quantizes.
Result<std::filesystem::path> model_file(const std::string& path);
// The shipped model with weights in `type`: "q4_0", "q8_0" or "f16". Made by the first call.
Result<std::filesystem::path> shipped_model(const std::string& type);

}  // namespace pallas::app
