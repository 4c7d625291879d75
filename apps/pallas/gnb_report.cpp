#include "gnb_report.h"

#include <nlohmann/json.hpp>
#include <type_traits>

#include "http/json_writer.h"

namespace pallas::app {
namespace {

template <class T>
void take(const nlohmann::json& object, const char* key, T& to) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return;
  if constexpr (std::is_same_v<T, std::string>) {
    if (found->is_string()) to = found->template get<std::string>();
  } else if constexpr (std::is_same_v<T, bool>) {
    if (found->is_boolean()) to = found->template get<bool>();
  } else if constexpr (std::is_same_v<T, std::uint64_t>) {
    if (found->is_number_unsigned()) to = found->template get<std::uint64_t>();
  } else {
    if (found->is_number()) to = found->template get<double>();
  }
}

// Every member by its name in JSON, for both directions.
template <class Report, class Visit>
void visit_members(Report& report, Visit visit) {
  visit("epoch", report.epoch.value);
  visit("scheme", report.scheme);
  visit("source", report.source);
  visit("target", report.target);
  visit("recovery", report.recovery);
  visit("error", report.error);
  visit("prepared", report.prepared);
  visit("exact", report.exact);
  visit("relay", report.relay);
  visit("oracle", report.oracle);
  visit("request_ms", report.request_ms);
  visit("fronts_met_ms", report.fronts_met_ms);
  visit("status_ms", report.status_ms);
  visit("covered_ms", report.covered_ms);
  visit("first_token_ms", report.first_token_ms);
  visit("window_s", report.window_s);
  visit("early_s", report.early_s);
  visit("expected_sit_s", report.expected_sit_s);
  visit("tokens_total", report.tokens_total);
  visit("tokens_recomputed", report.tokens_recomputed);
  visit("tokens_replayed", report.tokens_replayed);
  visit("tokens_received", report.tokens_received);
  visit("tokens_overlap", report.tokens_overlap);
  visit("residual_tokens", report.residual_tokens);
  visit("fraction_at_attach", report.fraction_at_attach);
  visit("fraction_at_deadline", report.fraction_at_deadline);
  visit("shadow_tokens", report.shadow_tokens);
  visit("shadow_agreed", report.shadow_agreed);
  visit("shadow_differed", report.shadow_differed);
  visit("shadow_used", report.shadow_used);
  visit("bytes", report.bytes);
}

template <class Partial, class Visit>
void visit_partial(Partial& partial, Visit visit) {
  visit("fraction", partial.fraction);
  visit("positions", partial.positions);
  visit("tokens", partial.tokens);
  visit("tokens_replayed", partial.tokens_replayed);
  visit("second_slot", partial.second_slot);
  visit("complete_ms", partial.complete_ms);
}

// The reports of `session` in an answer of GET /v1/handovers: its member `name`, or a bare list.
Result<std::vector<nlohmann::json>> reports_of(const std::string& text, const char* name,
                                               const SessionId& session) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const bool inside = json.is_object() && json.contains(name);
  const nlohmann::json& list = inside ? json[name] : json;
  if (!list.is_array()) return fail(Errc::kParse, "GET /v1/handovers did not answer a list");
  std::vector<nlohmann::json> reports;
  for (const auto& item : list) {
    if (!item.is_object()) return fail(Errc::kParse, "GET /v1/handovers: a report is no object");
    std::string whose;
    take(item, "session", whose);
    if (whose == session.value) reports.push_back(item);
  }
  return reports;
}

std::string dump(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

GnbReport parse_gnb_report(const nlohmann::json& object) {
  GnbReport report;
  if (object.is_object()) {
    visit_members(report, [&](const char* key, auto& member) { take(object, key, member); });
    const auto part = object.find("partial");
    if (part != object.end() && part->is_object()) {
      visit_partial(report.partial.emplace(),
                    [&](const char* key, auto& member) { take(*part, key, member); });
    }
  }
  return report;
}

Result<std::vector<GnbReport>> parse_gnb_reports(const std::string& text,
                                                 const SessionId& session) {
  const auto list = reports_of(text, "data", session);
  if (!list) return Failure(list.error());
  std::vector<GnbReport> reports;
  for (const auto& item : *list) {
    reports.push_back(parse_gnb_report(item));
    reports.back().json = dump(item);
  }
  return reports;
}

Result<std::vector<SourceReport>> parse_source_reports(const std::string& text,
                                                       const SessionId& session) {
  const auto list = reports_of(text, "departures", session);
  if (!list) return Failure(list.error());
  std::vector<SourceReport> reports;
  for (const auto& item : *list) {
    SourceReport report{Epoch(), dump(item)};
    take(item, "epoch", report.epoch.value);
    reports.push_back(std::move(report));
  }
  return reports;
}

std::string to_json(const GnbReport& report) {
  http::JsonWriter json;
  json.begin_object();
  visit_members(report, [&](const char* key, const auto& member) { json.member(key, member); });
  if (report.partial) {
    json.key("partial").begin_object();
    visit_partial(*report.partial,
                  [&](const char* key, const auto& member) { json.member(key, member); });
    json.end_object();
  }
  return json.end_object().take();
}

}  // namespace pallas::app
