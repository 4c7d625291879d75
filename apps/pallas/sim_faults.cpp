#include "sim_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

namespace pallas::app {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t kFailedKept = 20;

void add(FaultResults& all, const sim::FaultOutcome& one) {
  ++all.runs;
  all.simulated_s += to_seconds(one.span).count();
  all.handovers += one.handovers;
  all.tokens += one.tokens;
  all.events += one.events;
  for (std::size_t i = 0; i < one.injected.size(); ++i) all.injected[i] += one.injected[i];
  all.coverage.add(one.coverage);
}

std::string place_of(const sim::Violation& v) {
  std::string place;
  if (v.gnb >= 0) place += fmt::format(" at gnb-{}", v.gnb);
  if (v.ue >= 0) place += fmt::format(", ue-{}", v.ue + 1);
  return place;
}

}  // namespace

FaultResults run_faults(const FaultCampaign& campaign,
                        const std::function<void(std::uint64_t done)>& progress) {
  FaultResults all;
  all.threads = static_cast<unsigned>(std::clamp<std::uint64_t>(
      std::thread::hardware_concurrency(), 1, std::max<std::uint64_t>(campaign.runs, 1)));
  std::atomic<std::uint64_t> next{0}, done{0};
  std::mutex merging;
  const auto begin = std::chrono::steady_clock::now();
  const auto work = [&] {
    FaultResults mine;
    for (std::uint64_t i = next++; i < campaign.runs; i = next++) {
      const std::uint64_t seed = sim::seed_of_run(campaign.seed, i);
      auto outcome = sim::run(sim::draw_faults(seed));
      add(mine, outcome);
      if (!outcome.violations.empty()) {
        ++mine.failures;
        mine.failed.push_back({i, seed, std::move(outcome.violations)});
      }
      ++done;
    }
    const std::lock_guard lock(merging);
    all.runs += mine.runs;
    all.simulated_s += mine.simulated_s;
    all.handovers += mine.handovers;
    all.tokens += mine.tokens;
    all.events += mine.events;
    all.failures += mine.failures;
    for (std::size_t i = 0; i < mine.injected.size(); ++i) all.injected[i] += mine.injected[i];
    all.coverage.add(mine.coverage);
    for (FailedRun& f : mine.failed) all.failed.push_back(std::move(f));
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < all.threads; ++t) threads.emplace_back(work);
  while (done < campaign.runs) {
    progress(done);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  for (std::thread& thread : threads) thread.join();
  all.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::sort(all.failed.begin(), all.failed.end(),
            [](const auto& a, const auto& b) { return a.index < b.index; });
  if (all.failed.size() > kFailedKept) all.failed.resize(kFailedKept);
  return all;
}

std::string faults_text(const FaultCampaign& campaign, const FaultResults& r) {
  std::string out = fmt::format(
      "{} runs with faults from seed {}: {:.1f} s on {} threads, {:.1f} runs/s\n{:.0f} s "
      "simulated, "
      "{} handovers claimed, {} tokens delivered, {} events checked\n",
      r.runs, campaign.seed, r.seconds, r.threads,
      static_cast<double>(r.runs) / std::max(r.seconds, 1e-9), r.simulated_s, r.handovers, r.tokens,
      r.events);
  for (std::size_t i = 0; i < r.injected.size(); ++i) {
    out += fmt::format("{:<12}{:>10}{}", sim::kFaultNames.at(i), r.injected[i],
                       i % 4 == 3 || i + 1 == r.injected.size() ? "\n" : "   ");
  }
  out += fmt::format("violations  {:>10}\n", r.failures);
  for (const FailedRun& f : r.failed) {
    const sim::Violation& v = f.violations.front();
    out += fmt::format("run {} seed {}: {:.3f} ms{}: {}\n", f.index, f.seed,
                       to_ms(v.at.time_since_epoch()), place_of(v), v.what);
  }
  return out;
}

std::string faults_json(const FaultCampaign& campaign, const FaultResults& r) {
  json all{{"seed", campaign.seed},
           {"runs", r.runs},
           {"seconds", r.seconds},
           {"threads", r.threads},
           {"runs_per_s", static_cast<double>(r.runs) / std::max(r.seconds, 1e-9)},
           {"simulated_s", r.simulated_s},
           {"handovers", r.handovers},
           {"tokens", r.tokens},
           {"events", r.events}};
  json injected;
  for (std::size_t i = 0; i < r.injected.size(); ++i) {
    injected[std::string(sim::kFaultNames.at(i))] = r.injected[i];
  }
  all["injected"] = std::move(injected);
  json transitions;
  for (const auto& t : sim::listed_transitions(r.coverage)) transitions[t.name] = t.seen;
  all["transitions"] = std::move(transitions);
  all["violations"] = r.failures;
  json failed = json::array();
  for (const FailedRun& f : r.failed) {
    json said = json::array();
    for (const sim::Violation& v : f.violations) {
      said.push_back({{"at_ms", to_ms(v.at.time_since_epoch())},
                      {"gnb", v.gnb},
                      {"ue", v.ue},
                      {"what", v.what}});
    }
    failed.push_back({{"run", f.index}, {"seed", f.seed}, {"violations", std::move(said)}});
  }
  all["failed"] = std::move(failed);
  return all.dump(2) + "\n";
}

std::string trace_text(const FailedRun& failed, std::size_t lines) {
  const sim::FaultScript script = sim::shrink(sim::draw_faults(failed.seed));
  const auto outcome = sim::run(script, {.trace = true, .trigger = {}});
  if (outcome.violations.empty()) return "the run does not fail again\n";
  std::string out = fmt::format("seed {}, scheme {}, {} gNBs; of its events it needs:\n",
                                failed.seed, script.scheme, script.gnbs);
  for (const auto& event : script.events) {
    out += fmt::format("{:11.3f} ms  {}\n", to_ms(event.at), sim::describe(event));
  }
  const sim::Violation& v = outcome.violations.front();
  out += "the last of its trace:\n";
  for (const std::string& line : sim::last_lines(outcome.trace, v.ue, v.at, lines)) {
    out += line + "\n";
  }
  return out;
}

}  // namespace pallas::app
