#pragma once
// The bytes of a stream (docs/client-api.md, "The resumable stream") and of an answer in one piece.

#include <cstdint>
#include <string>

#include "base/units.h"
#include "http/api_error.h"
#include "node/ports.h"
#include "wire/messages.h"

namespace pallas::http {

// What every chunk of one stream repeats.
struct StreamFace {
  bool chat = true;
  bool resumable = false;
  bool include_usage = false;
  std::string completion_id;
  std::int64_t created_unix_s = 0;
  std::string model;
};
StreamFace face_of(const wire::SessionParams& params, bool resumable);

struct SessionAnnouncement {
  SessionId session;
  NodeId node;
  Epoch epoch;
  const wire::SessionParams* params = nullptr;  // null: this node does not know them yet
  TokenPosition prompt_tokens = 0;
  wire::Compatibility compatibility;
};
std::string session_event(const SessionAnnouncement& session);
// The chunk with delta.role; "" unless it is a chat.
std::string role_event(const StreamFace& face);
// "" for an empty text where the client has not opted in to resume.
std::string token_event(const StreamFace& face, const node::TokenEvent& token);
std::string next_event(const NodeId& node);
std::string keep_alive_comment();
// For a plain client: an error event, since it would take a bare end for the answer's.
std::string moved_event(const StreamFace& face, const NodeId& node);
// The chunk with finish_reason (and held-back text), usage if asked for, [DONE].
std::string finish_events(const StreamFace& face, const node::FinishEvent& event);
std::string error_event(const ApiError& error);

std::string compatibility_json(const wire::Compatibility& compatibility);

// The answer of a request without `stream`: chat.completion or text_completion.
std::string completion_json(const StreamFace& face, const std::string& text,
                            const node::FinishEvent& event);

}  // namespace pallas::http
