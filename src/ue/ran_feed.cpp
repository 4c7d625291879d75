#include "ue/ran_feed.h"

#include <nlohmann/json.hpp>

namespace pallas::ue {
namespace {

using Json = nlohmann::json;

RanFeed::Outcome refuse(int status, std::string field, std::string detail) {
  return {FeedProblem{status, std::move(field), std::move(detail)}, {}};
}

const char* title_of(int status) {
  switch (status) {
    case 404:
      return "Not found";
    case 409:
      return "Out of date";
    case 422:
      return "Not possible";
    default:
      return "Malformed object";
  }
}

}  // namespace

RanFeed::Outcome RanFeed::take(std::string_view text, const CellId& serving,
                               const std::map<CellId, NodeId>& cells) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return refuse(400, "", "the body is not a JSON object");

  std::map<std::string, std::string> words;
  for (const char* field : {"ue", "phase", "source", "target"}) {
    const auto it = json.find(field);
    if (it == json.end() || it->is_null()) continue;
    if (!it->is_string()) return refuse(400, field, "is not a string");
    words[field] = it->get<std::string>();
  }
  for (const char* field : {"phase", "target"}) {
    if (!words.contains(field)) return refuse(400, field, "is missing");
  }
  if (!ue_.value.empty() && words.contains("ue") && words["ue"] != ue_.value) {
    return refuse(422, "ue", "is not this UE, which is '" + ue_.value + "'");
  }
  const auto seq = json.find("seq");
  if (seq == json.end()) return refuse(400, "seq", "is missing");
  if (!seq->is_number_unsigned()) return refuse(400, "seq", "is not a whole number of 0 or more");

  const bool has_source = words.contains("source");
  const CellId source(has_source ? words["source"] : std::string());
  const CellId target(words["target"]);
  for (const auto& [field, cell] : {std::pair{"source", source}, std::pair{"target", target}}) {
    if (field == std::string_view("source") && !has_source) continue;
    if (!cells.contains(cell)) return refuse(422, field, "is no configured cell");
  }
  if (has_source && source == target) {
    return refuse(422, "target", "is the source itself");
  }

  Outcome outcome;
  const std::string& phase = words["phase"];
  if (phase == "execution" || phase == "completed" || phase == "reestablished") {
    outcome.cell = target;
  } else if (phase == "rejected" || phase == "cancelled") {
    // Called off, perhaps after the radio had left: it is back, or never went.
    if (has_source && (serving == target || serving == source)) outcome.cell = source;
  } else if (phase != "preparation") {
    return refuse(400, "phase",
                  "is none of preparation, execution, completed, rejected, cancelled, "
                  "reestablished");
  }

  const auto number = seq->get<std::uint64_t>();
  if (last_seq_ && number < *last_seq_) {
    return refuse(409, "seq", "is older than " + std::to_string(*last_seq_));
  }
  last_seq_ = number;
  return outcome;
}

std::string to_json(const FeedProblem& problem) {
  Json json{{"type", "about:blank"},
            {"title", title_of(problem.status)},
            {"status", problem.status},
            {"detail",
             problem.field.empty() ? problem.detail : "'" + problem.field + "' " + problem.detail}};
  if (!problem.field.empty()) json["field"] = problem.field;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace pallas::ue
