#include "http/request_parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "http/api_keys.h"
#include "http/request_fields.h"

namespace pallas::http {
namespace {

constexpr std::size_t kMaxMessages = 4096;
constexpr std::size_t kMaxStops = 16;
constexpr std::size_t kMaxStopBytes = 1024;
constexpr std::size_t kMaxBiases = 1024;
constexpr double kMinTokenRate = 0.001;  // a token in a quarter of an hour
constexpr double kMaxTokenRate = 1e6;
constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

bool is_off(const Json& value) {
  return value.is_null() || (value.is_boolean() && !value.get<bool>()) ||
         (value.is_number() && value.get<double>() == 0) ||
         ((value.is_array() || value.is_object()) && value.empty()) ||
         (value.is_string() && value.get_ref<const std::string&>().empty());
}

// Samplers whose state is not a function of seed and token ids: a session that used them could not
// move. `switch_name` is the member that turns the group on where llama.cpp has one; with the
// switch off the rest of the group means nothing and is let through.
struct SamplerGroup {
  std::string_view prefix;
  const char* switch_name;
};
constexpr std::array<SamplerGroup, 5> kHiddenState = {{{"mirostat", "mirostat"},
                                                       {"dynatemp", "dynatemp_range"},
                                                       {"xtc", "xtc_probability"},
                                                       {"dry", "dry_multiplier"},
                                                       {"adaptive", "adaptive_target"}}};

// Members that would change the answer; their "off" values are fine.
constexpr std::array<const char*, 19> kUnsupported = {
    "logprobs",      "top_logprobs", "tools",   "functions",          "function_call", "echo",
    "suffix",        "audio",        "grammar", "web_search_options", "prediction",    "typical_p",
    "tfs_z",         "top_n_sigma",  "top_a",   "use_beam_search",    "guided_json",   "samplers",
    "length_penalty"};

void refuse_unsupported(const Json& body, Fields& fields) {
  for (const char* name : {"n", "best_of"}) {
    const auto answers = fields.integer(name, 1, INT64_MAX);
    if (answers && *answers > 1) fields.refuse(name, "above 1 is not supported");
  }
  for (const char* name : kUnsupported) {
    const auto it = body.find(name);
    if (it != body.end() && !is_off(*it)) fields.refuse(name, "is not supported");
  }
  if (const auto* choice = fields.find("tool_choice");
      choice != nullptr && *choice != "none" && *choice != "auto") {
    fields.refuse("tool_choice", "is not supported");
  }
  for (const auto& group : kHiddenState) {
    const auto on = body.find(group.switch_name);
    if (on != body.end() && is_off(*on)) continue;
    for (const auto& [name, value] : body.items()) {
      if (name.starts_with(group.prefix) && !is_off(value)) {
        fields.refuse(name, "is not supported: a session with this sampler could not move");
      }
    }
  }
}

void read_sampling(Fields& fields, RequestFields& out) {
  auto& p = out.params;
  const auto positive = std::numeric_limits<double>::denorm_min();
  p.temperature = fields.number("temperature", 0, 2).value_or(p.temperature);
  p.top_p = fields.number("top_p", positive, 1).value_or(p.top_p);
  p.min_p = fields.number("min_p", 0, 1).value_or(p.min_p);
  // llama.cpp's names, and what vLLM and llama.cpp call them besides.
  for (const char* name : {"repetition_penalty", "repeat_penalty"}) {
    p.repeat_penalty = fields.number(name, positive, 10).value_or(p.repeat_penalty);
  }
  p.presence_penalty = fields.number("presence_penalty", -2, 2).value_or(p.presence_penalty);
  p.frequency_penalty = fields.number("frequency_penalty", -2, 2).value_or(p.frequency_penalty);
  for (const char* name : {"repeat_last_n", "penalty_last_n"}) {
    p.penalty_last_n =
        static_cast<std::int32_t>(fields.integer(name, 0, INT32_MAX).value_or(p.penalty_last_n));
  }
  // -1 is vLLM's word for off.
  const auto top_k = fields.integer("top_k", -1, INT32_MAX).value_or(p.top_k);
  p.top_k = static_cast<std::int32_t>(std::max<std::int64_t>(top_k, 0));
  p.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  if (const auto* seed = fields.find("seed")) {
    if (seed->is_number_unsigned()) {
      out.seed = seed->get<std::uint64_t>();
    } else if (seed->is_number_integer()) {
      out.seed = static_cast<std::uint64_t>(seed->get<std::int64_t>());
    } else {
      fields.refuse("seed", "must be an integer of 64 bits");
    }
  }
}

void read_ends(Fields& fields, RequestFields& out) {
  auto& p = out.params;
  const auto old_name = fields.integer("max_tokens", 1, UINT32_MAX);
  const auto new_name = fields.integer("max_completion_tokens", 1, UINT32_MAX);
  p.max_tokens = static_cast<std::uint32_t>(new_name.value_or(old_name.value_or(0)));
  p.min_tokens =
      static_cast<std::uint32_t>(fields.integer("min_tokens", 0, UINT32_MAX).value_or(0));
  if (p.max_tokens > 0 && p.min_tokens > p.max_tokens) {
    fields.refuse("min_tokens", "must not be above max_tokens", true);
  }
  p.max_token_rate = fields.number("max_token_rate", 0, kMaxTokenRate).value_or(0);
  if (p.max_token_rate > 0 && p.max_token_rate < kMinTokenRate) {
    fields.refuse("max_token_rate", "must be 0 (no cap) or at least 0.001", true);
  }

  const auto* stop = fields.find("stop");
  if (stop == nullptr) return;
  const auto add = [&](const Json& one) {
    if (!one.is_string()) return fields.refuse("stop", "must be a string or an array of strings");
    auto text = one.get<std::string>();
    if (text.empty()) return fields.refuse("stop", "must not hold an empty string", true);
    if (text.size() > kMaxStopBytes) {
      return fields.refuse("stop", "must hold strings of at most 1024 bytes", true);
    }
    p.stop.push_back(std::move(text));
  };
  if (!stop->is_array()) return add(*stop);
  if (stop->size() > kMaxStops) return fields.refuse("stop", "must hold at most 16 strings", true);
  for (const auto& one : *stop) add(one);
}

void read_presentation(Fields& fields, const ParserContext& context, RequestFields& out) {
  auto& p = out.params;
  out.stream = fields.boolean("stream").value_or(false);
  if (const auto* options = fields.find("stream_options")) {
    if (!options->is_object()) {
      fields.refuse("stream_options", "must be an object");
    } else if (!out.stream) {
      fields.refuse("stream_options", "is allowed only when stream is true");
    } else {
      Fields inner(*options, fields.path() + "stream_options.");
      p.include_usage = inner.boolean("include_usage").value_or(false);
      if (inner.failed()) fields.refuse("stream_options.include_usage", "must be true or false");
    }
  }
  p.consistency = context.default_consistency;
  if (const auto word = fields.text("consistency", 0, 32)) {
    if (*word == "exact") {
      p.consistency = wire::Consistency::kExact;
    } else if (*word == "prefer-exact") {
      p.consistency = wire::Consistency::kPreferExact;
    } else if (*word == "fast") {
      p.consistency = wire::Consistency::kFast;
    } else {
      fields.refuse("consistency", "must be exact, prefer-exact or fast", true);
    }
  }
  p.tenant = fields.text("user", 0, wire::kMaxNameBytes).value_or("");
}

void read_logit_bias(Fields& fields, const ParserContext& context, RequestFields& out) {
  const auto* biases = fields.find("logit_bias");
  if (biases == nullptr || fields.failed()) return;
  if (!biases->is_object()) return fields.refuse("logit_bias", "must be an object");
  if (biases->size() > kMaxBiases) {
    return fields.refuse("logit_bias", "must have at most 1024 members", true);
  }
  for (const auto& [key, value] : biases->items()) {
    TokenId id = -1;
    const auto [end, errc] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (errc != std::errc{} || end != key.data() + key.size() || id < 0 ||
        id >= context.text->vocabulary_size()) {
      return fields.refuse("logit_bias", "must have ids of the model's tokens as names", true);
    }
    const double bias = value.is_number() ? value.get<double>() : 1000;
    if (!(bias >= -100 && bias <= 100)) {
      return fields.refuse("logit_bias", "must have values from -100 to 100", true);
    }
    out.params.logit_bias.emplace_back(id, static_cast<float>(bias));
  }
  std::sort(out.params.logit_bias.begin(), out.params.logit_bias.end());
}

void read_response_format(Fields& fields, const ParserContext& context, RequestFields& out) {
  const auto* format = fields.find("response_format");
  if (format == nullptr || fields.failed()) return;
  if (!format->is_object()) return fields.refuse("response_format", "must be an object");
  const auto type = format->find("type");
  std::string schema;
  if (type == format->end() || !type->is_string()) {
    return fields.refuse("response_format.type", "must be a string");
  } else if (*type == "text") {
    return;
  } else if (*type == "json_object") {
    schema = R"({"type":"object"})";
  } else if (*type == "json_schema") {
    const auto outer = format->find("json_schema");
    if (outer == format->end() || !outer->is_object() || !outer->contains("schema") ||
        !(*outer)["schema"].is_object()) {
      return fields.refuse("response_format.json_schema.schema", "must be an object");
    }
    schema = (*outer)["schema"].dump();
  } else {
    return fields.refuse("response_format.type", "must be text, json_object or json_schema", true);
  }
  auto grammar = context.text->grammar_of_schema(schema);
  if (!grammar) {
    return fields.refuse("response_format", "cannot be used: " + grammar.error().message);
  }
  if (grammar->size() > wire::kMaxTextBytes) {
    return fields.refuse("response_format", "makes a grammar that is too large", true);
  }
  out.params.grammar = std::move(*grammar);
}

std::string read_content(const Json& message, const std::string& path, Fields& fields) {
  const auto content = message.find("content");
  if (content != message.end() && content->is_string()) return content->get<std::string>();
  if (content == message.end() || !content->is_array()) {
    fields.refuse(path + ".content", "must be a string or an array of text parts");
    return {};
  }
  std::string text;
  for (std::size_t i = 0; i < content->size(); ++i) {
    const auto& part = (*content)[i];
    const auto here = path + ".content[" + std::to_string(i) + "]";
    if (!part.is_object() || !part.contains("type") || part["type"] != "text") {
      fields.refuse(here + ".type", "must be \"text\": other parts are not supported");
      return {};
    }
    if (!part.contains("text") || !part["text"].is_string()) {
      fields.refuse(here + ".text", "must be a string");
      return {};
    }
    text += part["text"].get_ref<const std::string&>();
  }
  return text;
}

void read_messages(Fields& fields, const ParserContext& context, RequestFields& out) {
  const auto* messages = fields.require("messages");
  if (messages == nullptr) return;
  if (!messages->is_array() || messages->empty() || messages->size() > kMaxMessages) {
    return fields.refuse("messages", "must be an array of 1 to 4096 messages");
  }
  std::vector<engine::ChatMessage> chat;
  for (std::size_t i = 0; i < messages->size(); ++i) {
    const auto& message = (*messages)[i];
    const auto here = "messages[" + std::to_string(i) + "]";
    if (!message.is_object()) return fields.refuse(here, "must be an object");
    if (message.contains("tool_calls") && !is_off(message["tool_calls"])) {
      return fields.refuse(here + ".tool_calls", "is not supported");
    }
    const auto role = message.find("role");
    if (role == message.end() || !role->is_string()) {
      return fields.refuse(here + ".role", "must be a string");
    }
    auto name = role->get<std::string>();
    if (name == "developer") name = "system";  // OpenAI's newer word
    if (name != "system" && name != "user" && name != "assistant" && name != "tool") {
      return fields.refuse(here + ".role", "must be system, developer, user, assistant or tool",
                           true);
    }
    chat.push_back({std::move(name), read_content(message, here, fields)});
    if (fields.failed()) return;
  }
  auto prompt = context.text->render_chat(chat);
  if (!prompt) return fields.refuse("messages", "cannot be used: " + prompt.error().message);
  out.prompt = std::move(*prompt);
}

void read_prompt_ids(const Json& ids, Fields& fields, const ParserContext& context,
                     RequestFields& out) {
  for (const auto& id : ids) {
    if (!id.is_number_unsigned() ||
        id.get<std::uint64_t>() >=
            static_cast<std::uint64_t>(std::max(context.text->vocabulary_size(), TokenId{0}))) {
      return fields.refuse("prompt", "must hold ids of the model's tokens", true);
    }
    out.prompt.push_back(id.get<TokenId>());
  }
}

void read_prompt(Fields& fields, const ParserContext& context, RequestFields& out) {
  const auto* prompt = fields.require("prompt");
  if (prompt == nullptr) return;
  // An array of one prompt is that prompt; several would need several answers.
  if (prompt->is_array() && !prompt->empty() &&
      ((*prompt)[0].is_string() || (*prompt)[0].is_array())) {
    if (prompt->size() > 1) return fields.refuse("prompt", "must be one prompt, not several");
    prompt = &(*prompt)[0];
  }
  if (prompt->is_string()) {
    auto ids = context.text->tokenize(prompt->get_ref<const std::string&>());
    if (!ids) return fields.refuse("prompt", "cannot be used: " + ids.error().message);
    out.prompt = std::move(*ids);
  } else if (prompt->is_array()) {
    read_prompt_ids(*prompt, fields, context, out);
  } else {
    return fields.refuse("prompt", "must be a string or an array of token ids");
  }
  if (out.prompt.empty()) fields.refuse("prompt", "must not be empty", true);
}

// The session's whole length lies within the context, so the end is known before the start.
std::optional<ApiError> fit(Endpoint endpoint, const std::string& path,
                            const ParserContext& context, RequestFields& out) {
  const auto prompt = out.prompt.size();
  if (prompt >= context.context_tokens) {
    ApiError error;
    error.message = "The prompt has " + std::to_string(prompt) + " tokens; the context of '" +
                    context.model + "' has " + std::to_string(context.context_tokens) +
                    ", and one is needed for the answer.";
    error.param = path + (endpoint == Endpoint::kChat ? "messages" : "prompt");
    error.code = "context_length_exceeded";
    return error;
  }
  const auto room = context.context_tokens - static_cast<TokenPosition>(prompt);
  auto& p = out.params;
  p.max_tokens = p.max_tokens == 0 ? room : std::min(p.max_tokens, room);
  p.min_tokens = std::min(p.min_tokens, p.max_tokens);
  return std::nullopt;
}

}  // namespace

ApiError to_api_error(const FieldError& error) {
  ApiError out;
  out.message = error.message;
  out.param = error.field;
  out.code = error.field.empty() ? "invalid_json" : "invalid_value";
  return out;
}

Parsed<RequestFields> read_request(Endpoint endpoint, const Json& body, const std::string& path,
                                   const ParserContext& context) {
  Fields fields(body, path);
  RequestFields out;
  // A gNB serves one model, so a request need not name it.
  const std::string model = fields.text("model", 0, kNoLimit).value_or(context.model);
  if (fields.failed()) return tl::unexpected(to_api_error(fields.error()));
  if (model != context.model) {
    const auto shown = model.substr(0, wire::kMaxNameBytes);
    return tl::unexpected(ApiError{404, "The model '" + shown + "' is not served here.",
                                   path + "model", "model_not_found", std::nullopt});
  }
  out.params.model = model;
  out.params.chat = endpoint == Endpoint::kChat;

  refuse_unsupported(body, fields);
  read_sampling(fields, out);
  read_ends(fields, out);
  read_presentation(fields, context, out);
  read_logit_bias(fields, context, out);
  read_response_format(fields, context, out);
  // The prompt last: it is the dear part, and a request that is refused anyway need not pay for it.
  if (!fields.failed()) {
    if (endpoint == Endpoint::kChat) {
      read_messages(fields, context, out);
    } else {
      read_prompt(fields, context, out);
    }
  }
  if (fields.failed()) return tl::unexpected(to_api_error(fields.error()));
  if (auto error = fit(endpoint, path, context, out)) return tl::unexpected(*error);
  return out;
}

Parsed<ParsedRequest> parse_request(Endpoint endpoint, std::string_view body,
                                    const ParserContext& context) {
  const auto json = parse_object(body);
  if (!json) return tl::unexpected(to_api_error(json.error()));
  auto fields = read_request(endpoint, *json, "", context);
  if (!fields) return tl::unexpected(fields.error());

  ParsedRequest out;
  out.stream = fields->stream;
  out.open.prompt = std::move(fields->prompt);
  auto& params = out.open.params;
  params = std::move(fields->params);
  // 53 bits: what every JSON reader keeps.
  params.seed = fields->seed ? *fields->seed : context.random() >> 11;
  params.completion_id =
      (endpoint == Endpoint::kChat ? "chatcmpl-" : "cmpl-") + hex_128(context.random);
  params.created_unix_s = context.now_unix_s;
  params.resume_token = hex_128(context.random);
  out.open.session = SessionId(session_of(params.resume_token));
  return out;
}

std::optional<EventId> parse_event_id(std::string_view text) {
  EventId id;
  const auto* end = text.data() + text.size();
  const auto epoch = std::from_chars(text.data(), end, id.epoch.value);
  if (epoch.ec != std::errc{} || epoch.ptr == end || *epoch.ptr != '.') return std::nullopt;
  const auto index = std::from_chars(epoch.ptr + 1, end, id.index);
  if (index.ec != std::errc{} || index.ptr != end) return std::nullopt;
  return id;
}

bool is_session_id(std::string_view text) {
  return text.size() == 32 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string hex_128(const std::function<std::uint64_t()>& random) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (int word = 0; word < 2; ++word) {
    const auto bits = random();
    for (int shift = 60; shift >= 0; shift -= 4) out += kHex[(bits >> shift) & 15];
  }
  return out;
}

}  // namespace pallas::http
