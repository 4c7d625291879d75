// The body of an attach: little is required, but whatever is given must be consistent in itself,
// for the node goes on from it as the truth.

#include <algorithm>
#include <limits>

#include "http/request_fields.h"
#include "http/request_parser.h"

namespace pallas::http {
namespace {

constexpr std::uint64_t kMaxEpoch = std::numeric_limits<std::int64_t>::max();

void read_ids(Fields& fields, const ParserContext& context, node::UeContext& out) {
  const auto* ids = fields.find("ids");
  if (ids == nullptr) return;
  if (!ids->is_array() || ids->size() > wire::kMaxTokens) {
    return fields.refuse("ids", "must be an array of token ids");
  }
  const auto vocabulary = context.text->vocabulary_size();
  for (const auto& id : *ids) {
    if (!id.is_number_unsigned() || vocabulary < 0 ||
        id.get<std::uint64_t>() >= static_cast<std::uint64_t>(vocabulary)) {
      return fields.refuse("ids", "must hold ids of the model's tokens", true);
    }
    out.generated.push_back(id.get<TokenId>());
  }
}

void read_sampled_by(Fields& fields, const NodeId& last_node, node::UeContext& out) {
  const auto* runs = fields.find("sampled_by");
  if (runs == nullptr) {
    if (out.generated.empty()) return;
    if (last_node.value.empty()) return fields.refuse("sampled_by", "is required beside ids");
    out.sampled_by.emplace_back(last_node, static_cast<std::uint32_t>(out.generated.size()));
    return;
  }
  if (!runs->is_array() || runs->size() > wire::kMaxRanges) {
    return fields.refuse("sampled_by", "must be an array of [node, count]");
  }
  std::uint64_t total = 0;
  for (const auto& run : *runs) {
    if (!run.is_array() || run.size() != 2 || !run[0].is_string() || !run[1].is_number_unsigned()) {
      return fields.refuse("sampled_by", "must be an array of [node, count]");
    }
    auto name = run[0].get<std::string>();
    const auto count = run[1].get<std::uint64_t>();
    if (name.empty() || name.size() > wire::kMaxNameBytes || count == 0 ||
        count > wire::kMaxTokens) {
      return fields.refuse("sampled_by", "must have names and counts of at least 1", true);
    }
    total += count;
    out.sampled_by.emplace_back(NodeId(std::move(name)), static_cast<std::uint32_t>(count));
  }
  if (total != out.generated.size()) {
    fields.refuse("sampled_by", "must count exactly the ids", true);
  }
}

// Ids mean the same text only under the same tokenizer, and go on only under the same weights.
std::optional<ApiError> check_model(const Json& session, const wire::Compatibility& ours) {
  const auto record = session.find("compatibility");
  if (record == session.end() || !record->is_object()) return std::nullopt;
  const auto differs = [&](const char* name, const std::string& own) {
    const auto value = record->find(name);
    return value != record->end() && value->is_string() && *value != own;
  };
  for (const auto& [name, own] : {std::pair{"model_hash", &ours.model_hash},
                                  std::pair{"tokenizer_hash", &ours.tokenizer_hash}}) {
    if (!differs(name, *own)) continue;
    return ApiError{409, "This gNB runs another model: " + std::string(name) + " differs.",
                    "session.compatibility." + std::string(name), "incompatible", std::nullopt};
  }
  return std::nullopt;
}

Parsed<node::UeContext> read_context(const Json& body, const SessionId& id, std::string_view token,
                                     const NodeId& last_node, TokenIndex next_index,
                                     const wire::Compatibility& ours, const ParserContext& context,
                                     const wire::SessionSnapshot* known) {
  Fields fields(body);
  const auto endpoint = fields.text("endpoint", 1, 32);
  if (!fields.failed() && endpoint && *endpoint != "chat" && *endpoint != "completions") {
    fields.refuse("endpoint", "must be chat or completions", true);
  }
  const auto* request = fields.find("request");
  const auto* session = fields.require("session");
  if (!request->is_object()) fields.refuse("request", "must be an object");
  if (session != nullptr && !session->is_object()) fields.refuse("session", "must be an object");
  if (fields.failed()) return tl::unexpected(to_api_error(fields.error()));
  if (auto error = check_model(*session, ours)) return tl::unexpected(*error);

  node::UeContext out;
  if (known == nullptr) {
    const bool chat = endpoint ? *endpoint == "chat" : request->contains("messages");
    auto parsed = read_request(chat ? Endpoint::kChat : Endpoint::kCompletions, *request,
                               "request.", context);
    if (!parsed) return tl::unexpected(parsed.error());
    out.params = std::move(parsed->params);
    out.prompt = std::move(parsed->prompt);
  }
  out.params.resume_token = token;
  Fields from(*session, "session.");
  for (const char* name : {"seed", "completion_id", "created", "prompt_tokens"}) from.require(name);
  if (const auto named = from.text("session", 1, 64); named && *named != id.value) {
    from.refuse("session", "must be the session of the path", true);
  }
  out.params.seed = from.count("seed", std::numeric_limits<std::uint64_t>::max()).value_or(0);
  out.params.completion_id = from.text("completion_id", 1, wire::kMaxNameBytes).value_or("");
  out.params.created_unix_s = from.integer("created", 0, INT64_MAX).value_or(0);
  const auto prompt_tokens = from.count("prompt_tokens", UINT32_MAX);
  const std::size_t prompt = known != nullptr ? known->prompt_tokens : out.prompt.size();
  if (prompt_tokens && *prompt_tokens != prompt) {
    from.refuse("prompt_tokens",
                "differs: the request has " + std::to_string(prompt) + " tokens here", true);
  }
  if (from.failed()) return tl::unexpected(to_api_error(from.error()));

  read_ids(fields, context, out);
  if (!fields.failed() && out.generated.size() != next_index) {
    fields.refuse("ids", "must be all ids below next_index", true);
  }
  const auto max_tokens = known != nullptr ? known->params.max_tokens : out.params.max_tokens;
  if (!fields.failed() && out.generated.size() > max_tokens) {
    fields.refuse("ids", "must not be more than max_tokens", true);
  }
  if (!fields.failed()) read_sampled_by(fields, last_node, out);
  if (fields.failed()) return tl::unexpected(to_api_error(fields.error()));
  return out;
}

}  // namespace

Parsed<node::AttachRequest> parse_attach(std::string_view body, const SessionId& session,
                                         std::string_view token, const wire::Compatibility& ours,
                                         const ParserContext& context,
                                         const wire::SessionSnapshot* known) {
  const auto json = parse_object(body);
  if (!json) return tl::unexpected(to_api_error(json.error()));
  Fields fields(*json);
  node::AttachRequest out;
  out.session = session;
  out.resume_token = token;
  fields.require("epoch");
  out.epoch = Epoch(fields.count("epoch", kMaxEpoch).value_or(0));
  if (out.epoch == Epoch(0)) fields.refuse("epoch", "must be at least 1", true);
  fields.require("next_index");
  out.next_index =
      static_cast<TokenIndex>(fields.count("next_index", wire::kMaxTokens).value_or(0));
  out.last_node = NodeId(fields.text("last_node", 0, wire::kMaxNameBytes).value_or(""));
  if (fields.failed()) return tl::unexpected(to_api_error(fields.error()));

  if (fields.find("request") != nullptr) {
    auto context_of_ue =
        read_context(*json, session, token, out.last_node, out.next_index, ours, context, known);
    if (!context_of_ue) return tl::unexpected(context_of_ue.error());
    out.context = std::move(*context_of_ue);
  }
  return out;
}

}  // namespace pallas::http
