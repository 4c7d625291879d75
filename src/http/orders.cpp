#include "http/orders.h"

#include "http/json_writer.h"
#include "http/request_fields.h"
#include "http/views.h"

namespace pallas::http {
namespace {

constexpr double kMaxLimitS = 86'400;

std::optional<NodeId> name_in(Fields& fields, const char* member) {
  const auto text = fields.text(member, 1, wire::kMaxNameBytes);
  if (!text) return std::nullopt;
  return NodeId(*text);
}

void write_plan(JsonWriter& json, const node::MoveReport& move) {
  json.key("plan")
      .begin_object()
      .member("scheme", move.scheme)
      .member("relay", move.relay)
      .member("context", move.context)
      .member("split", move.split)
      .member("recomputed", move.recomputed)
      .member("bytes", move.bytes)
      .member("window_s", move.window_s)
      .member("interruption_s", move.interruption_s)
      .end_object();
}

}  // namespace

Parsed<node::MoveOrder> parse_move(std::string_view body, SessionId session) {
  const auto json = parse_object(body);
  if (!json) return tl::unexpected(to_api_error(json.error()));
  Fields fields(*json);
  fields.require("target");
  node::MoveOrder order;
  order.session = std::move(session);
  order.target = name_in(fields, "target").value_or(NodeId());
  order.dry_run = fields.boolean("dry_run").value_or(false);
  if (fields.failed()) return tl::unexpected(to_api_error(fields.error()));
  return order;
}

Parsed<DrainOrder> parse_drain(std::string_view body) {
  DrainOrder order;
  if (body.empty()) return order;
  const auto json = parse_object(body);
  if (!json) return tl::unexpected(to_api_error(json.error()));
  Fields fields(*json);
  order.to = name_in(fields, "to").value_or(NodeId());
  if (const auto seconds = fields.number("limit_s", 0, kMaxLimitS)) {
    order.limit = to_duration(Seconds(*seconds));
  }
  if (fields.failed()) return tl::unexpected(to_api_error(fields.error()));
  return order;
}

std::string move_json(const node::MoveReport& move, const ClockAnchor& anchor) {
  JsonWriter json;
  json.begin_object().member("object", "handover");
  json.key("id");
  if (move.id.empty()) {
    json.null();
  } else {
    json.value(move.id);
  }
  const auto after = [&](std::optional<TimePoint> at) {
    return at ? std::optional(to_ms(*at - move.ordered_at)) : std::nullopt;
  };
  json.member("session", move.session.value)
      .member("source", move.source.value)
      .member("target", move.target.value)
      .member("state", to_string(move.state))
      .member("reason", move.reason);
  json.key("handover");
  if (move.handover.empty()) {
    json.null();
  } else {
    json.value(move.handover);
  }
  write_plan(json, move);
  json.member("told_ms", after(move.told_at)).member("ended_ms", after(move.ended_at));
  write_source_phases(json, move.phases, move.ordered_at, anchor);
  return json.end_object().take();
}

std::string found_handover_json(const std::string& id, const node::HandoverReport* arrival,
                                const node::DepartureReport* departure, const ClockAnchor& anchor) {
  const bool failed = arrival != nullptr && !arrival->error.empty();
  JsonWriter json;
  json.begin_object()
      .member("object", "handover")
      .member("id", id)
      .member("state", to_string(failed ? node::MoveState::kFailed : node::MoveState::kCompleted))
      .member("reason", failed ? arrival->error : std::string());
  json.key("arrival");
  if (arrival != nullptr) {
    json.raw(handover_json(*arrival, anchor));
  } else {
    json.null();
  }
  json.key("departure");
  if (departure != nullptr) {
    json.raw(departure_json(*departure, anchor));
  } else {
    json.null();
  }
  return json.end_object().take();
}

std::string drain_json(const node::DrainStatus& status, std::optional<Duration> ends_in) {
  JsonWriter json;
  json.begin_object()
      .member("object", "drain")
      .member("draining", status.draining)
      .member("to", status.to.value)
      .member("left", status.left())
      .member("serving", status.serving)
      .member("arriving", status.arriving)
      .member("leaving", status.leaving)
      .member("moved", status.moved)
      .member("moves_failed", status.refused)
      .member("ends_in_s",
              ends_in ? std::optional(to_seconds(*ends_in).count()) : std::optional<double>());
  return json.end_object().take();
}

}  // namespace pallas::http
