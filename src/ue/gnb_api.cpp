#include "ue/gnb_api.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

namespace pallas::ue {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxNameBytes = 128;
constexpr std::size_t kMaxSecretBytes = 1024;
constexpr std::size_t kMaxTextBytes = 64u << 10;

// nlohmann-json writes nested values recursively: what is written again may not be deep.
constexpr int kMaxDepth = 64;

bool too_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

// Reads fields of one object and keeps the first complaint.
class Reader {
 public:
  Reader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  std::string text(const char* name, std::size_t limit, bool required = true) {
    const Json* value = find(name, required);
    if (value == nullptr) return {};
    if (!value->is_string()) return complain(name, "is not a string"), std::string();
    const auto& text = value->get_ref<const std::string&>();
    if (text.size() > limit) return complain(name, "is too long"), std::string();
    return text;
  }

  // A name or a secret: it may become part of a header or a path.
  std::string word(const char* name, std::size_t limit, bool required = true) {
    std::string value = text(name, limit, required);
    for (const unsigned char c : value) {
      if (c <= ' ' || c == 0x7f) return complain(name, "holds a control or space character"), "";
    }
    return value;
  }

  template <class T>
  T number(const char* name, std::uint64_t limit, bool required = true) {
    const Json* value = find(name, required);
    if (value == nullptr) return {};
    if (!value->is_number_unsigned()) {
      complain(name, "is not a whole number of 0 or more");
      return {};
    }
    const auto number = value->get<std::uint64_t>();
    if (number > limit) return complain(name, "is too large"), T{};
    return static_cast<T>(number);
  }

  const Json* find(const char* name, bool required) {
    const auto it = object_.find(name);
    if (it != object_.end() && !it->is_null()) return &*it;
    if (required) complain(name, "is missing");
    return nullptr;
  }

  bool ok() const { return complaint_.empty(); }
  Failure failure() const { return fail(Errc::kParse, complaint_); }

 private:
  void complain(const char* name, const char* what) {
    if (complaint_.empty()) complaint_ = where_ + "." + name + " " + what;
  }

  const Json& object_;
  std::string where_;
  std::string complaint_;
};

constexpr std::uint64_t kMaxEpoch = std::uint64_t{1} << 62;
constexpr std::uint64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();

Result<StreamEvent> parse_session(const Json& json, const std::string& raw) {
  Reader in(json, "pallas.session");
  SessionEvent event;
  event.session = SessionId(in.word("session", kMaxNameBytes));
  event.node = NodeId(in.word("node", kMaxNameBytes));
  event.epoch = Epoch(in.number<std::uint64_t>("epoch", kMaxEpoch));
  event.resume_token = in.word("resume_token", kMaxSecretBytes, false);
  event.model = in.text("model", kMaxTextBytes, false);
  event.completion_id = in.text("completion_id", kMaxTextBytes, false);
  event.created_unix_s = in.number<std::int64_t>("created", kMaxEpoch, false);
  event.prompt_tokens = in.number<TokenPosition>("prompt_tokens", kMaxInt32, false);
  event.raw = raw;
  if (!in.ok()) return in.failure();
  // The id becomes part of a request's path.
  const auto in_an_id = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; };
  const std::string& id = event.session.value;
  if (id.empty() || !std::all_of(id.begin(), id.end(), in_an_id)) {
    return fail(Errc::kParse, "pallas.session.session is not a session id");
  }
  return event;
}

Result<NodeId> parse_node(const Json& json, const std::string& where) {
  Reader in(json, where);
  NodeId node(in.word("node", kMaxNameBytes));
  if (!in.ok()) return in.failure();
  return node;
}

Result<StreamEvent> parse_token(const Json& pallas, std::string text) {
  if (!pallas.is_object()) return fail(Errc::kParse, "chunk.pallas is not an object");
  Reader in(pallas, "chunk.pallas");
  StreamToken token;
  token.index = in.number<TokenIndex>("i", kMaxInt32);
  token.id = in.number<TokenId>("id", kMaxInt32);
  token.by = NodeId(in.word("by", kMaxNameBytes));
  token.epoch = Epoch(in.number<std::uint64_t>("epoch", kMaxEpoch));
  token.text = std::move(text);
  if (!in.ok()) return in.failure();
  return token;
}

// The text of the only choice, of either endpoint; absent when there is none.
struct Choice {
  bool present = false;
  std::optional<std::string> text;
  std::string finish_reason;
};

Result<Choice> parse_choice(const Json& json) {
  const auto choices = json.find("choices");
  if (choices == json.end() || !choices->is_array()) {
    return fail(Errc::kParse, "chunk.choices is not a list");
  }
  Choice choice;
  if (choices->empty()) return choice;
  const Json& first = choices->front();
  if (!first.is_object()) return fail(Errc::kParse, "chunk.choices[0] is not an object");
  choice.present = true;
  Reader in(first, "chunk.choices[0]");
  choice.finish_reason = in.text("finish_reason", kMaxNameBytes, false);
  if (const Json* delta = in.find("delta", false)) {
    if (!delta->is_object()) return fail(Errc::kParse, "chunk.choices[0].delta is not an object");
    Reader body(*delta, "chunk.choices[0].delta");
    if (delta->contains("content")) choice.text = body.text("content", kMaxTextBytes, false);
    if (!body.ok()) return body.failure();
  } else if (first.contains("text")) {
    choice.text = in.text("text", kMaxTextBytes, false);
  }
  if (!in.ok()) return in.failure();
  return choice;
}

ApiError read_error(int status, const Json& json) {
  ApiError error{.status = status, .message = {}, .type = {}, .param = {}, .code = {}};
  const auto text = [&](const char* name) -> std::string {
    const auto it = json.find(name);
    if (it == json.end()) return {};
    if (it->is_string()) return it->get<std::string>().substr(0, kMaxTextBytes);
    return it->is_number_integer() ? it->dump() : std::string();
  };
  error.message = text("message");
  error.type = text("type");
  error.param = text("param");
  error.code = text("code");
  const auto current = json.find("current");
  if (current != json.end() && current->is_number_unsigned()) {
    error.current_epoch = std::min(current->get<std::uint64_t>(), kMaxEpoch);
  }
  return error;
}

// The status that the error would have had, had the answer not begun already.
int status_of(const std::string& code) {
  if (code == to_string(Errc::kNotFound)) return 404;
  if (code == to_string(Errc::kStaleEpoch) || code == to_string(Errc::kIncompatible)) return 409;
  return 500;
}

Result<StreamEvent> parse_chunk(const Json& json) {
  if (const auto error = json.find("error"); error != json.end() && error->is_object()) {
    ErrorEvent event{read_error(500, *error)};
    event.error.status = status_of(event.error.code);
    return event;
  }
  Result<Choice> choice = parse_choice(json);
  if (!choice) return tl::unexpected(choice.error());
  if (const auto pallas = json.find("pallas"); pallas != json.end() && !pallas->is_null()) {
    return parse_token(*pallas, choice->text.value_or(std::string()));
  }
  if (choice->present && !choice->finish_reason.empty()) {
    return FinishEvent{choice->finish_reason, choice->text.value_or(std::string())};
  }
  if (const auto usage = json.find("usage"); usage != json.end() && usage->is_object()) {
    Reader in(*usage, "chunk.usage");
    Usage figures;
    figures.prompt_tokens = in.number<std::uint64_t>("prompt_tokens", kMaxEpoch);
    figures.completion_tokens = in.number<std::uint64_t>("completion_tokens", kMaxEpoch);
    if (!in.ok()) return in.failure();
    return UsageEvent{figures};
  }
  if (choice->text && !choice->text->empty()) {
    return fail(Errc::kUnsupported,
                "the server sends plain OpenAI events (no chunk.pallas): it is no Pallas gNB");
  }
  return IgnoredEvent{};
}

}  // namespace

Result<PreparedRequest> prepare_request(std::string_view body) {
  if (too_deep(body)) return fail(Errc::kInvalidArgument, "body is nested too deeply");
  Json json = Json::parse(body, nullptr, false);
  if (json.is_discarded()) return fail(Errc::kInvalidArgument, "body is not JSON");
  if (!json.is_object()) return fail(Errc::kInvalidArgument, "body is not a JSON object");
  PreparedRequest request;
  if (const auto stream = json.find("stream"); stream != json.end() && !stream->is_null()) {
    if (!stream->is_boolean()) return fail(Errc::kInvalidArgument, "stream is not true or false");
    request.stream = stream->get<bool>();
  }
  Json options = Json::object();
  if (const auto it = json.find("stream_options"); it != json.end() && !it->is_null()) {
    if (!it->is_object()) return fail(Errc::kInvalidArgument, "stream_options is not an object");
    if (!request.stream) {
      return fail(Errc::kInvalidArgument, "stream_options is allowed with stream only");
    }
    options = *it;
    const auto usage = options.find("include_usage");
    if (usage != options.end() && !usage->is_null()) {
      if (!usage->is_boolean()) {
        return fail(Errc::kInvalidArgument, "stream_options.include_usage is not true or false");
      }
      request.include_usage = usage->get<bool>();
    }
  }
  options["include_usage"] = true;
  json["stream"] = true;
  json["stream_options"] = std::move(options);
  request.body = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return request;
}

Result<StreamEvent> parse_stream_event(const SseEvent& event) {
  if (event.data == "[DONE]") return DoneEvent{};
  const bool ours = event.type.starts_with("pallas.");
  const bool known = event.type == "pallas.session" || event.type == "pallas.next" ||
                     event.type == "pallas.moved" || event.type.empty() ||
                     event.type == "message" || event.type == "error";
  if (ours && !known) return IgnoredEvent{};  // a later version's
  if (too_deep(event.data)) return fail(Errc::kParse, "an event's data is nested too deeply");
  const Json json = Json::parse(event.data, nullptr, false);
  if (json.is_discarded() || !json.is_object()) {
    return fail(Errc::kParse, "an event's data is not a JSON object");
  }
  if (event.type == "pallas.session") return parse_session(json, event.data);
  if (event.type == "pallas.next" || event.type == "pallas.moved") {
    Result<NodeId> node = parse_node(json, event.type);
    if (!node) return tl::unexpected(node.error());
    if (event.type == "pallas.next") return NextEvent{*node};
    return MovedEvent{*node};
  }
  if (!known) return IgnoredEvent{};
  return parse_chunk(json);
}

ApiError parse_api_error(int status, std::string_view body) {
  const Json json = Json::parse(body, nullptr, false);
  ApiError error{.status = status, .message = {}, .type = {}, .param = {}, .code = {}};
  if (json.is_object()) {
    const auto it = json.find("error");
    if (it != json.end() && it->is_object()) error = read_error(status, *it);
    if (it != json.end() && it->is_string()) error.message = it->get<std::string>();
  }
  if (error.message.empty()) error.message = "HTTP status " + std::to_string(status);
  if (error.type.empty()) error.type = status < 500 ? "invalid_request_error" : "server_error";
  return error;
}

Result<std::string> parse_first_model(int status, std::string_view body) {
  if (status != 200) return fail(Errc::kUnreachable, parse_api_error(status, body).message);
  const Json json = Json::parse(body, nullptr, false);
  const auto pointer = Json::json_pointer("/data/0/id");
  if (json.is_discarded() || !json.contains(pointer) || !json.at(pointer).is_string()) {
    return fail(Errc::kParse, "the gNB's answer to /v1/models lists no model");
  }
  return json.at(pointer).get<std::string>();
}

std::string to_json(const ApiError& error) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  const Json json{{"error",
                   {{"message", error.message},
                    {"type", error.type},
                    {"param", or_null(error.param)},
                    {"code", or_null(error.code)}}}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string attach_body(Epoch epoch, const NodeId& last_node, Endpoint endpoint,
                        std::string_view request, const SessionEvent& session,
                        const std::vector<TokenRecord>& records) {
  Json ids = Json::array();
  Json sampled_by = Json::array();  // run-length: [[node, count], ...]
  for (const TokenRecord& record : records) {
    ids.push_back(record.id);
    if (sampled_by.empty() || sampled_by.back()[0] != record.by.value) {
      sampled_by.push_back(Json::array({record.by.value, 0}));
    }
    sampled_by.back()[1] = sampled_by.back()[1].get<std::uint64_t>() + 1;
  }
  Json json{{"epoch", epoch.value},
            {"next_index", records.size()},
            {"last_node", last_node.value},
            {"endpoint", endpoint == Endpoint::kChat ? "chat" : "completions"},
            {"request", Json::parse(request, nullptr, false)},
            {"session", Json::parse(session.raw, nullptr, false)},
            {"ids", std::move(ids)},
            {"sampled_by", std::move(sampled_by)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string_view path_of(Endpoint endpoint) {
  return endpoint == Endpoint::kChat ? "/v1/chat/completions" : "/v1/completions";
}

}  // namespace pallas::ue
