#include "kv/rate_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pallas::kv {
namespace {

using namespace std::chrono_literals;
using std::chrono::hours;
using ::testing::HasSubstr;

std::string error_of(std::string_view csv) {
  auto trace = RateTrace::parse(csv);
  return trace ? "accepted" : trace.error().message;
}

TEST(RateTrace, a_constant_rate_takes_bytes_over_rate) {
  const RateTrace trace = *RateTrace::constant(BytesPerSecond(1000));
  EXPECT_EQ(trace.finish(3s, 500), 3s + 500ms);
  EXPECT_EQ(trace.finish(1500ms, 10'000), 11'500ms);
  EXPECT_FALSE(RateTrace::constant(BytesPerSecond(0)));
  EXPECT_FALSE(RateTrace::constant(BytesPerSecond(-1)));
}

TEST(RateTrace, each_rate_holds_until_the_next_line_and_the_trace_loops) {
  // 8 Mbit/s is 1000 bytes a millisecond.
  const RateTrace trace = *RateTrace::parse("t_ms,mbps\n# two steps\n0,8\n100, 80\r\n\n");
  EXPECT_DOUBLE_EQ(trace.at(50ms).mbps(), 8);
  EXPECT_DOUBLE_EQ(trace.at(150ms).mbps(), 80);
  EXPECT_DOUBLE_EQ(trace.at(250ms).mbps(), 8);
  EXPECT_NEAR(to_ms(trace.finish(0ms, 50'000)), 50, 1e-3);
  EXPECT_NEAR(to_ms(trace.finish(0ms, 200'000)), 110, 1e-3);
  EXPECT_NEAR(to_ms(trace.finish(150ms, 500'000 + 100'000)), 300, 1e-3);
  EXPECT_NEAR(to_ms(trace.finish(0ms, 10 * 1'100'000)), 2000, 1e-3);
}

TEST(RateTrace, nothing_flows_in_an_outage) {
  const RateTrace trace = *RateTrace::parse("0,8\n100,0\n200,8\n");
  EXPECT_NEAR(to_ms(trace.finish(90ms, 20'000)), 210, 1e-3);
  EXPECT_NEAR(to_ms(trace.finish(120ms, 1'000)), 201, 1e-3);
}

TEST(RateTrace, a_malformed_line_is_named_by_its_number) {
  EXPECT_THAT(error_of("0,1\nnonsense\n"), HasSubstr("line 2"));
  EXPECT_THAT(error_of("0,1\n10,nan\n"), HasSubstr("line 2: mbps"));
  EXPECT_THAT(error_of("0,1\n10,-1\n"), HasSubstr("line 2: mbps"));
  EXPECT_THAT(error_of("t_ms,mbps\n5,1\n5,2\n"), HasSubstr("line 3: t_ms does not ascend"));
  EXPECT_THAT(error_of("-1,1\n"), HasSubstr("line 1: t_ms"));
  EXPECT_THAT(error_of("0,1\n1e20,1\n"), HasSubstr("line 2: t_ms"));
  EXPECT_THAT(error_of("0,1e300\n"), HasSubstr("line 1: mbps"));
  EXPECT_THAT(error_of("a,b\nc,d\n"), HasSubstr("line 2"));
  EXPECT_THAT(error_of(""), HasSubstr("no line"));
  EXPECT_THAT(error_of("0,0\n10,0\n"), HasSubstr("every rate is 0"));
}

TEST(RateTrace, a_rate_next_to_nothing_takes_a_century_and_not_for_ever) {
  const RateTrace trace = *RateTrace::parse("0,1e-300\n10,0\n");
  EXPECT_GT(trace.finish(1s, 1), hours(24 * 365 * 99));
  EXPECT_LT(trace.finish(1s, UINT64_MAX), hours(24 * 365 * 101));
}

TEST(RateTrace, a_5gophers_table_gives_one_rate_a_second) {
  const RateTrace trace =
      *RateTrace::parse("protocol,seq_num,throughput_mbps,nrStatus\nTCP,1,8,NR\nTCP,2,80,\n");
  EXPECT_EQ(trace.period(), 2s);
  EXPECT_DOUBLE_EQ(trace.at(500ms).mbps(), 8);
  EXPECT_DOUBLE_EQ(trace.at(1500ms).mbps(), 80);
  EXPECT_THAT(error_of("a,throughput_mbps\nx,1\nx,fast\n"), HasSubstr("line 3"));
  EXPECT_THAT(error_of("a,throughput_mbps\nx\n"), HasSubstr("line 2"));
  EXPECT_THAT(error_of("a,throughput_mbps\n"), HasSubstr("no line"));
}

TEST(RateTrace, tells_when_its_rate_changes_next) {
  const RateTrace trace = *RateTrace::parse("0,8\n100,80\n");
  EXPECT_EQ(trace.next_change(0ms), 100ms);
  EXPECT_EQ(trace.next_change(100ms), 200ms);
  EXPECT_EQ(trace.next_change(230ms), 300ms);
  EXPECT_FALSE(RateTrace::constant(BytesPerSecond(1))->next_change(1s));
}

}  // namespace
}  // namespace pallas::kv
