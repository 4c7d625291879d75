#pragma once
// One gNB: sessions x plans x ports. Single-threaded; no I/O.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/units.h"
#include "engine/engine.h"
#include "mobility/cells.h"
#include "mobility/ran_events.h"
#include "node/config.h"
#include "node/move.h"
#include "node/ports.h"
#include "node/report.h"
#include "wire/messages.h"

namespace pallas::node {

// A new session, as parsed from an OpenAI request. params.seed is drawn already; completion_id,
// created_unix_s and resume_token are filled by the border (it has the random source and the date).
struct OpenRequest {
  SessionId session;  // fresh, 128 random bits
  wire::SessionParams params;
  std::vector<TokenId> prompt;  // >= 1 token
  bool resumable = false;       // the client opted in to resume: the session may move
};

// What the UE brings so that even a node that knows nothing can go on (design.md, section 5).
// `params` and `prompt` are used at a node that does not know the session, and only there.
struct UeContext {
  wire::SessionParams params;
  std::vector<TokenId> prompt;
  std::vector<TokenId> generated;  // all ids delivered so far, from index 0
  std::vector<std::pair<NodeId, std::uint32_t>> sampled_by;  // run-length, for `generated`
};

struct AttachRequest {
  SessionId session;
  std::string resume_token;
  Epoch epoch;                // 1 + the highest the UE ever saw or tried
  TokenIndex next_index = 0;  // it has all indices below
  NodeId last_node;           // where it was attached last, may be empty
  std::optional<UeContext> context;
};

struct Session;  // node/session.h

struct SessionInfo {  // GET /v1/sessions
  SessionId session;
  std::string tenant;
  UeId ue;
  std::string role;  // docs/protocol.md names them
  Epoch epoch;
  TokenPosition prompt_tokens = 0;
  TokenPosition tokens = 0;
  TokenPosition kv_front = 0;
  std::string peer;                 // target of a running preparation, or where it went
  double window_s = 0;              // of a running preparation: its planned T_w
  bool partial = false;             // it decodes on a part of its KV
  TokenPosition rows_received = 0;  // of a preparation at its target: KV rows that came so far
  // Of the owner, while a handover is foreseen.
  TokenPosition target_front = 0;  // the target's prefill front
  double handover_in_s = -1;       // predicted time to it; below 0: none foreseen
  std::string next;                // the gNB that it goes to
};

// How far a gNB is that takes nothing new and ends.
struct DrainStatus {
  bool draining = false;
  NodeId to;                                             // where sessions are moved; may be empty
  std::uint32_t serving = 0, arriving = 0, leaving = 0;  // sessions; leaving: their KV is awaited
  std::uint64_t moved = 0, refused = 0;                  // moves since it began

  std::uint32_t left() const { return serving + arriving + leaving; }
};

// Counters and gauges for /metrics; names and help texts in http/metrics.cpp.
struct NodeStats {
  std::uint64_t sessions_opened = 0, sessions_finished = 0, sessions_failed = 0;
  std::uint64_t tokens_emitted = 0, tokens_sampled = 0;
  std::uint64_t slo_misses = 0;  // intervals between emitted tokens above slo_ms
  std::uint64_t preparations_requested = 0, preparations_successful = 0, preparations_failed = 0;
  std::uint64_t preparations_cancelled = 0, leases_expired = 0;
  std::uint64_t executions_requested = 0, executions_successful = 0;
  std::uint64_t retrievals = 0, recoveries = 0, relays = 0, stale_epochs = 0;
  std::uint64_t kv_bytes_sent = 0, kv_bytes_received = 0, kv_blocks_refused = 0;
  std::uint64_t tokens_recomputed = 0, tokens_replayed = 0;
  std::uint64_t shadow_tokens = 0, shadow_agreed = 0, shadow_differed = 0, shadow_used = 0;
  std::uint64_t partial_handovers = 0, partial_completed = 0;
  std::uint64_t partial_tokens = 0, partial_tokens_replayed = 0;
  std::uint64_t sessions_partial = 0;
  std::uint64_t sessions_live = 0, sessions_prepared = 0, sessions_frozen = 0,
                sessions_retained = 0;
  std::uint64_t staged_bytes = 0;  // rows waiting in host memory
  // KV in the engine's cache by what it is for, and what is kept to write tokens again.
  std::uint64_t kv_live_bytes = 0, kv_prepared_bytes = 0, kv_kept_bytes = 0, log_bytes = 0;
  std::uint64_t free_slots = 0;
  std::uint64_t moves_ordered = 0, moves_completed = 0, moves_failed = 0;
  std::uint64_t opens_refused = 0;  // requests: no slot, no place, a tenant's limit, draining
  std::uint64_t preparations_refused = 0;  // of others
};

class Node : public PeerEvents {
 public:
  struct Ports {
    Clock* clock;
    engine::Engine* engine;
    const engine::TextCodec* text;
    UeLink* ue;
    PeerLink* peers;
    const mobility::CellLayout* cells;  // may be null: predictions from outside only
  };
  // `random` draws 64 bits (boot-time seeds of lineages); deterministic in tests.
  Node(NodeConfig config, Ports ports, BootId boot, std::function<std::uint64_t()> random);
  ~Node() override;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const NodeConfig& config() const;
  const engine::EngineInfo& engine_info() const;
  wire::Compatibility compatibility() const;

  // --- UE side (http) ---
  // Tokens follow on `stream`. Fails without any effect.
  Status open(OpenRequest request, StreamId stream);
  // Attaches the UE here. On success the stream gets every index from next_index on, as soon as
  // this node may emit it (protocol rules 2, 5). Errors: kStaleEpoch, kUnauthorized, kNotFound (no
  // context given and none found), kInvalidArgument.
  Status attach(AttachRequest request, StreamId stream);
  // GET /v1/sessions/{id}/events: what a resume needs. kNotFound also for a wrong token.
  Result<wire::SessionSnapshot> describe(const SessionId& session, const std::string& token) const;
  void on_stream_closed(StreamId stream);
  // DELETE: idempotent, follows tombstones (rule 10). `token` empty: the operator. `last_node` may
  // name where it was last, for a node that knows nothing.
  Status stop(const SessionId& session, const std::string& token, const NodeId& last_node);

  // --- RAN side (http) ---
  Status on_prediction(const mobility::Prediction& prediction);
  Status on_handover(const mobility::HandoverEvent& event);
  Status on_position(const mobility::PositionReport& report);

  // --- peers (net) ---
  void on_peer_up(const PeerHello& hello) override;
  void on_peer_down(const NodeId& peer) override;
  void on_message(const NodeId& peer, wire::Message message) override;
  void on_kv(const NodeId& peer, const wire::KvBlock& header, kv::Bytes rows) override;
  void on_kv_drained(const NodeId& peer) override;
  // For Hello after a reconnect (rule 12).
  std::vector<wire::HeldAttempt> held_from(const NodeId& peer) const override;

  // --- operator ---
  // Moves a session that is served here to a peer. While a move runs the same order is answered
  // with its report, and nothing begins anew. Errors, all without any effect: kNotFound (no such
  // session), kInvalidArgument (the target is this gNB or no peer), kNotOwner, kAlreadyExists
  // (another move or a handover is under way), kIncompatible, kUnreachable (the target's link is
  // down), kResourceExhausted (the target refused within the last second), kOutOfOrder (the session
  // cannot move now, or its client cannot follow it).
  Result<MoveReport> move(const MoveOrder& order);
  // One that runs, or of those that ended last (max_handover_reports).
  std::optional<MoveReport> moved(const std::string& id) const;
  // From now on nothing new is taken: requests and preparations are refused, preparations that run
  // here go back to their sources. Sessions are moved to `to`, a few at a time, or may end here.
  // Again: changes `to`. kInvalidArgument when that is no peer.
  Status drain(const NodeId& to);
  DrainStatus drain_status() const;
  // The end of waiting: UEs that can resume are sent to `to`, or anywhere; others get an error. How
  // many sessions lost their stream so.
  std::uint32_t cut_off();
  std::vector<SessionInfo> sessions() const;
  // For those who check what must always hold (sim/invariants.h): all of it, in no particular
  // order.
  void for_each_session(const std::function<void(const Session&)>& look) const;
  const Session* find_session(const SessionId& session) const;  // null: not known here
  const std::vector<HandoverReport>& handovers() const;         // newest last, bounded
  const std::vector<DepartureReport>& departures() const;       // likewise
  NodeStats stats() const;
  bool ready() const;  // takes new sessions

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pallas::node
