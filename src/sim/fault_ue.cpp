#include "sim/fault_ue.h"

#include <utility>

#include "engine/fake_text.h"
#include "session/text_assembler.h"

namespace pallas::sim {

void FaultUe::on_token(const NodeId& emitter, int by_gnb, const node::TokenEvent& token,
                       TimePoint now) {
  const std::string where = "index " + std::to_string(token.index) + " from " + emitter.value;
  if (finished) breach("a token came after the end: " + where);
  if (token.index == received()) {
    if (!reference.empty()) {
      if (token.index >= reference.size()) {
        breach("a token beyond the session's end: " + where);
      } else if (token.id != reference[token.index]) {
        breach("another id than an undisturbed session has: " + where);
      } else if (token.text != texts[token.index]) {
        breach("another text than an undisturbed session has: " + where);
      }
    }
    ids.push_back(token.id);
    by.push_back(token.by);
  }
  last_token = last_sign = now;
  turned_away = 0;  // not with the attach: a gNB may see later that it has no room
  sim::Ue::on_token(emitter, by_gnb, token, now);
  for (; told_ < breaches().size(); ++told_) breach(breaches()[told_]);
}

void FaultUe::on_finish(const node::FinishEvent& event) {
  if (finished) breach("the session ended twice");
  sim::Ue::on_finish(event);
  if (event.completion_tokens != received()) {
    breach("the end says " + std::to_string(event.completion_tokens) + " tokens, " +
           std::to_string(received()) + " came");
  }
  const bool whole = reference.empty() || received() == reference.size();
  switch (event.reason) {
    case wire::FinishReason::kStop:
      if (!whole) breach("it ended by itself too early, at " + std::to_string(received()));
      break;
    case wire::FinishReason::kLength:
      if (received() != params.max_tokens) {
        breach("it ended by its length at " + std::to_string(received()) + " of " +
               std::to_string(params.max_tokens));
      }
      break;
    case wire::FinishReason::kCancelled:
      break;  // whether it may be: Invariants
    case wire::FinishReason::kNone:
    case wire::FinishReason::kError:
      breach("it ended without a reason");
  }
}

node::UeContext FaultUe::context(const std::vector<std::string>&) const {
  node::UeContext all{params, prompt_ids, ids, {}};
  for (const NodeId& node : by) {
    if (all.sampled_by.empty() || all.sampled_by.back().first != node) {
      all.sampled_by.emplace_back(node, 0);
    }
    ++all.sampled_by.back().second;
  }
  return all;
}

void find_reference(FaultUe& ue, const engine::FakeEngineConfig& engine) {
  static const engine::FakeTextCodec kText;
  engine::DecodeParams params;
  params.sampling.temperature = ue.params.temperature;
  params.sampling.top_p = ue.params.top_p;
  params.sampling.top_k = ue.params.top_k;
  params.sampling.min_p = ue.params.min_p;
  params.sampling.repeat_penalty = ue.params.repeat_penalty;
  params.sampling.presence_penalty = ue.params.presence_penalty;
  params.sampling.frequency_penalty = ue.params.frequency_penalty;
  params.sampling.penalty_last_n = ue.params.penalty_last_n;
  params.sampling.seed = ue.params.seed;
  params.sampling.min_tokens = ue.params.min_tokens;
  params.sampling.ignore_eos = ue.params.ignore_eos;
  params.tokens = ue.prompt_ids;
  params.prompt_tokens = static_cast<TokenPosition>(ue.prompt_ids.size());
  ue.reference = engine::fake_continuation(engine, std::move(params), ue.params.max_tokens);
  session::TextAssembler assembler(ue.params.stop);
  for (std::size_t i = 0; i < ue.reference.size(); ++i) {
    auto out = assembler.push(kText.piece(ue.reference[i]));
    ue.texts.push_back(std::move(out.text));
    if (out.stop) ue.reference.resize(i + 1);
  }
}

}  // namespace pallas::sim
