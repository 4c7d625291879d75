#pragma once
// An Engine without a model: deterministic, on the time of a Clock, with the costs of a Profile.
//
// It keeps the contract of engine.h to the letter, works one step at a time like a real engine (all
// due decoding slots and one token of each replaying slot in a batch, then at most one prefill
// chunk; exports and attaches between steps), and its ids depend on the content of the whole KV
// cache, so a test that compares ids sees any row that is wrong, missing or stale. Two FakeEngines
// with the same compatibility.model_hash are the same model.

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/fake_kv.h"
#include "engine/fake_model.h"
#include "engine/fake_text.h"

namespace pallas::engine {

struct FakeEngineConfig {
  EngineInfo info = fake_engine_info();
  // Chance of the end of generation at each token, where min_tokens and ignore_eos allow it.
  double end_probability = 0;
  // A prefill chunk is cut so that it takes no longer than this while other slots decode; 0: never.
  Duration chunk_time_beside_decode{0};
  // What a step takes that only replays, as a share of one that samples: no logits are computed.
  double replay_share = 1;
};

class FakeEngine : public Engine {
 public:
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
  struct Stats {
    std::uint64_t prefilled_tokens = 0;
    std::uint64_t replayed_tokens = 0;
    std::uint64_t attached_tokens = 0;
    std::uint64_t exported_tokens = 0;
    std::uint64_t sampled_tokens = 0;
    std::uint64_t steps = 0;
    std::uint64_t reservations = 0;  // granted
    std::uint64_t releases = 0;
    std::uint64_t failures = 0;  // on_failed events
    std::uint64_t misused = 0;   // of these, for a command that the contract does not allow
    Duration busy{0};            // time in steps and transfers
  };

  FakeEngine(Clock& clock, FakeEngineConfig config = {});

  void set_events(EngineEvents* events) override { events_ = events; }
  const EngineInfo& info() const override { return config_.info; }
  Result<SlotId> reserve(TokenPosition tokens) override;
  std::uint32_t free_slots() const override;
  void prefill(SlotId slot, TokenPosition first, std::vector<TokenId> tokens) override;
  void replay(SlotId slot, TokenPosition first, std::vector<TokenId> tokens) override;
  void abort(SlotId slot) override;
  void attach_kv(SlotId slot, TokenPosition first, TokenPosition count, kv::Bytes rows) override;
  void attach_scattered(SlotId slot, kv::Coverage positions, kv::Bytes rows) override;
  void export_kv(SlotId slot, kv::TokenRange range) override;
  void truncate(SlotId slot, TokenPosition front) override;
  void rank(SlotId slot, RankRequest request) override;
  void decode(SlotId slot, DecodeParams params) override;
  void pause(SlotId slot) override;
  void release(SlotId slot) override;

  // --- faults ---
  // The next command of this kind that is begun, of any slot, fails its slot with `error`.
  void fail_next(CommandKind kind, Error error);
  // reserve() answers kResourceExhausted while set.
  void refuse_reservations(bool refuse) { refuse_reservations_ = refuse; }
  // Samples other ids than this model would.
  void sample_wrongly(bool wrongly) { wrong_ = wrongly; }
  // Everything takes `factor` times as long from the next step on.
  void set_slow_factor(double factor) { slow_factor_ = factor; }
  // No step begins and no event comes until resume_answering(); what was running is kept.
  void stop_answering() { answering_ = false; }
  void resume_answering();

  // --- for tests ---
  const Stats& stats() const { return stats_; }
  // When the last phase that began slow (set_slow_factor) ends or has ended.
  TimePoint slowed_until() const { return slowed_until_; }
  std::size_t live_slots() const { return slots_.size(); }
  std::optional<TokenPosition> front(SlotId slot) const;  // none: no such slot
  // All bookkeeping agrees: rows with digests, fronts with reservations, slots with counts.
  bool consistent() const;
  const std::string& last_failure() const { return last_failure_; }

 private:
  struct Command {
    CommandKind kind = CommandKind::kPrefill;
    TokenPosition first = 0;
    TokenPosition count = 0;  // attach
    std::vector<TokenId> tokens;
    std::size_t done = 0;       // of tokens
    std::size_t in_flight = 0;  // of tokens, in the chunk or step that is running
    kv::Bytes rows;
    kv::Coverage positions;  // scatter
    kv::TokenRange range;
    RankRequest rank;
    DecodeParams decode;
    TimePoint given;
    bool begun = false;  // checked, and no longer subject to fail_next()
  };
  struct Decoding {
    DecodeParams params;
    TimePoint first_due;
    std::uint64_t sampled = 0;
  };
  struct Slot {
    Slot(TokenPosition reserved_tokens, FakeKv cache)
        : reserved(reserved_tokens), kv(std::move(cache)) {}
    TokenPosition reserved;
    FakeKv kv;
    bool failed = false;  // only release() may follow
    std::optional<Decoding> decoding;
    std::deque<Command> queue;  // the head may be a prefill or replay that has begun
  };

  // A decode batch that is ending: whose tokens are still to be reported.
  struct Batch {
    std::deque<SlotId> decoding;
    std::deque<SlotId> replaying;
    Duration step{0};
    std::uint32_t size = 0;
  };

  Slot* find(SlotId slot);
  std::vector<SlotId> slot_ids() const;
  void give(SlotId slot, Command command);
  void wake();
  void run_phase(Seconds cost, std::function<void(Duration)> done);

  // The engine's loop. Each begin_ answers whether it started a phase; the phase's end goes on.
  void turn();
  bool begin_transfer();
  bool begin_batch();
  bool begin_chunk();
  void finish_transfer(SlotId id);
  void finish_batch(Batch batch);
  void finish_chunk(SlotId id, Duration busy);
  void wait_for_due();

  // Runs the commands at the head of the queue that take no time.
  void settle(SlotId id);
  Status check(const Slot& slot, const Command& command) const;
  Status check_tokens(const Slot& slot, TokenPosition first, const std::vector<TokenId>& ids) const;
  Status check_rows(const Slot& slot, std::uint64_t end, TokenPosition count,
                    const kv::Bytes& rows) const;
  Status check_rank(const Slot& slot, const RankRequest& request) const;
  Status check_decode(const Slot& slot, const DecodeParams& params) const;
  void fail_slot(SlotId id, Error error);
  void decode_one(SlotId id, Duration step, std::uint32_t batch);
  void replay_one(SlotId id, Duration step);
  std::uint64_t chunk_class(TokenPosition chunk_begin) const;
  TokenPosition chunk_size(const Slot& slot, const Command& command) const;

  Clock& clock_;
  FakeEngineConfig config_;
  EngineEvents* events_ = nullptr;
  std::uint64_t weights_;
  std::map<SlotId, std::unique_ptr<Slot>> slots_;
  std::uint64_t last_slot_ = 0;
  SlotId last_prefilled_;       // chunks go round
  bool loaded_ = false;         // profile.load was waited for
  bool busy_ = false;           // a phase is running
  bool news_ = false;           // commands came while busy
  Duration transferred_{0};     // since the last step
  std::function<void()> held_;  // the end of a phase that came while not answering
  Timer timer_;
  std::array<std::optional<Error>, 10> fail_next_;
  bool refuse_reservations_ = false;
  bool answering_ = true;
  bool wrong_ = false;
  double slow_factor_ = 1;
  TimePoint slowed_until_{};
  Stats stats_;
  std::string last_failure_;
};

// What an undisturbed FakeEngine goes on to sample after params.tokens, the prompt: up to `tokens`
// ids, or the end of generation.
std::vector<TokenId> fake_continuation(const FakeEngineConfig& config, DecodeParams params,
                                       std::uint32_t tokens);

}  // namespace pallas::engine
