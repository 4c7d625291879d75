// Native messages to protobuf: one put() per message of pallas.proto.

#include "wire/body.h"
#include "wire/pallas.pb.h"
#include "wire/type_map.h"

namespace pallas::wire {
namespace {

template <class E>
std::uint32_t number(E value) {
  return static_cast<std::uint32_t>(value);
}

void put(const Attempt& m, pb::Attempt& p) {
  p.set_owner(m.owner.value);
  p.set_boot(m.boot.value);
  p.set_counter(m.counter);
}

void put(const kv::TokenRange& m, pb::TokenRange& p) {
  p.set_begin(m.begin);
  p.set_end(m.end);
}

void put(const HeldAttempt& m, pb::HeldAttempt& p);

template <class Native, class Proto>
void put_all(const std::vector<Native>& from, google::protobuf::RepeatedPtrField<Proto>& to) {
  to.Reserve(static_cast<int>(from.size()));
  for (const Native& item : from) put(item, *to.Add());
}

void put_ids(const std::vector<TokenId>& from, google::protobuf::RepeatedField<std::uint32_t>& to) {
  to.Reserve(static_cast<int>(from.size()));
  for (TokenId id : from) to.AddAlreadyReserved(static_cast<std::uint32_t>(id));
}

void put(const Compatibility& m, pb::Compatibility& p) {
  p.set_model_hash(m.model_hash);
  p.set_tokenizer_hash(m.tokenizer_hash);
  p.set_context_tokens(m.context_tokens);
  p.set_rope(m.rope);
  p.set_kv_types(m.kv_types);
  p.set_kv_layout(m.kv_layout);
  p.set_block_tokens(m.block_tokens);
  p.set_adapter(m.adapter);
  p.set_instruction_set(m.instruction_set);
  p.set_engine_build(m.engine_build);
  p.set_threads(m.threads);
  p.set_flash_attention(m.flash_attention);
}

void put(const SessionParams& m, pb::SessionParams& p) {
  p.set_model(m.model);
  p.set_tenant(m.tenant);
  p.set_ue(m.ue.value);
  p.set_temperature(m.temperature);
  p.set_top_p(m.top_p);
  p.set_top_k(m.top_k);
  p.set_min_p(m.min_p);
  p.set_repeat_penalty(m.repeat_penalty);
  p.set_presence_penalty(m.presence_penalty);
  p.set_frequency_penalty(m.frequency_penalty);
  p.set_penalty_last_n(m.penalty_last_n);
  p.set_seed(m.seed);
  p.set_min_tokens(m.min_tokens);
  p.set_ignore_eos(m.ignore_eos);
  p.set_grammar(m.grammar);
  for (const auto& [token, bias] : m.logit_bias) {
    pb::LogitBias& entry = *p.add_logit_bias();
    entry.set_token(static_cast<std::uint32_t>(token));
    entry.set_bias(bias);
  }
  p.set_max_tokens(m.max_tokens);
  for (const std::string& stop : m.stop) p.add_stop(stop);
  p.set_max_token_rate(m.max_token_rate);
  p.set_consistency(number(m.consistency));
  p.set_chat(m.chat);
  p.set_include_usage(m.include_usage);
  p.set_completion_id(m.completion_id);
  p.set_created_unix_s(m.created_unix_s);
  p.set_resume_token(m.resume_token);
}

void put(const SessionSnapshot& m, pb::SessionSnapshot& p) {
  put(m.params, *p.mutable_params());
  p.set_prompt_tokens(m.prompt_tokens);
  put_ids(m.tokens, *p.mutable_tokens());
  for (const auto& [node, count] : m.sampled_by) {
    pb::SampledBy& run = *p.add_sampled_by();
    run.set_node(node.value);
    run.set_count(count);
  }
  p.set_lineage(m.lineage.value);
  p.set_finish(number(m.finish));
  p.set_epoch(m.epoch.value);
}

void put(const Plan& m, pb::Plan& p) {
  p.set_scheme(m.scheme);
  p.set_relay(m.relay);
  p.set_recompute_end(m.recompute_end);
  p.set_order(number(m.order));
  p.set_send_begin(m.send_begin);
  p.set_meet(m.meet);
  p.set_partial_ranges(m.partial_ranges);
  p.set_window_s(m.window_s);
  p.set_expected_in_s(m.expected_in_s);
  p.set_expected_sit_s(m.expected_sit_s);
  p.set_oracle(m.oracle);
  p.set_partial_fraction(m.partial_fraction);
  p.set_partial_deadline_s(m.partial_deadline_s);
}

void put(const HeldAttempt& m, pb::HeldAttempt& p) {
  p.set_session(m.session.value);
  put(m.attempt, *p.mutable_attempt());
  p.set_tokens_known(m.tokens_known);
  p.set_token_hash(m.token_hash);
  put_all(m.ranges, *p.mutable_ranges());
}

void put(const Hello& m, pb::Hello& p) {
  p.set_major(m.major);
  p.set_minor(m.minor);
  p.set_node(m.node.value);
  p.set_boot(m.boot.value);
  p.set_channel(number(m.channel));
  put(m.compatibility, *p.mutable_compatibility());
  put_all(m.held, *p.mutable_held());
  p.set_holes(m.holes);
}

void put(const Credit& m, pb::Credit& p) {
  p.set_bytes(m.bytes);
}

void put(const KeepAlive& m, pb::KeepAlive& p) {
  p.set_sequence(m.sequence);
  p.set_reply(m.reply);
}

void put(const ErrorMessage& m, pb::ErrorMessage& p) {
  p.set_code(errc_to_wire(m.code));
  p.set_message(m.message);
  p.set_session(m.session.value);
}

void put(const HandoverRequest& m, pb::HandoverRequest& p) {
  p.set_session(m.session.value);
  put(m.attempt, *p.mutable_attempt());
  put(m.snapshot, *p.mutable_snapshot());
  put(m.compatibility, *p.mutable_compatibility());
  put(m.plan, *p.mutable_plan());
  p.set_source_front(m.source_front);
  p.set_lease_ms(m.lease_ms);
  p.set_reserve_tokens(m.reserve_tokens);
  p.set_token_rate(m.token_rate);
}

void put(const HandoverRequestAcknowledge& m, pb::HandoverRequestAcknowledge& p) {
  p.set_session(m.session.value);
  put(m.attempt, *p.mutable_attempt());
  p.set_lease_ms(m.lease_ms);
  p.set_prefill_rate(m.prefill_rate);
  p.set_exact(m.exact);
  put_all(m.held, *p.mutable_held());
}

void put(const HandoverPreparationFailure& m, pb::HandoverPreparationFailure& p) {
  p.set_session(m.session.value);
  put(m.attempt, *p.mutable_attempt());
  p.set_cause(number(m.cause));
  p.set_message(m.message);
}

void put(const TokenUpdate& m, pb::TokenUpdate& p) {
  p.set_session(m.session.value);
  if (m.attempt) put(*m.attempt, *p.mutable_attempt());
  p.set_epoch(m.epoch.value);
  p.set_first(m.first);
  put_ids(m.ids, *p.mutable_ids());
  p.set_by(m.by.value);
  p.set_finish(number(m.finish));
  if (m.snapshot) put(*m.snapshot, *p.mutable_snapshot());
}

void put(const KvBlock& m, pb::KvBlock& p) {
  p.set_session(m.session.value);
  put(m.attempt, *p.mutable_attempt());
  p.set_first(m.first);
  p.set_count(m.count);
  p.set_checksum(m.checksum);
  p.set_token_hash(m.token_hash);
  p.set_lineage(m.lineage.value);
  p.set_payload_bytes(m.payload_bytes);
  put_all(m.positions, *p.mutable_positions());
}

void put(const PreparationProgress& m, pb::PreparationProgress& p) {
  p.set_session(m.session.value);
  put(m.attempt, *p.mutable_attempt());
  p.set_front(m.front);
  p.set_prefill_goal(m.prefill_goal);
  put_all(m.staged, *p.mutable_staged());
  p.set_tokens_known(m.tokens_known);
  p.set_received_bytes(m.received_bytes);
  p.set_receive_ns(m.receive_ns);
  p.set_prefilled_tokens(m.prefilled_tokens);
  p.set_prefill_ns(m.prefill_ns);
  p.set_follows(m.follows);
  p.set_sampled_to(m.sampled_to);
}

void put(const SnStatusTransfer& m, pb::SnStatusTransfer& p) {
  p.set_session(m.session.value);
  p.set_epoch(m.epoch.value);
  put(m.attempt, *p.mutable_attempt());
  p.set_n(m.n);
  p.set_first(m.first);
  put_ids(m.ids, *p.mutable_ids());
  p.set_token_hash(m.token_hash);
  p.set_lineage(m.lineage.value);
  p.set_finish(number(m.finish));
  p.set_next_due_us(m.next_due_us);
  p.set_has_kv(m.has_kv);
  p.set_by(m.by.value);
}

void put(const HandoverSuccess& m, pb::HandoverSuccess& p) {
  p.set_session(m.session.value);
  p.set_epoch(m.epoch.value);
  put(m.attempt, *p.mutable_attempt());
  p.set_next_index(m.next_index);
  p.set_relay(m.relay);
  p.set_stop(m.stop);
}

void put(const UeContextRelease& m, pb::UeContextRelease& p) {
  p.set_session(m.session.value);
  p.set_epoch(m.epoch.value);
  put(m.attempt, *p.mutable_attempt());
}

void put(const UeContextReleaseAck& m, pb::UeContextReleaseAck& p) {
  p.set_session(m.session.value);
  p.set_epoch(m.epoch.value);
}

void put(const LeaseRenew& m, pb::LeaseRenew& p) {
  p.set_session(m.session.value);
  put(m.attempt, *p.mutable_attempt());
  p.set_expected_in_ms(m.expected_in_ms);
}

void put(const Moved& m, pb::Moved& p) {
  p.set_session(m.session.value);
  p.set_node(m.node.value);
  p.set_epoch(m.epoch.value);
  if (m.snapshot) put(*m.snapshot, *p.mutable_snapshot());
}

void put(const StaleEpoch& m, pb::StaleEpoch& p) {
  p.set_session(m.session.value);
  p.set_current(m.current.value);
  p.set_node(m.node.value);
}

void put(const HandoverCancel& m, pb::HandoverCancel& p) {
  p.set_session(m.session.value);
  put(m.attempt, *p.mutable_attempt());
  p.set_cause(number(m.cause));
}

void put(const HandoverCancelAck& m, pb::HandoverCancelAck& p) {
  p.set_session(m.session.value);
  put(m.attempt, *p.mutable_attempt());
}

void put(const RetrieveUeContextRequest& m, pb::RetrieveUeContextRequest& p) {
  p.set_session(m.session.value);
  p.set_epoch(m.epoch.value);
  p.set_next_index(m.next_index);
  p.set_tokens_known(m.tokens_known);
  p.set_token_hash(m.token_hash);
  p.set_kv_front(m.kv_front);
  p.set_lineage(m.lineage.value);
  put(m.compatibility, *p.mutable_compatibility());
  p.set_resume_token(m.resume_token);
  p.set_prefill_rate(m.prefill_rate);
  p.set_stop(m.stop);
}

void put(const RetrieveUeContextResponse& m, pb::RetrieveUeContextResponse& p) {
  p.set_session(m.session.value);
  p.set_epoch(m.epoch.value);
  put(m.attempt, *p.mutable_attempt());
  put(m.snapshot, *p.mutable_snapshot());
  put(m.compatibility, *p.mutable_compatibility());
  put(m.plan, *p.mutable_plan());
  p.set_source_front(m.source_front);
}

void put(const ResourceStatus& m, pb::ResourceStatus& p) {
  p.set_prefill_share(m.prefill_share);
}

void put(const RetrieveUeContextFailure& m, pb::RetrieveUeContextFailure& p) {
  p.set_session(m.session.value);
  p.set_epoch(m.epoch.value);
  p.set_cause(number(m.cause));
  p.set_message(m.message);
}

}  // namespace

std::optional<kv::Bytes> to_body(const Message& message, std::size_t headroom) {
  return std::visit(
      [&](const auto& m) -> std::optional<kv::Bytes> {
        ProtoOf<std::decay_t<decltype(m)>> proto;
        put(m, proto);
        const std::size_t size = proto.ByteSizeLong();
        if (size > kMaxFrameBytes - headroom) return std::nullopt;
        kv::Bytes frame(headroom + size, std::byte{});
        proto.SerializeWithCachedSizesToArray(
            reinterpret_cast<std::uint8_t*>(frame.data() + headroom));
        return frame;
      },
      message);
}

}  // namespace pallas::wire
