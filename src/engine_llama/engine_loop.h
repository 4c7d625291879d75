#pragma once
// What the engine thread does: drain the mailbox, move rows, run one step, emit.
//
// A step is one batch of all decoding sessions that are due and of one token of each replay, then
// at most one prefill chunk of one session, in turn. Rows move between steps, bounded in bytes.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine_llama/decoder.h"
#include "engine_llama/mailbox.h"
#include "engine_llama/messages.h"
#include "engine_llama/sampler.h"

namespace pallas::engine {

struct LoopConfig {
  TokenPosition chunk_tokens = 32;
  Duration step_budget{0};
  std::uint64_t transfer_bytes_per_step = 0;
  Profile profile;  // for how long a chunk will take
};

// Lives on the engine thread.
class EngineLoop {
 public:
  using Emit = std::function<void(std::vector<Event>)>;  // takes the events of one round

  EngineLoop(const LlamaModel& model, Decoder& decoder, LoopConfig config, Mailbox& mailbox,
             Emit emit);
  // Until the mailbox is closed.
  void run();

 private:
  struct Decoding {
    DecodeParams params;
    TokenSampler sampler;
    TimePoint first_due;
    std::uint64_t sampled = 0;

    TimePoint due() const;
  };
  struct Slot {
    std::uint32_t stream = 0;
    TokenPosition reserved = 0;
    TokenPosition front = 0;
    bool failed = false;               // only Release follows
    std::optional<Decoding> decoding;  // none: idle, or at work on the head of the queue
    // Of the decode that reached its limit last: the next one often goes on from there.
    std::optional<Decoding> ended;
    std::deque<Command> queue;      // commands of this slot in order
    bool begun = false;             // the head was checked and waits for steps or bytes
    TokenPosition done = 0;         // tokens of the head that are finished
    kv::Bytes rows;                 // of an export that is under way
    std::optional<RankMean> ranks;  // of a ranking by keys that is under way; `done` counts layers
    bool rows_moved = false;        // and whoever had them moved has more to say
    bool steps_singly = false;      // its decode of one step has ended, another is likely
  };

  void take_commands();
  void accept(Command command);
  void settle_all();
  void await_commands();
  // Runs commands at the head of the queue until one needs a step, or the bytes are used up.
  void settle(SlotId id, Slot& slot);
  Status check(const Slot& slot, const Command& command) const;
  Status check_ids(const Slot& slot, TokenPosition first, const std::vector<TokenId>& ids) const;
  Status begin_decode(Slot& slot, command::Decode& command);
  Result<TokenSampler> sampler_for(Slot& slot, const DecodeParams& params) const;
  // Each answers false when more remains.
  bool move_rows(SlotId id, Slot& slot, Command& head);
  bool scatter_rows(SlotId id, Slot& slot, const command::Scatter& command);
  bool rank_positions(SlotId id, Slot& slot, const RankRequest& request);
  void pop(Slot& slot);
  void fail_slot(SlotId id, Slot& slot, Error error);

  void decode_batch();
  Result<Sampled> sample(Slot& slot, std::size_t row);  // without step and batch
  Status check_rank(const Slot& slot, const RankRequest& request) const;
  void prefill_chunk();
  void observe_window(SlotId id, Slot& slot);
  TokenPosition chunk_size(const Slot& slot, std::size_t remaining) const;
  std::optional<TimePoint> next_due() const;
  bool has_work() const;
  void emit(SlotId id, decltype(Event::what) what);
  void flush();

  const LlamaModel& model_;
  Decoder& decoder_;
  LoopConfig config_;
  Mailbox& mailbox_;
  Emit emit_;
  std::map<SlotId, Slot> slots_;
  std::vector<bool> stream_taken_;
  std::vector<Command> incoming_;
  std::vector<Event> events_;
  std::uint64_t bytes_left_ = 0;  // of this round's transfers
  SlotId last_prefilled_;
  double chunk_cost_ = 1;  // measured duration of chunks over the profile's, smoothed
};

}  // namespace pallas::engine
