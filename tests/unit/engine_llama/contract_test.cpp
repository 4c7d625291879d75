// LlamaEngine against the contract of the port, on real time. All tests share two engines: loading
// the model would take longer than most tests.
#include "harness.h"

namespace pallas::test {
namespace {

// Engines that outlive the test.
class SharedHarness : public EngineHarness {
 public:
  engine::Engine& engine(int which) override { return shared().engine(which); }
  bool run_until(const std::function<bool()>& done, Duration limit) override {
    return shared().run_until(done, limit);
  }
  TimePoint now() const override { return shared().now(); }
  TokenId end_token() const override { return shared().end_token(); }

 private:
  static LlamaHarness& shared() {
    static LlamaHarness harness;
    return harness;
  }
};

INSTANTIATE_TEST_SUITE_P(llama, EngineContract,
                         testing::Values(EngineKind{
                             "small_model", [] { return std::make_unique<SharedHarness>(); }}),
                         kind_name);

}  // namespace
}  // namespace pallas::test
