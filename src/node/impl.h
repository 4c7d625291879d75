#pragma once
// Node's inside. One class, several files by subject:
//   node.cpp       facade, dispatch of messages, queries
//   serving.cpp    owner: requests, engine results, tokens to the UE
//   departure.cpp  source: preparation, claim, release
//   arrival.cpp    target: preparation, attach, pull, recovery
//   sharing.cpp    source: several sessions on the way to one peer
//   shadow.cpp     target: decoding beside the source
//   partial.cpp    target: decoding on a part of the KV, and how it becomes whole
//   fallback.cpp   where the target cannot: third node, relay, shared rates
//   radio.cpp      RAN events, planning
//   moves.cpp      moves by an operator's order
//   drain.cpp      a gNB that takes nothing new and ends
//   upkeep.cpp     stop, closed streams, peers up and down, loans

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "node/node.h"
#include "node/session.h"
#include "plan/ctho_group.h"
#include "plan/estimator.h"
#include "plan/link_sharing.h"
#include "plan/scheme.h"

namespace pallas::node {

// What decisions want to know of all sessions here.
struct Survey {
  TimePoint until{};           // then it is made anew
  std::uint32_t decoding = 0;  // served and decoding
  // When those whom nobody prepares yet will hand over, by gNB to prepare, ascending.
  std::unordered_map<NodeId, std::vector<TimePoint>> foretold;
};

class Node::Impl : public engine::EngineEvents {
 public:
  Impl(NodeConfig config, Ports ports, BootId boot, std::function<std::uint64_t()> random);
  ~Impl() override;

  // UE side.
  Status open(OpenRequest request, StreamId stream);
  Status attach(AttachRequest request, StreamId stream);
  Result<wire::SessionSnapshot> describe(const SessionId& id, const std::string& token) const;
  void on_stream_closed(StreamId stream);
  Status stop(const SessionId& id, const std::string& token, const NodeId& last_node);

  // RAN side.
  Status on_prediction(const mobility::Prediction& prediction);
  Status on_handover(const mobility::HandoverEvent& event);
  Status on_position(const mobility::PositionReport& report);

  // Peers.
  void on_peer_up(const PeerHello& hello);
  void on_peer_down(const NodeId& peer);
  void on_message(const NodeId& peer, wire::Message& message);
  void on_kv(const NodeId& peer, const wire::KvBlock& header, kv::Bytes rows);
  void on_kv_drained(const NodeId& peer);
  std::vector<wire::HeldAttempt> held_from(const NodeId& peer) const;

  // engine::EngineEvents.
  void on_prefilled(engine::SlotId slot, TokenPosition front, Duration busy) override;
  void on_replayed(engine::SlotId slot, TokenPosition front, Duration busy) override;
  void on_attached(engine::SlotId slot, TokenPosition front) override;
  void on_sampled(engine::SlotId slot, const engine::Sampled& token) override;
  void on_paused(engine::SlotId slot, TokenPosition front) override;
  void on_exported(engine::SlotId slot, kv::TokenRange range, kv::Bytes rows) override;
  void on_truncated(engine::SlotId slot, TokenPosition front) override;
  void on_ranked(engine::SlotId slot, std::vector<double> scores) override;
  void on_failed(engine::SlotId slot, const Error& error) override;

  std::vector<SessionInfo> sessions() const;
  void for_each_session(const std::function<void(const Session&)>& look) const;
  Session* find(const SessionId& id) const;
  NodeStats stats() const;
  Result<MoveReport> move(const MoveOrder& order);
  std::optional<MoveReport> moved(const std::string& id) const;
  Status drain(const NodeId& to);
  DrainStatus drain_status() const;
  std::uint32_t cut_off();
  bool draining() const { return draining_; }

  NodeConfig config;
  Ports ports;
  BootId boot;
  std::vector<HandoverReport> reports;
  std::vector<DepartureReport> departures;

 private:
  struct PeerState {
    BootId boot;
    const wire::Compatibility* compatibility = nullptr;  // in records_
    bool up = false;
    std::uint32_t minor = 0;
    double spared_share = 1;   // its own word (ResourceStatus)
    double told_share = 1;     // ours to it
    bool holes = false;        // it takes scattered rows
    double profiled_rate = 0;  // its own word (HandoverRequestAcknowledge), 0: not heard yet
    std::optional<plan::Ewma> prefill_rate;
    // Seconds that a prefill there takes for each that its engine spends on it (>= 1): what other
    // work it has. Forgotten when old.
    std::optional<plan::Ewma> contention;
    TimePoint contention_at{};
    TimePoint rows_at{};             // when the last rows came from it
    TimePoint rows_sent_at{};        // when the last were given to the link
    bool resident = false;           // its model computes already: T_load is 0
    std::vector<Session*> attempts;  // sessions on the way to it, and some that were; null: ended
    std::optional<plan::LinkSharer> sharer;  // of the link to it, where it is divided
    std::optional<plan::CthoGroup> group;    // who moved there last, under multi-user ctHO
  };

  // A source that answered but then sends nothing that the coverage needs.
  static constexpr Duration kStall = std::chrono::seconds(5);
  // UEs that are remembered; those with sessions here are, however many.
  static constexpr std::size_t kMaxUes = 8192;

  // --- serving.cpp ---
  void start_serving(Session& s, Duration first_due);
  void sync_text(Session& s);
  void forget_text(Session& s);
  void tell_tokens(Session& s);
  void pump_stream(Session& s);
  void finish_session(Session& s, wire::FinishReason reason);
  void fail_session(Session& s, const Error& error);
  void rebuild(Session& s);
  void set_stream(Session& s, StreamId stream, TokenIndex next);
  void drop_stream(Session& s, const NodeId& next);
  engine::DecodeParams decode_params(const Session& s, Duration first_due) const;
  TokenPosition last_position(const Session& s) const;
  void sampled(Session& s, const engine::Sampled& token);

  // --- departure.cpp ---
  void start_preparation(Session& s, const NodeId& target, const kv::TransferPlan& plan,
                         Duration expected_in, bool oracle);
  void make_outgoing(Session& s, const NodeId& target, const kv::TransferPlan& plan);
  void cancel_outgoing(Session& s, wire::Cause cause);
  static bool claims_from(const Session& s, const NodeId& peer);
  void answer_stale(const Session& s, const NodeId& peer);
  void claimed_by(Session& s, const NodeId& peer, Epoch epoch);
  void freeze(Session& s);
  void stop_engine(Session& s);
  void frozen(Session& s);
  void keep_frozen(Session& s);
  void close_departure(Session& s);
  plan::Decision decide_pull(const plan::PlanInput& input, bool without_kv) const;
  Duration next_due(const Session& s) const;
  wire::SessionSnapshot snapshot(const Session& s) const;
  void handle(const NodeId& peer, wire::HandoverRequestAcknowledge& m);
  void handle(const NodeId& peer, wire::HandoverPreparationFailure& m);
  void handle(const NodeId& peer, wire::PreparationProgress& m);
  void handle(const NodeId& peer, wire::HandoverSuccess& m);
  void handle(const NodeId& peer, wire::UeContextRelease& m);
  void handle(const NodeId& peer, wire::HandoverCancelAck& m);
  void handle(const NodeId& peer, wire::RetrieveUeContextRequest& m);

  // --- sharing.cpp ---
  bool divide_link(const NodeId& peer);
  bool take_turns(const NodeId& peer);
  std::uint64_t link_ahead(const NodeId& peer) const;
  void divide_links();
  plan::LinkUser link_user(Session& s) const;
  TimePoint handover_time(Session& s) const;
  std::optional<plan::CommonSplit> common_split(const Session& s, const NodeId& target,
                                                double prefill_rate);

  // --- arrival.cpp ---
  void handle(const NodeId& peer, wire::HandoverRequest& m);
  void handle(const NodeId& peer, wire::TokenUpdate& m);
  void handle(const NodeId& peer, wire::SnStatusTransfer& m);
  void handle(const NodeId& peer, wire::UeContextReleaseAck& m);
  void handle(const NodeId& peer, wire::HandoverCancel& m);
  void handle(const NodeId& peer, wire::LeaseRenew& m);
  void handle(const NodeId& peer, wire::RetrieveUeContextResponse& m);
  void handle(const NodeId& peer, wire::RetrieveUeContextFailure& m);
  void handle(const NodeId& peer, wire::Moved& m);
  void handle(const NodeId& peer, wire::StaleEpoch& m);
  // These belong to the link, not to a session.
  void handle(const NodeId&, wire::Hello&) {}
  void handle(const NodeId&, wire::Credit&) {}
  void handle(const NodeId&, wire::KeepAlive&) {}
  void handle(const NodeId&, wire::KvBlock&) {}
  void handle(const NodeId& peer, wire::ErrorMessage& m);
  void begin_incoming(Session& s, const NodeId& source, const Attempt& attempt,
                      const kv::TransferPlan& plan, Lineage lineage, bool exact);
  Status ensure_slot(Session& s, TokenPosition tokens);
  Result<engine::SlotId> reserve_slot(TokenPosition tokens);
  std::optional<TokenPosition> usable_front(const Session& s, const session::TokenLog& other,
                                            Lineage lineage) const;
  void forget_end(Session& s);
  void cut_log(Session& s, TokenPosition end);
  void adopt_ids(Session& s, const UeContext& context, const NodeId& last_node);
  bool answers_doubt(Session& s, const wire::SessionSnapshot& snapshot);
  void ask_for_ids(Session& s);
  bool was_here(const Session& s, const AttachRequest& request) const;
  bool another_served(const Session& s, const AttachRequest& request) const;
  bool served_elsewhere(const Session& s, const UeContext& context) const;
  void give_way(Session& s, const NodeId& to);
  bool merge_snapshot(Session& s, const wire::SessionSnapshot& snapshot);
  static void raise_epoch(Session& s, Epoch epoch);
  void merge(Session& s, const wire::SessionSnapshot& snapshot, session::TokenLog log);
  void take_over(Session& s, const wire::SessionSnapshot& snapshot, session::TokenLog log);
  bool take_ids(Session& s, const wire::TokenUpdate& m);
  void mirror(Session& s, const NodeId& peer, const wire::TokenUpdate& m);
  static bool ends_with(const Session& s, TokenPosition first, std::span<const TokenId> ids,
                        wire::FinishReason finish);
  void claim(Session& s);  // tell the source that the UE is here
  void pull(Session& s, const NodeId& from);
  void await_source(Session& s, const NodeId& source);
  void recover(Session& s, const char* from);
  void after_target(Session& s);  // progress, completion
  void activate(Session& s);
  void open_report(Session& s, const AttachRequest& request);
  void note_fraction(Session& s);
  void note_first_token(Session& s);
  void close_report(Session& s);
  void become_relay(Session& s, const NodeId& owner);
  void fence(Session& s, Epoch epoch, const NodeId& node);
  void send_release(Session& s);
  void renew_lease(Session& s);
  void drop_preparation(Session& s, bool keep_kv);
  void renew_incoming(Session& s);
  void watch_progress(Session& s);
  void await_progress(Session& s);
  bool waits_for_turn(const NodeId& source, TimePoint since) const;
  bool waits_for_link(const Session& s) const;
  static void count(HandoverReport& report, const session::TargetHandover::Counts& counts);
  void arrived_finished(Session& s);
  wire::FinishReason finish_of(Session& s);

  // --- residents.cpp ---
  Seconds residents_interval();
  TokenPosition prefill_budget(Session& s);
  double prefill_share();
  void tell_resources();
  void tell_resources(const NodeId& peer);
  void handle(const NodeId& peer, wire::ResourceStatus& m);
  TimePoint chunk_after_{};        // when a preparation may compute its next chunk
  Seconds residents_interval_{0};  // as it was lately
  TimePoint residents_until_{};    // then it is looked at anew
  double told_share_ = 1;

  // --- shadow.cpp ---
  bool may_follow(const Session& s) const;
  void note_id(Session& s);
  session::Pace pace(const Session& s) const;
  void decode_shadow(Session& s, std::vector<TokenId> ahead);
  bool step_input_holds(const Session& s) const;
  void trim_ahead(Session& s);
  void shadowed(Session& s, const engine::Sampled& token);
  void count_shadow(Session& s);
  void go_on_with(Session& s, const std::vector<session::ShadowToken>& tokens);
  void emit_held(Session& s);
  std::optional<Duration> write_wait(const Session& s) const;
  void write_own(Session& s);
  void drop_held(Session& s);
  void trim_kv(Session& s);

  // --- partial.cpp ---
  bool may_be_partial(const Session& s, const NodeId& target) const;
  void ask_for_order(Session& s);
  void arm_deadline(Session& s);
  void begin_back_fill(Session& s);
  void rows_filled_in(Session& s, TokenPosition count);
  void back_filled(Session& s);  // something came or was computed
  void decoded_on_part(Session& s);
  void computed_whole(Session& s, TokenPosition front, Duration busy);
  void build_in(Session& s, engine::SlotId slot, TokenPosition front);
  void slow_part(Session& s);
  void stop_part(Session& s);
  void part_ended(Session& s);
  void change_over(Session& s);
  void end_back_fill(Session& s);
  void watch_back_fill(Session& s);
  void await_back_fill(Session& s);
  void lose_back_fill_source(Session& s);
  bool fills(const Session& s, engine::SlotId slot) const;
  HandoverReport* partial_report(Session& s, const BackFill& fill);
  TargetPhases* partial_phases(Session& s, const BackFill& fill);

  // --- fallback.cpp ---
  int preparing_at(const PeerState& peer, const NodeId& name, const Session& besides) const;
  bool may_ask(const Session& s, const NodeId& target) const;
  NodeId prepared_for(const Session& s, const NodeId& target) const;
  bool has_stand_in(const Session& s, const NodeId& target) const;
  void lend_to(Session& s, const NodeId& peer);
  void tell_relay(Session& s);
  void decode_for(Session& s, const NodeId& relay, Epoch epoch);

  // --- radio.cpp ---
  void evaluate(Session& s);
  void evaluate_all(const UeState& ue);
  const Forecast* forecast_of(const Session& s) const;
  double prefill_rate_at(const NodeId& target, const Session& s) const;
  bool prompt_only(const Session& s) const;
  const Survey& survey();
  int foretold_with(const NodeId& target, TimePoint at, Duration window);
  plan::Decision decide_with_company(const Session& s, const NodeId& target, TimePoint at,
                                     plan::PlanInput input);
  plan::PlanInput plan_input(const Session& s, const NodeId& target, Duration remaining,
                             bool at_handover);
  void mirror_to(Session& s, const NodeId& peer);
  void prepare_at_handover(Session& s, const NodeId& target);
  void stop_for_claim(Session& s);
  const NodeId& node_of(const CellId& cell) const;
  Status take_seq(const char* what, std::uint64_t seq, std::uint64_t& last, bool& seen) const;
  void announce(Session& s, const NodeId& next);

  // --- moves.cpp ---
  Status may_move(const Session& s, const NodeId& target) const;
  Status client_follows(const Session& s) const;
  plan::Decision plan_move(const Session& s, const NodeId& target);
  void move_on(Session& s);
  void move_is_late(Session& s);
  void tell_to_go(Session& s);
  void move_claimed(Session& s);
  void end_move(Session& s, MoveState state, std::string reason = "");
  static bool prepares_move(const Session& s);

  // --- drain.cpp ---
  void drain_on();
  bool takes_nothing(const Session* s) const;
  Status has_place(const OpenRequest& request) const;

  // --- upkeep.cpp ---
  // Runs `action` on the session after `delay`. The timer is the session's own, so it ends with it.
  template <class Action>
  void arm(Timer& timer, Duration delay, Session& s, Action action) {
    timer.arm(delay, [live = &s, action] { action(*live); });
  }
  UeState& ue_of(const UeId& id);
  void forget_ues();
  void arm_log_life(Session& s);
  Session* find(const engine::SlotId& slot) const;
  Session& emplace(SessionId id, wire::SessionParams params, session::TokenLog log);
  bool room_for_session();
  void erase(Session& s);
  void release_slot(Session& s);
  void retain(Session& s, Duration how_long);
  bool evict_one_retained();
  void become_mirror(Session& s);
  void become_moved(Session& s, const NodeId& where);
  void end_everywhere(Session& s);
  void send_stop(const Session& s, const NodeId& to);
  void begin_grace(Session& s);
  void leave_lender(const SessionId& id, Epoch epoch, const NodeId& lender);
  void lapse(Session& s);
  void housekeeping();
  const wire::Compatibility& kept_record(const wire::Compatibility& record);
  bool stale(const Session& s, Epoch epoch, const NodeId& peer) const;

  class TargetPortOf;

  std::function<std::uint64_t()> random_;
  std::uint64_t staged_bytes_ = 0;  // of all sessions, which keep it
  std::unique_ptr<plan::Scheme> scheme_;
  std::unordered_map<SessionId, std::unique_ptr<Session>> sessions_;
  std::unordered_map<engine::SlotId, Session*> by_slot_;
  std::optional<Survey> survey_;
  std::unordered_map<StreamId, Session*> by_stream_;
  std::unordered_map<UeId, UeState> ues_;
  std::unordered_map<CellId, NodeId> gnb_of_cell_;  // config.cells, to look up
  std::unordered_map<NodeId, PeerState> peers_;
  std::vector<std::unique_ptr<const wire::Compatibility>> records_;  // of peers, each but once
  std::uint64_t attempt_counter_ = 0;
  std::uint64_t move_counter_ = 0;
  std::deque<MoveReport> ended_moves_;
  NodeStats stats_;
  bool resident_ = false;  // the engine has computed: the model is loaded
  wire::Compatibility compatibility_;
  Timer housekeeping_timer_;
  bool draining_ = false;
  NodeId drain_to_;
  std::uint64_t moved_before_ = 0, refused_before_ = 0;  // moves, when draining began
  Timer drain_timer_;
};

engine::SamplingParams sampling_of(const wire::SessionParams& params);
wire::Compatibility to_wire(const engine::CompatibilityRecord& record);
engine::CompatibilityRecord from_wire(const wire::Compatibility& record);

}  // namespace pallas::node
