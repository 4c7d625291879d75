#include "bench_statistics.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench_output.h"

namespace pallas::app {
namespace {

// One scheme, one setting, one round.
BenchPlan one_run(std::uint32_t trip = 1) {
  BenchOptions options;
  options.engine = "fake";
  options.schemes = {"two-front"};
  options.handovers = 1;
  options.trip_handovers = {trip};
  options.available_s = {0.1};
  return *make_plan(options);
}

// 60 tokens 10 ms apart from 0 on, handed over at 205 ms. The first one after it comes 25 ms late,
// and so do all others; the preparation began at 105 ms.
RunRecord moved(const BenchPlan& plan) {
  RunRecord run;
  run.key = plan.key(plan.runs[0]);
  run.available_s = 0.1;
  run.step_ms = 9;
  run.goodput_mbps = 20;
  run.planned_ms = {205};
  MoverRecord mover;
  for (int i = 0; i < 60; ++i) {
    mover.at_ms.push_back(10.0 * i + (i > 20 ? 25 : 0));
    mover.ids.push_back(500 + i);
  }
  HopRecord hop;
  hop.executed_ms = 205;
  hop.sit_ms = 30;
  hop.gap_ms = 35;
  hop.gnb = GnbReport{};
  hop.gnb->exact = hop.gnb->prepared = true;
  hop.gnb->request_ms = -100;
  hop.gnb->bytes = 1000;
  hop.gnb->early_s = 0.5;
  mover.hops.push_back(hop);
  run.movers.push_back(mover);
  return run;
}

// The same request, which stays: 10 ms apart, but for one interval of 12 ms after 205 ms.
RunRecord stayed(const BenchPlan& plan) {
  auto run = moved(plan);
  run.key = plan.control_key(plan.runs[0]);
  run.movers[0].hops.clear();
  for (int i = 0; i < 60; ++i) run.movers[0].at_ms[i] = 10.0 * i + (i > 23 ? 2 : 0);
  return run;
}

TEST(BenchStatistics, a_control_has_a_gap_at_the_same_place) {
  const auto plan = one_run();
  const auto all = summarize(plan, {{moved(plan), stayed(plan)}, {}});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].scheme, "two-front");
  EXPECT_EQ(all[1].scheme, kControl);
  EXPECT_NEAR(*all[1].gap.p50, 12, 1e-9);
  EXPECT_NEAR(*all[1].sit.p50, 5, 1e-9);
  EXPECT_NEAR(*all[0].control_gap.p50, 12, 1e-9);
  EXPECT_EQ(all[0].gap.p50, 35);
  EXPECT_NEAR(*all[0].control.p50, 10, 1e-9);
  EXPECT_NEAR(*all[0].step_ms, 10, 1e-9);
}

TEST(BenchStatistics, an_interval_beyond_the_eighth_token_does_not_count) {
  const auto plan = one_run();
  auto control = stayed(plan);
  for (std::size_t i = 30; i < 60; ++i) control.movers[0].at_ms[i] += 100;
  EXPECT_NEAR(*summarize(plan, {{control}, {}})[0].gap.p50, 12, 1e-9);
  for (std::size_t i = 28; i < 60; ++i) control.movers[0].at_ms[i] += 100;
  EXPECT_NEAR(*summarize(plan, {{control}, {}})[0].gap.p50, 110, 1e-9);
}

TEST(BenchStatistics, intervals_are_cut_where_preparation_and_handover_begin) {
  const auto run = moved(one_run());
  const auto parts = cut_intervals(run.movers[0].at_ms, {{105, 205}});
  // Of 59: to 100 ms; to 110..200 ms; to 235..305 ms, of which the first is long; the rest.
  EXPECT_EQ(parts.before.size(), 10u);
  EXPECT_EQ(parts.preparation.size(), 10u);
  EXPECT_EQ(parts.handover.size(), 8u);
  EXPECT_EQ(parts.after.size(), 31u);
  EXPECT_NEAR(parts.handover[0], 35, 1e-9);
  EXPECT_EQ(parts.during().size(), 18u);
  EXPECT_EQ(parts.all().size(), 59u);
  EXPECT_EQ(cut_intervals(run.movers[0].at_ms, {}).before.size(), 59u);
  EXPECT_TRUE(cut_intervals({}, {{1, 2}}).all().empty());
}

TEST(BenchStatistics, ids_are_those_of_the_control_up_to_the_next_handover) {
  const auto plan = one_run(2);
  auto run = moved(plan), control = stayed(plan);
  run.planned_ms = control.planned_ms = {205, 410};
  run.movers[0].hops.push_back(run.movers[0].hops[0]);
  run.movers[0].hops[1].executed_ms = 410;
  run.movers[0].ids[50] = 7;
  auto all = summarize(plan, {{run, control}, {}});
  EXPECT_EQ(all[0].rows[0].ids_ok, true);
  EXPECT_EQ(all[0].rows[1].ids_ok, false);
  EXPECT_EQ(all[0].ids_ok, 1u);
  run.movers[0].ids[30] = 7;
  all = summarize(plan, {{run, control}, {}});
  EXPECT_EQ(all[0].rows[0].ids_ok, false);
  // The shorter of the two says how far they can be compared.
  control.movers[0].ids.resize(29);
  EXPECT_EQ(summarize(plan, {{run, control}, {}})[0].rows[0].ids_ok, true);
  EXPECT_FALSE(summarize(plan, {{run}, {}})[0].rows[0].ids_ok);
}

TEST(BenchStatistics, faults_are_what_must_never_be) {
  const auto plan = one_run();
  const auto faults = [&](const RunRecord& run) {
    const BenchRecords records{{run, stayed(plan)}, {}};
    return find_faults(summarize(plan, records), plan, records);
  };
  auto run = moved(plan);
  EXPECT_TRUE(faults(run).empty());
  run.movers[0].ids[40] = 7;
  EXPECT_EQ(faults(run).size(), 1u);
  run.movers[0].hops[0].gnb->exact = false;
  EXPECT_TRUE(faults(run).empty());
  // Not a fault: a handover that failed, or of which nobody tells, is counted.
  run.movers[0].hops[0].gnb->error = "no route";
  EXPECT_TRUE(faults(run).empty());
  EXPECT_EQ(summarize(plan, {{run}, {}})[0].failed, 1u);
  run.movers[0].hops[0].gnb.reset();
  EXPECT_TRUE(faults(run).empty());
  EXPECT_EQ(summarize(plan, {{run}, {}})[0].reported, 0u);
  run = moved(plan);
  run.movers[0].faults = {"the UE got index 3 where 2 was due"};
  EXPECT_NE(faults(run).at(0).find("index 3"), std::string::npos);
}

TEST(BenchStatistics, residents_are_cut_by_the_movers_preparation) {
  const auto plan = one_run();
  auto run = moved(plan);
  run.residents = {{95, 105, 125, 145, 205, 212, 219}};
  const auto s = summarize(plan, {{run}, {}})[0];
  EXPECT_EQ(s.residents_before.count, 1u);
  EXPECT_EQ(s.residents_during.count, 3u);
  EXPECT_EQ(s.residents_during.max, 60);
  EXPECT_EQ(s.residents_after.count, 2u);
}

TEST(BenchOutput, json_has_what_the_comparison_needs) {
  const auto plan = one_run();
  const auto all = summarize(plan, {{moved(plan), stayed(plan)}, {}});
  const auto json = nlohmann::json::parse(summary_json(all));
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["scheme"], "two-front");
  EXPECT_EQ(json[0]["handovers"], 1);
  EXPECT_EQ(json[0]["sit_ms"]["p50"], 30);
  EXPECT_EQ(json[0]["bytes"], 1000);
  EXPECT_EQ(json[0]["early_s"], 0.5);
  EXPECT_EQ(json[0]["exact"], true);
  EXPECT_EQ(json[0]["ids_ok"], true);
  EXPECT_EQ(json[1]["scheme"], "control");
  EXPECT_TRUE(json[1]["bytes"].is_null());
  for (const char* part : {"before", "during", "after", "control"}) {
    EXPECT_TRUE(json[0]["itl_ms"][part]["p95"].is_number()) << part;
  }
}

TEST(BenchOutput, the_table_compares_with_two_front_and_the_control) {
  const auto plan = one_run();
  const auto text = summary_table(summarize(plan, {{moved(plan), stayed(plan)}, {}}));
  EXPECT_NE(text.find("1000 tokens, 20 Mbit/s, rate not capped"), std::string::npos) << text;
  // 35 ms beside the control's gap of 12 and interval of 10.
  EXPECT_NE(text.find("35.0    35.0    2.92   3.50"), std::string::npos) << text;
  EXPECT_NE(text.find("exact 1/1, ids equal 1/1\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("without a report"), std::string::npos);
  EXPECT_EQ(text.find("residents"), std::string::npos);
}

TEST(BenchOutput, a_dimension_with_two_values_is_a_figure) {
  BenchOptions options;
  options.engine = "fake";
  options.schemes = {"two-front"};
  options.handovers = 1;
  options.contexts = {500, 1000};
  const auto plan = *make_plan(options);
  BenchRecords records;
  for (const auto& planned : plan.runs) {
    auto run = moved(plan);
    run.key = plan.key(planned);
    records.runs.push_back(run);
  }
  const auto figures = bench_figures(summarize(plan, records));
  std::vector<std::string> names;
  for (const auto& figure : figures) names.push_back(figure.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"handover-gaps-1", "handover-gaps-2",
                                      "handover-sit-by-context-1", "handover-gap-by-context-1"}));
  EXPECT_EQ(figures[2].curves.size(), 2u);
  EXPECT_EQ(figures[2].curves[0].points.size(), 2u);
}

TEST(BenchRecords, what_is_written_is_read_back) {
  const auto plan = one_run();
  auto run = moved(plan);
  run.movers[0].faults = {"one"};
  run.residents = {{1.5, 2.25}};
  Sizing sizing;
  sizing.step_ms = 12.5;
  sizing.kv_bytes = 23'040;
  sizing.model = "m";
  const auto text = to_json(run) + "\n" + to_json("a size", sizing) + "\n";
  const auto read = parse_records(text + "{\"run\":\"cut of");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_NE(read->run(run.key), nullptr);
  EXPECT_EQ(to_json(*read->run(run.key)), to_json(run));
  EXPECT_EQ(read->run("another"), nullptr);
  ASSERT_NE(read->sizing("a size"), nullptr);
  EXPECT_EQ(to_json("a size", *read->sizing("a size")), to_json("a size", sizing));
  EXPECT_EQ(read->sizing("another"), nullptr);
}

TEST(BenchRecords, a_bad_line_is_named) {
  const auto read = parse_records("{\"sizing\":\"s\"}\n");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::kParse);
  EXPECT_EQ(read.error().message.rfind("line 1: ", 0), 0u);
  EXPECT_FALSE(parse_records("{}\nnothing\n"));
}

TEST(BenchStatistics, what_was_there_at_the_deadline_is_worth_its_utility) {
  BenchOptions options;
  options.engine = "fake";
  options.schemes = {"full-copy"};
  options.handovers_slow = 2;
  options.movers = {2};
  options.available_s = {0.1};
  options.gnb_settings = {"utility_threshold=0.25"};
  const auto plan = *make_plan(options);
  BenchRecords records;
  auto run = moved(plan);
  run.key.clear();
  for (const auto& planned : plan.runs) {
    if (planned.scheme) run.key = plan.key(planned);
  }
  run.movers.push_back(run.movers[0]);
  run.movers[0].hops[0].gnb->fraction_at_deadline = 0.2;
  run.movers[1].hops[0].gnb->fraction_at_deadline = 0.8;
  records.runs.push_back(run);
  const auto summaries = summarize(plan, records);
  ASSERT_EQ(summaries.size(), 1u);
  const auto& s = summaries[0];
  const auto& utility = plan.schemes[0].utility;
  EXPECT_EQ(utility.threshold, 0.25);
  EXPECT_DOUBLE_EQ(*s.fraction.mean, 0.5);
  EXPECT_DOUBLE_EQ(*s.accuracy, (utility.value(0.2) + utility.value(0.8)) / 2);
  EXPECT_DOUBLE_EQ(*s.worst_user_accuracy, utility.value(0.2));
  EXPECT_EQ(s.below_threshold, 1u);
  const auto row = nlohmann::json::parse(summary_json(summaries)).at(0);
  EXPECT_EQ(row.at("fraction_at_deadline").at("mean"), 0.5);
  EXPECT_EQ(row.at("below_threshold_handovers"), 1);
  EXPECT_NE(summary_table(summaries).find("KV at the deadline"), std::string::npos);
}

TEST(BenchStatistics, tells_of_handovers_that_began_on_a_part) {
  const auto plan = one_run();
  BenchRecords records;
  auto run = moved(plan);
  run.movers[0].hops[0].gnb->partial = GnbReport::Partial{0.42, 420, 31, 32, true, 2100.5};
  records.runs = {run, stayed(plan)};
  // As it is kept between invocations.
  records = *parse_records(to_json(records.runs[0]) + "\n" + to_json(records.runs[1]) + "\n");
  const auto summaries = summarize(plan, records);
  const auto& s = summaries[0];
  EXPECT_EQ(s.part.count, 1u);
  EXPECT_DOUBLE_EQ(*s.part.mean, 0.42);
  EXPECT_DOUBLE_EQ(*s.part_tokens.mean, 31);
  EXPECT_DOUBLE_EQ(*s.part_complete_ms.p50, 2100.5);
  EXPECT_NE(summary_table(summaries).find("on a part of KV"), std::string::npos);
  const auto row = nlohmann::json::parse(summary_json(summaries)).at(0);
  EXPECT_EQ(row.at("partial").at("complete_ms").at("p50"), 2100.5);
  const std::string csv = handovers_csv(summaries);
  EXPECT_NE(csv.find(",0.42,31,2100.5\n"), std::string::npos);
  // Every line has as many cells.
  const auto commas = [&](std::size_t begin) {
    return std::count(csv.begin() + static_cast<std::ptrdiff_t>(begin),
                      csv.begin() + static_cast<std::ptrdiff_t>(csv.find('\n', begin)), ',');
  };
  for (std::size_t at = 0; at < csv.size(); at = csv.find('\n', at) + 1) {
    EXPECT_EQ(commas(at), commas(0));
  }
}

TEST(BenchStatistics, nobody_is_accurate_where_no_gnb_tells) {
  const auto plan = one_run();
  BenchRecords records;
  records.runs = {moved(plan), stayed(plan)};
  for (const auto& s : summarize(plan, records)) {
    EXPECT_FALSE(s.accuracy);
    EXPECT_EQ(s.below_threshold, 0u);
  }
  EXPECT_EQ(summary_table(summarize(plan, records)).find("KV at the deadline"), std::string::npos);
}

}  // namespace
}  // namespace pallas::app
