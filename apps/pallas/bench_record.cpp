#include "bench_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "http/json_writer.h"

namespace pallas::app {
namespace {

// Microseconds are finer than any clock here, and keep the lines short.
void write_times(http::JsonWriter& json, const char* key, const std::vector<double>& times) {
  json.key(key).begin_array();
  for (const double ms : times) json.value(std::round(ms * 1000) / 1000);
  json.end_array();
}

void write(http::JsonWriter& json, const HopRecord& hop) {
  json.begin_object()
      .member("executed_ms", hop.executed_ms)
      .member("gap_ms", hop.gap_ms)
      .member("sit_ms", hop.sit_ms)
      .member("foretold_wrongly", hop.foretold_wrongly)
      .key("gnb");
  if (hop.gnb) {
    json.raw(hop.gnb->json.empty() ? to_json(*hop.gnb) : hop.gnb->json);
  } else {
    json.null();
  }
  json.end_object();
}

void write(http::JsonWriter& json, const MoverRecord& mover) {
  json.begin_object().member("prompt_tokens", mover.prompt_tokens);
  write_times(json, "at_ms", mover.at_ms);
  json.key("ids").begin_array();
  for (const TokenId id : mover.ids) json.value(id);
  json.end_array().key("hops").begin_array();
  for (const auto& hop : mover.hops) write(json, hop);
  json.end_array().key("faults").begin_array();
  for (const auto& fault : mover.faults) json.value(fault);
  json.end_array().end_object();
}

std::optional<double> optional_number(const nlohmann::json& object, const char* key) {
  const auto& value = object.at(key);
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

MoverRecord read_mover(const nlohmann::json& object) {
  MoverRecord mover;
  mover.prompt_tokens = object.at("prompt_tokens").get<TokenPosition>();
  mover.at_ms = object.at("at_ms").get<std::vector<double>>();
  mover.ids = object.at("ids").get<std::vector<TokenId>>();
  mover.faults = object.at("faults").get<std::vector<std::string>>();
  for (const auto& item : object.at("hops")) {
    HopRecord hop;
    hop.executed_ms = item.at("executed_ms").get<double>();
    hop.gap_ms = optional_number(item, "gap_ms");
    hop.sit_ms = optional_number(item, "sit_ms");
    hop.foretold_wrongly = item.at("foretold_wrongly").get<bool>();
    if (!item.at("gnb").is_null()) hop.gnb = parse_gnb_report(item.at("gnb"));
    mover.hops.push_back(std::move(hop));
  }
  return mover;
}

RunRecord read_run(const nlohmann::json& object) {
  RunRecord run;
  run.key = object.at("run").get<std::string>();
  run.goodput_mbps = object.at("goodput_mbps").get<double>();
  run.available_s = object.at("available_s").get<double>();
  run.step_ms = object.at("step_ms").get<double>();
  run.planned_ms = object.at("planned_ms").get<std::vector<double>>();
  for (const auto& mover : object.at("movers")) run.movers.push_back(read_mover(mover));
  run.residents = object.at("residents").get<std::vector<std::vector<double>>>();
  return run;
}

Sizing read_sizing(const nlohmann::json& object) {
  Sizing sizing;
  sizing.step_ms = object.at("step_ms").get<double>();
  sizing.tokens_per_word = object.at("tokens_per_word").get<double>();
  sizing.tokens_beside = object.at("tokens_beside").get<double>();
  sizing.kv_bytes = object.at("kv_bytes").get<std::uint64_t>();
  sizing.model = object.at("model").get<std::string>();
  return sizing;
}

}  // namespace

std::string to_json(const RunRecord& run) {
  http::JsonWriter json;
  json.begin_object()
      .member("run", run.key)
      .member("goodput_mbps", run.goodput_mbps)
      .member("available_s", run.available_s)
      .member("step_ms", run.step_ms);
  write_times(json, "planned_ms", run.planned_ms);
  json.key("movers").begin_array();
  for (const auto& mover : run.movers) write(json, mover);
  json.end_array().key("residents").begin_array();
  for (const auto& resident : run.residents) {
    json.begin_array();
    for (const double ms : resident) json.value(std::round(ms * 1000) / 1000);
    json.end_array();
  }
  return json.end_array().end_object().take();
}

std::string to_json(const std::string& key, const Sizing& sizing) {
  http::JsonWriter json;
  json.begin_object()
      .member("sizing", key)
      .member("step_ms", sizing.step_ms)
      .member("tokens_per_word", sizing.tokens_per_word)
      .member("tokens_beside", sizing.tokens_beside)
      .member("kv_bytes", sizing.kv_bytes)
      .member("model", sizing.model)
      .end_object();
  return json.take();
}

const RunRecord* BenchRecords::run(const std::string& key) const {
  const auto found =
      std::find_if(runs.begin(), runs.end(), [&](const RunRecord& run) { return run.key == key; });
  return found == runs.end() ? nullptr : &*found;
}

const Sizing* BenchRecords::sizing(const std::string& key) const {
  const auto found = std::find_if(sizings.begin(), sizings.end(),
                                  [&](const auto& entry) { return entry.first == key; });
  return found == sizings.end() ? nullptr : &found->second;
}

Result<BenchRecords> parse_records(const std::string& text) {
  BenchRecords records;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    // The program ended while it wrote this line.
    if (end == std::string::npos) break;
    ++number;
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    try {
      const auto json = nlohmann::json::parse(line);
      if (json.contains("run")) {
        records.runs.push_back(read_run(json));
      } else {
        records.sizings.emplace_back(json.at("sizing").get<std::string>(), read_sizing(json));
      }
    } catch (const nlohmann::json::exception& error) {
      return fail(Errc::kParse, fmt::format("line {}: {}", number, error.what()));
    }
  }
  return records;
}

}  // namespace pallas::app
