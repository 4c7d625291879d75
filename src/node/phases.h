#pragma once
// When the phases of one handover happened at one node, by its own clock: fixed fields that cost a
// clock reading each. docs/client-api.md says what each means; for_each_phase is the one list of
// names. A boundary "before the handover" is the first sign of it at that node: RAN execution or
// the claim at the source, the UE's attach at the target.

#include <cstdint>
#include <memory>
#include <utility>

#include "base/units.h"

namespace pallas::node {

// An instant that may not have come yet.
class Mark {
 public:
  void set(TimePoint at) { at_ = at; }
  // Only the first time counts.
  void first(TimePoint at) {
    if (!happened()) at_ = at;
  }
  bool happened() const { return at_ != TimePoint::min(); }
  TimePoint at() const { return at_; }  // of one that happened

 private:
  TimePoint at_ = TimePoint::min();
};

// From the beginning of the first to the end of the last of several like things.
struct Stretch {
  Mark begin, end;
  std::uint32_t count = 0;  // of things that ended
  TokenPosition tokens = 0;
  Duration busy{0};  // engine time, where the engine tells

  void started(TimePoint at) { begin.first(at); }
  void ended(TimePoint at, TokenPosition how_many, Duration engine = Duration{0}) {
    begin.first(at);
    end.set(at);
    ++count;
    tokens += how_many;
    busy += engine;
  }
};

struct SourcePhases {
  Mark request_sent, acknowledged;
  Stretch rows_sent;  // blocks given to the link before the handover
  Mark ran_execution, ran_completed;
  Mark claim_received;  // HandoverSuccess or RetrieveUeContextRequest
  Mark response_sent;   // RetrieveUeContextResponse
  Mark step_ended;      // the engine stands
  Mark status_sent;     // SnStatusTransfer
  Stretch tail_sent;    // blocks given to the link after the handover began
  Mark released;        // UeContextRelease came, and was acknowledged

  // For another preparation: the handover under way, if one is, stays.
  void restart() {
    request_sent = acknowledged = status_sent = step_ended = {};
    rows_sent = tail_sent = {};
  }
  bool handover_began() const { return ran_execution.happened() || claim_received.happened(); }
};

struct TargetPhases {
  Mark request_received, acknowledge_sent;
  Stretch rows_received;  // blocks that came before the UE
  Stretch prefill;        // chunks
  Stretch rows_attached;  // runs of rows that entered the cache before the UE came
  Mark fronts_met;        // all that was known then was covered
  Mark ran_execution, ran_completed;
  Mark attached;                     // the UE
  Mark retrieve_sent;                // RetrieveUeContextRequest
  Mark response_received;            // RetrieveUeContextResponse
  Mark claim_sent, status_received;  // HandoverSuccess, SnStatusTransfer
  Stretch tail_received;             // blocks that came after the UE
  Stretch tail_attached;             // likewise into the cache
  Stretch replay;                    // tokens computed one per step
  Stretch shadow;                    // tokens sampled beside the source
  Mark part_attached;                // partial: enough KV to decode on
  Stretch partial_decode;            // tokens decoded on it
  Stretch back_fill;                 // rows that came meanwhile, blocks
  Stretch rebuild;                   // positions attached or computed for the whole KV
  Mark covered;                      // KV reaches all known ids
  Mark decode_asked;                 // of the engine
  Mark first_step_begun, first_step_ended;
  Mark first_token_written;  // first token of this engine (relay: of the owner's), to the UE
  Mark release_sent, release_acknowledged;

  // Where rows count now: before the UE came or after.
  Stretch& receiving() { return attached.happened() ? tail_received : rows_received; }
  Stretch& attaching() { return attached.happened() ? tail_attached : rows_attached; }
  // For another preparation: what the radio said of the handover under way stays.
  void restart() {
    const Mark execution = ran_execution, completed = ran_completed;
    *this = {};
    ran_execution = execution;
    ran_completed = completed;
  }
};

// A value that most of its holders never need: made at the first use, copied with its holder.
template <class T>
class OnDemand {
 public:
  OnDemand() = default;
  OnDemand(const OnDemand& other) : value_(other ? std::make_unique<T>(*other.value_) : nullptr) {}
  OnDemand(OnDemand&&) noexcept = default;
  OnDemand& operator=(OnDemand other) noexcept {
    value_ = std::move(other.value_);
    return *this;
  }
  ~OnDemand() = default;

  T* operator->() {
    if (!value_) value_ = std::make_unique<T>();
    return value_.get();
  }
  explicit operator bool() const { return value_ != nullptr; }
  // As it would be if it were made now, where it was not.
  T value() const { return value_ ? *value_ : T(); }
  void reset() { value_.reset(); }

 private:
  std::unique_ptr<T> value_;
};

// visit(name, Mark) and visit(name, Stretch), in the order of a prepared handover.
template <class Visit>
void for_each_phase(const SourcePhases& p, Visit&& visit) {
  visit("request_sent", p.request_sent);
  visit("acknowledged", p.acknowledged);
  visit("rows_sent", p.rows_sent);
  visit("ran_execution", p.ran_execution);
  visit("ran_completed", p.ran_completed);
  visit("claim_received", p.claim_received);
  visit("response_sent", p.response_sent);
  visit("step_ended", p.step_ended);
  visit("status_sent", p.status_sent);
  visit("tail_sent", p.tail_sent);
  visit("released", p.released);
}
template <class Visit>
void for_each_phase(const TargetPhases& p, Visit&& visit) {
  visit("request_received", p.request_received);
  visit("acknowledge_sent", p.acknowledge_sent);
  visit("rows_received", p.rows_received);
  visit("prefill", p.prefill);
  visit("rows_attached", p.rows_attached);
  visit("fronts_met", p.fronts_met);
  visit("ran_execution", p.ran_execution);
  visit("ran_completed", p.ran_completed);
  visit("attached", p.attached);
  visit("retrieve_sent", p.retrieve_sent);
  visit("response_received", p.response_received);
  visit("claim_sent", p.claim_sent);
  visit("status_received", p.status_received);
  visit("tail_received", p.tail_received);
  visit("tail_attached", p.tail_attached);
  visit("replay", p.replay);
  visit("shadow", p.shadow);
  visit("part_attached", p.part_attached);
  visit("partial_decode", p.partial_decode);
  visit("back_fill", p.back_fill);
  visit("rebuild", p.rebuild);
  visit("covered", p.covered);
  visit("decode_asked", p.decode_asked);
  visit("first_step_begun", p.first_step_begun);
  visit("first_step_ended", p.first_step_ended);
  visit("first_token_written", p.first_token_written);
  visit("release_sent", p.release_sent);
  visit("release_acknowledged", p.release_acknowledged);
}

}  // namespace pallas::node
