#include "gnb_queries.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "ue/gnb_api.h"

namespace pallas::app {
namespace {

constexpr Duration kPatience = std::chrono::seconds(10);

Result<ue::HttpReply> get(EventLoop& loop, const ue::Address& gnb, const std::string& target) {
  std::optional<Result<ue::HttpReply>> reply;
  ue::GnbClient client(loop.io(), ue::HttpTimeouts{});
  client.fetch(gnb, {"GET", target, {}, ""},
               [&](Result<ue::HttpReply> answer) { reply = std::move(answer); });
  const auto answered = [&] { return reply.has_value(); };
  if (auto s = loop.wait(answered, kPatience, "GET " + target); !s) return Failure(s.error());
  return std::move(*reply);
}

template <class Report>
Result<std::vector<Report>> collect(EventLoop& loop, const std::map<NodeId, ue::Address>& gnbs,
                                    const SessionId& session,
                                    Result<std::vector<Report>> (*parse)(const std::string&,
                                                                         const SessionId&)) {
  std::vector<Report> all;
  for (const auto& [name, at] : gnbs) {
    const auto reply = get(loop, at, "/v1/handovers?session=" + session.value);
    if (!reply) return Failure(reply.error());
    if (reply->status != 200) {
      return fail(Errc::kUnreachable, name.value + ": GET /v1/handovers failed");
    }
    const auto reports = parse(reply->body, session);
    if (!reports) return fail(reports.error().code, name.value + ": " + reports.error().message);
    all.insert(all.end(), reports->begin(), reports->end());
  }
  return all;
}

}  // namespace

Result<std::string> model_of(EventLoop& loop, const ue::Address& gnb) {
  const auto reply = get(loop, gnb, "/v1/models");
  if (!reply) return Failure(reply.error());
  const auto name = ue::parse_first_model(reply->status, reply->body);
  if (!name) return Failure(name.error());
  return *name;
}

Result<std::vector<GnbReport>> handover_reports(EventLoop& loop,
                                                const std::map<NodeId, ue::Address>& gnbs,
                                                const SessionId& session) {
  return collect(loop, gnbs, session, parse_gnb_reports);
}

Result<std::vector<SourceReport>> source_reports(EventLoop& loop,
                                                 const std::map<NodeId, ue::Address>& gnbs,
                                                 const SessionId& session) {
  return collect(loop, gnbs, session, parse_source_reports);
}

Result<std::uint64_t> kv_bytes_per_token(EventLoop& loop, const ue::Address& gnb) {
  const auto reply = get(loop, gnb, "/v1/engine");
  if (!reply) return Failure(reply.error());
  const auto json = nlohmann::json::parse(reply->body, nullptr, false);
  if (!json.is_object() || !json.contains("kv_bytes_per_token") ||
      !json["kv_bytes_per_token"].is_number_unsigned()) {
    return fail(Errc::kParse, "GET /v1/engine does not say kv_bytes_per_token");
  }
  return json["kv_bytes_per_token"].get<std::uint64_t>();
}

}  // namespace pallas::app
