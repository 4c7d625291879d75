#pragma once
// The UE's side of one session: which gNB to attach at, under which epoch, and which tokens to
// believe. Pure: it sees events with their time and answers with actions; follower.h does the I/O.
//
//                start                 session event
//   (new) ─────────────▶ kConnecting ────────────────▶ kStreaming ──[DONE]──▶ kFinished
//                         ▲  │   ▲                        │   │
//             timer       │  │   └── handover, moved ─────┘   │ stream lost
//                  kWaiting ◀┴── failed ──────────────────────┘
//                         └── nobody answers, or refused for good ──▶ kFailed    stop() ──▶
//                         kStopped
//
// Guarantees, whatever the gNBs send: each index is delivered once and in order; a delivered token
// is never replaced; after an attach was granted nothing from an earlier stream is believed; no
// epoch is used twice.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "ue/stream_types.h"

namespace pallas::ue {

// One HTTP exchange that the machine asked for. 0 is never a stream.
using StreamNo = std::uint64_t;

struct ClientConfig {
  // Keeps the old cell's stream until the new one was granted. Off: the radio has left.
  bool keep_old_stream = false;
  Duration first_backoff = std::chrono::milliseconds(50);  // doubles up to max_backoff
  Duration max_backoff = std::chrono::seconds(1);
  Duration give_up = std::chrono::seconds(30);      // without any gNB that takes the session
  Duration open_give_up = std::chrono::seconds(5);  // the same for a new request
  // How long the radio's own word is awaited after `moved` named a gNB. 0: it is followed at once,
  // which is right for a UE that nobody tells of its radio, or tells without delay.
  Duration follow_moved_after{0};
  // The same after `moved` without a usable name; then the session is asked for here again.
  Duration moved_wait = std::chrono::milliseconds(500);
  // A handover before the session event waits this long for it, then asks the new cell afresh.
  Duration open_wait = std::chrono::seconds(1);
  int max_fruitless = 5;  // streams in a row that were granted and ended without a new token
};

// --- what the machine wants done ---
struct OpenStream {  // POST the request as the user made it
  StreamNo stream = 0;
  NodeId gnb;
};
struct AttachStream {  // POST /v1/sessions/{id}/attach; the rest of the body is in the machine
  StreamNo stream = 0;
  NodeId gnb;
  Epoch epoch;
  TokenIndex next_index = 0;
  NodeId last_node;  // where the UE was attached last
};
struct CloseStream {  // no further event of it is wanted
  StreamNo stream = 0;
};
struct WarmConnection {  // open an idle connection there; empty: drop it
  NodeId gnb;
};
struct DeleteSession {  // DELETE /v1/sessions/{id}
  NodeId gnb;
  NodeId last_node;
};
struct SessionOpened {};  // session() is known; once
struct DeliverToken {     // records().back() at that time; once per index, ascending
  TokenRecord token;
};
struct SessionFinished {  // once; then nothing
  std::string reason;
  std::string text;
  std::optional<Usage> usage;
};
struct SessionFailed {  // once; then nothing
  ApiError error;
};
using ClientAction =
    std::variant<OpenStream, AttachStream, CloseStream, WarmConnection, DeleteSession,
                 SessionOpened, DeliverToken, SessionFinished, SessionFailed>;

// One change of gNB, as this session lived it.
struct HandoverMark {
  NodeId from, to;
  Epoch epoch;  // under which the UE was last asked to be attached at `to`
  TimePoint executed_at;
  std::optional<TokenIndex> last_before;  // the last token that had arrived then
  // Of the latest attach there: asked for, and granted by the gNB's first event.
  std::optional<TimePoint> attach_sent_at{}, granted_at{};
};

struct ClientCounters {
  std::uint64_t duplicates = 0;      // an index again, with the same id: dropped
  std::uint64_t contradictions = 0;  // an index again, with another id: dropped
  std::uint64_t skipped = 0;         // an index from beyond the next one: the stream is dropped
  std::uint64_t fenced = 0;          // events of a stream that a later attach had ended
  std::uint64_t stale_answers = 0;   // 409 stale_epoch
  std::uint64_t retries = 0;         // attaches that were not caused by a handover
};

class ClientMachine {
 public:
  enum class State { kConnecting, kStreaming, kWaiting, kFinished, kFailed, kStopped };

  // `home`: the gNB of the UE's cell.
  ClientMachine(ClientConfig config, NodeId home);

  // Once, first.
  void start(TimePoint now);
  // The user does not want it any more.
  void stop();
  // The UE's radio is attached to a cell of this gNB now. Nothing happens if it was already, unless
  // `moved` had said otherwise.
  void on_handover(const NodeId& gnb, TimePoint now);

  // One event of a stream. Events of unknown or ended streams are counted and ignored.
  void on_event(StreamNo stream, StreamEvent event, TimePoint now);
  // The gNB answered with an error instead of a stream.
  void on_refused(StreamNo stream, const ApiError& error, TimePoint now);
  // It ended without [DONE], could not be opened, or is not a resumable stream (`why`).
  void on_lost(StreamNo stream, const Error& why, TimePoint now);
  void on_timer(TimePoint now);

  // In order; to be executed in order. Empty when nothing is to be done.
  std::vector<ClientAction> take_actions() { return std::exchange(actions_, {}); }
  // When on_timer wants to be called next.
  std::optional<TimePoint> next_timer() const { return timer_; }

  State state() const { return state_; }
  bool over() const { return state_ >= State::kFinished; }
  const NodeId& home() const { return home_; }
  // The latest pallas.session event; empty session id: none yet.
  const SessionEvent& session() const { return session_; }
  const std::vector<TokenRecord>& records() const { return records_; }
  const std::vector<HandoverMark>& handovers() const { return handovers_; }
  const ClientCounters& counters() const { return counters_; }
  Epoch highest_epoch() const { return highest_; }
  TokenIndex next_index() const { return static_cast<TokenIndex>(records_.size()); }

 private:
  struct Stream {
    NodeId gnb;
    Epoch epoch;
    bool opens = false;    // the first request, not an attach
    bool granted = false;  // its session event came
    bool delivered = false;
  };

  void on(StreamNo stream, SessionEvent event, TimePoint now);
  void on(StreamNo stream, StreamToken token, TimePoint now);
  void on(StreamNo stream, const NextEvent& event, TimePoint now);
  void on(StreamNo stream, const MovedEvent& event, TimePoint now);
  void on(StreamNo stream, const FinishEvent& event, TimePoint now);
  void on(StreamNo stream, const UsageEvent& event, TimePoint now);
  void on(StreamNo stream, const DoneEvent& event, TimePoint now);
  void on(StreamNo stream, const ErrorEvent& event, TimePoint now);
  void on(StreamNo, const IgnoredEvent&, TimePoint) {}

  bool believed(StreamNo stream) const;
  bool known() const { return !session_.session.value.empty(); }
  void connect(const NodeId& gnb, TimePoint now);
  void move_to(const NodeId& gnb, TimePoint executed_at, TimePoint now);
  void take_stale(const ApiError& error, TimePoint now);
  void forget(StreamNo stream);
  void close_all_but(StreamNo kept);
  void stream_failed(StreamNo stream, const ApiError& why, TimePoint now);
  void retry_later(const ApiError& why, TimePoint now);
  NodeId next_candidate() const;
  std::vector<NodeId> candidates() const;
  void take_epoch(Epoch epoch);
  void finish();
  void fail_with(ApiError error);
  void end(State state);

  ClientConfig config_;
  State state_ = State::kConnecting;
  NodeId home_;      // where the UE's radio is
  NodeId attached_;  // where a stream was granted last
  NodeId previous_;  // home before the last handover
  NodeId next_;      // announced by pallas.next
  SessionEvent session_;
  Epoch highest_;  // ever seen or tried
  std::map<StreamNo, Stream> streams_;
  StreamNo newest_ = 0;
  std::vector<TokenRecord> records_;
  std::vector<HandoverMark> handovers_;
  ClientCounters counters_;
  std::vector<ClientAction> actions_;

  // When a handover came before the session event.
  std::optional<TimePoint> move_pending_;
  NodeId moved_to_;              // named by `moved`, and not followed yet
  bool awaiting_radio_ = false;  // after `moved`
  bool mark_open_ = false;       // the last handover's attach was not granted yet
  std::optional<TimePoint> timer_;
  std::optional<TimePoint> trouble_since_;  // no stream granted since then
  int failures_ = 0;                        // in a row
  int fruitless_ = 0;
  int stale_in_row_ = 0;
  std::set<NodeId> denied_by_;  // cannot go on with it, by their own word since the last grant

  std::string finish_reason_, finish_text_;
  std::optional<Usage> usage_;
};

// "connecting", "streaming", ...
std::string_view to_string(ClientMachine::State state);

}  // namespace pallas::ue
