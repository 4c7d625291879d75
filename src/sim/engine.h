#pragma once
// engine::Engine from cost numbers alone: continuous batching without content. One step is one
// decode batch of all due slots and at most one prefill chunk; exports and attaches go between
// steps. KV rows are stand-ins of kStandInBytes a token (all zero); the token at an index is a hash
// of the session's seed and the index, so ids are the same at any node and need no memory.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"
#include "sim/engine_model.h"

namespace pallas::sim {

inline constexpr std::uint32_t kStandInBytes = 8;
inline constexpr TokenId kEndToken = 0;  // never sampled unless a logit bias of 100 or more asks
inline constexpr TokenId kVocabulary = 32'000;

// The id that any sim::Engine samples at generated index `index`; greedy sessions ignore the seed.
TokenId sampled_token(std::uint64_t seed, TokenIndex index);
// The stand-in for prompt position `position` of a session.
TokenId prompt_token(std::uint64_t seed, TokenPosition position);

// Hears when a session's token was sampled, before the node does.
class SampleObserver {
 public:
  virtual ~SampleObserver() = default;
  virtual void on_sampled(TokenIndex index, TimePoint at) = 0;
};

class Engine : public engine::Engine {
 public:
  struct Stats {
    std::uint64_t steps = 0;  // decode batches
    std::uint64_t sampled_tokens = 0, prefilled_tokens = 0, replayed_tokens = 0;
    std::uint64_t attached_tokens = 0, exported_tokens = 0;
    Duration busy{0};
  };

  // `model` has passed check(). `observe` names who listens to a session's tokens, by its seed; it
  // may be empty and may return null.
  Engine(Clock& clock, const EngineModel& model,
         std::function<SampleObserver*(std::uint64_t seed)> observe = {});
  ~Engine() override;

  void set_events(engine::EngineEvents* events) override;
  const engine::EngineInfo& info() const override;
  Result<engine::SlotId> reserve(TokenPosition tokens) override;
  std::uint32_t free_slots() const override;
  void prefill(engine::SlotId slot, TokenPosition first, std::vector<TokenId> tokens) override;
  void replay(engine::SlotId slot, TokenPosition first, std::vector<TokenId> tokens) override;
  void abort(engine::SlotId slot) override;
  void attach_kv(engine::SlotId slot, TokenPosition first, TokenPosition count,
                 kv::Bytes rows) override;
  void attach_scattered(engine::SlotId slot, kv::Coverage positions, kv::Bytes rows) override;
  void export_kv(engine::SlotId slot, kv::TokenRange range) override;
  void truncate(engine::SlotId slot, TokenPosition front) override;
  void rank(engine::SlotId slot, engine::RankRequest request) override;
  void decode(engine::SlotId slot, engine::DecodeParams params) override;
  void pause(engine::SlotId slot) override;
  void release(engine::SlotId slot) override;

  const Stats& stats() const;
  std::size_t live_slots() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Pieces are empty: the simulator follows ids, not text.
class SilentTextCodec : public engine::TextCodec {
 public:
  Result<std::vector<TokenId>> render_chat(
      const std::vector<engine::ChatMessage>& messages) const override;
  Result<std::vector<TokenId>> tokenize(const std::string& text) const override;
  std::string piece(TokenId) const override { return {}; }
  bool is_end_of_generation(TokenId id) const override { return id == kEndToken; }
  TokenId vocabulary_size() const override { return kVocabulary; }
  Result<std::string> grammar_of_schema(const std::string&) const override;
};

}  // namespace pallas::sim
