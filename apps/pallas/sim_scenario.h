#pragma once
// Scenario files of `pallas sim` (docs/simulation.md): TOML into a checked sim::Scenario.

#include <filesystem>
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

// A profile that an engine measured (`measured-*.json` in the folder of the model's cache).
struct MeasuredProfile {
  engine::Profile profile;
  engine::Capabilities capabilities;
};
// kParse, naming the field, for anything else.
Result<MeasuredProfile> parse_measured_profile(const std::string& json);

}  // namespace pallas::app
