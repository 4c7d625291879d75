#pragma once
// What a gNB says on a resumable stream (docs/client-api.md), as native types.

#include <cstdint>
#include <string>
#include <variant>

#include "base/units.h"

namespace pallas::ue {

// The two OpenAI requests that make a session.
enum class Endpoint { kChat, kCompletion };

// One generated token as the UE got it, at its first arrival.
struct TokenRecord {
  TokenIndex index = 0;
  TokenId id = 0;
  NodeId by;         // the gNB whose engine sampled it
  Epoch epoch;       // as the gNB stamped it
  TimePoint at;      // arrival here
  std::string text;  // may be empty: half a character, a possible stop string
  friend bool operator==(const TokenRecord&, const TokenRecord&) = default;
};

struct Usage {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
  friend bool operator==(const Usage&, const Usage&) = default;
};

// An OpenAI error object, with the HTTP status that it came with or deserves.
struct ApiError {
  int status = 500;
  std::string message, type, param, code;
  std::uint64_t current_epoch = 0;  // of a stale_epoch answer
  friend bool operator==(const ApiError&, const ApiError&) = default;
};

// event: pallas.session
struct SessionEvent {
  SessionId session;
  NodeId node;
  Epoch epoch;
  std::string resume_token;  // a secret: never logged or reported
  std::string model;
  std::string completion_id;
  std::int64_t created_unix_s = 0;
  TokenPosition prompt_tokens = 0;
  std::string raw;  // the event's data, handed to a gNB that knows nothing of the session
};
// event: pallas.next; an empty node withdraws the announcement.
struct NextEvent {
  NodeId node;
};
// event: pallas.moved; the node may be empty.
struct MovedEvent {
  NodeId node;
};
struct StreamToken {
  TokenIndex index = 0;
  TokenId id = 0;
  NodeId by;
  Epoch epoch;
  std::string text;
};
struct FinishEvent {
  std::string reason;  // OpenAI's word
  std::string text;    // held-back text that turned out not to be a stop string
};
struct UsageEvent {
  Usage usage;
};
struct DoneEvent {};
struct ErrorEvent {
  ApiError error;
};
// The role delta, or an event that this version does not know.
struct IgnoredEvent {};

using StreamEvent = std::variant<SessionEvent, NextEvent, MovedEvent, StreamToken, FinishEvent,
                                 UsageEvent, DoneEvent, ErrorEvent, IgnoredEvent>;

}  // namespace pallas::ue
