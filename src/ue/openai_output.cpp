#include "ue/openai_output.h"

#include <nlohmann/json.hpp>

#include "ue/gnb_api.h"

namespace pallas::ue {
namespace {

// Ordered as OpenAI writes them: a person reads these too.
using Json = nlohmann::ordered_json;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string event(const Json& json) {
  return "data: " + dump(json) + "\n\n";
}

Json to_object(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

Json envelope(const std::string& id, const char* object, std::int64_t created,
              const std::string& model) {
  return {{"id", id}, {"object", object}, {"created", created}, {"model", model}};
}

// One chunk with one choice. `delta` is a chat's delta object or a completion's text.
Json chunk(Json head, Endpoint endpoint, Json delta, Json reason, bool usage_follows) {
  Json choice{{"index", 0}};
  choice[endpoint == Endpoint::kChat ? "delta" : "text"] = std::move(delta);
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = std::move(reason);
  head["choices"] = Json::array({std::move(choice)});
  if (usage_follows) head["usage"] = nullptr;
  return head;
}

const char* chunk_object(Endpoint endpoint) {
  return endpoint == Endpoint::kChat ? "chat.completion.chunk" : "text_completion";
}

}  // namespace

void OpenAiOutput::take_session(const SessionEvent& session) {
  id_ = session.completion_id;
  model_ = session.model;
  created_ = session.created_unix_s;
}

std::string OpenAiOutput::begin() const {
  if (endpoint_ != Endpoint::kChat) return {};
  return event(chunk(envelope(id_, chunk_object(endpoint_), created_, model_), endpoint_,
                     {{"role", "assistant"}, {"content", ""}}, nullptr, include_usage_));
}

std::string OpenAiOutput::text(const std::string& delta) const {
  if (delta.empty()) return {};
  Json body = endpoint_ == Endpoint::kChat ? Json{{"content", delta}} : Json(delta);
  return event(chunk(envelope(id_, chunk_object(endpoint_), created_, model_), endpoint_,
                     std::move(body), nullptr, include_usage_));
}

std::string OpenAiOutput::finish(const std::string& reason, const std::string& last,
                                 const std::optional<Usage>& usage) const {
  std::string bytes = text(last);
  Json body = endpoint_ == Endpoint::kChat ? Json::object() : Json("");
  bytes += event(chunk(envelope(id_, chunk_object(endpoint_), created_, model_), endpoint_,
                       std::move(body), reason, include_usage_));
  if (include_usage_ && usage) {
    Json json = envelope(id_, chunk_object(endpoint_), created_, model_);
    json["choices"] = Json::array();
    json["usage"] = to_object(*usage);
    bytes += event(json);
  }
  return bytes + "data: [DONE]\n\n";
}

std::string OpenAiOutput::whole(const std::string& text, const std::string& reason,
                                const std::optional<Usage>& usage) const {
  const bool chat = endpoint_ == Endpoint::kChat;
  Json json = envelope(id_, chat ? "chat.completion" : "text_completion", created_, model_);
  Json choice{{"index", 0}};
  if (chat) {
    choice["message"] = {{"role", "assistant"}, {"content", text}};
  } else {
    choice["text"] = text;
  }
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = reason;
  json["choices"] = Json::array({std::move(choice)});
  if (usage) json["usage"] = to_object(*usage);
  return dump(json);
}

std::string error_event(const ApiError& error) {
  return "data: " + to_json(error) + "\n\n";
}

}  // namespace pallas::ue
