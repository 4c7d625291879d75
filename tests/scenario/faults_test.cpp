// Random runs with faults (sim/fault_run.h), and a matrix of a fault at each state.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "session/target_handover.h"
#include "sim/fault_run.h"

namespace pallas::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSeed = 1;

std::uint64_t wanted_runs(std::uint64_t normally) {
  const char* const asked = std::getenv("PALLAS_FAULT_RUNS");
  return asked == nullptr ? normally : std::strtoull(asked, nullptr, 10);
}

std::string first_of(const FaultOutcome& outcome) {
  return outcome.violations.empty() ? std::string() : outcome.violations.front().what;
}

// tools/planted_bugs reads what this prints.
TEST(Faults, runs_break_no_promise) {
  const std::uint64_t runs = wanted_runs(300);
  for (std::uint64_t i = 0; i < runs; ++i) {
    const std::uint64_t seed = seed_of_run(kSeed, i);
    const auto outcome = run(draw_faults(seed));
    ASSERT_EQ(first_of(outcome), "")
        << "run " << i << " seed " << seed << ": " << first_of(outcome);
  }
}

TEST(Faults, a_seed_gives_the_same_run_again) {
  for (std::uint64_t i = 0; i < 20; ++i) {
    const FaultScript script = draw_faults(seed_of_run(kSeed, i));
    const auto once = run(script, {.trace = true, .trigger = {}});
    const auto again = run(draw_faults(script.seed), {.trace = true, .trigger = {}});
    ASSERT_EQ(once.trace.size(), again.trace.size());
    for (std::size_t k = 0; k < once.trace.size(); ++k) {
      ASSERT_EQ(once.trace[k].at, again.trace[k].at);
      ASSERT_EQ(once.trace[k].what, again.trace[k].what);
    }
  }
}

TEST(Faults, a_run_spans_at_most_a_minute) {
  for (std::uint64_t i = 0; i < 100; ++i) {
    const FaultScript script = draw_faults(seed_of_run(kSeed, i));
    EXPECT_LE(script.faults_end + script.settle + script.drain, 60s) << script.seed;
  }
}

// Seeds whose runs broke a promise once; what it was is in CHANGELOG.md.
TEST(Faults, seeds_that_failed_once) {
  for (const std::uint64_t seed :
       {69473669737254ull,  23863537719884ull,  39519314699734ull,  132481316872380ull,
        150156810807574ull, 131126189112870ull, 172196953443834ull, 164132947986203ull,
        259044273364846ull, 279441394172148ull, 111319847071660ull, 104675461438856ull,
        128027908406332ull, 111702192025132ull, 164944582556736ull, 42840186230456ull,
        147353684709100ull, 106435865701070ull, 232895076743620ull, 165066177183183ull,
        271512437469342ull, 131664141749645ull, 251936492383393ull, 121273820956326ull,
        73786337327461ull,  131730469676285ull, 115775840956896ull, 56434183371039ull,
        148764294569148ull, 119670322741976ull, 67981640021032ull,  40880840735813ull,
        64971322203590ull,  239021421110277ull, 63891399146771ull,  136582498067859ull,
        30651811574876ull,  166695345710976ull, 24050254565008ull,  27004902503028ull,
        115924014787687ull, 230792754888967ull, 88851787984538ull,  255950561005338ull,
        106839965390773ull}) {
    EXPECT_EQ(first_of(run(draw_faults(seed))), "") << seed;
  }
}

TEST(Faults, every_transition_that_the_protocol_lists_is_reached) {
  FaultCoverage coverage;
  for (std::uint64_t i = 0; i < 1500; ++i) {
    coverage.add(run(draw_faults(seed_of_run(kSeed, i))).coverage);
  }
  for (const ListedTransition& t : listed_transitions(coverage)) EXPECT_GT(t.seen, 0u) << t.name;
}

// --- the matrix: {state} x {kill, pause, cut} x {source, target, link} ---

struct Cell {
  StateChange::Table table;
  int state;
};

std::vector<Cell> states() {
  std::vector<Cell> all;
  for (int role = 0; role < kNoRole; ++role) all.push_back({StateChange::Table::kRole, role});
  // `over` and `complete` are gone before an event ends.
  for (int s = 0; s < kSourceStates - 1; ++s) all.push_back({StateChange::Table::kSource, s});
  for (int s = 0; s < kTargetStates - 1; ++s) all.push_back({StateChange::Table::kTarget, s});
  return all;
}

std::string name_of(const Cell& cell) {
  switch (cell.table) {
    case StateChange::Table::kRole:
      return std::string(role_name(cell.state));
    case StateChange::Table::kSource:
      return "source " + std::string(source_state_name(cell.state));
    case StateChange::Table::kTarget:
      return "target " + std::string(target_state_name(cell.state));
  }
  return {};
}

// A run that may come to the state: only `partial` decodes on a part of the KV, which is one scheme
// of many, and most of its handovers are whole in time.
FaultScript draw_for(const Cell& cell, std::uint64_t& next) {
  const bool on_part = cell.table == StateChange::Table::kTarget &&
                       cell.state == static_cast<int>(session::TargetHandover::State::kOnPart);
  for (;;) {
    FaultScript script = draw_faults(seed_of_run(kSeed + 1, ++next));
    if (!on_part || script.scheme == "partial") return script;
  }
}

TEST(FaultMatrix, a_fault_at_each_state_of_source_target_and_link_breaks_no_promise) {
  using Victim = FaultTrigger::Victim;
  constexpr int kStruck = 2;            // runs that reach the state, for each cell
  constexpr std::uint64_t kMost = 400;  // runs that are tried for it
  for (const Cell& cell : states()) {
    std::uint64_t next = 0;
    for (const FaultKind kind : {FaultKind::kKill, FaultKind::kPause, FaultKind::kCut}) {
      for (const Victim victim : {Victim::kSource, Victim::kTarget, Victim::kLink}) {
        int struck = 0;
        for (std::uint64_t tried = 0; struck < kStruck && tried < kMost; ++tried) {
          FaultScript script = draw_for(cell, next);
          std::erase_if(script.events, [](const FaultEvent& e) { return is_fault(e.kind); });
          script.faulty = true;
          FaultOptions options;
          options.trigger = FaultTrigger{cell.table, cell.state, kind, victim,
                                         tried % 2 == 0 ? Duration(300ms) : Duration(3s)};
          const auto outcome = run(script, options);
          struck += outcome.triggered ? 1 : 0;
          ASSERT_EQ(first_of(outcome), "")
              << name_of(cell) << ", " << to_string(kind) << ", victim " << static_cast<int>(victim)
              << ", seed " << script.seed;
        }
        EXPECT_EQ(struck, kStruck) << name_of(cell) << " was not reached";
      }
    }
  }
}

}  // namespace
}  // namespace pallas::sim
