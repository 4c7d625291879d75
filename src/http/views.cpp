#include "http/views.h"

#include "http/json_writer.h"

namespace pallas::http {
namespace {

JsonWriter list_head() {
  JsonWriter json;
  json.begin_object().member("object", "list").key("data").begin_array();
  return json;
}

// All phases, in ms from `zero`; null where they did not happen.
struct PhaseWriter {
  JsonWriter& json;
  TimePoint zero;

  void operator()(std::string name, const node::Mark& mark) const {
    json.key(name + "_ms");
    if (mark.happened()) {
      json.value(to_ms(mark.at() - zero));
    } else {
      json.null();
    }
  }
  void operator()(std::string_view name, const node::Stretch& stretch) const {
    json.key(name);
    if (stretch.count == 0) {
      json.null();
      return;
    }
    json.begin_object()
        .member("begin_ms", to_ms(stretch.begin.at() - zero))
        .member("end_ms", to_ms(stretch.end.at() - zero))
        .member("count", stretch.count)
        .member("tokens", stretch.tokens)
        .member("busy_ms", to_ms(stretch.busy))
        .end_object();
  }
};

template <class Phases>
void write_phases_from(JsonWriter& json, const Phases& phases, TimePoint zero,
                       const ClockAnchor& anchor) {
  write_clock(json, anchor, zero);
  json.key("phases").begin_object();
  node::for_each_phase(phases, PhaseWriter{json, zero});
  json.end_object();
}

template <class Phases>
void write_phases(JsonWriter& json, const Phases& phases, const node::Mark& origin,
                  const ClockAnchor& anchor) {
  write_phases_from(json, phases, origin.happened() ? origin.at() : TimePoint(), anchor);
}

}  // namespace

std::string model_json(const std::string& name, std::int64_t created_unix_s) {
  JsonWriter json;
  json.begin_object()
      .member("id", name)
      .member("object", "model")
      .member("created", created_unix_s)
      .member("owned_by", "pallas")
      .end_object();
  return json.take();
}

std::string models_json(const std::string& name, std::int64_t created_unix_s) {
  auto json = list_head();
  json.raw(model_json(name, created_unix_s)).end_array().end_object();
  return json.take();
}

std::string sessions_json(const std::vector<node::SessionInfo>& sessions) {
  auto json = list_head();
  for (const auto& s : sessions) {
    json.begin_object()
        .member("id", s.session.value)
        .member("tenant", s.tenant)
        .member("ue", s.ue.value)
        .member("role", s.role)
        .member("epoch", s.epoch.value)
        .member("prompt_tokens", s.prompt_tokens)
        .member("tokens", s.tokens)
        .member("kv_front", s.kv_front)
        .member("peer", s.peer)
        .member("window_s", s.window_s)
        .member("rows_received", s.rows_received)
        .member("partial", s.partial)
        .member("target_front", s.target_front)
        .member("handover_in_s", s.handover_in_s)
        .member("next", s.next)
        .end_object();
  }
  return json.end_array().end_object().take();
}

std::string handover_json(const node::HandoverReport& r, const ClockAnchor& anchor) {
  JsonWriter json;
  json.begin_object()
      .member("role", "target")
      .member("id", r.id)
      .member("session", r.session.value)
      .member("epoch", r.epoch.value)
      .member("scheme", r.scheme)
      .member("source", r.source.value)
      .member("target", r.target.value)
      .member("prepared", r.prepared)
      .member("exact", r.exact)
      .member("relay", r.relay)
      .member("oracle", r.oracle)
      .member("recovery", r.recovery)
      .member("request_ms", r.request_ms)
      .member("fronts_met_ms", r.fronts_met_ms)
      .member("status_ms", r.status_ms)
      .member("covered_ms", r.covered_ms)
      .member("first_token_ms", r.first_token_ms)
      .member("release_ack_ms", r.release_ack_ms)
      .member("window_s", r.window_s)
      .member("early_s", r.early_s)
      .member("expected_sit_s", r.expected_sit_s)
      .member("load_s", r.load_s)
      .member("tokens_total", r.tokens_total)
      .member("tokens_recomputed", r.tokens_recomputed)
      .member("tokens_replayed", r.tokens_replayed)
      .member("tokens_received", r.tokens_received)
      .member("tokens_overlap", r.tokens_overlap)
      .member("bytes", r.bytes)
      .member("residual_tokens", r.residual_tokens)
      .member("fraction_at_attach", r.fraction_at_attach)
      .member("fraction_at_deadline", r.fraction_at_deadline)
      .member("shadow_tokens", r.shadow_tokens)
      .member("shadow_agreed", r.shadow_agreed)
      .member("shadow_differed", r.shadow_differed)
      .member("shadow_used", r.shadow_used)
      .member("error", r.error);
  json.key("partial");
  if (r.partial) {
    json.begin_object()
        .member("fraction", r.partial->fraction)
        .member("positions", r.partial->positions)
        .member("tokens", r.partial->tokens)
        .member("tokens_replayed", r.partial->tokens_replayed)
        .member("second_slot", r.partial->second_slot)
        .member("complete_ms", r.partial->complete_ms)
        .end_object();
  } else {
    json.null();
  }
  const node::TargetPhases phases = r.phases.value();
  write_phases(json, phases, phases.attached, anchor);
  return json.end_object().take();
}

std::string departure_json(const node::DepartureReport& r, const ClockAnchor& anchor) {
  JsonWriter json;
  json.begin_object()
      .member("role", "source")
      .member("id", r.id)
      .member("session", r.session.value)
      .member("epoch", r.epoch.value)
      .member("scheme", r.scheme)
      .member("source", r.source.value)
      .member("target", r.target.value)
      .member("prepared", r.prepared)
      .member("relay", r.relay)
      .member("tokens_total", r.tokens_total)
      .member("bytes", r.bytes);
  write_phases(json, r.phases, r.phases.claim_received, anchor);
  return json.end_object().take();
}

void write_source_phases(JsonWriter& json, const node::SourcePhases& phases, TimePoint zero,
                         const ClockAnchor& anchor) {
  write_phases_from(json, phases, zero, anchor);
}

std::string handovers_json(const std::vector<node::HandoverReport>& reports,
                           const std::vector<node::DepartureReport>& departures,
                           const std::string& session, const ClockAnchor& anchor) {
  const auto wanted = [&](const auto& report) {
    return session.empty() || report.session.value == session;
  };
  auto json = list_head();
  for (const auto& report : reports) {
    if (wanted(report)) json.raw(handover_json(report, anchor));
  }
  json.end_array().key("departures").begin_array();
  for (const auto& report : departures) {
    if (wanted(report)) json.raw(departure_json(report, anchor));
  }
  return json.end_array().end_object().take();
}

std::string engine_json(const engine::EngineInfo& info) {
  const auto& record = info.compatibility;
  const auto& can = info.capabilities;
  const auto& profile = info.profile;
  JsonWriter json;
  json.begin_object()
      .member("model", info.model_name)
      .member("slots", info.slots)
      .member("context_tokens", info.context_tokens)
      .member("block_tokens", info.geometry.block_tokens)
      .member("kv_bytes_per_token", info.geometry.bytes_per_token());
  json.key("compatibility")
      .begin_object()
      .member("model_hash", record.model_hash)
      .member("tokenizer_hash", record.tokenizer_hash)
      .member("rope", record.rope)
      .member("kv_types", record.kv_types)
      .member("kv_layout", record.kv_layout)
      .member("adapter", record.adapter)
      .member("instruction_set", record.instruction_set)
      .member("engine_build", record.engine_build)
      .member("threads", record.threads)
      .member("flash_attention", record.flash_attention)
      .end_object();
  json.key("capabilities")
      .begin_object()
      .member("exact_chunked_prompt", can.exact_chunked_prompt)
      .member("exact_chunked_generated", can.exact_chunked_generated)
      .member("exact_single_step", can.exact_single_step)
      .member("exact_attach", can.exact_attach)
      .member("attach_granularity", can.attach_granularity)
      .member("late_attach", can.late_attach)
      .member("holes", can.holes)
      .end_object();
  json.key("profile").begin_object().member("chunk_tokens", profile.chunk_tokens);
  json.key("prefill").begin_array();
  for (const auto& point : profile.prefill) {
    json.begin_object()
        .member("depth", point.depth)
        .member("per_token_s", point.per_token.count())
        .end_object();
  }
  json.end_array().key("decode").begin_array();
  for (const auto& point : profile.decode) {
    json.begin_object()
        .member("batch", point.batch)
        .member("depth", point.depth)
        .member("step_s", point.step.count())
        .end_object();
  }
  json.end_array()
      .member("export_per_token_s", profile.export_per_token.count())
      .member("attach_per_token_s", profile.attach_per_token.count())
      .member("load_s", profile.load.count())
      .end_object();
  return json.end_object().take();
}

std::string health_json(bool ready, const NodeId& node, const std::string& model,
                        const node::NodeStats& stats) {
  JsonWriter json;
  json.begin_object()
      .member("status", ready ? "ok" : "not ready")
      .member("node", node.value)
      .member("model", model)
      .member("version", PALLAS_VERSION)
      .member("sessions", stats.sessions_live)
      .member("free_slots", stats.free_slots)
      .end_object();
  return json.take();
}

}  // namespace pallas::http
