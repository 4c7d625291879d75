#pragma once
// The target's side of one handover: from the first row to full coverage of [0, n).
//
//              attach              SnStatusTransfer            front == n
//   kPreparing -------> kClaiming ----------------> kCompleting -----------> kComplete
//       |                   |                          ^
//       | SnStatusTransfer  | source lost              | source lost: the rest is rebuilt here
//       v                   +--------------------------+
//   kSettled (status known, UE not here yet) --attach--> kCompleting
//
// Where the plan is partial, rows are collected until the session can decode on a part of them:
//
//                 enough of them              [0, n) is here, or never will be   begin_whole
//   kCompleting ------------------> kOnPart ------------------------------------------------+
//        ^  attach_part                                                                     v
//        +------------------------- end_part ------------------------------------------ kFilling
//
// In kOnPart it decodes, and the node goes on passing rows. In kFilling they are attached in order
// in another slot, or in the same one above its first hole, and what was decoded meanwhile is
// replayed. Once nothing is decoded any more (end_part) kComplete means: the very KV of a full
// transfer.
//
// Two fronts work in it: prefill (or replay) raises the engine's front, rows that arrived above it
// wait in StagedRows and are attached when the front reaches them. Pure: commands go through
// TargetPort, at most one at a time; results come back by on_front() and on_shadow().
//
// Following: once its KV has caught up, the target goes with the source, one step for each id that
// comes. A step over the last known id samples the next one too, as the source does at that moment
// (shadow decoding); it is compared with the source's when that comes, and never emitted before the
// session is here. Where steps are exact and nothing but the engine sets the source's pace, one
// more step is built on that token before the source confirms it: two engines of equal speed are
// never in step for long, and what the target gains when it is the faster one keeps it ahead when
// it is the slower one. A token that differs takes the row behind it along. Steps over older ids,
// when it fell behind, are replays. So is the step over the last one where it would end after the
// source's next id has come: what it samples would be of no use, and a step without logits is
// shorter, so that the target falls into step again.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "kv/geometry.h"
#include "kv/token_range.h"
#include "session/staged_rows.h"
#include "session/token_log.h"
#include "wire/messages.h"

namespace pallas::session {

// How the source's ids come, and how long a step over the next one would take here.
struct Pace {
  Duration age{0};       // of the last id
  Duration interval{0};  // from one to the next, as seen; 0: not known
  Seconds step{0};       // with the other sessions that decode here now
};

class TargetPort {
 public:
  virtual ~TargetPort() = default;
  virtual void send(wire::Message message) = 0;  // to the source
  // Each ends with on_front.
  virtual void prefill(TokenPosition first, std::vector<TokenId> tokens) = 0;
  virtual void replay(TokenPosition first, std::vector<TokenId> tokens) = 0;
  virtual void attach_rows(Rows rows) = 0;
  virtual void attach_part(Scattered rows) = 0;
  // Decodes one token after all known ids and `ahead`, which follow them. Ends with on_shadow.
  virtual void decode_next(std::vector<TokenId> ahead) = 0;
  virtual void truncate(TokenPosition front) = 0;  // without an answer
  // How many positions may be computed in chunks now, before the UE is here. 0: none, and advance()
  // comes again when they may.
  virtual TokenPosition prefill_budget() = 0;
  // Steps may be spent on following now; asked before each.
  virtual bool may_follow() const = 0;
  virtual Pace pace() const = 0;
};

// What a step of decode_next() sampled.
struct ShadowToken {
  TokenPosition position = 0;
  TokenId id = 0;
  bool end_of_generation = false;
};

class TargetHandover {
 public:
  enum class State { kPreparing, kSettled, kClaiming, kCompleting, kOnPart, kFilling, kComplete };

  struct Setup {
    SessionId session;
    Attempt attempt;
    NodeId source;
    NodeId self;
    wire::Plan plan;
    wire::Consistency consistency = wire::Consistency::kPreferExact;
    bool exact_available = true;          // both engines are in one exactness class
    bool exact_generated_chunks = false;  // engine capability
    bool exact_single_step = false;       // engine capability
    bool holes = false;                   // engine capability
    TokenPosition last_position = 0;      // nothing is sampled beyond it
    TokenPosition run_tokens = 64;        // one prefill command at most
    Seconds step{0.02};                   // one replayed token
    Seconds interval{0};                  // between the source's tokens, where it is longer
    Seconds prefill_per_token{0.004};
    Seconds prefer_exact_wait{0.5};
    Seconds row_wire{0};  // one position's rows on the link; 0: not known, or instant
    TokenPosition block_tokens = 16;
    Lineage lineage;  // of the source's KV
  };
  // Counted for the handover report.
  struct Counts {
    TokenPosition recomputed = 0, replayed = 0, received = 0, overlap = 0, residual = 0;
    std::uint64_t bytes = 0;
    std::uint64_t blocks_refused = 0;
    // Steps that sampled; of their tokens those that the source's confirmed, or not. The rest was
    // used or never compared.
    TokenPosition shadow_tokens = 0, shadow_agreed = 0, shadow_differed = 0;
    // Partial: positions of [0, n) that were there when decoding began, 0 where all were, and how
    // many tokens were decoded on them and replayed.
    TokenPosition part_positions = 0, part_of = 0, part_replayed = 0;
    bool inexact = false;  // positions were computed in an unproven class, or rows of another
                           // lineage or of other ids were met
  };

  // `front`: KV that the slot holds already (retained, matched by hash). All references outlive it.
  TargetHandover(Setup setup, TokenLog& log, StagedRows& staged, TokenPosition front,
                 TargetPort& port);

  // No plan and no attempt yet: the answer to a pull will bring them (adopt_plan).
  void adopt_plan(const Attempt& attempt, const wire::Plan& plan, Lineage lineage,
                  bool exact_available);

  State state() const { return state_; }
  const Attempt& attempt() const { return setup_.attempt; }
  const NodeId& source() const { return setup_.source; }
  const wire::Plan& plan() const { return setup_.plan; }
  const Counts& counts() const { return counts_; }
  TokenPosition front() const { return front_; }
  bool busy() const { return busy_; }
  bool follows() const { return follows_; }
  bool source_lost() const { return source_lost_; }
  bool status_known() const { return status_known_; }
  Duration next_due() const { return next_due_; }
  wire::FinishReason finish() const { return finish_; }
  // Covered: [0, end of known ids - 1) is in the cache or staged.
  bool fronts_met() const;
  // The same but for less than a block, as it is between a new id and its row.
  bool fronts_about_to_meet() const;
  // How much of that is, 0 to 1.
  double fraction() const;
  wire::HeldAttempt held() const;
  wire::PreparationProgress progress() const;

  // Starts or goes on with whatever is next. Called by every input below, too.
  void advance();

  // kParse-like faults of the peer are errors; the session goes on without the message.
  Status on_tokens(const wire::TokenUpdate& update);
  // `rows` were checked against their checksum. Refused (kOutOfOrder, kInvalidArgument) when the
  // hash differs, the range lies above the known ids, or the size is not exact.
  Status on_rows(const wire::KvBlock& header, kv::Bytes rows);
  void on_status(const wire::SnStatusTransfer& status);
  // The engine's front after a command, `busy` of its time spent.
  void on_front(TokenPosition front, Duration busy);
  void on_attach();       // the UE is here
  void on_source_lost();  // nothing more will come from it
  // The running command's rows are no longer wanted; the log was cut to `end`. The KV is cut there
  // too, as soon as nothing runs.
  void on_log_cut(TokenPosition end);
  // The step of decode_next() is over.
  void on_shadow(const ShadowToken& token);
  // A step that an earlier preparation began still runs in the slot: its on_shadow comes first.
  // Called before anything else.
  void wait_for_step();
  // The tokens after all known ids that steps have sampled, in order; KV reaches up to the last of
  // them. They are the caller's then.
  std::vector<ShadowToken> take_shadow();

  // --- partial ---
  // The deadline of the plan has passed since the UE came.
  void on_deadline();
  // kOnPart: [0, held_whole()) was in the slot before the part, and below first_hole() nothing is
  // missing in it.
  TokenPosition held_whole() const { return held_whole_; }
  TokenPosition first_hole() const { return first_hole_; }
  // kOnPart, and the whole can be built: all rows are here, or no more will come.
  bool may_fill() const;
  // A slot whose KV reaches [0, front) is there to build it in; commands follow. The log may grow.
  void begin_whole(TokenPosition front);
  // kFilling: how many known positions the new slot lacks, and whether it has caught up as far as
  // it will: with no more than one left, or after twice the steps that it was behind at first.
  TokenPosition behind() const { return known_end() - std::min(front_, known_end()); }
  bool caught_up() const;
  // Nothing more is decoded in the old slot.
  void end_part();

 private:
  enum class Running { kNone, kPrefill, kReplay, kAttach, kShadow };

  TokenPosition known_end() const;  // KV can be computed or used below it
  TokenPosition chunk_end() const;  // chunks are in a proven class below it
  void run_prefill(TokenPosition end);
  TokenPosition share_of_gap() const;
  bool attach_staged();  // false: nothing lies at the front
  void run_replay(TokenPosition end);
  void recompute_rest(TokenPosition end);
  bool chunk_pays(TokenPosition end) const;
  bool replay_pays(TokenPosition end) const;
  bool steps_are_exact() const;
  void decide_to_follow();
  void follow();
  bool may_go_ahead() const;
  struct Lateness {
    Seconds late, usual;
  };
  Lateness lateness() const;
  void check_shadow();
  void cut_kv();
  bool may_collect() const;
  bool waits_for_part();
  bool enough_for_part() const;
  kv::Coverage covered() const;
  // The slot has all of the known ids below it: where it decodes on a part, what it had before.
  TokenPosition whole_front() const {
    return on_part_ && !fills_ ? held_whole_ : std::min(front_, log_.size());
  }

  Setup setup_;
  TokenLog& log_;
  StagedRows& staged_;
  TargetPort& port_;
  State state_ = State::kPreparing;
  TokenPosition front_;
  TokenPosition goal_;
  bool busy_ = false;
  Running running_ = Running::kNone;
  bool status_known_ = false;
  bool source_lost_ = false;
  bool kv_coming_ = true;  // the source has rows that it will send
  bool diverged_ = false;  // the UE's ids won over the source's
  bool follows_ = false;   // the source sends no rows from the front on
  bool refuted_ = false;   // a token differed where it could not, if all that is claimed were so
  std::vector<ShadowToken> ahead_;    // after the known ids, in order: not compared yet
  std::optional<TokenPosition> cut_;  // KV from there on belongs to other ids
  TokenPosition source_n_ = 0;
  bool collects_ = false;  // rows are not attached before there is enough for a part
  bool on_part_ = false;   // the part is attached
  bool fills_ = false;     // begin_whole() was called
  bool deadline_passed_ = false;
  TokenPosition held_whole_ = 0;
  TokenPosition first_hole_ = 0;
  std::optional<TokenPosition> patience_;  // steps that the new slot may still take to catch up
  Duration next_due_{0};
  wire::FinishReason finish_ = wire::FinishReason::kNone;
  Counts counts_;
  std::uint64_t prefill_ns_ = 0;
  TokenPosition prefill_tokens_ = 0;
};

}  // namespace pallas::session
