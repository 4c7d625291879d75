// sim::Engine against the contract of the port. It has no content, so what the contract asks of
// rows holds of stand-ins.
#include "engine_contract.h"

#include "sim/engine.h"
#include "sim/virtual_clock.h"

namespace pallas::test {
namespace {

class SimHarness : public EngineHarness {
 public:
  explicit SimHarness(const sim::EngineModel& model) : model_(model) {}
  engine::Engine& engine(int which) override {
    auto& engine = engines_.at(static_cast<std::size_t>(which));
    if (!engine) engine = std::make_unique<sim::Engine>(clock_, model_);
    return *engine;
  }
  bool run_until(const std::function<bool()>& done, Duration limit) override {
    const TimePoint end = clock_.now() + limit;
    if (clock_.run_until(done, limit)) return true;
    clock_.run_until(end);
    return done();
  }
  TimePoint now() const override { return clock_.now(); }
  TokenId end_token() const override { return sim::kEndToken; }

 private:
  sim::VirtualClock clock_;
  sim::EngineModel model_;
  std::array<std::unique_ptr<sim::Engine>, 2> engines_;
};

sim::EngineModel model() {
  sim::EngineModel m = *sim::paper_model("llama-3-8b");
  m.profile = sim::constant_profile(TokensPerSecond(300), TokensPerSecond(60), 0.1, 32);
  m.activation = Seconds(0);
  m.slots = 4;
  return m;
}

sim::EngineModel with_transfers() {
  sim::EngineModel m = model();
  m.profile.export_per_token = Seconds(0.000024);
  m.profile.attach_per_token = Seconds(0.000014);
  m.prefill_fcfs = true;
  return m;
}

EngineKind kind(std::string name, const sim::EngineModel& m) {
  return {std::move(name), [m] { return std::make_unique<SimHarness>(m); }};
}

INSTANTIATE_TEST_SUITE_P(sim, EngineContract,
                         testing::Values(kind("instant_transfers", model()),
                                         kind("timed_transfers", with_transfers())),
                         kind_name);

}  // namespace
}  // namespace pallas::test
