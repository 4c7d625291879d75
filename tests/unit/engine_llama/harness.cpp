#include "harness.h"

#include <cstdio>
#include <cstdlib>

#include "engine_llama/model_store.h"

namespace pallas::test {
namespace {

template <class T>
T value_or_abort(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", result.error().describe().c_str());
    std::abort();
  }
  return std::move(*result);
}

}  // namespace

std::filesystem::path test_model() {
  return value_or_abort(engine::prepare_model(PALLAS_TEST_MODEL, PALLAS_TEST_CACHE));
}

engine::Measured test_measured() {
  engine::Measured m;
  m.profile.chunk_tokens = 32;
  m.profile.prefill = {{16, Seconds(0.0035)}, {1000, Seconds(0.0045)}};
  m.profile.decode = {{1, 0, Seconds(0.012)}, {1, 1000, Seconds(0.016)}, {4, 0, Seconds(0.04)}};
  m.profile.export_per_token = Seconds(0.00001);
  m.profile.attach_per_token = Seconds(0.00001);
  m.capabilities.exact_chunked_prompt = true;
  m.capabilities.exact_single_step = true;
  m.capabilities.exact_attach = true;
  return m;
}

engine::LlamaConfig test_config() {
  engine::LlamaConfig config;
  config.model_path = test_model();
  config.model_name = "small";
  config.slots = 4;
  config.context_tokens = 512;
  config.measured = test_measured();
  return config;
}

LlamaHarness::LlamaHarness(engine::LlamaConfig config) : config_(std::move(config)) {}

LlamaHarness::~LlamaHarness() {
  for (auto& engine : engines_) engine.reset();
}

engine::LlamaEngine& LlamaHarness::llama(int which) {
  auto& engine = engines_.at(static_cast<std::size_t>(which));
  if (!engine) {
    engine = value_or_abort(
        engine::make_llama_engine(config_, [this](std::unique_ptr<engine::Task> task) {
          {
            const std::lock_guard lock(queue_.mutex);
            queue_.tasks.push_back(std::move(task));
          }
          queue_.changed.notify_one();
        }));
  }
  return *engine;
}

bool LlamaHarness::run_until(const std::function<bool()>& done, Duration limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    std::unique_ptr<engine::Task> task;
    {
      std::unique_lock lock(queue_.mutex);
      if (!queue_.changed.wait_until(lock, end, [this] { return !queue_.tasks.empty(); })) {
        return false;
      }
      task = std::move(queue_.tasks.front());
      queue_.tasks.pop_front();
    }
    task->run();
  }
  return true;
}

TimePoint LlamaHarness::now() const {
  return engine::steady_now();
}

TokenId LlamaHarness::end_token() const {
  const engine::TextCodec& codec = engines_[0]->codec();
  TokenId id = 0;
  while (!codec.is_end_of_generation(id)) ++id;
  return id;
}

}  // namespace pallas::test
