#pragma once
// Engine's inside: engine.cpp is the port and what it refuses, engine_loop.cpp the steps.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "sim/engine.h"

namespace pallas::sim {

enum class CommandKind : std::uint8_t {
  kPrefill,
  kReplay,
  kAttach,
  kScatter,
  kExport,
  kRank,
  kTruncate,
  kDecode,
  kPause,
  kAbort
};
struct EngineDecoding {
  std::uint64_t seed = 0;  // 0 for a greedy session
  TokenPosition prompt_tokens = 0;
  TokenPosition last_position = 0;
  std::uint64_t tokens = 0;  // ids given
  double rate = 0;
  TimePoint first{};  // the first token is due
  TimePoint not_before{};
  std::uint64_t sampled = 0;
  std::uint32_t min_tokens = 0;
  bool ends = false;  // a bias makes it end as soon as it may
  bool digest = false;
  bool awaited = false;
  SampleObserver* observer = nullptr;
};

struct EngineCommand {
  CommandKind kind = CommandKind::kPrefill;
  TokenPosition first = 0;      // or the new front of truncate
  std::uint64_t count = 0;      // tokens or rows still to do
  std::uint64_t in_flight = 0;  // of count, in the chunk or step that is running
  std::uint64_t bytes = 0;      // of attached rows
  kv::TokenRange range;
  engine::RankRequest rank;
  EngineDecoding decode;
  bool valid_rate = true;
  bool begun = false;
};

struct EngineSlot {
  std::uint64_t id = 0;
  TokenPosition reserved = 0;
  TokenPosition front = 0;
  bool failed = false;
  bool listed = false;  // in Impl::pending
  bool decoded = false;
  std::optional<EngineDecoding> decoding;
  std::vector<EngineCommand> queue;
};

// What the port's contract makes a slot fail for.
Status check(const EngineSlot& slot, const EngineCommand& command);
engine::EngineInfo info_of(const EngineModel& model);

class Engine::Impl {
 public:
  Impl(Clock& clock, const EngineModel& model,
       std::function<SampleObserver*(std::uint64_t)> observe)
      : clock_(clock), model_(model), info_(info_of(model)), observe_(std::move(observe)) {}
  ~Impl() { clock_.cancel(timer_); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Result<engine::SlotId> reserve(TokenPosition tokens);
  std::uint32_t free_slots() const {
    return info_.slots - static_cast<std::uint32_t>(std::min<std::size_t>(live_, info_.slots));
  }
  void give(engine::SlotId id, EngineCommand command);
  void abort(engine::SlotId id);
  void release(engine::SlotId id);
  SampleObserver* observer(std::uint64_t seed) const { return observe_ ? observe_(seed) : nullptr; }
  TimePoint now() const { return clock_.now(); }

  engine::EngineEvents* events = nullptr;
  Stats stats;
  const engine::EngineInfo& info() const { return info_; }
  std::size_t live() const { return live_; }

 private:
  enum class Phase : std::uint8_t { kNone, kLoad, kTransfer, kBatch, kChunk, kFused };

  // A slot that decodes. Each step looks at all of them, so what it asks lies side by side.
  struct Decoder {
    std::uint64_t id = 0;
    TimePoint due{};
    EngineSlot* slot = nullptr;
  };

  EngineSlot* find(std::uint64_t id);
  void wake();
  void arm(TimePoint when);
  void run_phase(Phase phase, Seconds cost);
  void end_phase();
  void turn();
  void settle(std::uint64_t id);
  void start_decoding(EngineSlot& slot, EngineDecoding decoding);
  void stop_decoding(EngineSlot& slot);
  std::vector<Decoder>::iterator decoder(std::uint64_t id);
  void fail_slot(EngineSlot& slot, const Error& error);
  bool begin_transfer();
  void finish_transfer();
  bool begin_step();
  bool begin_chunk();
  EngineSlot* choose_chunk();
  TokenPosition chunk_size(const EngineCommand& command) const;
  Seconds chunk_cost(const EngineSlot& slot, TokenPosition size) const {
    return model_.profile.prefill_time(slot.front, slot.front + size);
  }
  void finish_batch(Duration span);
  void decode_one(std::uint64_t id, Duration span, std::uint32_t batch);
  void replay_one(std::uint64_t id, Duration span);
  void finish_chunk(Duration span);
  void wait_for_due();

  Clock& clock_;
  EngineModel model_;
  engine::EngineInfo info_;
  std::function<SampleObserver*(std::uint64_t)> observe_;
  std::vector<std::unique_ptr<EngineSlot>> pool_;
  std::vector<std::uint16_t> free_;
  std::size_t live_ = 0;
  std::uint64_t reservations_ = 0;
  std::vector<std::uint64_t> pending_;  // slots with commands; may name others
  std::vector<Decoder> decoding_;       // ids ascend

  bool loaded_ = false;
  bool busy_ = false;  // a phase is running
  bool news_ = false;  // commands came while busy
  TimerId timer_ = 0;
  Phase phase_ = Phase::kNone;
  Duration span_{0};
  std::vector<std::uint64_t> batch_, replays_;  // of the running step
  std::vector<std::uint64_t> waiting_;          // of those that decode: for their first token
  std::uint64_t transfer_slot_ = 0;
  std::uint64_t chunk_slot_ = 0;  // the last one served, too: chunks go round
  Duration transferred_{0};       // since the last step
};

}  // namespace pallas::sim
