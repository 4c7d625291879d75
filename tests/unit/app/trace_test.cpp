#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "trace_output.h"
#include "trace_reports.h"
#include "trace_timeline.h"

namespace pallas::app {
namespace {

using Json = nlohmann::json;

Json clock(const std::string& id, std::int64_t monotonic_us, std::int64_t unix_us) {
  return {{"id", id}, {"monotonic_us", monotonic_us}, {"unix_us", unix_us}};
}

// A prepared handover: on the true time line the radio executes at 0, the UE attaches at 2 ms, and
// each message takes 1 ms. Zeros of the reports are at 3 ms (claim), 2 ms (attach) and 0.
Json source() {
  return {{"role", "source"},
          {"session", "s"},
          {"epoch", 2},
          {"scheme", "pallas"},
          {"source", "a"},
          {"target", "b"},
          {"clock", clock("host", 3000, 1003000)},
          {"phases",
           {{"request_sent_ms", -903.0},
            {"acknowledged_ms", -901.0},
            {"rows_sent", {{"begin_ms", -900.0}, {"end_ms", -10.0}, {"count", 4}, {"tokens", 64}}},
            {"ran_execution_ms", -3.0},
            {"claim_received_ms", 0.0},
            {"response_sent_ms", nullptr},
            {"step_ended_ms", 4.0},
            {"status_sent_ms", 4.0},
            {"tail_sent", nullptr},
            {"released_ms", 30.0}}}};
}
Json target() {
  return {
      {"role", "target"},
      {"session", "s"},
      {"epoch", 2},
      {"scheme", "pallas"},
      {"source", "a"},
      {"target", "b"},
      {"clock", clock("host", 2000, 1002000)},
      {"phases",
       {{"request_received_ms", -901.0},
        {"acknowledge_sent_ms", -901.0},
        {"rows_received", {{"begin_ms", -898.0}, {"end_ms", -5.0}, {"count", 4}, {"tokens", 64}}},
        {"prefill",
         {{"begin_ms", -900.0},
          {"end_ms", -400.0},
          {"count", 3},
          {"tokens", 90},
          {"busy_ms", 480.0}}},
        {"attached_ms", 0.0},
        {"claim_sent_ms", 0.0},
        {"status_received_ms", 6.0},
        {"covered_ms", 9.0},
        {"first_token_written_ms", 29.0},
        {"release_sent_ms", 30.0},
        {"release_acknowledged_ms", 32.0}}}};
}
Json ue() {
  return {{"role", "ue"},
          {"session", "s"},
          {"epoch", 2},
          {"from", "a"},
          {"to", "b"},
          {"clock", clock("host", 0, 1000000)},
          {"phases",
           {{"last_token_ms", -20.0},
            {"execution_ms", 0.0},
            {"attach_sent_ms", 1.0},
            {"attach_granted_ms", 3.0},
            {"first_token_ms", 32.0},
            {"first_own_token_ms", 32.0}}}};
}

TracedHandover read(const Json& json) {
  const auto reports = read_trace_reports(json.dump());
  EXPECT_TRUE(reports) << reports.error().message;
  const auto handover = choose_handover(*reports, {});
  EXPECT_TRUE(handover) << handover.error().message;
  return handover ? *handover : TracedHandover{{}, {}, TraceReport{}, {}, {}};
}

std::optional<double> time_of(const TraceTimeline& timeline, TraceRole who,
                              const std::string& name) {
  for (const auto& item : timeline.items) {
    if (item.who == who && item.name == name) return item.begin_ms;
  }
  return std::nullopt;
}

TEST(TraceReports, are_found_wherever_they_stand) {
  const Json demo = {{"scheme", "pallas"},
                     {"handovers", {{{"gap_ms", 7}, {"reports", {target(), source(), ue()}}}}}};
  const auto all = read_trace_reports(demo.dump());
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 3u);
  const Json answers = {{{"object", "list"}, {"data", {target()}}, {"departures", Json::array()}},
                        {{"object", "list"}, {"data", Json::array()}, {"departures", {source()}}}};
  EXPECT_EQ(read_trace_reports(answers.dump())->size(), 2u);
  EXPECT_EQ(all->front().phases.at("prefill").tokens, 90u);
  EXPECT_FALSE(all->front().phases.contains("tail_received"));
}

TEST(TraceReports, broken_ones_are_refused_by_the_member_that_is_wrong) {
  const auto refused = [](const char* path, const Json& value) {
    Json json = target();
    json[Json::json_pointer(path)] = value;
    const auto reports = read_trace_reports(json.dump());
    return reports ? std::string("taken") : reports.error().message;
  };
  EXPECT_NE(refused("/session", 7).find("session"), std::string::npos);
  EXPECT_NE(refused("/epoch", "2").find("epoch"), std::string::npos);
  EXPECT_NE(refused("/clock", nullptr).find("clock"), std::string::npos);
  EXPECT_NE(refused("/clock/unix_us", "x").find("clock.unix_us"), std::string::npos);
  EXPECT_NE(refused("/phases/attached_ms", "now").find("phases.attached_ms"), std::string::npos);
  EXPECT_NE(refused("/phases/covered_ms", 1e300).find("phases.covered_ms"), std::string::npos);
  EXPECT_NE(refused("/phases/prefill/begin_ms", 5).find("phases.prefill"), std::string::npos);
  EXPECT_NE(refused("/phases/prefill", Json::array()).find("phases.prefill"), std::string::npos);
  EXPECT_FALSE(read_trace_reports("{"));
}

TEST(TraceReports, the_handover_is_chosen_by_session_and_epoch_or_as_the_latest) {
  Json early = target(), late = target(), other = target();
  late["epoch"] = 5;
  other["session"] = "t";
  other["clock"]["unix_us"] = 2000000;
  const auto reports = read_trace_reports(Json{late, early, other}.dump());
  ASSERT_TRUE(reports);
  const auto choose = [&](const char* name) {
    const auto chosen = choose_handover(*reports, *parse_handover_name(name));
    return chosen ? chosen->session.value + std::to_string(chosen->epoch.value)
                  : chosen.error().message;
  };
  EXPECT_EQ(choose("latest"), "t2");
  EXPECT_EQ(choose("s"), "s5");
  EXPECT_EQ(choose("s:2"), "s2");
  EXPECT_NE(choose("s:3").find("s:2, s:5, t:2"), std::string::npos);
  EXPECT_NE(choose("u").find("HANDOVER"), std::string::npos);
  EXPECT_FALSE(parse_handover_name("s:x"));
  EXPECT_FALSE(parse_handover_name(":2"));
  EXPECT_FALSE(parse_handover_name("a b"));
}

TEST(TraceTimeline, puts_everybody_on_one_line_that_begins_at_the_execution) {
  const auto timeline = make_timeline(read({target(), source(), ue()}));
  EXPECT_EQ(timeline.clock, "one monotonic clock");
  EXPECT_TRUE(timeline.missing.empty());
  EXPECT_EQ(time_of(timeline, TraceRole::kSource, "RAN execution"), 0);
  EXPECT_EQ(time_of(timeline, TraceRole::kSource, "HandoverRequest sent"), -900);
  EXPECT_EQ(time_of(timeline, TraceRole::kTarget, "HandoverRequest received"), -899);
  EXPECT_EQ(time_of(timeline, TraceRole::kTarget, "UE attached"), 2);
  EXPECT_EQ(time_of(timeline, TraceRole::kUe, "attach sent"), 1);
  for (std::size_t i = 1; i < timeline.items.size(); ++i) {
    EXPECT_LE(timeline.items[i - 1].begin_ms, timeline.items[i].begin_ms);
  }
  std::set<std::string> arrows;
  for (const auto& arrow : timeline.arrows) {
    arrows.insert(arrow.name);
    EXPECT_LE(timeline.items[arrow.from].begin_ms, timeline.items[arrow.to].begin_ms) << arrow.name;
  }
  EXPECT_EQ(arrows, (std::set<std::string>{"HandoverRequest", "HandoverRequestAcknowledge",
                                           "KvBlock, the first", "attach", "session",
                                           "HandoverSuccess", "SnStatusTransfer", "first token",
                                           "UeContextRelease", "UeContextReleaseAck"}));
}

TEST(TraceTimeline, brings_clocks_of_several_hosts_together_by_the_messages) {
  Json far = source(), user = ue();
  far["clock"] = clock("elsewhere", 77, 1003000 + 250000);  // its date is 250 ms ahead
  user["clock"] = clock("", 5, 1000000 - 40000);            // and the UE's 40 ms behind
  const auto timeline = make_timeline(read({target(), far, user}));
  EXPECT_NE(timeline.clock.find("source by messages"), std::string::npos) << timeline.clock;
  EXPECT_NE(timeline.clock.find("UE by messages"), std::string::npos) << timeline.clock;
  EXPECT_NEAR(*time_of(timeline, TraceRole::kSource, "RAN execution"), 0, 1e-6);
  EXPECT_NEAR(*time_of(timeline, TraceRole::kTarget, "UE attached"), 2, 1e-6);
  EXPECT_NEAR(*time_of(timeline, TraceRole::kUe, "attach sent"), 1, 1e-6);
  for (const auto& arrow : timeline.arrows) {
    EXPECT_LE(timeline.items[arrow.from].begin_ms, timeline.items[arrow.to].begin_ms) << arrow.name;
  }
}

TEST(TraceTimeline, does_with_one_report_and_says_what_is_missing) {
  for (const Json& alone : {source(), target()}) {
    const auto timeline = make_timeline(read(Json{alone}));
    EXPECT_EQ(timeline.missing.size(), 2u);
    EXPECT_TRUE(timeline.arrows.empty());
    EXPECT_FALSE(chrome_trace(timeline).empty());
  }
}

TEST(TraceTimeline, a_question_for_the_context_is_the_claim_of_an_unprepared_arrival) {
  Json here = target(), there = source();
  here["phases"]["retrieve_sent_ms"] = 0.5;
  here["phases"]["claim_sent_ms"] = 3.0;  // later, and not what the source heard first
  there["phases"]["response_sent_ms"] = 0.2;
  here["phases"]["response_received_ms"] = 2.5;
  const auto timeline = make_timeline(read({here, there}));
  std::set<std::string> arrows;
  for (const auto& arrow : timeline.arrows) arrows.insert(arrow.name);
  EXPECT_TRUE(arrows.contains("RetrieveUeContextRequest"));
  EXPECT_TRUE(arrows.contains("RetrieveUeContextResponse"));
  EXPECT_FALSE(arrows.contains("HandoverSuccess"));
}

struct Slice {
  std::int64_t begin, end;
};

// What any viewer of the format relies on.
void expect_sound(const Json& trace) {
  std::map<std::pair<int, int>, std::vector<Slice>> threads;
  std::map<int, int> arrows;
  std::set<std::pair<int, int>> named;
  for (const Json& event : trace["traceEvents"]) {
    const std::string phase = event["ph"];
    const std::pair<int, int> thread{event["pid"], event["tid"]};
    if (phase == "M") {
      if (event["name"] == "thread_name") named.insert(thread);
      continue;
    }
    const std::int64_t at = event["ts"];
    EXPECT_GE(at, 0);
    if (phase == "X") threads[thread].push_back({at, at + event["dur"].get<std::int64_t>()});
  }
  for (const Json& event : trace["traceEvents"]) {
    const std::string phase = event["ph"];
    if (phase != "s" && phase != "f") continue;
    arrows[event["id"]] += phase == "s" ? 1 : -1;
    const std::int64_t at = event["ts"];
    const auto& slices = threads[{event["pid"], event["tid"]}];
    EXPECT_TRUE(std::any_of(slices.begin(), slices.end(),
                            [&](const Slice& s) { return s.begin <= at && at < s.end; }))
        << event.dump() << " leaves no slice";
  }
  for (const auto& [id, balance] : arrows) EXPECT_EQ(balance, 0) << id;
  for (const auto& [thread, slices] : threads) {
    EXPECT_TRUE(named.contains(thread));
    for (const Slice& a : slices) {
      for (const Slice& b : slices) {
        const bool crossed = a.begin < b.begin && b.begin < a.end && a.end < b.end;
        EXPECT_FALSE(crossed) << a.begin << ".." << a.end << " and " << b.begin << ".." << b.end;
      }
    }
  }
}

TEST(ChromeTrace, has_a_process_each_nested_slices_and_arrows_between_them) {
  const auto timeline = make_timeline(read({target(), source(), ue()}));
  const Json trace = Json::parse(chrome_trace(timeline));
  expect_sound(trace);
  std::set<std::string> processes, threads;
  for (const Json& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") processes.insert(event["args"]["name"]);
    if (event["name"] == "thread_name") threads.insert(event["args"]["name"]);
    if (event["name"] == "prefill") {
      EXPECT_EQ(event["dur"], 500000);
      EXPECT_EQ(event["args"]["tokens"], 90);
      EXPECT_EQ(event["args"]["count"], 3);
    }
  }
  EXPECT_EQ(processes, (std::set<std::string>{"source a", "target b", "UE"}));
  for (const char* thread : {"protocol", "link", "engine"}) EXPECT_TRUE(threads.contains(thread));
  // The earliest event is the trace's own zero.
  EXPECT_EQ(trace["otherData"]["zero_us"], 900000);
}

TEST(ChromeTrace, keeps_slices_that_cross_on_threads_of_their_own) {
  Json crossing = target();
  crossing["phases"]["rows_attached"] = {
      {"begin_ms", -600.0}, {"end_ms", -1.0}, {"count", 2}, {"tokens", 30}};
  crossing["phases"]["replay"] = {
      {"begin_ms", -450.0}, {"end_ms", 5.0}, {"count", 2}, {"tokens", 2}};
  expect_sound(Json::parse(chrome_trace(make_timeline(read({crossing, source(), ue()})))));
}

TEST(PhaseTable, has_a_line_a_phase_in_order_and_says_how_the_clocks_came_together) {
  const std::string table = phase_table(make_timeline(read({target(), source(), ue()})));
  const auto at = [&](const char* text) {
    const auto found = table.find(text);
    EXPECT_NE(found, std::string::npos) << text << " in\n" << table;
    return found;
  };
  EXPECT_LT(at("pallas: a -> b"), at("one monotonic clock"));
  EXPECT_LT(at("HandoverRequest sent"), at("HandoverRequest received"));
  EXPECT_LT(at("90 tokens in 3, 480.0 ms of the engine"), at("RAN execution"));
  EXPECT_LT(at("UE attached"), at("first own token written"));
  EXPECT_EQ(table.find(" \n"), std::string::npos);
}

}  // namespace
}  // namespace pallas::app
