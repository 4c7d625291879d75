// What `pallas experiment` prints and writes.

#include "experiment_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pallas::app {
namespace {

using testing::HasSubstr;

const experiments::Experiment kExperiment{"sample", "A sample.", nullptr};

experiments::Outcome sample() {
  experiments::Outcome outcome;
  outcome.rows = {{"sample/pallas/sit_avg_ms/14b", 220, 200, ""},
                  {"sample/pallas/sit_p50_ms/14b", 210, 100, "known \"miss\""},
                  {"sample/two-front/sit_avg_ms/14b", 205, std::nullopt, ""}};
  outcome.parameters = {"Paper: all of it."};
  return outcome;
}

TEST(ExperimentOutput, shows_the_papers_number_ours_the_ratio_the_parameters_and_the_notes) {
  const std::string text = outcome_text(kExperiment, sample());
  EXPECT_THAT(text, HasSubstr("sample: A sample."));
  EXPECT_THAT(text, testing::ContainsRegex("sit_avg_ms/14b +220.00 +200.00 +1.100\n"));
  EXPECT_THAT(text, testing::ContainsRegex("sit_p50_ms/14b +210.00 +100.00 +2.100 \\*\n"));
  EXPECT_THAT(text, testing::ContainsRegex("two-front/sit_avg_ms/14b +205.00 +- +-\n"));
  EXPECT_THAT(text, HasSubstr("Parameters\n  Paper: all of it.\n"));
  EXPECT_THAT(text, HasSubstr("Notes\n  sample/pallas/sit_p50_ms/14b\n      known \"miss\"\n"));
}

TEST(ExperimentOutput, rows_are_a_json_list_with_null_where_the_paper_is_silent) {
  EXPECT_EQ(
      outcome_rows_json(sample()),
      R"([{"quantity":"sample/pallas/sit_avg_ms/14b","ours":220,"paper":200,"ratio":1.1},)"
      R"({"quantity":"sample/pallas/sit_p50_ms/14b","ours":210,"paper":100,"ratio":2.1,)"
      R"("note":"known \"miss\""},)"
      R"({"quantity":"sample/two-front/sit_avg_ms/14b","ours":205,"paper":null,"ratio":null}])");
}

TEST(ExperimentOutput, the_file_says_what_made_the_rows) {
  experiments::Settings settings;
  settings.seed = 7;
  const std::string json = outcome_json(kExperiment, settings, sample());
  EXPECT_THAT(json, HasSubstr(R"("experiment":"sample","seed":7,"quick":false,"trace":null)"));
  EXPECT_THAT(json, HasSubstr(R"("parameters":["Paper: all of it."])"));
}

TEST(ExperimentOutput, csv_quotes_notes) {
  EXPECT_THAT(outcome_csv(sample()),
              HasSubstr("sample/pallas/sit_p50_ms/14b,210,100,2.1,\"known \"\"miss\"\"\"\n"));
  EXPECT_THAT(outcome_csv(sample()), HasSubstr("sample/two-front/sit_avg_ms/14b,205,,,\n"));
}

TEST(ExperimentOutput, a_figure_is_a_script_with_its_data_that_draws_svg_and_png) {
  experiments::Figure figure{"sample", "A \"title\"", "x, s", "y, ms", true, false, {}};
  figure.curves = {{"one_curve", {{1, 2}, {3, 4}}}, {"empty", {}}};
  const std::string script = figure_script(figure);
  EXPECT_THAT(script, HasSubstr("set title \"A \\\"title\\\"\" noenhanced"));
  EXPECT_THAT(script, HasSubstr("$c0 << END\n1 2\n3 4\nEND\n"));
  EXPECT_THAT(script, HasSubstr("set logscale x\n"));
  EXPECT_THAT(script, testing::Not(HasSubstr("set logscale y")));
  EXPECT_THAT(script, HasSubstr("set output \"sample.svg\""));
  EXPECT_THAT(script, HasSubstr("set output \"sample.png\""));
  EXPECT_THAT(script, testing::Not(HasSubstr("empty")));
  EXPECT_EQ(figure_csv(figure), "curve,x,y\n\"one_curve\",1,2\n\"one_curve\",3,4\n");
  figure.curves = {{"empty", {}}};
  EXPECT_EQ(figure_script(figure), "");
}

}  // namespace
}  // namespace pallas::app
