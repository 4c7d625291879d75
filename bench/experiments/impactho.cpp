// ImpactHO (arXiv 2608.10545): handovers share one link; each resumes on the part of its KV that
// came in time, the most important entries first.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/random.h"
#include "list.h"
#include "plan/allocation_baselines.h"
#include "plan/allocator.h"
#include "plan/clairvoyant.h"
#include "plan/ctho_split.h"
#include "plan/utility_fit.h"
#include "statistics.h"

namespace pallas::experiments {
namespace {

constexpr double kSlot = 0.1;     // s
constexpr double kLinkGbps = 20;  // of all handovers together
constexpr double kSlotGigabits = kLinkGbps * kSlot;
constexpr std::size_t kWindowSlots = 5;  // T_max = 500 ms
constexpr double kHorizon = 100;         // s
// Qwen3-8B in BF16: K and V of 36 layers with 8 heads of 128.
constexpr double kGigabitsPerToken = 2 * 36 * 8 * 128 * 16 / 1e9;
constexpr std::array<int, 3> kContexts{4096, 8192, 16384};
constexpr std::array<const char*, 3> kContextNames{"4k", "8k", "16k"};
// Time to 99 % of the full accuracy, ms: ImpactHO, prefill anew, hybrid.
constexpr std::array<double, 3> kPaperTimes{229, 353, 590};
constexpr std::array<double, 3> kPaperPrefill{300, 676, 1566};
constexpr std::array<double, 3> kPaperHybrid{211, 396, 694};

struct Arrival {
  double at = 0;            // s
  std::size_t context = 0;  // index in kContexts
  double gigabits() const { return kContexts[context] * kGigabitsPerToken; }
  // Whoever comes inside a slot may receive from the next one on.
  std::size_t first_slot() const { return static_cast<std::size_t>(std::ceil(at / kSlot)); }
};

std::vector<Arrival> arrivals(Random& random, double rate, double horizon) {
  std::vector<Arrival> all;
  for (double t = random.exponential(1 / rate); t < horizon; t += random.exponential(1 / rate)) {
    all.push_back({t, static_cast<std::size_t>(random.below(kContexts.size()))});
  }
  return all;
}

// Slot after slot until all windows are over. `after(slot, i, x before, x after)` sees each share.
template <class After>
std::vector<double> share(const std::vector<Arrival>& users, const plan::AllocationRule& rule,
                          std::size_t window_slots, After after) {
  std::vector<double> x(users.size(), 0.0);
  std::size_t from = 0;
  for (std::size_t slot = 0; from < users.size(); ++slot) {
    std::vector<plan::Receiver> present;
    std::vector<std::size_t> who;
    for (std::size_t i = from; i < users.size() && users[i].first_slot() <= slot; ++i) {
      if (slot >= users[i].first_slot() + window_slots || x[i] >= 1) continue;
      present.push_back({users[i].gigabits(), x[i], {}});
      who.push_back(i);
    }
    if (!present.empty()) {
      const auto y = rule.allocate(present, kSlotGigabits);
      for (std::size_t k = 0; k < who.size(); ++k) {
        after(slot, who[k], x[who[k]], y[k]);
        x[who[k]] = y[k];
      }
    }
    while (from < users.size() &&
           (x[from] >= 1 || users[from].first_slot() + window_slots <= slot + 1)) {
      ++from;
    }
  }
  return x;
}

std::vector<double> share(const std::vector<Arrival>& users, const plan::AllocationRule& rule) {
  return share(users, rule, kWindowSlots, [](std::size_t, std::size_t, double, double) {});
}

double total_accuracy(const std::vector<double>& fractions) {
  double sum = 0;
  for (const double x : fractions) sum += plan::Utility{}.value(x);
  return sum;
}

std::string rate_name(double rate) {
  return "rate" + std::to_string(static_cast<int>(rate));
}

// The curve that the points of a measurement would give: its own, with errors like those of an
// accuracy over a thousand questions.
Result<Row> fit_row(std::uint64_t seed, plan::UtilityShape shape, const std::string& name) {
  Random random(mix(seed, std::uint64_t{1}));
  const plan::Utility truth{shape, 94.134298, 28, 0.065};
  std::vector<plan::AccuracyPoint> points;
  for (int k = 0; k <= 50; ++k) {
    const double y = k <= 40 ? k * 0.01 : 0.4 + (k - 40) * 0.06;
    points.push_back({y, truth.value(y) + random.normal(0, 0.5)});
  }
  const auto fit = plan::fit_utility(points, shape);
  if (!fit) return Failure(fit.error());
  return Row{"impactho/fit/r2_avg_ratio/" + name, fit->r_squared, std::nullopt,
             "paper: above 0.999"};
}

// Mean accuracies against the rate of arrivals, and how close the online rule comes to a bound.
class Accuracies {
 public:
  Accuracies(const Settings& settings, Outcome& outcome) : settings_(settings), outcome_(outcome) {}

  void run() {
    const int runs = settings_.quick ? 5 : 100;
    const int bound_runs = settings_.quick ? 1 : 6;
    Figure figure{"impactho",
                  "Accuracy against the rate of handovers, 20 Gbit/s",
                  "handovers/s",
                  "mean accuracy, %",
                  false,
                  false,
                  {}};
    for (const auto& rule : plan::allocation_rules()) {
      figure.curves.push_back({std::string(rule.name), {}});
    }
    Figure bound_figure{"impactho-bound",
                        "Online against a bound for every allocator",
                        "handovers/s",
                        "share of the bound, %",
                        false,
                        false,
                        {{"two-regime", {}}}};
    for (const double rate : {1.0, 2.0, 4.0, 6.0, 8.0, 12.0}) {
      settings_.progress(rate / 16, "arrivals at " + rate_name(rate));
      double bound = 0, reached = 0;
      std::vector<double> accuracy(figure.curves.size(), 0.0), starved(figure.curves.size(), 0.0);
      double users = 0;
      for (int run = 0; run < runs; ++run) {
        Random random(mix(settings_.seed, 100 + static_cast<std::uint64_t>(rate) * 1000 +
                                              static_cast<std::uint64_t>(run)));
        const auto all = arrivals(random, rate, kHorizon);
        users += static_cast<double>(all.size());
        for (std::size_t k = 0; k < accuracy.size(); ++k) {
          const auto x = share(all, plan::allocation_rules()[k]);
          accuracy[k] += total_accuracy(x);
          starved[k] += share_of(x, [](double y) { return y < plan::Utility{}.threshold; }) *
                        static_cast<double>(x.size());
          if (k == 0 && run < bound_runs && rate <= 8) {
            reached += total_accuracy(x);
            bound += bound_of(all);
          }
        }
      }
      for (std::size_t k = 0; k < accuracy.size(); ++k) {
        const std::string scheme(plan::allocation_rules()[k].name);
        figure.curves[k].points.emplace_back(rate, accuracy[k] / users);
        Row row{"impactho/" + scheme + "/accuracy_avg_pct/" + rate_name(rate), accuracy[k] / users,
                std::nullopt, ""};
        if (k == 0 && rate == 4) row.paper = 93.7;
        if (k == 0 && rate == 8) row.note = "paper: over 90";
        outcome_.rows.push_back(row);
        if (rate == 12) add_starved(scheme, 100 * starved[k] / users);
      }
      if (bound > 0) {
        Row row{"impactho/two-regime/of_clairvoyant_avg_pct/" + rate_name(rate),
                100 * reached / bound, std::nullopt, ""};
        if (rate == 1) row.paper = 99.47;
        if (rate == 8) row.paper = 98.23;
        outcome_.rows.push_back(row);
        bound_figure.curves[0].points.emplace_back(rate, row.ours);
      }
    }
    outcome_.figures.push_back(std::move(figure));
    outcome_.figures.push_back(std::move(bound_figure));
  }

 private:
  static double bound_of(const std::vector<Arrival>& users) {
    std::vector<plan::ScheduledTransfer> transfers;
    for (const auto& user : users) {
      transfers.push_back(
          {user.gigabits(), user.first_slot(), user.first_slot() + kWindowSlots, {}});
    }
    return plan::clairvoyant_bound(transfers, kSlotGigabits, 5e-4, 60).upper;
  }

  void add_starved(const std::string& scheme, double percent) {
    if (scheme != "two-regime" && scheme != "winner-fallback") return;
    Row row{"impactho/" + scheme + "/starved_avg_pct/rate12", percent,
            scheme == "two-regime" ? 0.65 : 15.5,
            "depends on the steepness of the curve, which the paper does not print"};
    outcome_.rows.push_back(row);
  }

  const Settings& settings_;
  Outcome& outcome_;
};

// The fraction at which the accuracy is `goal`.
double fraction_at(const plan::Utility& utility, double goal) {
  double low = 0, high = 1;
  for (int k = 0; k < 60; ++k) {
    const double middle = (low + high) / 2;
    (utility.value(middle) < goal ? low : high) = middle;
  }
  return high;
}

// Without a deadline, arrivals within one second: when does each reach 99 % of its full accuracy?
void times_to_full(const Settings& settings, Outcome& outcome) {
  const int runs = settings.quick ? 200 : 4000;
  const plan::Utility utility;
  const double needed = fraction_at(utility, 0.99 * utility.value(1));
  std::array<std::vector<double>, 3> impactho, hybrid, queued;
  for (int run = 0; run < runs; ++run) {
    Random random(mix(settings.seed, 1'000'000 + static_cast<std::uint64_t>(run)));
    const auto users = arrivals(random, 4, 1);
    share(users, plan::allocation_rules().front(), 1'000'000,
          [&](std::size_t slot, std::size_t i, double before, double after) {
            if (before >= needed || after < needed) return;
            // Within the slot the rate is constant.
            const double part = (needed - before) / (after - before);
            const double at = (static_cast<double>(slot) + part) * kSlot;
            impactho[users[i].context].push_back(1000 * (at - users[i].at));
          });
    std::vector<plan::QueuedHandover> queue;
    for (const auto& user : users) {
      const double tokens = kContexts[user.context];
      const double per_token = kPaperPrefill[user.context] / 1000 / tokens;
      const double link = kLinkGbps / kGigabitsPerToken;
      const double alone = plan::fluid_split(tokens, per_token, 0, link).seconds;
      hybrid[user.context].push_back(1000 * alone);
      queue.push_back({Seconds(user.at), Seconds(alone)});
    }
    const auto done = plan::first_come_first_served(queue);
    for (std::size_t i = 0; i < users.size(); ++i) {
      queued[users[i].context].push_back(1000 * done[i].count());
    }
  }
  const auto add = [&](const char* scheme, const std::array<std::vector<double>, 3>& times,
                       const std::array<double, 3>& paper, const char* note) {
    for (std::size_t c = 0; c < kContexts.size(); ++c) {
      outcome.rows.push_back(
          {std::string("impactho/") + scheme + "/to_99pct_avg_ms/" + kContextNames[c],
           mean(times[c]), paper[c], note});
    }
  };
  add("two-regime", impactho, kPaperTimes, "");
  add("hybrid", hybrid, kPaperHybrid, "each alone; how the paper lets them share is not stated");
  add("hybrid-queued", queued, kPaperHybrid, "one after the other, the other extreme");
}

}  // namespace

Result<Outcome> run_impactho(const Settings& settings) {
  Outcome outcome;
  for (const auto shape : {plan::UtilityShape::kAlgebraic, plan::UtilityShape::kLogistic}) {
    const auto row = fit_row(settings.seed, shape,
                             shape == plan::UtilityShape::kAlgebraic ? "algebraic" : "logistic");
    if (!row) return Failure(row.error());
    outcome.rows.push_back(*row);
  }
  Accuracies(settings, outcome).run();
  times_to_full(settings, outcome);
  outcome.parameters = {
      "Paper: 20 Gbit/s, slots of 100 ms, windows of 500 ms (5 slots from the first whole one), "
      "Poisson arrivals for 100 s, contexts of 4K, 8K and 16K tokens alike, KV of Qwen3-8B in BF16 "
      "(9.66 Gbit at 8K).",
      "Fitted: the curve M = 94.134, k = 28, tau = 0.065 for all contexts. The paper fits one for "
      "each and does not print them; no single k meets its accuracies and its times.",
      "The bound replaces each curve by its concave envelope and is a value of the dual, so it is "
      "above the clairvoyant optimum; the paper's ratios are against its own, tighter bound.",
      "Times to 99 % are means over arrivals at 4/s within one second, no deadline. Hybrid: "
      "ctHO's optimum, prefill rates from the paper's re-prefill times (300, 676, 1566 ms).",
      "Not derivable: accuracies under random order (56.7 % at 2/s, 20.2 % at 8/s). They belong to "
      "another curve, which the paper does not print."};
  return outcome;
}

}  // namespace pallas::experiments
