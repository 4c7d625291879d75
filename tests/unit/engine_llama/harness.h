#pragma once
// Real engines for tests: a queue stands for the node's thread, waiting passes real time.

#include <array>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>

#include "engine_contract.h"
#include "engine_llama/llama_engine.h"

namespace pallas::test {

// The small model in Q4_0, prepared once. Skips or fails nothing: without the file it aborts the
// program with a message.
std::filesystem::path test_model();

// Figures of the measured order, so that no test measures.
engine::Measured test_measured();

// 4 slots of 512 tokens.
engine::LlamaConfig test_config();

class LlamaHarness : public EngineHarness {
 public:
  explicit LlamaHarness(engine::LlamaConfig config = test_config());
  ~LlamaHarness() override;

  engine::LlamaEngine& llama(int which);
  engine::Engine& engine(int which) override { return llama(which); }
  bool run_until(const std::function<bool()>& done, Duration limit) override;
  TimePoint now() const override;
  TokenId end_token() const override;

 private:
  // Outlives the engines, whose threads post to it.
  struct Queue {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::unique_ptr<engine::Task>> tasks;
  };

  engine::LlamaConfig config_;
  Queue queue_;
  std::array<std::unique_ptr<engine::LlamaEngine>, 2> engines_;
};

}  // namespace pallas::test
