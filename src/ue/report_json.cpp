#include <nlohmann/json.hpp>

#include "ue/report.h"

namespace pallas::ue {
namespace {

using Json = nlohmann::json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json to_object(const HandoverStats& h, std::optional<TimePoint> origin) {
  return {{"session", h.session.value},
          {"from", h.from.value},
          {"to", h.to.value},
          {"epoch", h.epoch.value},
          {"executed_at_ms", origin ? Json(to_ms(h.executed_at - *origin)) : Json()},
          {"last_before", or_null(h.last_before)},
          {"gap_ms", or_null(h.gap_ms)},
          {"sit_ms", or_null(h.sit_ms)},
          {"relayed", h.relayed},
          {"tokens", h.tokens}};
}

std::optional<TimePoint> origin_of(const SessionReport& session) {
  if (session.tokens.empty()) return std::nullopt;
  return session.tokens.front().at;
}

Json handovers_of(const SessionReport& session) {
  Json list = Json::array();
  for (const HandoverStats& h : session.handovers) {
    list.push_back(to_object(h, origin_of(session)));
  }
  return list;
}

Json to_object(const SessionReport& session, bool tokens) {
  Json json{
      {"session", session.session.value},
      {"state", session.state},
      {"model", session.model},
      {"finish_reason", session.finish_reason},
      {"token_count", session.tokens.size()},
      {"itl_ms",
       {{"p50", session.itl.p50_ms}, {"p95", session.itl.p95_ms}, {"max", session.itl.max_ms}}},
      {"handovers", handovers_of(session)},
      {"counters",
       {{"duplicates", session.counters.duplicates},
        {"contradictions", session.counters.contradictions},
        {"skipped", session.counters.skipped},
        {"fenced", session.counters.fenced},
        {"stale_answers", session.counters.stale_answers},
        {"retries", session.counters.retries}}}};
  json["usage"] = Json();
  if (session.usage) {
    json["usage"] = {{"prompt_tokens", session.usage->prompt_tokens},
                     {"completion_tokens", session.usage->completion_tokens}};
  }
  if (!tokens) return json;
  Json list = Json::array();
  for (const TokenRecord& t : session.tokens) {
    list.push_back({{"i", t.index},
                    {"id", t.id},
                    {"by", t.by.value},
                    {"epoch", t.epoch.value},
                    {"t_ms", to_ms(t.at - session.tokens.front().at)},
                    {"text", t.text}});
  }
  json["tokens"] = std::move(list);
  return json;
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string to_json(const HandoverStats& handover) {
  return dump(to_object(handover, {}));
}

std::string handovers_to_json(const UeReport& report) {
  Json list = Json::array();
  for (const SessionReport& session : report.sessions) {
    for (Json& h : handovers_of(session)) list.push_back(std::move(h));
  }
  return dump({{"ue", report.ue.value}, {"handovers", std::move(list)}});
}

std::string to_json(const SessionReport& session, bool tokens) {
  return dump(to_object(session, tokens));
}

std::string to_json(const UeReport& report, bool tokens) {
  Json list = Json::array();
  for (const SessionReport& session : report.sessions) {
    list.push_back(to_object(session, tokens));
  }
  return dump({{"ue", report.ue.value},
               {"cell", report.cell.value},
               {"gnb", report.gnb.value},
               {"sessions", std::move(list)}});
}

}  // namespace pallas::ue
