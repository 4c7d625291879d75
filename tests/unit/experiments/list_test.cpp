// What all experiments have in common.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <set>

#include "run_quickly.h"

namespace pallas::experiments {
namespace {

TEST(Experiments, are_the_tables_and_figures_of_the_papers_in_order_and_our_own) {
  std::vector<std::string> names;
  for (const auto& experiment : experiments()) names.emplace_back(experiment.name);
  EXPECT_THAT(names, testing::ElementsAre("figure1", "table1", "figure2", "figure5", "table2",
                                          "figure6", "table3", "figure7", "figure8", "figure9",
                                          "ctho", "impactho", "two-front", "uncertainty", "scale"));
  EXPECT_EQ(find_experiment("figure3"), nullptr);
}

class EachExperiment : public testing::TestWithParam<const char*> {};

TEST_P(EachExperiment, names_its_quantities_by_the_rule_and_says_its_parameters) {
  const Experiment* experiment = find_experiment(GetParam());
  ASSERT_NE(experiment, nullptr);
  const auto outcome = experiment->run(quick_settings());
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_FALSE(outcome->rows.empty());
  EXPECT_FALSE(outcome->figures.empty());
  EXPECT_FALSE(outcome->parameters.empty());
  const std::regex rule(std::string(GetParam()) +
                        "/[a-z0-9-]+/[a-z0-9_]+_(avg|p50|p90|p99|worst)(_[a-z0-9]+)+/[a-z0-9.-]+");
  std::set<std::string> seen;
  for (const auto& row : outcome->rows) {
    EXPECT_TRUE(std::regex_match(row.quantity, rule)) << row.quantity;
    EXPECT_TRUE(seen.insert(row.quantity).second) << row.quantity << " twice";
    EXPECT_TRUE(std::isfinite(row.ours)) << row.quantity;
  }
  for (const auto& figure : outcome->figures) {
    EXPECT_FALSE(figure.title.empty() || figure.x_label.empty() || figure.y_label.empty());
    for (const auto& curve : figure.curves) {
      for (std::size_t k = 1; k < curve.points.size(); ++k) {
        EXPECT_LE(curve.points[k - 1].first, curve.points[k].first) << curve.title;
      }
    }
  }
}

TEST_P(EachExperiment, gives_the_same_numbers_for_the_same_seed) {
  if (std::string(GetParam()) == "scale") GTEST_SKIP() << "measures this machine";
  const auto first = run_quickly(GetParam(), 3), again = run_quickly(GetParam(), 3);
  ASSERT_EQ(first.size(), again.size());
  for (const auto& [quantity, row] : first)
    EXPECT_EQ(row.ours, again.at(quantity).ours) << quantity;
}

INSTANTIATE_TEST_SUITE_P(All, EachExperiment,
                         testing::Values("figure1", "table1", "figure2", "figure5", "table2",
                                         "figure6", "table3", "figure7", "figure8", "figure9",
                                         "ctho", "impactho", "two-front", "uncertainty"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Experiments, an_unreadable_trace_is_named) {
  for (const char* name : {"table3", "uncertainty", "figure5"}) {
    Settings settings = quick_settings();
    settings.trace = "/nonexistent.csv";
    const auto outcome = find_experiment(name)->run(settings);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, Errc::kNotFound);
    EXPECT_THAT(outcome.error().message, testing::HasSubstr("/nonexistent.csv"));
  }
}

}  // namespace
}  // namespace pallas::experiments
