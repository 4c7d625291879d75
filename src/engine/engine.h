#pragma once
// The Engine port: what a gNB needs from any inference engine.
//
// Calls come from the node's thread and return at once; results come back as EngineEvents on that
// same thread, never from inside a call. Commands of one slot run in the order given. A slot is a
// reservation of one session: its KV cache [0, front) grows upward by prefill, replay, attach or
// decode, each starting exactly at the front. A command that does not start there, or is given
// while the slot decodes (other than pause, export_kv, rank and release), fails the slot with
// kOutOfOrder.
//
// Life of a slot:
//
//   reserve --> IDLE --prefill/replay/attach--> IDLE --decode--> DECODING --pause--> IDLE
//                 |                                              | (end of generation, limit)
//                 +--truncate--> IDLE                            +--> IDLE, as if paused
//   release ends it in every state; no event names the slot after release() returned.
//
// Where capabilities().holes says so, the KV below the front may have holes (attach_scattered):
// what is computed above them attends only to what is there. Such a slot becomes whole again by
// truncate() to its first hole at most, the rows from there on in order, and a replay of what was
// decoded meanwhile; it then has the very content that it would have had without the holes.
//
// docs/engine-guide.md shows how to write another engine; tests/support/engine_contract.h is what
// it must pass.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "engine/importance.h"
#include "engine/profile.h"
#include "engine/request.h"
#include "kv/geometry.h"
#include "kv/token_range.h"

namespace pallas::engine {

using SlotId = Strong<struct SlotIdTag, std::uint64_t>;  // never reused within a process

struct DecodeParams {
  SamplingParams sampling;
  // All ids of the session, prompt first. tokens.size() - 1 positions must have KV (= front); the
  // last id is the input of the first step. The engine rebuilds penalties and grammar from them.
  std::vector<TokenId> tokens;
  TokenPosition prompt_tokens = 0;  // tokens[prompt_tokens] would be generated index 0
  // Stops by itself after the id at this position was sampled (max_tokens or the context's end).
  TokenPosition last_position = 0;
  // At most this many tokens a second, on a fixed schedule from first_due on; 0: as fast as it
  // goes.
  TokensPerSecond max_token_rate;
  // The first sampled token is due at this time from now (0: at once).
  Duration first_due{0};
  // Its reader waits already: the first token may be sampled in a step without the other sessions,
  // where that is much shorter than one with them (Profile::step_first).
  bool awaited = false;
  bool digest_logits = false;  // fill Sampled::logits_digest
};

struct Sampled {
  TokenPosition position = 0;  // of the new id; KV now reaches [0, position)
  TokenId id = 0;
  bool end_of_generation = false;   // the model's own end; the slot is paused
  bool limit = false;               // last_position reached; the slot is paused
  Duration step{0};                 // duration of the step that made it
  std::uint32_t batch = 1;          // sessions in that step
  std::uint64_t logits_digest = 0;  // XXH3-64 of the logits row, if asked for
};

// Receives the engine's results on the node's thread.
class EngineEvents {
 public:
  virtual ~EngineEvents() = default;
  // KV of [0, front) is computed. `busy` is engine time spent on the tokens since the last event.
  // Comes after each chunk; the command has ended when front is its end, or early after abort().
  virtual void on_prefilled(SlotId slot, TokenPosition front, Duration busy) = 0;
  // The same for replay() (one event a step).
  virtual void on_replayed(SlotId slot, TokenPosition front, Duration busy) = 0;
  virtual void on_attached(SlotId slot, TokenPosition front) = 0;
  virtual void on_sampled(SlotId slot, const Sampled& token) = 0;
  // After pause() or abort(): the slot is idle, KV reaches [0, front).
  virtual void on_paused(SlotId slot, TokenPosition front) = 0;
  virtual void on_exported(SlotId slot, kv::TokenRange range, kv::Bytes rows) = 0;
  virtual void on_truncated(SlotId slot, TokenPosition front) = 0;
  // A score for each position [0, front), the higher the more important.
  virtual void on_ranked(SlotId slot, std::vector<double> scores) = 0;
  // The slot is unusable; only release() may follow.
  virtual void on_failed(SlotId slot, const Error& error) = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;

  virtual void set_events(EngineEvents* events) = 0;  // before the first reserve()
  virtual const EngineInfo& info() const = 0;

  // Admission: a slot that can hold `tokens` positions, counted at once. kResourceExhausted when
  // none is free, kContextExceeded when `tokens` is above info().context_tokens.
  virtual Result<SlotId> reserve(TokenPosition tokens) = 0;
  virtual std::uint32_t free_slots() const = 0;

  // Computes KV of [first, first + tokens.size()) in chunks, without sampling, in the engine's
  // prompt class (capabilities().exact_chunked_prompt says whether chunk bounds matter).
  virtual void prefill(SlotId slot, TokenPosition first, std::vector<TokenId> tokens) = 0;
  // The same one token per step, in the class of decoded tokens, beside the decoding sessions.
  virtual void replay(SlotId slot, TokenPosition first, std::vector<TokenId> tokens) = 0;
  // Stops a running prefill or replay after its current chunk or step; drops queued ones;
  // on_paused tells where.
  virtual void abort(SlotId slot) = 0;

  // Appends rows (kv/geometry.h) of `count` positions at the front. Size must be exact.
  virtual void attach_kv(SlotId slot, TokenPosition first, TokenPosition count, kv::Bytes rows) = 0;
  // Appends rows of `positions` alone, which lie at or above the front; their end becomes the
  // front, and what lies between is a hole. Rows as of one range of positions.total() positions.
  // kUnsupported without capabilities().holes.
  virtual void attach_scattered(SlotId slot, kv::Coverage positions, kv::Bytes rows) = 0;
  // Rows of `range`, which must lie below the front and have no hole. Allowed while decoding.
  virtual void export_kv(SlotId slot, kv::TokenRange range) = 0;
  // Cuts KV to [0, front). kOutOfOrder where the position below `front` is in a hole.
  virtual void truncate(SlotId slot, TokenPosition front) = 0;
  // How important the positions [0, front) are (engine/importance.h). Changes nothing in the slot.
  // Allowed while decoding. kOutOfOrder with holes, kUnsupported for an ordering that this engine
  // cannot tell, kContextExceeded for a window that the reservation has no room for above the
  // front.
  virtual void rank(SlotId slot, RankRequest request) = 0;

  // Decodes until pause(), the model's end or the limit; an event each token.
  virtual void decode(SlotId slot, DecodeParams params) = 0;
  // Stops at the next step boundary; a step that is running still reports its token first.
  virtual void pause(SlotId slot) = 0;

  virtual void release(SlotId slot) = 0;
};

// Text to ids and back. Pure functions of the model's vocabulary; any thread.
class TextCodec {
 public:
  virtual ~TextCodec() = default;
  virtual Result<std::vector<TokenId>> render_chat(
      const std::vector<ChatMessage>& messages) const = 0;
  virtual Result<std::vector<TokenId>> tokenize(const std::string& text) const = 0;
  // The bytes of one token as they stand in the text; control tokens are empty. May be part of a
  // UTF-8 character.
  virtual std::string piece(TokenId id) const = 0;
  virtual bool is_end_of_generation(TokenId id) const = 0;
  virtual TokenId vocabulary_size() const = 0;
  // GBNF of a JSON schema, for response_format.
  virtual Result<std::string> grammar_of_schema(const std::string& json_schema) const = 0;
};

}  // namespace pallas::engine
