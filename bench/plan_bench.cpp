// What a decision costs, on one core.

#include <benchmark/benchmark.h>

#include <vector>

#include "plan/cost_model.h"
#include "plan/ctho_users.h"
#include "plan/two_front_model.h"
#include "plan/uncertainty.h"

namespace pallas::plan {
namespace {

// Qwen3-14B at 300 Mbps, a window of up to 5 s in steps of 40 ms: 126 candidates.
PlanInput session(std::size_t k) {
  PlanInput input;
  input.context = 500 + static_cast<TokenPosition>(k * 37 % 4000);
  input.prompt = input.context;
  input.kv_bytes_per_token = 163'840;
  input.prefill_rate = TokensPerSecond(1848.4);
  input.decode_rate = TokensPerSecond(22);
  input.goodput = BytesPerSecond::from_mbps(100 + static_cast<double>(k * 13 % 400));
  input.remaining = Seconds(5 + static_cast<double>(k * 7 % 100) / 10);
  input.activation = Seconds(0.2355);
  input.step = Seconds(0.04);
  return input;
}

// A few different sessions, so that no run sees only one set of branches.
std::vector<PlanInput> sessions(std::size_t count) {
  std::vector<PlanInput> all;
  all.reserve(count);
  for (std::size_t k = 0; k < count; ++k) all.push_back(session(k));
  return all;
}

template <class Decide>
void one_decision(benchmark::State& state, std::vector<PlanInput> inputs, Decide decide) {
  std::size_t k = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(decide(inputs[k]));
    k = k + 1 == inputs.size() ? 0 : k + 1;
  }
}

void algorithm_1_of_126_candidates(benchmark::State& state) {
  one_decision(state, sessions(64), pallas_window_by_grid);
}
BENCHMARK(algorithm_1_of_126_candidates);

void closed_form(benchmark::State& state) {
  one_decision(state, sessions(64), pallas_window);
}
BENCHMARK(closed_form);

void closed_form_under_uncertainty(benchmark::State& state) {
  std::vector<PlanInput> inputs = sessions(64);
  for (PlanInput& input : inputs) {
    input.sigma = Seconds(0.4);
    input.confidence = 0.9;
  }
  one_decision(state, std::move(inputs), pallas_window);
}
BENCHMARK(closed_form_under_uncertainty);

void two_front_closed_form(benchmark::State& state) {
  one_decision(state, sessions(64), [](const PlanInput& input) {
    return two_front_window(input, choose_fronts(input));
  });
}
BENCHMARK(two_front_closed_form);

// What a node does for one session: with the plan, its names and forecasts.
void whole_decision(benchmark::State& state, const char* name) {
  const auto scheme = make_scheme(name);
  one_decision(state, sessions(64),
               [&](const PlanInput& input) { return (*scheme)->decide(input); });
}
BENCHMARK_CAPTURE(whole_decision, pallas, "pallas");
BENCHMARK_CAPTURE(whole_decision, two_front, "two-front");

// One control cycle of a million sessions by the closed form.
void a_million_sessions(benchmark::State& state) {
  const std::vector<PlanInput> inputs = sessions(1'000'000);
  std::vector<WindowDecision> decisions(inputs.size());
  for (auto _ : state) {
    for (std::size_t k = 0; k < inputs.size(); ++k) decisions[k] = decide_window(inputs[k]);
    benchmark::DoNotOptimize(decisions.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(inputs.size()));
}
BENCHMARK(a_million_sessions)->Unit(benchmark::kMillisecond);

void ctho_for_users(benchmark::State& state) {
  CthoProblem problem;
  for (int k = 0; k < state.range(0); ++k) {
    problem.users.push_back({0.05 * k, 1024 + 300.0 * (k * 7 % 10)});
  }
  problem.link = 9'800;
  problem.seconds_per_token = 9.4267e-5;
  problem.overhead_s = 2.4e-3;
  problem.cycle_s = 0.01;
  for (auto _ : state) benchmark::DoNotOptimize(solve_ctho(problem));
}
BENCHMARK(ctho_for_users)->Arg(4)->Arg(64);

}  // namespace
}  // namespace pallas::plan
