#pragma once
// The source's side of one handover: one preparation (attempt), its claim and its release.
//
//                     Acknowledge            claim                     paused
//   kRequested ---------------> kPreparing --------> kClaimed ----------------> kSynced --+
//       |  |                        |  ^  claim        ^  ^                      | status |
//       |  | Failure                |  +---------------+  |                      | again  |
//       |  v                 cancel |                     |                      +<-------+
//       | kOver <---CancelAck--- kCancelling ---claim-----+  (rule 6)            | Release
//       +--------------------------^                                             v
//                                                                              kOver
//
// A plan that sends by importance (partial handover) asks for the order of positions once the first
// ranges are on their way, and sends until then what is always sent: the last position, the first
// four, the latest two blocks. A block of scattered positions is exported range by range and leaves
// as one.
//
// Pure: it sends through SourcePort and never looks at a clock. The session's owner (node/) tells
// it what happened; it decides what is sent next (docs/protocol.md, "Source").

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "kv/geometry.h"
#include "kv/token_range.h"
#include "session/staged_rows.h"
#include "session/token_log.h"
#include "wire/messages.h"

namespace pallas::session {

class SourcePort {
 public:
  virtual ~SourcePort() = default;
  virtual void send(wire::Message message) = 0;
  virtual void send_kv(wire::KvBlock header, kv::Bytes rows) = 0;
  virtual std::uint64_t kv_backlog() const = 0;
  // How much may be exported and wait there (kv/link_ahead.h), bytes.
  virtual std::uint64_t link_ahead() const = 0;
  // Rows of `range`; they come back by SourceHandover::on_exported.
  virtual void export_rows(kv::TokenRange range) = 0;
  // The order in which positions matter; it comes back by SourceHandover::on_ranked, or never.
  virtual void rank() = 0;
  // False: this session sends whenever the link has room. True: the link is divided, and whose turn
  // it was has been told by send_next(), perhaps this one.
  virtual bool gives_turns() = 0;
};

class SourceHandover {
 public:
  enum class State { kRequested, kPreparing, kClaimed, kSynced, kCancelling, kOver };

  struct Setup {
    SessionId session;
    Attempt attempt;
    NodeId target;
    wire::Plan plan;
    kv::Geometry geometry;
    Lineage lineage;
    NodeId self;
  };
  // `log` and `port` outlive this object. `front`: the source's KV reaches [0, front).
  SourceHandover(Setup setup, const TokenLog& log, TokenPosition front, SourcePort& port);

  // Starts as the answer to a pull (RetrieveUeContextRequest) instead of a request: claimed at
  // once; the target holds KV of [0, held_front) already.
  void begin_retrieved(Epoch claim, TokenPosition held_front);

  State state() const { return state_; }
  const Attempt& attempt() const { return setup_.attempt; }
  const NodeId& target() const { return setup_.target; }
  const wire::Plan& plan() const { return setup_.plan; }
  Epoch claim_epoch() const { return claim_; }
  bool acknowledged() const { return acknowledged_; }
  std::uint64_t bytes_sent() const { return bytes_sent_; }
  TokenPosition target_front() const { return target_front_; }

  void on_acknowledged(const wire::HandoverRequestAcknowledge& ack);
  void on_progress(const wire::PreparationProgress& progress);
  // The log grew (the new ids were sampled by `by`); tells the target.
  void on_tokens(wire::FinishReason finish);
  // KV of the source reaches [0, front) now.
  void on_front(TokenPosition front);
  void on_exported(kv::TokenRange range, kv::Bytes rows);
  // The positions of [0, order.size()), the most important first.
  void on_ranked(std::vector<TokenPosition> order);
  void on_drained() { pump(); }

  // For whoever divides the link. Bytes of what would be sent now; 0: none.
  std::uint64_t wanted_bytes() const;
  // Asks for the rows of it; false when there is none.
  bool send_next();
  std::uint64_t exporting_bytes() const { return exporting_bytes_; }
  // Of the positions with KV here, those that the target has or that are on the way to it.
  TokenPosition covered() const;
  TokenPosition front() const { return front_; }
  // The target prepares, and lacks less than a block of the KV that is here.
  bool caught_up() const;
  // The target is in, or has taken, the very step that runs here.
  bool target_is_level() const { return follows_ && target_sampled_ > log_.size(); }

  // The UE is at the target under `epoch`. True: the owner must pause the engine and then call
  // on_paused; false: it is synchronized already, and the status was sent again.
  bool claim(Epoch epoch);
  // The engine stands, after a claim or because the radio says that the UE has left for good (rule
  // 1): sends SnStatusTransfer and what rows remain.
  void on_paused(TokenPosition n, wire::FinishReason finish, bool has_kv, Duration next_due);
  void cancel(wire::Cause cause);
  void on_cancel_acknowledged();
  void on_released() { state_ = State::kOver; }
  // The link came back and the target lists what it holds (rule 12); absent: it holds nothing.
  void on_resynchronized(const wire::HeldAttempt* held);

 private:
  void pump();
  bool may_send() const;
  std::optional<kv::TokenRange> next_range() const;
  kv::Coverage next_important() const;
  kv::Coverage next() const;
  void send_block(const kv::Coverage& positions, kv::Bytes rows);
  void send_status();

  Setup setup_;
  const TokenLog& log_;
  SourcePort& port_;
  State state_ = State::kRequested;
  bool acknowledged_ = false;
  bool sync_ = false;  // the status has been sent: partial blocks go out too
  Epoch claim_;
  TokenPosition front_;  // own KV
  TokenPosition told_;   // ids that the target was told
  TokenPosition target_front_ = 0;
  TokenPosition target_goal_ = 0;
  bool follows_ = false;              // the target computes what comes next itself
  TokenPosition target_sampled_ = 0;  // ids that it has, or is about to have
  kv::Coverage sent_;                 // on the wire, delivered, or held there before
  std::uint64_t exporting_bytes_ = 0;
  std::uint64_t bytes_sent_ = 0;
  bool rank_asked_ = false;
  bool ranked_ = false;
  std::vector<TokenPosition> order_;  // by importance
  std::size_t in_order_ = 0;          // all before it are sent
  // Blocks of several ranges whose rows are being exported, in order.
  struct Collected {
    kv::Coverage positions;
    std::vector<Rows> rows;
    bool expects(kv::TokenRange range) const { return positions.ranges()[rows.size()] == range; }
  };
  std::deque<Collected> collected_;
  wire::SnStatusTransfer status_;
};

}  // namespace pallas::session
