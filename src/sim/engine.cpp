#include "sim/engine.h"

#include <cmath>
#include <string>
#include <utility>

#include "base/random.h"
#include "sim/engine_impl.h"

namespace pallas::sim {
namespace {

// A logit bias from here on leaves no other token a chance.
constexpr float kCertain = 100;

Failure not_at_front(const char* what, std::uint64_t at, TokenPosition front) {
  return fail(Errc::kOutOfOrder, std::string(what) + " at position " + std::to_string(at) +
                                     ", the front is " + std::to_string(front));
}

}  // namespace

engine::EngineInfo info_of(const EngineModel& model) {
  engine::EngineInfo info;
  info.model_name = model.name;
  info.geometry = {.layers = 1,
                   .k_row_bytes = kStandInBytes / 2,
                   .v_row_bytes = kStandInBytes / 2,
                   .block_tokens = model.block_tokens};
  info.context_tokens = model.context_tokens;
  info.slots = model.slots;
  info.capabilities = model.capabilities;
  info.profile = model.profile;
  for (auto& point : info.profile.prefill) {
    point.per_token = point.per_token / model.told_prefill_share;
  }
  engine::CompatibilityRecord& record = info.compatibility;
  record.model_hash = "sim-" + model.name;
  record.tokenizer_hash = "sim";
  record.context_tokens = model.context_tokens;
  record.rope = "none";
  record.kv_types = "stand-in";
  record.kv_layout = "stand-in,8 bytes a token";
  record.block_tokens = model.block_tokens;
  record.instruction_set = "any";
  record.engine_build = "sim 1";
  record.threads = 1;
  return info;
}

Status check(const EngineSlot& slot, const EngineCommand& c) {
  if (slot.decoding && c.kind != CommandKind::kPause && c.kind != CommandKind::kExport &&
      c.kind != CommandKind::kRank) {
    return fail(Errc::kOutOfOrder, "the slot decodes");
  }
  const auto fits = [&]() -> Status {
    if (c.first != slot.front) return not_at_front("a command begins", c.first, slot.front);
    if (c.count <= slot.reserved - slot.front) return {};
    return fail(Errc::kContextExceeded,
                std::to_string(c.count) + " positions at " + std::to_string(c.first) +
                    " exceed the reservation of " + std::to_string(slot.reserved));
  };
  switch (c.kind) {
    case CommandKind::kPrefill:
    case CommandKind::kReplay:
      return fits();
    case CommandKind::kAttach:
      if (const Status place = fits(); !place) return place;
      if (c.bytes != c.count * kStandInBytes) {
        return fail(Errc::kInvalidArgument, "rows have " + std::to_string(c.bytes) +
                                                " bytes, expected " +
                                                std::to_string(c.count * kStandInBytes));
      }
      return {};
    case CommandKind::kScatter:
      return fail(Errc::kUnsupported, "no holes in a cache without content");
    case CommandKind::kRank:
      if (c.rank.ordering == engine::Ordering::kSinksRecency) return {};
      if (c.rank.ordering == engine::Ordering::kRandom) return {};
      return fail(Errc::kUnsupported, "no keys in a cache without content");
    case CommandKind::kExport:
      if (c.range.empty() || c.range.end <= slot.front) return {};
      return not_at_front("export ends", c.range.end, slot.front);
    case CommandKind::kTruncate:
      if (c.first <= slot.front) return {};
      return not_at_front("truncate", c.first, slot.front);
    case CommandKind::kDecode:
      if (c.decode.tokens == 0) return fail(Errc::kInvalidArgument, "decode without tokens");
      if (c.decode.tokens != slot.front + std::uint64_t{1}) {
        return not_at_front("decode has its last token", c.decode.tokens - 1, slot.front);
      }
      if (c.decode.prompt_tokens > c.decode.tokens) {
        return fail(Errc::kInvalidArgument, "prompt_tokens is above the number of tokens");
      }
      if (c.decode.last_position < c.decode.tokens) {
        return fail(Errc::kInvalidArgument, "last_position is below the first token to sample");
      }
      if (!c.valid_rate) return fail(Errc::kInvalidArgument, "max_token_rate is not a rate");
      return {};
    case CommandKind::kPause:
    case CommandKind::kAbort:
      return {};
  }
  return {};
}

TokenId sampled_token(std::uint64_t seed, TokenIndex index) {
  return 1 + static_cast<TokenId>(mix(seed, index) % (kVocabulary - 1));
}
TokenId prompt_token(std::uint64_t seed, TokenPosition position) {
  return sampled_token(~seed, position);
}

// --- the port ---

Engine::Engine(Clock& clock, const EngineModel& model,
               std::function<SampleObserver*(std::uint64_t)> observe)
    : impl_(std::make_unique<Impl>(clock, model, std::move(observe))) {}
Engine::~Engine() = default;

void Engine::set_events(engine::EngineEvents* events) {
  impl_->events = events;
}
const engine::EngineInfo& Engine::info() const {
  return impl_->info();
}
Result<engine::SlotId> Engine::reserve(TokenPosition tokens) {
  return impl_->reserve(tokens);
}
std::uint32_t Engine::free_slots() const {
  return impl_->free_slots();
}
void Engine::prefill(engine::SlotId slot, TokenPosition first, std::vector<TokenId> tokens) {
  EngineCommand command;
  command.kind = CommandKind::kPrefill;
  command.first = first;
  command.count = tokens.size();
  impl_->give(slot, std::move(command));
}
void Engine::replay(engine::SlotId slot, TokenPosition first, std::vector<TokenId> tokens) {
  EngineCommand command;
  command.kind = CommandKind::kReplay;
  command.first = first;
  command.count = tokens.size();
  impl_->give(slot, std::move(command));
}
void Engine::abort(engine::SlotId slot) {
  impl_->abort(slot);
}
void Engine::attach_kv(engine::SlotId slot, TokenPosition first, TokenPosition count,
                       kv::Bytes rows) {
  EngineCommand command;
  command.kind = CommandKind::kAttach;
  command.first = first;
  command.count = count;
  command.bytes = rows.size();
  impl_->give(slot, std::move(command));
}
void Engine::attach_scattered(engine::SlotId slot, kv::Coverage, kv::Bytes) {
  EngineCommand command;
  command.kind = CommandKind::kScatter;
  impl_->give(slot, std::move(command));
}
void Engine::rank(engine::SlotId slot, engine::RankRequest request) {
  EngineCommand command;
  command.kind = CommandKind::kRank;
  command.rank = std::move(request);
  impl_->give(slot, std::move(command));
}
void Engine::export_kv(engine::SlotId slot, kv::TokenRange range) {
  EngineCommand command;
  command.kind = CommandKind::kExport;
  command.range = range;
  impl_->give(slot, std::move(command));
}
void Engine::truncate(engine::SlotId slot, TokenPosition front) {
  EngineCommand command;
  command.kind = CommandKind::kTruncate;
  command.first = front;
  impl_->give(slot, std::move(command));
}
void Engine::decode(engine::SlotId slot, engine::DecodeParams params) {
  EngineCommand command;
  command.kind = CommandKind::kDecode;
  EngineDecoding& d = command.decode;
  d.seed = params.sampling.temperature > 0 ? params.sampling.seed : 0;
  d.prompt_tokens = params.prompt_tokens;
  d.last_position = params.last_position;
  d.tokens = params.tokens.size();
  d.rate = params.max_token_rate.value;
  command.valid_rate = d.rate >= 0 && std::isfinite(d.rate);
  d.first = impl_->now() + params.first_due;
  d.min_tokens = params.sampling.min_tokens;
  d.digest = params.digest_logits;
  d.awaited = params.awaited;
  d.observer = impl_->observer(params.sampling.seed);
  for (const auto& [id, bias] : params.sampling.logit_bias) {
    if (id == kEndToken && bias >= kCertain) d.ends = !params.sampling.ignore_eos;
  }
  impl_->give(slot, std::move(command));
}
void Engine::pause(engine::SlotId slot) {
  EngineCommand command;
  command.kind = CommandKind::kPause;
  impl_->give(slot, std::move(command));
}
void Engine::release(engine::SlotId slot) {
  impl_->release(slot);
}
const Engine::Stats& Engine::stats() const {
  return impl_->stats;
}
std::size_t Engine::live_slots() const {
  return impl_->live();
}

// --- text ---

Result<std::vector<TokenId>> SilentTextCodec::render_chat(
    const std::vector<engine::ChatMessage>& messages) const {
  if (messages.empty()) return fail(Errc::kInvalidArgument, "messages: there is none");
  return std::vector<TokenId>(messages.size(), 1);
}
Result<std::vector<TokenId>> SilentTextCodec::tokenize(const std::string& text) const {
  return std::vector<TokenId>(text.size(), 1);
}
Result<std::string> SilentTextCodec::grammar_of_schema(const std::string&) const {
  return fail(Errc::kUnsupported, "grammars: the simulated engine has none");
}

}  // namespace pallas::sim
