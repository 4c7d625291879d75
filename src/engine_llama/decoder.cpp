#include "engine_llama/decoder.h"

#include <llama.h>

#include <algorithm>

#include "engine_llama/log.h"

namespace pallas::engine {
namespace {

static_assert(std::is_same_v<llama_token, TokenId>);
static_assert(std::is_same_v<llama_pos, std::int32_t>);
static_assert(std::is_same_v<llama_seq_id, std::int32_t>);

}  // namespace

void Decoder::Free::operator()(llama_context* context) const {
  llama_free(context);
}

Result<std::unique_ptr<Decoder>> Decoder::make(const LlamaModel& model,
                                               const DecoderConfig& config) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = config.streams * (config.context_tokens + kPromptClassTokens);
  params.n_seq_max = config.streams;
  // Separate streams: neighbours neither change a session's numbers nor slow it down.
  params.kv_unified = false;
  params.n_batch = std::max<std::uint32_t>(kMaxChunkTokens, config.streams);
  params.n_ubatch = params.n_batch;
  params.n_outputs_max = config.streams;
  params.n_threads = static_cast<std::int32_t>(config.threads);
  params.n_threads_batch = params.n_threads;
  params.flash_attn_type =
      config.flash_attention ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.no_perf = true;
  auto watch = std::make_unique<AttentionWatch>();
  params.cb_eval = AttentionWatch::on_node;
  params.cb_eval_user_data = watch.get();
  take_backend_errors();
  Context context;
  try {
    // Rounded up, so that each stream has at least what was asked for.
    const std::uint32_t per_stream = (params.n_ctx / config.streams + 255) / 256 * 256;
    params.n_ctx = per_stream * config.streams;
    context.reset(llama_init_from_model(model.get(), params));
    if (!context) {
      return fail(Errc::kResourceExhausted, "llama.cpp gave no context: " + take_backend_errors());
    }
    auto rows = KvRows::open(context.get(), config.block_tokens);
    if (!rows) return tl::unexpected(rows.error());
    return std::unique_ptr<Decoder>(new Decoder(std::move(watch), std::move(context),
                                                std::move(*rows), config, model.vocabulary_size()));
  } catch (const std::exception& e) {
    return fail(Errc::kResourceExhausted, std::string("llama.cpp gave no context: ") + e.what());
  }
}

Decoder::Decoder(std::unique_ptr<AttentionWatch> watch, Context context, KvRows rows,
                 const DecoderConfig& config, TokenId vocabulary_size)
    : watch_(std::move(watch)),
      context_(std::move(context)),
      rows_(std::move(rows)),
      config_(config),
      vocabulary_size_(vocabulary_size) {}

void Decoder::add(std::uint32_t stream, TokenPosition position, TokenId id, bool wants_logits) {
  ids_.push_back(id);
  positions_.push_back(static_cast<std::int32_t>(position));
  stream_counts_.push_back(1);
  streams_.push_back(static_cast<std::int32_t>(stream));
  wants_logits_.push_back(wants_logits ? 1 : 0);
}

Status Decoder::evaluate(const char* what) {
  stream_pointers_.clear();
  for (std::int32_t& stream : streams_) stream_pointers_.push_back(&stream);
  llama_batch batch{};
  batch.n_tokens = static_cast<std::int32_t>(ids_.size());
  batch.token = ids_.data();
  batch.pos = positions_.data();
  batch.n_seq_id = stream_counts_.data();
  batch.seq_id = stream_pointers_.data();
  batch.logits = wants_logits_.data();
  int code = 0;
  std::string words;
  try {
    code = llama_decode(context_.get(), batch);
    if (code != 0) words = take_backend_errors();
  } catch (const std::exception& e) {
    code = -1;
    words = e.what();
  }
  ids_.clear();
  positions_.clear();
  stream_counts_.clear();
  streams_.clear();
  wants_logits_.clear();
  if (code == 0) return {};
  return fail(Errc::kEngine,
              std::string(what) + " failed with code " + std::to_string(code) + " " + words);
}

Status Decoder::step(std::span<const StepToken> tokens) {
  for (const StepToken& t : tokens) add(t.stream, t.position, t.id, t.wants_logits);
  return evaluate("decode step");
}

std::span<const float> Decoder::logits(std::size_t i) {
  const float* row = llama_get_logits_ith(context_.get(), static_cast<std::int32_t>(i));
  if (row == nullptr) return {};
  return {row, static_cast<std::size_t>(vocabulary_size_)};
}

Status Decoder::prefill(std::uint32_t stream, TokenPosition first, std::span<const TokenId> ids) {
  if (ids.empty()) return {};
  const auto count = static_cast<TokenPosition>(ids.size());
  for (TokenPosition i = 0; i < count; ++i) add(stream, first + i, ids[i], false);
  const bool padded = count < kPromptClassTokens;
  for (TokenPosition i = count; i < kPromptClassTokens; ++i) {
    add(stream, first + i, ids.back(), false);
  }
  Status status = evaluate("prefill");
  if (padded || !status) truncate(stream, status ? first + count : first);
  return status;
}

Result<std::vector<std::vector<double>>> Decoder::observe(std::uint32_t stream, TokenPosition first,
                                                          std::span<const TokenId> ids) {
  if (config_.flash_attention) {
    return fail(Errc::kUnsupported, "observation-window: not with flash attention");
  }
  for (TokenPosition i = 0; i < ids.size(); ++i) add(stream, first + i, ids[i], false);
  watch_->begin(first, rows_.key_heads());
  const Status status = evaluate("observation");
  auto heads = watch_->end();
  truncate(stream, first);
  if (!status) return tl::unexpected(status.error());
  if (heads.empty()) {
    return fail(Errc::kUnsupported, "observation-window: this model shows no attention");
  }
  return heads;
}

void Decoder::truncate(std::uint32_t stream, TokenPosition end) {
  llama_memory_seq_rm(llama_get_memory(context_.get()), static_cast<llama_seq_id>(stream),
                      static_cast<llama_pos>(end), -1);
}

}  // namespace pallas::engine
