#pragma once
// One session as one node sees it. All of it belongs to Node::Impl, which the other .cpp files of
// this folder implement; docs/protocol.md, "Roles", has the table of transitions.
//
//        open                              attach                 coverage complete
//   (none) --> kServing <------------------------------------- kArriving <---+
//                | ^ |                                          ^   |        | attach
//        paused  | | | finish           attach (pull)           |   | no slot, or plan.relay
//   after claim  | | +--> kFinished     +-----------------------+   v        |
//                v | attach (pull)      |                       kRelaying    |
//            kFrozen -----------> kRetained --------> kMoved                 |
//                      release              retain_s     ^ log ends          |
//   (none) --> kMirror --HandoverRequest--> kPreparing --+-------------------+
//                 ^---- cancel, lease end -------'

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"
#include "mobility/predictor.h"
#include "node/move.h"
#include "node/ports.h"
#include "node/report.h"
#include "session/source_handover.h"
#include "session/staged_rows.h"
#include "session/target_handover.h"
#include "session/text_assembler.h"
#include "session/text_pieces.h"
#include "session/token_log.h"
#include "wire/messages.h"

namespace pallas::node {

enum class Role {
  kMirror,     // token log only: a later arrival costs a prefill, not the session
  kPreparing,  // target of an attempt; the UE is elsewhere
  kArriving,   // the UE is attached here; coverage of [0, n) is not complete
  kRelaying,   // the UE is attached here; another node decodes (rule 14)
  kServing,    // owner: this node's engine computes the session
  kFrozen,     // status sent; KV kept until UeContextRelease (rule 4)
  kRetained,   // KV kept as a loan to this node itself (rules 7, 13)
  kFinished,   // ended; log, finish reason and usage kept (rule 9)
  kMoved,      // tombstone: where it went (rule 4)
};
std::string_view to_string(Role role);

struct Session;

// What is known of a UE from the radio side.
struct Forecast {
  NodeId target;  // the gNB that serves the cell
  TimePoint at{};
  TimePoint valid_until{};
  std::optional<Duration> sigma;
  std::optional<double> confidence;
  bool oracle = false;
};
struct UeState {
  TimePoint heard{};  // when somebody last named it
  std::uint64_t prediction_seq = 0, handover_seq = 0, position_seq = 0;
  bool prediction_seen = false, handover_seen = false, position_seen = false;
  std::optional<mobility::PositionReport> last, previous;
  std::optional<Forecast> forecast;
  std::vector<Session*> sessions;  // of this UE here, in order of their creation
};

// The target of a partial handover while it decodes on a part of the KV. The session serves; this
// builds the whole.
struct BackFill {
  std::unique_ptr<session::TargetPort> port;
  std::unique_ptr<session::TargetHandover> target;
  // In which the whole is built: a second one, or the session's own, which stands meanwhile. None
  // while rows are collected.
  std::optional<engine::SlotId> slot;
  bool pausing = false;              // nothing more is decoded on the part, once its step has ended
  TokensPerSecond pace;              // at most, while the whole catches up; 0: as the session says
  TokenIndex begun_at = 0;           // generated tokens when decoding on the part began
  TimePoint attached_at{};           // of the UE
  Epoch epoch;                       // of the report
  std::uint64_t refused_before = 0;  // blocks that were counted already
};

// An operator's order to move the session, while it runs. Until the UE is told to go it counts as a
// prediction.
struct Move {
  explicit Move(Clock& clock) : latest(clock) {}
  MoveReport report;
  Forecast forecast;
  Timer latest;  // then the UE is told, or the target never answered
};

struct Session {
  Session(SessionId session, wire::SessionParams request, session::TokenLog ids, Clock& clock,
          const kv::Geometry& geometry, std::uint64_t& staged_in_all)
      : id(std::move(session)),
        params(std::move(request)),
        log(std::move(ids)),
        assembler(params.stop),
        staged(geometry, &staged_in_all),
        lease(clock),
        loan(clock),
        log_life(clock),
        grace(clock),
        repeat(clock),
        watch(clock),
        hold(clock),
        partial(clock),
        chunk(clock),
        plan_again(clock) {}

  SessionId id;
  wire::SessionParams params;
  UeState* ue = nullptr;  // null for a plain client
  session::TokenLog log;
  session::TextAssembler assembler;
  session::TextPieces texts;  // of each generated index, as the client sees it
  Role role = Role::kMirror;
  bool resumable = false;
  bool stopped = false;  // by DELETE (rule 10): nothing revives it
  wire::FinishReason finish = wire::FinishReason::kNone;

  // Attachment. `epoch` is the highest known; `holder` the node that it belongs to.
  Epoch epoch;
  NodeId holder;
  std::optional<StreamId> stream;
  TokenIndex next_to_write = 0;
  bool writing = true;  // false between RAN execution and what follows (rule 1)
  NodeId announced;     // next gNB as last told to the UE
  TimePoint last_write{};
  bool wrote = false;  // since the attach: an interval can be measured
  // The UE came without its ids, and may have others than the log: nothing is written or computed
  // until somebody says which it was given.
  bool doubtful = false;

  // Engine.
  std::optional<engine::SlotId> slot;
  TokenPosition front = 0;  // KV in the slot reaches [0, front)
  TokenPosition reserved = 0;
  bool decoding = false;
  bool stopping = false;    // pause() or abort() was asked for
  bool discards = false;    // until that is answered: the session was given away without the step
  bool prefilling = false;  // owner's prompt
  bool shadowing = false;   // one step of a shadow runs; it ends by itself
  TokenId step_input = 0;   // of that step, at position `front`
  // Sampled by the shadow before the handover, and due (max_token_rate) a little later: KV reaches
  // one position further than otherwise.
  std::optional<engine::Sampled> held;
  // Without a pace, the tokens that were in hand at the handover are in the log at once, and are
  // written `spread` apart up to this index: they cover the step that makes the next one.
  TokenIndex spread_until = 0;
  Duration spread{0};
  Lineage lineage;
  session::StagedRows staged;
  TimePoint last_sampled{};
  int rebuilds = 0;  // after engine failures

  // Set while the slot has holes.
  std::unique_ptr<BackFill> back_fill;

  // Hand-over. At most one of each.
  std::unique_ptr<session::SourcePort> source_port;
  std::unique_ptr<session::SourceHandover> outgoing;
  std::unique_ptr<session::TargetPort> target_port;
  std::unique_ptr<session::TargetHandover> incoming;
  TokenPosition agreed_counted = 0, differed_counted = 0;  // of `incoming`, in NodeStats
  BootId incoming_boot;                                    // of the source, at the request
  std::optional<NodeId> executing;  // RAN execution (or an order) towards that gNB is under way
  std::unique_ptr<Move> move;       // an operator's
  std::optional<NodeId> relay_to;   // owner: the UE is at that node, which relays
  NodeId elsewhere;                 // where the session is or went, as far as known; may be empty
  NodeId copy_of;                   // mirror: all of its ids are what that owner had
  int hops = 0;                     // Moved answers followed for the present claim
  TimePoint due{};                  // max_token_rate: next token at the handover
  NodeId release_to;                // the source that waits for UeContextRelease
  Attempt release_attempt;
  int releases = 0;                           // sent without an acknowledgement
  TimePoint expected_at{};                    // predicted handover, at the target
  TimePoint progress_at{};                    // at the target: when rows or the status last came
  TimePoint last_id_at{};                     // at the target: when the source's last id came
  Duration id_interval{0};                    // likewise: from one to the next, smoothed
  Seconds load{0};                            // at the target: T_load when the request came
  TimePoint lease_named{};                    // at the source: when a frame last renewed the lease
  std::map<NodeId, TokenPosition> mirrors;    // ids told (rule 16)
  std::map<NodeId, TimePoint> refused_until;  // targets that refused
  NodeId stands_in_for;       // `outgoing` prepares the fallback, since this target refused
  std::vector<NodeId> asked;  // peers whose list of attempts may name this session
  int redirected = 0;         // claims of that target answered with the fallback's name

  // The target's progress as last told, of the attempt that runs.
  struct Seen {
    TokenPosition tokens = 0;
    std::uint64_t busy_ns = 0;
    TimePoint at{};
    bool unfinished = true;  // it had positions left to prefill
  } seen;

  // Report of the arrival under way.
  std::optional<HandoverReport> report;
  double fraction = 0;  // of its positions that are covered here, as last seen since the attach
  OnDemand<TargetPhases> arriving;  // of the preparation or arrival under way
  OnDemand<SourcePhases> leaving;   // likewise, where the session leaves this node
  TimePoint attached_at{};
  std::optional<TimePoint> met_at;
  std::optional<TimePoint> requested_at;

  Timer lease;     // preparation (rule 8)
  Timer loan;      // frozen or retained KV
  Timer log_life;  // mirror, finished, moved
  Timer grace;     // no UE
  Timer repeat;    // HandoverSuccess, UeContextRelease, RetrieveUeContextRequest
  Timer watch;     // the source's answer, then its progress
  Timer hold;      // until `held` is due, or the next token that is written `spread` apart
  Timer partial;   // the deadline of a partial handover, then stalls of its back-filling
  Timer chunk;     // until a preparation may compute again
  Timer plan_again;
};

}  // namespace pallas::node
