#include <nlohmann/json.hpp>

#include "ue/report.h"

namespace pallas::ue {
namespace {

using Json = nlohmann::json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

// The UE's side for `pallas trace`, like the phases of the gNBs' reports.
void add_phases(Json& json, const HandoverStats& h, const ClockAnchor& anchor) {
  const auto since = [&](const std::optional<TimePoint>& at) {
    return at ? Json(to_ms(*at - h.executed_at)) : Json();
  };
  json["role"] = "ue";
  json["clock"] = {{"id", anchor.id},
                   {"monotonic_us", to_us(h.executed_at.time_since_epoch())},
                   {"unix_us", anchor.unix_us_at(h.executed_at)}};
  json["phases"] = {
      {"last_token_ms", since(h.last_token_at)},   {"execution_ms", 0.0},
      {"attach_sent_ms", since(h.attach_sent_at)}, {"attach_granted_ms", since(h.granted_at)},
      {"first_token_ms", since(h.first_token_at)}, {"first_own_token_ms", since(h.first_own_at)}};
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

std::string to_json(const HandoverStats& handover, const ClockAnchor& anchor) {
  Json json = to_object(handover, {});
  add_phases(json, handover, anchor);
  return dump(json);
}

std::string handovers_to_json(const UeReport& report, const ClockAnchor& anchor) {
  Json list = Json::array();
  for (const SessionReport& session : report.sessions) {
    for (const HandoverStats& h : session.handovers) {
      Json json = to_object(h, origin_of(session));
      add_phases(json, h, anchor);
      list.push_back(std::move(json));
    }
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
