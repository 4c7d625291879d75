#pragma once
// How much KV a token of a model has: of the models of the papers by name, of others by their GGUF
// file's header, which is read without loading the model.

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace pallas::app {

struct ModelShape {
  std::string name;
  std::uint64_t kv_bytes_per_token = 0;
  // Of the papers' models on the papers' machines; none for a file.
  std::optional<double> prefill_rate, decode_rate, activation_s;
};

std::vector<std::string> known_model_shapes();
// A known name, or the path of a GGUF file. Errors name what is wrong with either.
Result<ModelShape> find_model_shape(const std::string& name_or_path);

// The header of a GGUF file (versions 2 and 3), for a cache of 16-bit numbers in every layer.
// kParse, naming the key, for what is not one: every length is checked before it is believed.
Result<ModelShape> read_gguf_shape(std::istream& in);

}  // namespace pallas::app
