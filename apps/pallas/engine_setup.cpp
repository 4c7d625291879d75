#include "engine_setup.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "engine/fake_engine.h"
#include "model_setup.h"
#include "sim/engine.h"
#include "sim/engine_model.h"
#ifdef PALLAS_HAVE_LLAMA
#include "engine_llama/llama_engine.h"
#endif

namespace pallas::app {
namespace {

Result<EngineKit> make_fake(const GnbConfig& config, Clock& clock) {
  engine::FakeEngineConfig fake;
  fake.info.slots = config.slots;
  fake.info.context_tokens = config.context_tokens;
  fake.info.compatibility.context_tokens = config.context_tokens;
  EngineKit kit;
  kit.owned_text = std::make_unique<engine::FakeTextCodec>();
  kit.text = kit.owned_text.get();
  kit.engine = std::make_unique<engine::FakeEngine>(clock, std::move(fake));
  return kit;
}

// A step takes the same whatever is in it: what a gNB can hold is measured, not an engine.
constexpr TokensPerSecond kSimulatedPrefill(200'000), kSimulatedDecode(500);

EngineKit make_simulated(const GnbConfig& config, Clock& clock) {
  sim::EngineModel model;
  model.name = "simulated";
  model.profile = sim::constant_profile(kSimulatedPrefill, kSimulatedDecode, 0);
  model.kv_bytes_per_token = sim::kStandInBytes;
  model.slots = config.slots;
  model.context_tokens = config.context_tokens;
  model.capabilities.exact_chunked_prompt = true;
  model.capabilities.exact_chunked_generated = true;
  model.capabilities.exact_single_step = true;
  model.capabilities.exact_attach = true;
  EngineKit kit;
  kit.owned_text = std::make_unique<sim::SilentTextCodec>();
  kit.text = kit.owned_text.get();
  kit.engine = std::make_unique<sim::Engine>(clock, model);
  return kit;
}

#ifdef PALLAS_HAVE_LLAMA
engine::LlamaConfig llama_config(const std::string& model, std::uint32_t context_tokens,
                                 std::uint32_t slots, std::uint32_t threads) {
  engine::LlamaConfig config;
  config.model_path = model;
  config.context_tokens = context_tokens;
  config.slots = slots;
  config.threads = threads;
  config.cache_dir = cache_folder();
  return config;
}

Result<EngineKit> make_llama(const GnbConfig& config, boost::asio::io_context& io,
                             EngineCosts costs) {
  const auto file = model_file(config.model);
  if (!file) return fail(file.error().code, "model: " + file.error().message);
  auto settings = llama_config(file->string(), config.context_tokens, config.slots, config.threads);
  settings.model_name = config.model_name;
  if (settings.model_name.empty() && config.model.empty()) settings.model_name = kShippedModel;
  if (costs == EngineCosts::kUnknown) settings.measured.emplace();
  auto engine = engine::make_llama_engine(settings, [&io](std::unique_ptr<engine::Task> task) {
    boost::asio::post(io, [task = std::move(task)] { task->run(); });
  });
  if (!engine) return Failure(engine.error());
  EngineKit kit;
  kit.text = &(*engine)->codec();
  kit.engine = std::move(*engine);
  return kit;
}
#endif

}  // namespace

Result<EngineKit> make_engine(const GnbConfig& config, boost::asio::io_context& io, Clock& clock,
                              EngineCosts costs) {
  if (config.engine == "fake") return make_fake(config, clock);
  if (config.engine == "simulated") return make_simulated(config, clock);
#ifdef PALLAS_HAVE_LLAMA
  return make_llama(config, io, costs);
#else
  (void)io, (void)costs;
  return fail(Errc::kUnsupported, "engine: this program was built without llama.cpp");
#endif
}

Status warm_engine_cache(const std::string& model, std::uint32_t context_tokens,
                         std::uint32_t slots) {
#ifdef PALLAS_HAVE_LLAMA
  // Nothing is ever asked of this one, so nothing is posted.
  auto engine = engine::make_llama_engine(llama_config(model, context_tokens, slots, 1),
                                          [](std::unique_ptr<engine::Task>) {});
  if (!engine) return Failure(engine.error());
  return {};
#else
  (void)model, (void)context_tokens, (void)slots;
  return fail(Errc::kUnsupported, "engine: this program was built without llama.cpp");
#endif
}

}  // namespace pallas::app
