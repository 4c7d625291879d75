// What the simulator's event queue and a token cost, on one core.

#include <benchmark/benchmark.h>

#include <vector>

#include "base/random.h"
#include "sim/virtual_clock.h"
#include "sim/world.h"

namespace pallas::sim {
namespace {

// Each event schedules its successor at a random distance; `pending` are waiting all the time.
void events_with_pending_timers(benchmark::State& state) {
  VirtualClock clock;
  Random random(1);
  struct Event {
    VirtualClock& clock;
    Random& random;
    void operator()() const {
      clock.schedule_after(Duration(1 + random.below(1'000'000'000)), Event{clock, random});
    }
  };
  for (int i = 0; i < state.range(0); ++i) Event{clock, random}();
  for (auto _ : state) clock.run_next();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(events_with_pending_timers)->Arg(1'000)->Arg(100'000);

// Timers that are armed and cancelled again, as leases are.
void renewed_timers(benchmark::State& state) {
  VirtualClock clock;
  std::vector<TimerId> leases(static_cast<std::size_t>(state.range(0)));
  std::size_t next = 0;
  for (auto _ : state) {
    TimerId& lease = leases[next++ % leases.size()];
    clock.cancel(lease);
    lease = clock.schedule_after(std::chrono::seconds(5), [] {});
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(renewed_timers)->Arg(100'000);

// Tokens of `range` sessions at one gNB, from the engine's step through node to the UE.
void tokens_of_sessions(benchmark::State& state) {
  WorldSettings settings;
  settings.gnbs.push_back({"a", {}, {}});
  settings.engine = *paper_model("llama-3-8b");
  settings.engine.slots = 256;
  settings.engine.context_tokens = 4'000'000;
  settings.keep_arrivals = false;
  World world(std::move(settings));
  for (int i = 0; i < state.range(0); ++i) {
    UeSettings ue;
    ue.prompt_tokens = 16;
    world.open("a", ue);
  }
  world.clock.run_for(std::chrono::seconds(1));
  const std::uint64_t before = world.totals().tokens_emitted;
  for (auto _ : state) world.clock.run_for(std::chrono::seconds(1));
  state.SetItemsProcessed(static_cast<std::int64_t>(world.totals().tokens_emitted - before));
}
BENCHMARK(tokens_of_sessions)->Arg(1)->Arg(64);

}  // namespace
}  // namespace pallas::sim
