#include "http/sse.h"

#include "http/json_writer.h"

namespace pallas::http {
namespace {

std::string data_event(const std::string& json) {
  return "data: " + json + "\n\n";
}

std::string named_event(const char* name, const std::string& json) {
  return "event: " + std::string(name) + "\ndata: " + json + "\n\n";
}

// OpenAI's words. A session that was stopped on request ended as asked.
std::string_view finish_word(wire::FinishReason reason) {
  switch (reason) {
    case wire::FinishReason::kLength:
      return "length";
    case wire::FinishReason::kNone:
    case wire::FinishReason::kStop:
      return "stop";
    case wire::FinishReason::kCancelled:
      return "cancelled";
    case wire::FinishReason::kError:
      return "error";
  }
  return "stop";
}

void head(JsonWriter& json, const StreamFace& face, const char* object) {
  json.begin_object()
      .member("id", face.completion_id)
      .member("object", object)
      .member("created", face.created_unix_s)
      .member("model", face.model);
}

JsonWriter chunk_head(const StreamFace& face) {
  JsonWriter json;
  head(json, face, face.chat ? "chat.completion.chunk" : "text_completion");
  return json;
}

// "choices":[{...}] with `text`; `finish` empty: null.
void choice(JsonWriter& json, const StreamFace& face, const std::string* text,
            std::string_view finish) {
  json.key("choices").begin_array().begin_object().member("index", 0);
  if (face.chat) {
    json.key("delta").begin_object();
    if (text != nullptr) json.member("content", *text);
    json.end_object();
  } else {
    json.member("text", text == nullptr ? std::string_view{} : std::string_view(*text));
  }
  json.key("logprobs").null();
  json.key("finish_reason");
  if (finish.empty()) {
    json.null();
  } else {
    json.value(finish);
  }
  json.end_object().end_array();
}

void usage(JsonWriter& json, const node::FinishEvent& event) {
  const auto total = std::uint64_t{event.prompt_tokens} + event.completion_tokens;
  json.key("usage")
      .begin_object()
      .member("prompt_tokens", event.prompt_tokens)
      .member("completion_tokens", event.completion_tokens)
      .member("total_tokens", total)
      .end_object();
}

void node_object(JsonWriter& json, const NodeId& node) {
  json.begin_object().member("node", node.value).end_object();
}

}  // namespace

StreamFace face_of(const wire::SessionParams& params, bool resumable) {
  return {params.chat,           resumable,   params.include_usage, params.completion_id,
          params.created_unix_s, params.model};
}

std::string compatibility_json(const wire::Compatibility& c) {
  JsonWriter json;
  json.begin_object()
      .member("model_hash", c.model_hash)
      .member("tokenizer_hash", c.tokenizer_hash)
      .member("context_tokens", c.context_tokens)
      .member("rope", c.rope)
      .member("kv_types", c.kv_types)
      .member("kv_layout", c.kv_layout)
      .member("block_tokens", c.block_tokens)
      .member("adapter", c.adapter)
      .member("instruction_set", c.instruction_set)
      .member("engine_build", c.engine_build)
      .member("threads", c.threads)
      .member("flash_attention", c.flash_attention)
      .end_object();
  return json.take();
}

std::string session_event(const SessionAnnouncement& session) {
  JsonWriter json;
  json.begin_object()
      .member("session", session.session.value)
      .member("node", session.node.value)
      .member("epoch", session.epoch.value);
  if (session.params != nullptr) {
    json.member("seed", session.params->seed)
        .member("resume_token", session.params->resume_token)
        .member("model", session.params->model)
        .member("prompt_tokens", session.prompt_tokens)
        .member("completion_id", session.params->completion_id)
        .member("created", session.params->created_unix_s);
  }
  json.key("compatibility").raw(compatibility_json(session.compatibility)).end_object();
  return named_event("pallas.session", json.take());
}

std::string role_event(const StreamFace& face) {
  if (!face.chat) return {};
  auto json = chunk_head(face);
  json.key("choices").begin_array().begin_object().member("index", 0);
  json.key("delta").begin_object().member("role", "assistant").member("content", "").end_object();
  json.key("logprobs").null().key("finish_reason").null();
  json.end_object().end_array().end_object();
  return data_event(json.take());
}

std::string token_event(const StreamFace& face, const node::TokenEvent& token) {
  if (!face.resumable && token.text.empty()) return {};
  auto json = chunk_head(face);
  choice(json, face, &token.text, {});
  if (!face.resumable) return data_event(json.end_object().take());
  json.key("pallas")
      .begin_object()
      .member("i", token.index)
      .member("id", token.id)
      .member("by", token.by.value)
      .member("epoch", token.epoch.value)
      .end_object();
  return "id: " + std::to_string(token.epoch.value) + "." + std::to_string(token.index) + "\n" +
         data_event(json.end_object().take());
}

std::string next_event(const NodeId& node) {
  JsonWriter json;
  node_object(json, node);
  return named_event("pallas.next", json.take());
}

std::string keep_alive_comment() {
  return ": keep-alive\n\n";
}

std::string moved_event(const StreamFace& face, const NodeId& node) {
  if (!face.resumable) {
    return error_event(
        {503, "The session went on at another gNB.", "", "session_moved", std::nullopt});
  }
  JsonWriter json;
  node_object(json, node);
  return named_event("pallas.moved", json.take());
}

std::string finish_events(const StreamFace& face, const node::FinishEvent& event) {
  auto last = chunk_head(face);
  choice(last, face, event.text.empty() ? nullptr : &event.text, finish_word(event.reason));
  std::string out = data_event(last.end_object().take());
  if (face.include_usage) {
    auto json = chunk_head(face);
    json.key("choices").begin_array().end_array();
    usage(json, event);
    out += data_event(json.end_object().take());
  }
  return out + "data: [DONE]\n\n";
}

std::string error_event(const ApiError& error) {
  return data_event(error_json(error));
}

std::string completion_json(const StreamFace& face, const std::string& text,
                            const node::FinishEvent& event) {
  JsonWriter json;
  head(json, face, face.chat ? "chat.completion" : "text_completion");
  json.key("choices").begin_array().begin_object().member("index", 0);
  if (face.chat) {
    json.key("message")
        .begin_object()
        .member("role", "assistant")
        .member("content", text)
        .key("refusal")
        .null()
        .end_object();
  } else {
    json.member("text", text);
  }
  json.key("logprobs").null();
  json.member("finish_reason", finish_word(event.reason)).end_object().end_array();
  usage(json, event);
  return json.end_object().take();
}

}  // namespace pallas::http
