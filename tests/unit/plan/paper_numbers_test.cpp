// The schemes on the numbers of the papers' tables and figures: what the equations give for them,
// to the digits recorded, whether or not the paper's own figure agrees.

#include <array>
#include <cmath>

#include "inputs.h"
#include "plan/cost_model.h"
#include "plan/ctho_split.h"

namespace pallas::plan {
namespace {

struct Model {
  std::uint64_t kv_bytes;
  double prefill, activation;
};
constexpr Model k8b{131'072, 6526, 0.152}, k14b{163'840, 3431, 0.2355}, k32b{262'144, 619.5, 0.322};

// A context of `tokens` that does not grow.
PlanInput fixed(const Model& model, TokenPosition tokens, double mbps, double prefill) {
  PlanInput input;
  input.context = input.prompt = tokens;
  input.kv_bytes_per_token = model.kv_bytes;
  input.prefill_rate = TokensPerSecond(prefill);
  input.goodput = BytesPerSecond::from_mbps(mbps);
  input.activation = Seconds(model.activation);
  input.at_handover = true;
  return input;
}

// Without T_0, in seconds.
double recovery(const char* scheme, const PlanInput& input) {
  return (decide(scheme, input).expected_sit - input.activation).count();
}

// Mean over a goodput of N(300, 50) Mbps cut below at 150, as in Table 2.
template <class Value>
double over_goodput(Value value) {
  double sum = 0, weight = 0;
  for (double mbps = 150; mbps <= 700; mbps += 0.5) {
    const double z = (mbps - 300) / 50;
    const double w = std::exp(-z * z / 2);
    sum += w * value(mbps);
    weight += w;
  }
  return sum / weight;
}

TEST(PaperNumbers, table_1_full_copy) {
  const std::array<double, 3> kilo{7.158, 14.317, 28.633}, thousand{6.991, 13.981, 27.962};
  for (std::size_t k = 0; k < 3; ++k) {
    const auto times = static_cast<TokenPosition>(1u << k);
    EXPECT_NEAR(recovery("full-copy", fixed(k32b, 1024 * times, 300, 1808)), kilo[k], 5e-4);
    // The slack is the rounding of the goodputs of 292.7, 293.1 and 288.6 Mbps that are implied.
    EXPECT_NEAR(recovery("full-copy", fixed(k32b, 1000 * times, 300, 1808)), thousand[k], 5e-4);
  }
}

TEST(PaperNumbers, table_1_recomputation) {
  const std::array<double, 3> seconds{0.566, 1.133, 2.265};
  for (std::size_t k = 0; k < 3; ++k) {
    const auto tokens = static_cast<TokenPosition>(1024u << k);
    EXPECT_NEAR(recovery("recompute", fixed(k32b, tokens, 300, 1808)), seconds[k], 1e-3);
  }
}

TEST(PaperNumbers, table_1_ctho) {
  const std::array<double, 3> prefill{1762, 1695, 1948}, seconds{0.537, 1.114, 1.959};
  for (std::size_t k = 0; k < 3; ++k) {
    const double tokens = 1024.0 * (1u << k);
    EXPECT_NEAR(fluid_split(tokens, 1 / prefill[k], 0, 143.0511).seconds, seconds[k], 6e-4);
    // In blocks: at most one more.
    const double blocks =
        recovery("ctho", fixed(k32b, static_cast<TokenPosition>(tokens), 300, prefill[k]));
    EXPECT_GE(blocks, seconds[k] - 6e-4);
    EXPECT_LE(blocks, seconds[k] + 16 / prefill[k] + 6e-4);
  }
}

TEST(PaperNumbers, table_2_ctho_over_the_distribution_of_goodput) {
  struct Row {
    Model model;
    double tokens, seconds;
  };
  for (const auto& [model, tokens, seconds] :
       {Row{k8b, 5464, 0.802}, Row{k14b, 4669, 1.276}, Row{k32b, 2746, 3.604}}) {
    const double mean = over_goodput([&, n = tokens, m = model](double mbps) {
      return fluid_split(n, 1 / m.prefill, 0, mbps * 1e6 / 8 / static_cast<double>(m.kv_bytes))
          .seconds;
    });
    EXPECT_NEAR(mean, seconds, 1e-3);
  }
  EXPECT_NEAR(over_goodput([](double mbps) { return 300 / mbps; }), 1.0287, 2e-3);
}

TEST(PaperNumbers, figure_5_ratios_of_means_over_the_goodputs) {
  const auto full_copy = [](const Model& model) {
    double sum = 0;
    for (const double mbps : {100.0, 300.0, 500.0}) {
      sum += recovery("full-copy", fixed(model, 2500, mbps, model.prefill));
    }
    return sum / 3 / model.activation;
  };
  EXPECT_NEAR(full_copy(k14b), 71.1, 0.05);
  EXPECT_NEAR(full_copy(k32b), 83.2, 0.1);
  EXPECT_NEAR(full_copy(k8b), 88.1, 0.1);
  EXPECT_NEAR(recovery("recompute", fixed(k8b, 2500, 300, 6526)) / k8b.activation, 2.52, 5e-3);
}

TEST(PaperNumbers, figure_7_knee_is_where_the_window_suffices) {
  for (const auto& [prefill, knee] : {std::pair{1848.0, 1.08}, std::pair{3434.0, 0.58}}) {
    PlanInput input = fixed(k14b, 2000, 300, prefill);
    input.at_handover = false;
    input.remaining = Seconds(6);
    EXPECT_NEAR(pallas_window(input).count(), knee, 5e-3);
  }
}

TEST(PaperNumbers, figure_9_ablations) {
  const PlanInput now = fixed(k14b, 2500, 300, 1848);
  EXPECT_NEAR(decide("pallas-no-rc", now).expected_sit.count(), 11.15, 0.01);
  PlanInput input = now;
  input.at_handover = false;
  input.remaining = Seconds(4);
  EXPECT_NEAR(decide("pallas-no-rc", input).expected_sit.count(), 9.80, 0.01);  // 1.35 s ahead
  input.decode_rate = TokensPerSecond(22);
  input.context = 2500 - 88 + 30;  // about 2,500 at the trigger
  EXPECT_NEAR(decide("pallas-no-sm", input).expected_sit.count(), 0.2516, 1e-3);

  double reduction = 0;
  for (const Model& model : {k8b, k14b, k32b}) {
    for (const double mbps : {100.0, 300.0, 500.0}) {
      const PlanInput setting = fixed(model, 2500, mbps, model.prefill);
      reduction += 1 - model.activation / decide("pallas-no-rc", setting).expected_sit.count();
    }
  }
  EXPECT_NEAR(100 * reduction / 9, 98.13, 0.005);
}

TEST(PaperNumbers, half_a_boundary_block_on_the_link) {
  const auto send = [](const Model& model, double mbps) {
    return 1000 * send_time(fixed(model, 0, mbps, 1), 7.5)->count();
  };
  EXPECT_NEAR(send(k8b, 300), 26, 0.5);
  EXPECT_NEAR(send(k14b, 300), 33, 0.5);
  EXPECT_NEAR(send(k32b, 300), 52, 0.5);
  EXPECT_NEAR(send(k32b, 100), 157, 0.5);
}

}  // namespace
}  // namespace pallas::plan
