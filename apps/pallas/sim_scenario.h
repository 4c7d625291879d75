#pragma once
// Scenario files of `pallas sim` (docs/simulation.md): TOML into a checked sim::Scenario.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/profile.h"
#include "sim/scenario.h"

namespace pallas::app {

// `name` is what errors call the file; other files that it names lie relative to `folder`. Errors
// are kInvalidConfig or kParse and begin with name:line where the line is known. What comes back
// has passed sim::check.
Result<sim::Scenario> read_scenario(std::string_view text, const std::string& name,
                                    const std::filesystem::path& folder);
Result<sim::Scenario> read_scenario_file(const std::string& path);

// What a gNB says of its engine at GET /v1/engine. The cached measurement itself (`measured-*.json`
// in the folder of the model's cache) serves too; it says profile and capabilities only.
struct MeasuredEngine {
  engine::Profile profile;
  engine::Capabilities capabilities;
  std::optional<std::uint32_t> kv_bytes_per_token, block_tokens, context_tokens, slots;
};
// kParse, naming the field, for anything else.
Result<MeasuredEngine> parse_measured_engine(const std::string& json);

}  // namespace pallas::app
