// ctHO for several users (arXiv 2603.28018): its delay beside sending all and prefilling all, over
// the number of users and over the backhaul; and how far the printed Proposition 2 is off.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/random.h"
#include "list.h"
#include "plan/ctho_users.h"

namespace pallas::experiments {
namespace {

constexpr double kBitsPerToken = 458'752;  // Qwen2.5-7B
constexpr double kShortest = 1024;         // tokens

struct Point {
  double ctho = 0, tho = 0, cho = 0;  // s, means
  double shortfall = 0;               // s: exact less printed transfer delay at L*
};

// The paper's vehicles: at 120 to 130 m, 20 m/s, border at 150 m.
plan::CthoProblem draw(Random& random, int users, double gigabits, double longest) {
  plan::CthoProblem problem;
  for (int k = 0; k < users; ++k) {
    const double x = random.uniform(120, 130);
    const double tokens = std::floor(random.uniform(kShortest, longest + 1));
    problem.users.push_back({(150 - x) / 20, tokens});
  }
  std::sort(problem.users.begin(), problem.users.end(),
            [](const plan::CthoUser& a, const plan::CthoUser& b) { return a.at < b.at; });
  problem.link = gigabits * 1e9 / kBitsPerToken;
  problem.seconds_per_token = 9.4267e-5;
  problem.overhead_s = 2.4e-3;
  problem.cycle_s = 0.01;
  return problem;
}

Point average(const Settings& settings, int users, double gigabits, double longest) {
  const int draws = settings.quick ? 50 : 1000;
  // The same vehicles at every backhaul.
  Random random(mix(settings.seed, static_cast<std::uint64_t>(users)));
  Point sum;
  for (int k = 0; k < draws; ++k) {
    const plan::CthoProblem problem = draw(random, users, gigabits, longest);
    const plan::CthoSolution best = plan::solve_ctho(problem);
    sum.ctho += best.seconds;
    sum.tho += plan::prefill_delay(problem, longest);
    sum.cho += plan::send_all(problem).seconds;
    sum.shortfall += plan::transfer_delay(problem, best.split, plan::TransferDelay::kExact) -
                     plan::transfer_delay(problem, best.split, plan::TransferDelay::kPrinted);
  }
  return {sum.ctho / draws, sum.tho / draws, sum.cho / draws, sum.shortfall / draws};
}

void add_delays(Outcome& outcome, const Point& point, const std::string& setting,
                std::optional<std::array<double, 3>> paper, const std::string& note) {
  const auto add = [&](const char* scheme, double ours, std::size_t which) {
    outcome.rows.push_back({std::string("ctho/") + scheme + "/delay_avg_s/" + setting, ours,
                            paper ? std::optional((*paper)[which]) : std::nullopt, note});
  };
  add("ctho", point.ctho, 0);
  add("tho", point.tho, 1);
  add("cho", point.cho, 2);
}

Figure figure_of(const char* name, const char* title, const char* x_label) {
  return {name,
          title,
          x_label,
          "longest delay of a user, mean, s",
          false,
          true,
          {{"ctHO", {}}, {"tHO", {}}, {"cHO", {}}}};
}

void add_point(Figure& figure, double x, const Point& point) {
  figure.curves[0].points.emplace_back(x, point.ctho);
  figure.curves[1].points.emplace_back(x, point.tho);
  figure.curves[2].points.emplace_back(x, point.cho);
}

}  // namespace

Result<Outcome> run_ctho(const Settings& settings) {
  constexpr int kMostUsers = 12;
  Outcome outcome;
  Figure by_users =
      figure_of("ctho-users", "ctHO by number of users, 4.5 Gbps", "users in one handover batch");
  for (int users = 1; users <= kMostUsers; ++users) {
    settings.progress(0.5 * users / kMostUsers, "users");
    const Point point = average(settings, users, 4.5, 5120);
    add_point(by_users, users, point);
    std::optional<std::array<double, 3>> paper;
    std::string note;
    if (users == kMostUsers) {
      paper = std::array{0.95, 1.25, 3.35};
      note =
          "known miss: the paper's three values do not follow from its parameters. A longest "
          "context of 5,120 gives its cHO; its tHO would need 1.8 times the printed seconds per "
          "token, and ctHO then stays below its value";
    }
    add_delays(outcome, point, "k" + std::to_string(users), paper, note);
  }
  outcome.figures.push_back(std::move(by_users));

  Figure by_link = figure_of("ctho-backhaul", "ctHO by backhaul, 4 users", "backhaul, Gbps");
  by_link.log_x = true;
  constexpr std::array<double, 7> kGigabits{0.5, 1, 2, 4.5, 8, 16, 32};
  for (std::size_t k = 0; k < kGigabits.size(); ++k) {
    settings.progress(0.5 + 0.5 * static_cast<double>(k) / kGigabits.size(), "backhaul");
    const Point point = average(settings, 4, kGigabits[k], 3072);
    add_point(by_link, kGigabits[k], point);
    std::string setting = std::to_string(kGigabits[k]);
    setting.erase(setting.find_last_not_of('0') + 1);
    if (setting.back() == '.') setting.pop_back();
    setting += "gbps";
    const bool headline = kGigabits[k] == 2;
    outcome.rows.push_back({"ctho/ctho/speedup_over_cho_avg_x/" + setting, point.cho / point.ctho,
                            headline ? std::optional(3.1) : std::nullopt,
                            headline ? "the longest context of this sweep is not stated; 3,072 is "
                                       "the paper's default"
                                     : ""});
    outcome.rows.push_back(
        {"ctho/ctho/speedup_over_tho_avg_x/" + setting, point.tho / point.ctho, std::nullopt, ""});
    outcome.rows.push_back({"ctho/printed/shortfall_avg_ms/" + setting, 1000 * point.shortfall,
                            std::nullopt, "by which Proposition 2 as printed is too low at L*"});
  }
  outcome.figures.push_back(std::move(by_link));
  outcome.parameters = {
      "Paper: Qwen2.5-7B (458,752 bits a token), p(L) = 94.267 us L + 2.4 ms, batches every 10 ms, "
      "contexts uniform from 1,024 tokens, vehicles at 120 to 130 m and 20 m/s with the border at "
      "150 m.",
      "Assumed: a longest context of 5,120 over the number of users (fits the paper's cHO at 12) "
      "and of 3,072 over the backhaul.",
      "Not the paper's: the transfer delay is the exact recursion, since the printed Proposition 2 "
      "lets users send before they arrive; nobody waits for a batch where nothing is prefilled.",
      "Not compared: up to 3.7 times faster than tHO. It grows without end with the backhaul, and "
      "the "
      "end of the paper's sweep is not stated; ours passes 3.7 between 8 and 16 Gbps.",
      "Left out: the distance between base stations below which no handover is better (375 m). It "
      "needs the radio link over the time of a whole answer, for which the paper's parameters do "
      "not suffice."};
  return outcome;
}

}  // namespace pallas::experiments
