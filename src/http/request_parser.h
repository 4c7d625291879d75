#pragma once
// OpenAI bodies into native types. Everything is checked here, so that the node sees valid requests
// only; what would change the answer and is not supported is refused by its name, never ignored.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "engine/engine.h"
#include "http/api_error.h"
#include "node/node.h"

namespace pallas::http {

enum class Endpoint { kChat, kCompletions };

struct ParserContext {
  const engine::TextCodec* text = nullptr;
  std::string model;  // the one that is loaded
  TokenPosition context_tokens = 0;
  wire::Consistency default_consistency = wire::Consistency::kPreferExact;
  std::function<std::uint64_t()> random;  // 64 unpredictable bits a call
  std::int64_t now_unix_s = 0;
};

struct ParsedRequest {
  // All but `resumable` and params.ue, which come from headers. Session id, resume token,
  // completion id and, where the body has none, the seed are drawn.
  node::OpenRequest open;
  bool stream = false;
};
Parsed<ParsedRequest> parse_request(Endpoint endpoint, std::string_view body,
                                    const ParserContext& context);

// Body of POST /v1/sessions/{id}/attach; `session` is the path's id, `token` the header's.
// `ours` is what the loaded model is: ids of another model or tokenizer are refused by name.
// `known`: what this node has of the session, where it knows it by id and token. Its own record
// counts then; the request in the body is not read, since rendering and tokenizing a long one takes
// milliseconds, and the next token waits for them. The context has neither prompt nor params.
Parsed<node::AttachRequest> parse_attach(std::string_view body, const SessionId& session,
                                         std::string_view token, const wire::Compatibility& ours,
                                         const ParserContext& context,
                                         const wire::SessionSnapshot* known = nullptr);

// "<epoch>.<index>", the `id` of a token event.
struct EventId {
  Epoch epoch;
  TokenIndex index = 0;
};
std::optional<EventId> parse_event_id(std::string_view text);

// 32 lower-case hex digits.
bool is_session_id(std::string_view text);
std::string hex_128(const std::function<std::uint64_t()>& random);

}  // namespace pallas::http
