// What was measured of an engine, from its JSON.

#include <nlohmann/json.hpp>

#include "sim_scenario.h"

namespace pallas::app {
namespace {

using nlohmann::json;

Seconds seconds(const json& from, const char* field) {
  return Seconds(from.at(field).get<double>());
}

std::optional<std::uint32_t> count(const json& from, const char* field) {
  if (!from.contains(field)) return std::nullopt;
  return from.at(field).get<std::uint32_t>();
}

}  // namespace

Result<MeasuredEngine> parse_measured_engine(const std::string& text) {
  try {
    const json all = json::parse(text);
    const json& from = all.at("profile");
    MeasuredEngine measured;
    engine::Profile& profile = measured.profile;
    profile.chunk_tokens = from.at("chunk_tokens");
    for (const json& point : from.at("prefill")) {
      profile.prefill.push_back({point.at("depth"), seconds(point, "per_token_s")});
    }
    for (const json& point : from.at("decode")) {
      profile.decode.push_back({point.at("batch"), point.at("depth"), seconds(point, "step_s")});
    }
    profile.export_per_token = seconds(from, "export_per_token_s");
    profile.attach_per_token = seconds(from, "attach_per_token_s");
    if (all.contains("capabilities")) {
      const json& can = all.at("capabilities");
      measured.capabilities.exact_chunked_prompt = can.at("exact_chunked_prompt");
      measured.capabilities.exact_chunked_generated = can.at("exact_chunked_generated");
      measured.capabilities.exact_single_step = can.at("exact_single_step");
      measured.capabilities.exact_attach = can.at("exact_attach");
    }
    measured.kv_bytes_per_token = count(all, "kv_bytes_per_token");
    measured.block_tokens = count(all, "block_tokens");
    measured.context_tokens = count(all, "context_tokens");
    measured.slots = count(all, "slots");
    return measured;
  } catch (const json::exception& error) {
    return fail(Errc::kParse, std::string("profile: ") + error.what());
  }
}

}  // namespace pallas::app
