#pragma once
// What passes between the node's thread and the engine thread.

#include <cstdint>
#include <variant>
#include <vector>

#include "engine/engine.h"

namespace pallas::engine {

namespace command {

struct Open {
  TokenPosition reserved = 0;
};
struct Prefill {
  TokenPosition first = 0;
  std::vector<TokenId> ids;
};
struct Replay {
  TokenPosition first = 0;
  std::vector<TokenId> ids;
};
struct Abort {};
struct Attach {
  TokenPosition first = 0;
  TokenPosition count = 0;
  kv::Bytes rows;
};
struct Scatter {
  kv::Coverage positions;
  kv::Bytes rows;
};
struct Export {
  kv::TokenRange range;
};
struct Rank {
  RankRequest request;
};
struct Truncate {
  TokenPosition front = 0;
};
struct Decode {
  DecodeParams params;
  TimePoint first_due;
};
struct Pause {};
struct Release {};

}  // namespace command

struct Command {
  SlotId slot;
  std::variant<command::Open, command::Prefill, command::Replay, command::Abort, command::Attach,
               command::Scatter, command::Export, command::Rank, command::Truncate, command::Decode,
               command::Pause, command::Release>
      what;
};

namespace event {

struct Prefilled {
  TokenPosition front = 0;
  Duration busy{0};
};
struct Replayed {
  TokenPosition front = 0;
  Duration busy{0};
};
struct Attached {
  TokenPosition front = 0;
};
struct Paused {
  TokenPosition front = 0;
};
struct Exported {
  kv::TokenRange range;
  kv::Bytes rows;
};
struct Truncated {
  TokenPosition front = 0;
};
struct Ranked {
  std::vector<double> scores;
};
struct Failed {
  Error error;
};

}  // namespace event

struct Event {
  SlotId slot;
  std::variant<event::Prefilled, event::Replayed, event::Attached, Sampled, event::Paused,
               event::Exported, event::Truncated, event::Ranked, event::Failed>
      what;
};

}  // namespace pallas::engine
