// FakeEngine against the contract of the port, on virtual time.
#include "engine/fake_engine.h"
#include "engine_contract.h"
#include "virtual_clock.h"

namespace pallas::test {
namespace {

class FakeHarness : public EngineHarness {
 public:
  explicit FakeHarness(engine::FakeEngineConfig config) : config_(std::move(config)) {}
  ~FakeHarness() override {
    for (const auto& engine : engines_) {
      EXPECT_TRUE(!engine || engine->consistent());
    }
  }
  engine::Engine& engine(int which) override {
    auto& engine = engines_.at(static_cast<std::size_t>(which));
    if (!engine) engine = std::make_unique<engine::FakeEngine>(clock_, config_);
    return *engine;
  }
  bool run_until(const std::function<bool()>& done, Duration limit) override {
    const TimePoint end = clock_.now() + limit;
    if (clock_.run_until(done, limit)) return true;
    clock_.run_until(end);
    return done();
  }
  TimePoint now() const override { return clock_.now(); }
  TokenId end_token() const override { return engine::fake_id::kEnd; }

 private:
  VirtualClock clock_;
  engine::FakeEngineConfig config_;
  std::array<std::unique_ptr<engine::FakeEngine>, 2> engines_;
};

EngineKind kind(std::string name, const engine::FakeEngineConfig& config) {
  return {std::move(name), [config] { return std::make_unique<FakeHarness>(config); }};
}

engine::FakeEngineConfig all_exact() {
  engine::FakeEngineConfig config;
  config.info.capabilities.exact_chunked_generated = true;
  config.chunk_time_beside_decode = std::chrono::milliseconds(20);
  return config;
}

engine::FakeEngineConfig chunks_matter() {
  engine::FakeEngineConfig config;
  config.info.capabilities.exact_chunked_prompt = false;
  config.info.geometry = {.layers = 3, .k_row_bytes = 12, .v_row_bytes = 20, .block_tokens = 16};
  return config;
}

INSTANTIATE_TEST_SUITE_P(fake, EngineContract,
                         testing::Values(kind("as_measured", {}), kind("all_exact", all_exact()),
                                         kind("chunks_matter", chunks_matter())),
                         kind_name);

}  // namespace
}  // namespace pallas::test
