#include "engine_llama/llama_engine.h"

#include <algorithm>
#include <utility>

#include "engine_llama/compatibility.h"
#include "engine_llama/measure.h"

namespace pallas::engine {
namespace {

// More commands than any node has outstanding; a bound all the same.
constexpr std::size_t kMailboxCommands = 16384;
constexpr std::uint32_t kMaxSlots = 64;
constexpr std::uint32_t kMaxThreads = 512;

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

Failure bad_setting(const std::string& what) {
  return fail(Errc::kInvalidConfig, what);
}

}  // namespace

struct LlamaEngine::Gate {
  LlamaEngine* engine = nullptr;
};

class LlamaEngine::Delivery : public Task {
 public:
  Delivery(std::weak_ptr<Gate> gate, std::vector<Event> events)
      : gate_(std::move(gate)), events_(std::move(events)) {}
  void run() override {
    if (const auto gate = gate_.lock()) gate->engine->deliver(events_);
  }

 private:
  std::weak_ptr<Gate> gate_;
  std::vector<Event> events_;
};

LlamaEngine::LlamaEngine(LlamaModel model, Post post)
    : model_(std::move(model)),
      post_(std::move(post)),
      gate_(std::make_shared<Gate>(Gate{this})),
      mailbox_(kMailboxCommands) {}

LlamaEngine::~LlamaEngine() {
  gate_.reset();
  mailbox_.close();
  if (thread_.joinable()) thread_.join();
}

Result<std::unique_ptr<LlamaEngine>> make_llama_engine(const LlamaConfig& config, Post post) {
  if (config.slots == 0 || config.slots > kMaxSlots) {
    return bad_setting("slots must be 1 to " + std::to_string(kMaxSlots));
  }
  if (config.threads == 0 || config.threads > kMaxThreads) {
    return bad_setting("threads must be 1 to " + std::to_string(kMaxThreads));
  }
  if (config.block_tokens == 0) return bad_setting("block_tokens must be above 0");
  if (config.chunk_tokens > kMaxChunkTokens) {
    return bad_setting("chunk_tokens must be at most " + std::to_string(kMaxChunkTokens));
  }
  auto model = LlamaModel::load(config.model_path);
  if (!model) return tl::unexpected(model.error());
  if (config.context_tokens == 0 || config.context_tokens > model->trained_context()) {
    return bad_setting("context_tokens must be 1 to the model's own context, " +
                       std::to_string(model->trained_context()));
  }

  std::unique_ptr<LlamaEngine> engine(new LlamaEngine(std::move(*model), std::move(post)));
  DecoderConfig decoder_config;
  decoder_config.streams = config.slots;
  decoder_config.context_tokens = config.context_tokens;
  decoder_config.threads = config.threads;
  decoder_config.flash_attention = config.flash_attention;
  decoder_config.block_tokens = config.block_tokens;
  auto decoder = Decoder::make(engine->model_, decoder_config);
  if (!decoder) return tl::unexpected(decoder.error());
  engine->decoder_ = std::move(*decoder);
  auto codec = LlamaTextCodec::make(engine->model_, config.context_tokens);
  if (!codec) return tl::unexpected(codec.error());
  engine->codec_ = std::move(*codec);

  EngineInfo& info = engine->info_;
  auto record = compatibility_of(engine->model_, *engine->decoder_, config);
  if (!record) return tl::unexpected(record.error());
  info.compatibility = std::move(*record);
  info.model_name =
      config.model_name.empty() ? config.model_path.stem().string() : config.model_name;
  info.geometry = engine->decoder_->rows().geometry();
  info.context_tokens = config.context_tokens;
  info.slots = config.slots;
  auto measured = measured_of(*engine->decoder_, info.compatibility, config);
  if (!measured) return tl::unexpected(measured.error());
  info.profile = std::move(measured->profile);
  info.capabilities = measured->capabilities;
  info.capabilities.holes = true;

  engine->start(config);
  return engine;
}

void LlamaEngine::start(const LlamaConfig& config) {
  LoopConfig loop;
  loop.chunk_tokens = config.chunk_tokens > 0 ? config.chunk_tokens : info_.profile.chunk_tokens;
  loop.chunk_tokens = std::clamp<TokenPosition>(loop.chunk_tokens, 1, kMaxChunkTokens);
  loop.step_budget = config.step_budget;
  loop.transfer_bytes_per_step = config.transfer_bytes_per_step;
  loop.profile = info_.profile;
  const std::weak_ptr<Gate> gate = gate_;
  loop_ = std::make_unique<EngineLoop>(model_, *decoder_, std::move(loop), mailbox_,
                                       [this, gate](std::vector<Event> events) {
                                         post_(std::make_unique<Delivery>(gate, std::move(events)));
                                       });
  thread_ = std::thread([this] { loop_->run(); });
}

Result<SlotId> LlamaEngine::reserve(TokenPosition tokens) {
  if (tokens > info_.context_tokens) {
    return fail(Errc::kContextExceeded, std::to_string(tokens) + " tokens, the context holds " +
                                            std::to_string(info_.context_tokens));
  }
  if (free_slots() == 0) {
    return fail(Errc::kResourceExhausted,
                "all " + std::to_string(info_.slots) + " slots are taken");
  }
  const SlotId id(++last_slot_);
  slots_.emplace(id, Known{});
  give(id, command::Open{tokens}, true);
  return id;
}

std::uint32_t LlamaEngine::free_slots() const {
  return info_.slots - static_cast<std::uint32_t>(slots_.size());
}

void LlamaEngine::prefill(SlotId slot, TokenPosition first, std::vector<TokenId> tokens) {
  give(slot, command::Prefill{first, std::move(tokens)});
}

void LlamaEngine::replay(SlotId slot, TokenPosition first, std::vector<TokenId> tokens) {
  give(slot, command::Replay{first, std::move(tokens)});
}

void LlamaEngine::abort(SlotId slot) {
  give(slot, command::Abort{});
}

void LlamaEngine::attach_kv(SlotId slot, TokenPosition first, TokenPosition count, kv::Bytes rows) {
  give(slot, command::Attach{first, count, std::move(rows)});
}

void LlamaEngine::attach_scattered(SlotId slot, kv::Coverage positions, kv::Bytes rows) {
  give(slot, command::Scatter{std::move(positions), std::move(rows)});
}

void LlamaEngine::export_kv(SlotId slot, kv::TokenRange range) {
  give(slot, command::Export{range});
}

void LlamaEngine::truncate(SlotId slot, TokenPosition front) {
  give(slot, command::Truncate{front});
}

void LlamaEngine::rank(SlotId slot, RankRequest request) {
  give(slot, command::Rank{std::move(request)});
}

void LlamaEngine::decode(SlotId slot, DecodeParams params) {
  const TimePoint first_due = steady_now() + params.first_due;
  give(slot, command::Decode{std::move(params), first_due});
}

void LlamaEngine::pause(SlotId slot) {
  give(slot, command::Pause{});
}

void LlamaEngine::release(SlotId slot) {
  if (slots_.count(slot) == 0) return;
  give(slot, command::Release{}, true);
  slots_.erase(slot);
}

void LlamaEngine::give(SlotId slot, decltype(Command::what) what, bool always) {
  const auto found = slots_.find(slot);
  if (found == slots_.end()) return;
  Known& known = found->second;
  if (!always && (known.refused || known.failed)) return;
  if (mailbox_.push({slot, std::move(what)}, always)) return;
  known.refused = true;
  std::vector<Event> events;
  events.push_back({slot, event::Failed{{Errc::kResourceExhausted, "too many commands wait"}}});
  post_(std::make_unique<Delivery>(gate_, std::move(events)));
}

void LlamaEngine::deliver(std::vector<Event>& events) {
  for (Event& event : events) deliver(event);
}

void LlamaEngine::deliver(Event& event) {
  const auto found = slots_.find(event.slot);
  if (found == slots_.end() || events_ == nullptr) return;
  const SlotId slot = event.slot;
  Known& known = found->second;
  const bool says_failed = std::holds_alternative<event::Failed>(event.what);
  if (known.failed || (known.refused && !says_failed)) return;
  known.failed = says_failed;
  std::visit(
      Overloaded{
          [&](event::Prefilled& e) { events_->on_prefilled(slot, e.front, e.busy); },
          [&](event::Replayed& e) { events_->on_replayed(slot, e.front, e.busy); },
          [&](event::Attached& e) { events_->on_attached(slot, e.front); },
          [&](Sampled& e) { events_->on_sampled(slot, e); },
          [&](event::Paused& e) { events_->on_paused(slot, e.front); },
          [&](event::Exported& e) { events_->on_exported(slot, e.range, std::move(e.rows)); },
          [&](event::Truncated& e) { events_->on_truncated(slot, e.front); },
          [&](event::Ranked& e) { events_->on_ranked(slot, std::move(e.scores)); },
          [&](event::Failed& e) { events_->on_failed(slot, e.error); },
      },
      event.what);
}

}  // namespace pallas::engine
