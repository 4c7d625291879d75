#pragma once
// Every message between two gNBs, as native types. Names follow XnAP (TS 38.423) where it has them.
// codec.h turns them into frames and back; bytes from a peer are validated there, so that whoever
// holds one of these values may rely on the ranges stated here.
//
// Messages about the UE's attachment carry the epoch; messages of a preparation carry their
// attempt.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "kv/geometry.h"
#include "kv/token_range.h"
#include "kv/transfer_plan.h"

namespace pallas::wire {

// Version of the protocol. Peers of the same major version talk; minor versions N and N-1 must.
inline constexpr std::uint32_t kMajorVersion = 1;
inline constexpr std::uint32_t kMinorVersion = 1;

// Limits that a decoder enforces before it allocates.
inline constexpr std::size_t kMaxFrameBytes = 4u << 20;  // header and body of one frame
inline constexpr std::size_t kMaxTokens = 1u << 18;      // ids in one message
inline constexpr std::size_t kMaxKvBytes = 64u << 20;    // payload of one KvBlock
inline constexpr std::size_t kMaxNameBytes = 128;        // node, UE, tenant, model names
inline constexpr std::size_t kMaxTextBytes = 64u << 10;  // messages, stop strings, grammars
inline constexpr std::size_t kMaxRanges = 4096;

// Engine-independent mirror of engine::CompatibilityRecord (design.md, section 4).
struct Compatibility {
  std::string model_hash, tokenizer_hash;
  std::uint32_t context_tokens = 0;
  std::string rope, kv_types, kv_layout;
  std::uint32_t block_tokens = 0;
  std::string adapter;
  std::string instruction_set, engine_build;
  std::uint32_t threads = 0;
  bool flash_attention = false;
  friend bool operator==(const Compatibility&, const Compatibility&) = default;
};

enum class Consistency : std::uint8_t { kExact = 0, kPreferExact = 1, kFast = 2 };

// The request as the user made it, in native types. With the token ids it determines the session.
struct SessionParams {
  std::string model;
  std::string tenant;  // whose session it is; "" for none
  UeId ue;             // "" for a plain client
  // Sampling (engine::SamplingParams says what each means).
  double temperature = 0.8;
  double top_p = 1.0;
  std::int32_t top_k = 0;
  double min_p = 0.0;
  double repeat_penalty = 1.0;
  double presence_penalty = 0.0;
  double frequency_penalty = 0.0;
  std::int32_t penalty_last_n = 64;
  std::uint64_t seed = 0;
  std::uint32_t min_tokens = 0;
  bool ignore_eos = false;
  std::string grammar;
  std::vector<std::pair<TokenId, float>> logit_bias;
  // Ends and pace.
  std::uint32_t max_tokens = 0;  // generated tokens at most; at least 1
  std::vector<std::string> stop;
  double max_token_rate = 0;  // tokens/s, 0: none
  Consistency consistency = Consistency::kPreferExact;
  // Presentation, so that any gNB can go on with the client's stream.
  bool chat = true;
  bool include_usage = false;
  std::string completion_id;  // "chatcmpl-..." of the stream
  std::int64_t created_unix_s = 0;
  // The resume token: whoever shows it may resume, read or stop the session. Never logged.
  std::string resume_token;
  friend bool operator==(const SessionParams&, const SessionParams&) = default;
};

enum class FinishReason : std::uint8_t {
  kNone = 0,
  kStop = 1,
  kLength = 2,
  kCancelled = 3,
  kError = 4
};
std::string_view to_string(FinishReason reason);  // OpenAI's words: "stop", "length", ...

// A session whole, but for its KV: what HandoverRequest and RetrieveUeContextResponse carry.
struct SessionSnapshot {
  SessionParams params;
  TokenPosition prompt_tokens = 0;  // >= 1
  std::vector<TokenId> tokens;      // all ids so far, prompt first; size >= prompt_tokens
  // by[i] is the node whose engine sampled generated index i, run-length coded: (node, count).
  std::vector<std::pair<NodeId, std::uint32_t>> sampled_by;
  Lineage lineage;  // of the source's KV
  FinishReason finish = FinishReason::kNone;
  Epoch epoch;
  friend bool operator==(const SessionSnapshot&, const SessionSnapshot&) = default;
};

using Plan = kv::TransferPlan;
using SendOrder = kv::SendOrder;

// --- connection ---

enum class Channel : std::uint8_t { kControl = 0, kData = 1 };

// What a target still holds of an attempt when a link comes back (rule 12).
struct HeldAttempt {
  SessionId session;
  Attempt attempt;
  TokenPosition tokens_known = 0;
  std::uint64_t token_hash = 0;  // hash of ids [0, tokens_known)
  std::vector<kv::TokenRange> ranges;
  friend bool operator==(const HeldAttempt&, const HeldAttempt&) = default;
};

struct Hello {
  std::uint32_t major = kMajorVersion, minor = kMinorVersion;
  NodeId node;
  BootId boot;
  Channel channel = Channel::kControl;
  Compatibility compatibility;
  std::vector<HeldAttempt> held;
  // It takes rows of scattered positions and decodes on them. A peer of minor version 0 knows
  // neither, and says nothing here.
  bool holes = false;
  friend bool operator==(const Hello&, const Hello&) = default;
};
struct Credit {
  std::uint64_t bytes = 0;  // the receiver can take this many more payload bytes
  friend bool operator==(const Credit&, const Credit&) = default;
};
struct KeepAlive {
  std::uint64_t sequence = 0;
  bool reply = false;  // an answer carries the sequence of the question
  friend bool operator==(const KeepAlive&, const KeepAlive&) = default;
};
struct ErrorMessage {
  Errc code = Errc::kInternal;
  std::string message;
  SessionId session;  // "" when about the connection
  friend bool operator==(const ErrorMessage&, const ErrorMessage&) = default;
};

// --- initialization ---

struct HandoverRequest {
  SessionId session;
  Attempt attempt;
  SessionSnapshot snapshot;
  Compatibility compatibility;
  Plan plan;
  TokenPosition source_front = 0;  // the source's KV reaches [0, source_front)
  std::uint32_t lease_ms = 5000;
  TokenPosition reserve_tokens = 0;  // context expected at the end of the session
  double token_rate = 0;             // r_d of the source
  friend bool operator==(const HandoverRequest&, const HandoverRequest&) = default;
};
struct HandoverRequestAcknowledge {
  SessionId session;
  Attempt attempt;
  std::uint32_t lease_ms = 0;
  double prefill_rate = 0;           // r_p here now, tokens/s
  bool exact = false;                // exactness is available between the two engines
  std::vector<kv::TokenRange> held;  // rows that it has already (rules 7, 13), matched by hash
  friend bool operator==(const HandoverRequestAcknowledge&,
                         const HandoverRequestAcknowledge&) = default;
};
enum class Cause : std::uint8_t {
  kUnknown = 0,
  kNoResources = 1,   // no slot, no memory
  kIncompatible = 2,  // the message names the field
  kUnknownSession = 3,
  kStaleEpoch = 4,
  kModelNotLoaded = 5,
  kDraining = 6,
  kConsistency = 7,  // `exact` was asked for and cannot be given
  kWithdrawn = 8,    // the prediction changed
  kFinished = 9,     // the session ended
  kLeaseExpired = 10,
  kEngineFailed = 11,
  kContextExceeded = 12,
  kWrongTarget = 13,
};
std::string_view to_string(Cause cause);
struct HandoverPreparationFailure {
  SessionId session;
  Attempt attempt;
  Cause cause = Cause::kUnknown;
  std::string message;
  friend bool operator==(const HandoverPreparationFailure&,
                         const HandoverPreparationFailure&) = default;
};

// --- parallel preparation ---

struct TokenUpdate {
  SessionId session;
  std::optional<Attempt> attempt;  // none: a mirror or a relay
  Epoch epoch;                     // of the source's attachment
  TokenPosition first = 0;         // position of ids[0]
  std::vector<TokenId> ids;
  NodeId by;                                  // whose engine sampled them
  FinishReason finish = FinishReason::kNone;  // the session ended with the last id
  // A mirror starts with the session itself (rule 16).
  std::optional<SessionSnapshot> snapshot;
  friend bool operator==(const TokenUpdate&, const TokenUpdate&) = default;
};
// Followed by count * bytes_per_token payload bytes, kv/geometry.h: of positions [first, first +
// count), or of those in `positions`, ascending, as if they were one range. Only a peer whose Hello
// says `holes` is sent the latter.
struct KvBlock {
  SessionId session;
  Attempt attempt;
  TokenPosition first = 0;
  TokenPosition count = 0;       // >= 1
  std::uint64_t checksum = 0;    // XXH3-64 of the payload
  std::uint64_t token_hash = 0;  // session::TokenLog::hash(one above the highest position)
  Lineage lineage;
  std::uint64_t payload_bytes = 0;
  // Empty, or `count` positions in all, of which `first` is the lowest.
  std::vector<kv::TokenRange> positions;
  friend bool operator==(const KvBlock&, const KvBlock&) = default;

  kv::Coverage covered() const {
    kv::Coverage all;
    for (const kv::TokenRange& range : positions) all.add(range);
    if (positions.empty()) all.add({first, first + count});
    return all;
  }
};
struct PreparationProgress {
  SessionId session;
  Attempt attempt;
  TokenPosition front = 0;             // KV in the target's cache reaches [0, front)
  TokenPosition prefill_goal = 0;      // running prefill goes to here
  std::vector<kv::TokenRange> staged;  // rows waiting in host memory
  TokenPosition tokens_known = 0;
  std::uint64_t received_bytes = 0;
  std::uint64_t receive_ns = 0;  // time in which they arrived, link busy
  TokenPosition prefilled_tokens = 0;
  std::uint64_t prefill_ns = 0;
  // It computes every position from `front` on itself, a step for each id: no rows are needed.
  bool follows = false;
  // It knows or has sampled the ids below this position, or is in the step that samples the last.
  TokenPosition sampled_to = 0;
  friend bool operator==(const PreparationProgress&, const PreparationProgress&) = default;
};

// --- final synchronization, claim, completion ---

struct SnStatusTransfer {
  SessionId session;
  Epoch epoch;  // of the claim that it answers
  Attempt attempt;
  TokenPosition n = 0;           // the source's KV reaches [0, n)
  TokenPosition first = 0;       // position of ids[0]
  std::vector<TokenId> ids;      // the last ids; the very last has no KV yet
  std::uint64_t token_hash = 0;  // of all ids
  Lineage lineage;
  FinishReason finish = FinishReason::kNone;
  std::uint32_t next_due_us = 0;  // max_token_rate: the next token is due in
  bool has_kv = true;             // the source still holds rows and will send what the plan says
  NodeId by;                      // who sampled ids
  friend bool operator==(const SnStatusTransfer&, const SnStatusTransfer&) = default;
};
// The claim: the UE is attached here.
struct HandoverSuccess {
  SessionId session;
  Epoch epoch;
  Attempt attempt;
  TokenIndex next_index = 0;  // the UE has indices below it
  bool relay = false;         // rule 14: keep decoding, send TokenUpdate
  bool stop = false;          // rule 10: end the session
  friend bool operator==(const HandoverSuccess&, const HandoverSuccess&) = default;
};
struct UeContextRelease {
  SessionId session;
  Epoch epoch;
  Attempt attempt;
  friend bool operator==(const UeContextRelease&, const UeContextRelease&) = default;
};
struct UeContextReleaseAck {
  SessionId session;
  Epoch epoch;
  friend bool operator==(const UeContextReleaseAck&, const UeContextReleaseAck&) = default;
};

// --- always ---

struct LeaseRenew {
  SessionId session;
  Attempt attempt;
  std::uint32_t expected_in_ms = 0;  // the handover is predicted in
  friend bool operator==(const LeaseRenew&, const LeaseRenew&) = default;
};
struct Moved {
  SessionId session;
  NodeId node;  // where it went
  Epoch epoch;
  std::optional<SessionSnapshot> snapshot;  // the log, for a node without KV
  friend bool operator==(const Moved&, const Moved&) = default;
};
struct StaleEpoch {
  SessionId session;
  Epoch current;
  NodeId node;  // who holds it, as far as known
  friend bool operator==(const StaleEpoch&, const StaleEpoch&) = default;
};
struct HandoverCancel {
  SessionId session;
  Attempt attempt;
  Cause cause = Cause::kUnknown;
  friend bool operator==(const HandoverCancel&, const HandoverCancel&) = default;
};
struct HandoverCancelAck {
  SessionId session;
  Attempt attempt;
  friend bool operator==(const HandoverCancelAck&, const HandoverCancelAck&) = default;
};

// --- unprepared cell ---

struct RetrieveUeContextRequest {
  SessionId session;
  Epoch epoch;
  TokenIndex next_index = 0;
  TokenPosition tokens_known = 0;
  std::uint64_t token_hash = 0;  // of ids [0, tokens_known); 0 tokens: 0
  TokenPosition kv_front = 0;    // KV held here reaches [0, kv_front), kv_front <= tokens_known
  Lineage lineage;               // of that KV
  Compatibility compatibility;
  std::string resume_token;
  double prefill_rate = 0;
  bool stop = false;  // rule 10
  friend bool operator==(const RetrieveUeContextRequest&,
                         const RetrieveUeContextRequest&) = default;
};
struct RetrieveUeContextResponse {
  SessionId session;
  Epoch epoch;
  Attempt attempt;  // under which the rows will come
  SessionSnapshot snapshot;
  Compatibility compatibility;
  Plan plan;
  TokenPosition source_front = 0;
  friend bool operator==(const RetrieveUeContextResponse&,
                         const RetrieveUeContextResponse&) = default;
};
struct RetrieveUeContextFailure {
  SessionId session;
  Epoch epoch;
  Cause cause = Cause::kUnknown;
  std::string message;
  friend bool operator==(const RetrieveUeContextFailure&,
                         const RetrieveUeContextFailure&) = default;
};

// What a preparation may expect of the sender's engine (XnAP's RESOURCE STATUS UPDATE). Sent when
// it changes; a peer of minor version 0 does not know it.
struct ResourceStatus {
  // Of the rate at which it prefills alone, (0, 1]: what is left to a preparation that spares the
  // sessions decoding there.
  double prefill_share = 1;
  friend bool operator==(const ResourceStatus&, const ResourceStatus&) = default;
};

// The order is the frame type on the wire minus 1; append only.
using Message = std::variant<Hello, Credit, KeepAlive, ErrorMessage, HandoverRequest,
                             HandoverRequestAcknowledge, HandoverPreparationFailure, TokenUpdate,
                             KvBlock, PreparationProgress, SnStatusTransfer, HandoverSuccess,
                             UeContextRelease, UeContextReleaseAck, LeaseRenew, Moved, StaleEpoch,
                             HandoverCancel, HandoverCancelAck, RetrieveUeContextRequest,
                             RetrieveUeContextResponse, RetrieveUeContextFailure, ResourceStatus>;

std::string_view name_of(const Message& message);

}  // namespace pallas::wire
