// Protobuf to native messages: one get() per message of pallas.proto. Nothing is judged here;
// validate() does that, so each rule stands once.

#include <algorithm>
#include <limits>

#include "wire/body.h"
#include "wire/pallas.pb.h"
#include "wire/type_map.h"

namespace pallas::wire {
namespace {

// A number that no enumerator has becomes one that validate() refuses.
template <class E>
E enum_of(std::uint32_t number) {
  return static_cast<E>(std::min<std::uint32_t>(number, 255));
}

// Causes only inform: one from a newer peer reads as unknown.
template <>
Cause enum_of<Cause>(std::uint32_t number) {
  constexpr auto kLast = static_cast<std::uint32_t>(Cause::kWrongTarget);
  return number <= kLast ? static_cast<Cause>(number) : Cause::kUnknown;
}

void get(const pb::Attempt& p, Attempt& m) {
  m.owner.value = p.owner();
  m.boot.value = p.boot();
  m.counter = p.counter();
}

void get(const pb::TokenRange& p, kv::TokenRange& m) {
  m.begin = p.begin();
  m.end = p.end();
}

void get(const pb::HeldAttempt& p, HeldAttempt& m);

template <class Native, class Proto>
void get_all(const google::protobuf::RepeatedPtrField<Proto>& from, std::vector<Native>& to) {
  to.reserve(static_cast<std::size_t>(from.size()));
  for (const Proto& item : from) get(item, to.emplace_back());
}

// Ids above 2^31 become negative, which validate() refuses.
void get_ids(const google::protobuf::RepeatedField<std::uint32_t>& from, std::vector<TokenId>& to) {
  to.reserve(static_cast<std::size_t>(from.size()));
  for (std::uint32_t id : from) to.push_back(static_cast<TokenId>(id));
}

void get(const pb::Compatibility& p, Compatibility& m) {
  m.model_hash = p.model_hash();
  m.tokenizer_hash = p.tokenizer_hash();
  m.context_tokens = p.context_tokens();
  m.rope = p.rope();
  m.kv_types = p.kv_types();
  m.kv_layout = p.kv_layout();
  m.block_tokens = p.block_tokens();
  m.adapter = p.adapter();
  m.instruction_set = p.instruction_set();
  m.engine_build = p.engine_build();
  m.threads = p.threads();
  m.flash_attention = p.flash_attention();
}

void get(const pb::SessionParams& p, SessionParams& m) {
  m.model = p.model();
  m.tenant = p.tenant();
  m.ue.value = p.ue();
  m.temperature = p.temperature();
  m.top_p = p.top_p();
  m.top_k = p.top_k();
  m.min_p = p.min_p();
  m.repeat_penalty = p.repeat_penalty();
  m.presence_penalty = p.presence_penalty();
  m.frequency_penalty = p.frequency_penalty();
  m.penalty_last_n = p.penalty_last_n();
  m.seed = p.seed();
  m.min_tokens = p.min_tokens();
  m.ignore_eos = p.ignore_eos();
  m.grammar = p.grammar();
  for (const pb::LogitBias& entry : p.logit_bias()) {
    m.logit_bias.emplace_back(static_cast<TokenId>(entry.token()), entry.bias());
  }
  m.max_tokens = p.max_tokens();
  m.stop.assign(p.stop().begin(), p.stop().end());
  m.max_token_rate = p.max_token_rate();
  m.consistency = enum_of<decltype(m.consistency)>(p.consistency());
  m.chat = p.chat();
  m.include_usage = p.include_usage();
  m.completion_id = p.completion_id();
  m.created_unix_s = p.created_unix_s();
  m.resume_token = p.resume_token();
}

void get(const pb::SessionSnapshot& p, SessionSnapshot& m) {
  get(p.params(), m.params);
  m.prompt_tokens = p.prompt_tokens();
  get_ids(p.tokens(), m.tokens);
  for (const pb::SampledBy& run : p.sampled_by()) {
    m.sampled_by.emplace_back(NodeId(run.node()), run.count());
  }
  m.lineage.value = p.lineage();
  m.finish = enum_of<decltype(m.finish)>(p.finish());
  m.epoch.value = p.epoch();
}

void get(const pb::Plan& p, Plan& m) {
  m.scheme = p.scheme();
  m.relay = p.relay();
  m.recompute_end = p.recompute_end();
  m.order = enum_of<decltype(m.order)>(p.order());
  m.send_begin = p.send_begin();
  m.meet = p.meet();
  m.partial_ranges = p.partial_ranges();
  m.window_s = p.window_s();
  m.expected_in_s = p.expected_in_s();
  m.expected_sit_s = p.expected_sit_s();
  m.oracle = p.oracle();
  m.partial_fraction = p.partial_fraction();
  m.partial_deadline_s = p.partial_deadline_s();
}

void get(const pb::HeldAttempt& p, HeldAttempt& m) {
  m.session.value = p.session();
  get(p.attempt(), m.attempt);
  m.tokens_known = p.tokens_known();
  m.token_hash = p.token_hash();
  get_all(p.ranges(), m.ranges);
}

void get(const pb::Hello& p, Hello& m) {
  m.major = p.major();
  m.minor = p.minor();
  m.node.value = p.node();
  m.boot.value = p.boot();
  m.channel = enum_of<decltype(m.channel)>(p.channel());
  get(p.compatibility(), m.compatibility);
  get_all(p.held(), m.held);
  m.holes = p.holes();
}

void get(const pb::Credit& p, Credit& m) {
  m.bytes = p.bytes();
}

void get(const pb::KeepAlive& p, KeepAlive& m) {
  m.sequence = p.sequence();
  m.reply = p.reply();
}

void get(const pb::ErrorMessage& p, ErrorMessage& m) {
  m.code = errc_from_wire(p.code());
  m.message = p.message();
  m.session.value = p.session();
}

void get(const pb::HandoverRequest& p, HandoverRequest& m) {
  m.session.value = p.session();
  get(p.attempt(), m.attempt);
  get(p.snapshot(), m.snapshot);
  get(p.compatibility(), m.compatibility);
  get(p.plan(), m.plan);
  m.source_front = p.source_front();
  m.lease_ms = p.lease_ms();
  m.reserve_tokens = p.reserve_tokens();
  m.token_rate = p.token_rate();
}

void get(const pb::HandoverRequestAcknowledge& p, HandoverRequestAcknowledge& m) {
  m.session.value = p.session();
  get(p.attempt(), m.attempt);
  m.lease_ms = p.lease_ms();
  m.prefill_rate = p.prefill_rate();
  m.exact = p.exact();
  get_all(p.held(), m.held);
}

void get(const pb::HandoverPreparationFailure& p, HandoverPreparationFailure& m) {
  m.session.value = p.session();
  get(p.attempt(), m.attempt);
  m.cause = enum_of<decltype(m.cause)>(p.cause());
  m.message = p.message();
}

void get(const pb::TokenUpdate& p, TokenUpdate& m) {
  m.session.value = p.session();
  if (p.has_attempt()) get(p.attempt(), m.attempt.emplace());
  m.epoch.value = p.epoch();
  m.first = p.first();
  get_ids(p.ids(), m.ids);
  m.by.value = p.by();
  m.finish = enum_of<decltype(m.finish)>(p.finish());
  if (p.has_snapshot()) get(p.snapshot(), m.snapshot.emplace());
}

void get(const pb::KvBlock& p, KvBlock& m) {
  m.session.value = p.session();
  get(p.attempt(), m.attempt);
  m.first = p.first();
  m.count = p.count();
  m.checksum = p.checksum();
  m.token_hash = p.token_hash();
  m.lineage.value = p.lineage();
  m.payload_bytes = p.payload_bytes();
  get_all(p.positions(), m.positions);
}

void get(const pb::PreparationProgress& p, PreparationProgress& m) {
  m.session.value = p.session();
  get(p.attempt(), m.attempt);
  m.front = p.front();
  m.prefill_goal = p.prefill_goal();
  get_all(p.staged(), m.staged);
  m.tokens_known = p.tokens_known();
  m.received_bytes = p.received_bytes();
  m.receive_ns = p.receive_ns();
  m.prefilled_tokens = p.prefilled_tokens();
  m.prefill_ns = p.prefill_ns();
  m.follows = p.follows();
  m.sampled_to = p.sampled_to();
}

void get(const pb::SnStatusTransfer& p, SnStatusTransfer& m) {
  m.session.value = p.session();
  m.epoch.value = p.epoch();
  get(p.attempt(), m.attempt);
  m.n = p.n();
  m.first = p.first();
  get_ids(p.ids(), m.ids);
  m.token_hash = p.token_hash();
  m.lineage.value = p.lineage();
  m.finish = enum_of<decltype(m.finish)>(p.finish());
  m.next_due_us = p.next_due_us();
  m.has_kv = p.has_kv();
  m.by.value = p.by();
}

void get(const pb::HandoverSuccess& p, HandoverSuccess& m) {
  m.session.value = p.session();
  m.epoch.value = p.epoch();
  get(p.attempt(), m.attempt);
  m.next_index = p.next_index();
  m.relay = p.relay();
  m.stop = p.stop();
}

void get(const pb::UeContextRelease& p, UeContextRelease& m) {
  m.session.value = p.session();
  m.epoch.value = p.epoch();
  get(p.attempt(), m.attempt);
}

void get(const pb::UeContextReleaseAck& p, UeContextReleaseAck& m) {
  m.session.value = p.session();
  m.epoch.value = p.epoch();
}

void get(const pb::LeaseRenew& p, LeaseRenew& m) {
  m.session.value = p.session();
  get(p.attempt(), m.attempt);
  m.expected_in_ms = p.expected_in_ms();
}

void get(const pb::Moved& p, Moved& m) {
  m.session.value = p.session();
  m.node.value = p.node();
  m.epoch.value = p.epoch();
  if (p.has_snapshot()) get(p.snapshot(), m.snapshot.emplace());
}

void get(const pb::StaleEpoch& p, StaleEpoch& m) {
  m.session.value = p.session();
  m.current.value = p.current();
  m.node.value = p.node();
}

void get(const pb::HandoverCancel& p, HandoverCancel& m) {
  m.session.value = p.session();
  get(p.attempt(), m.attempt);
  m.cause = enum_of<decltype(m.cause)>(p.cause());
}

void get(const pb::HandoverCancelAck& p, HandoverCancelAck& m) {
  m.session.value = p.session();
  get(p.attempt(), m.attempt);
}

void get(const pb::RetrieveUeContextRequest& p, RetrieveUeContextRequest& m) {
  m.session.value = p.session();
  m.epoch.value = p.epoch();
  m.next_index = p.next_index();
  m.tokens_known = p.tokens_known();
  m.token_hash = p.token_hash();
  m.kv_front = p.kv_front();
  m.lineage.value = p.lineage();
  get(p.compatibility(), m.compatibility);
  m.resume_token = p.resume_token();
  m.prefill_rate = p.prefill_rate();
  m.stop = p.stop();
}

void get(const pb::RetrieveUeContextResponse& p, RetrieveUeContextResponse& m) {
  m.session.value = p.session();
  m.epoch.value = p.epoch();
  get(p.attempt(), m.attempt);
  get(p.snapshot(), m.snapshot);
  get(p.compatibility(), m.compatibility);
  get(p.plan(), m.plan);
  m.source_front = p.source_front();
}

void get(const pb::ResourceStatus& p, ResourceStatus& m) {
  m.prefill_share = p.prefill_share();
}

void get(const pb::RetrieveUeContextFailure& p, RetrieveUeContextFailure& m) {
  m.session.value = p.session();
  m.epoch.value = p.epoch();
  m.cause = enum_of<decltype(m.cause)>(p.cause());
  m.message = p.message();
}

template <class Native>
std::optional<Message> parse(std::span<const std::byte> body) {
  ProtoOf<Native> proto;
  if (!proto.ParseFromArray(body.data(), static_cast<int>(body.size()))) return std::nullopt;
  Native native;
  get(proto, native);
  return Message(std::move(native));
}

using Parser = std::optional<Message> (*)(std::span<const std::byte>);

template <std::size_t... I>
constexpr std::array<Parser, sizeof...(I)> parsers(std::index_sequence<I...>) {
  return {&parse<std::variant_alternative_t<I, Message>>...};
}

}  // namespace

std::optional<Message> from_body(std::uint8_t type, std::span<const std::byte> body) {
  static constexpr auto kParsers = parsers(std::make_index_sequence<kMessageTypes>());
  if (body.size() > kMaxFrameBytes) return std::nullopt;
  return kParsers[type - 1u](body);
}

}  // namespace pallas::wire
