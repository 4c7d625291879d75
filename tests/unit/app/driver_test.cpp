#include "driver.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "virtual_clock.h"

namespace pallas::app {
namespace {

using mobility::HandoverPhase;

// Remembers what was reported, and when.
class RecordingFeed : public RanFeed {
 public:
  struct Entry {
    double at_s;
    std::string to;
    std::string what;
    std::uint64_t seq;
  };
  explicit RecordingFeed(Clock& clock) : clock_(clock) {}

  void position(const NodeId& gnb, const mobility::PositionReport& r) override {
    add(gnb.value, "position", r.seq);
    positions.push_back(r);
  }
  void prediction(const NodeId& gnb, const mobility::Prediction& p) override {
    add(gnb.value, "prediction", p.seq);
    predictions.push_back(p);
  }
  void handover(const NodeId& gnb, const mobility::HandoverEvent& e) override {
    add(gnb.value, std::string(to_string(e.phase)), e.seq);
  }
  void ue_handover(const NodeId& target, const mobility::HandoverEvent& e) override {
    add("ue>" + target.value, std::string(to_string(e.phase)), e.seq);
  }

  std::vector<Entry> of(const std::string& what) const {
    std::vector<Entry> found;
    for (const auto& entry : entries) {
      if (entry.what == what) found.push_back(entry);
    }
    return found;
  }
  std::vector<Entry> entries;
  std::vector<mobility::PositionReport> positions;
  std::vector<mobility::Prediction> predictions;

 private:
  void add(const std::string& to, const std::string& what, std::uint64_t seq) {
    entries.push_back({to_seconds(clock_.now().time_since_epoch()).count(), to, what, seq});
  }
  Clock& clock_;
};

// East along y = 5 at 10 m/s from x = 5; cells of 10 m: crossings at 0.5, 1.5 and 2.5 s.
Trip eastward() {
  const auto cells = *mobility::make_square_cells(10, 0, 0);
  mobility::Trajectory trajectory;
  trajectory.ue = UeId("v");
  trajectory.samples = {{Seconds(100), {5, 5}, 10.0, 90.0}, {Seconds(103), {35, 5}, 10.0, 90.0}};
  return *make_trip(trajectory, {}, {}, *cells);
}

DriverOptions options() {
  DriverOptions o;
  o.ue = UeId("ue-1");
  o.cells = {{CellId("cell_0_0"), NodeId("a")},
             {CellId("cell_1_0"), NodeId("b")},
             {CellId("cell_2_0"), NodeId("b")},
             {CellId("cell_3_0"), NodeId("c")}};
  o.period = std::chrono::milliseconds(200);
  o.first_seq = 7;
  return o;
}

class DriverTest : public testing::Test {
 protected:
  void drive(const DriverOptions& o) {
    Driver driver(clock_, feed_, eastward(), o);
    driver.start([&] { ended_at_ = to_seconds(clock_.now().time_since_epoch()).count(); });
    clock_.run_until_idle(std::chrono::seconds(60));
    counts_ = driver.counts();
  }
  test::VirtualClock clock_;
  RecordingFeed feed_{clock_};
  DriverCounts counts_;
  double ended_at_ = -1;
};

TEST_F(DriverTest, handovers_happen_when_the_boundary_is_crossed) {
  drive(options());
  const auto executions = feed_.of("execution");
  // ue, a, b; ue, b (inside one gNB); ue, b, c.
  ASSERT_EQ(executions.size(), 8u);
  EXPECT_EQ(executions[0].to, "ue>b");
  EXPECT_EQ(executions[1].to, "a");
  EXPECT_EQ(executions[2].to, "b");
  EXPECT_EQ(executions[3].to, "ue>b");
  EXPECT_EQ(executions[4].to, "b");
  EXPECT_EQ(executions[5].to, "ue>c");
  EXPECT_NEAR(executions[0].at_s, 0.5, 0.002);
  EXPECT_NEAR(executions[3].at_s, 1.5, 0.002);
  EXPECT_NEAR(executions[5].at_s, 2.5, 0.002);
  EXPECT_EQ(counts_.handovers, 3u);
  EXPECT_EQ(counts_.gnb_handovers, 2u);
  EXPECT_NEAR(ended_at_, 3.0, 0.002);
}

TEST_F(DriverTest, every_execution_is_completed_after_the_interruption) {
  auto o = options();
  o.interruption = std::chrono::milliseconds(50);
  drive(o);
  const auto executions = feed_.of("execution");
  const auto completions = feed_.of("completed");
  ASSERT_EQ(executions.size(), completions.size());
  EXPECT_NEAR(completions[0].at_s - executions[0].at_s, 0.05, 0.001);
}

TEST_F(DriverTest, positions_go_to_the_serving_gnb_only) {
  drive(options());
  EXPECT_GT(feed_.positions.size(), 10u);
  EXPECT_TRUE(feed_.predictions.empty());
  for (const auto& entry : feed_.of("position")) {
    const std::string expected = entry.at_s < 0.5 ? "a" : entry.at_s < 2.5 ? "b" : "c";
    EXPECT_EQ(entry.to, expected) << entry.at_s;
  }
  EXPECT_NEAR(feed_.positions[1].x_m, 7, 1e-6);
  EXPECT_EQ(feed_.positions[1].heading_deg, 90.0);
  EXPECT_NEAR(feed_.positions[1].t_ms, 100'200, 1e-3);
}

TEST_F(DriverTest, sequence_numbers_grow_at_every_receiver) {
  drive(options());
  std::map<std::string, std::uint64_t> last;
  for (const auto& entry : feed_.entries) {
    EXPECT_GE(entry.seq, 7u);
    EXPECT_GT(entry.seq, last[entry.to]) << entry.to;
    last[entry.to] = entry.seq;
  }
}

TEST_F(DriverTest, the_oracle_predicts_each_crossing_exactly_and_says_so) {
  auto o = options();
  o.oracle = true;
  drive(o);
  EXPECT_TRUE(feed_.positions.empty());
  ASSERT_FALSE(feed_.predictions.empty());
  const auto entries = feed_.of("prediction");
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& prediction = feed_.predictions[i];
    EXPECT_TRUE(prediction.oracle);
    const double at = entries[i].at_s;
    if (at >= 2.5) {
      EXPECT_FALSE(prediction.target);
      continue;
    }
    ASSERT_TRUE(prediction.target) << at;
    const double crossing = at < 0.5 ? 0.5 : at < 1.5 ? 1.5 : 2.5;
    EXPECT_NEAR(to_seconds(prediction.in).count(), crossing - at, 0.002);
  }
}

TEST_F(DriverTest, beyond_its_foresight_the_oracle_foresees_nothing) {
  auto o = options();
  o.oracle = true;
  o.foresight = std::chrono::milliseconds(300);
  drive(o);
  EXPECT_FALSE(feed_.predictions[0].target);  // 0.5 s before the crossing
  EXPECT_TRUE(feed_.predictions[1].target);   // 0.3 s
}

TEST_F(DriverTest, an_oracle_told_so_names_the_wrong_cell_and_drives_to_the_right_one) {
  auto o = options();
  o.oracle = true;
  o.foretold_wrongly[0] = CellId("cell_3_0");
  drive(o);
  EXPECT_EQ(feed_.predictions[0].target, CellId("cell_3_0"));
  EXPECT_EQ(feed_.of("execution")[0].to, "ue>b");
  EXPECT_EQ(feed_.predictions[4].target, CellId("cell_2_0"));
  o.foretold_wrongly[0] = CellId("nowhere");
  EXPECT_FALSE(Driver::check(eastward(), o));
}

TEST_F(DriverTest, stopped_it_says_nothing_more) {
  Driver driver(clock_, feed_, eastward(), options());
  driver.start([&] { ended_at_ = 1; });
  clock_.run_for(std::chrono::seconds(1));
  driver.stop();
  const auto before = feed_.entries.size();
  clock_.run_for(std::chrono::seconds(10));
  EXPECT_EQ(feed_.entries.size(), before);
  EXPECT_EQ(ended_at_, -1);
}

TEST(Driver, a_cell_without_a_gnb_is_named_before_anything_starts) {
  auto o = options();
  o.cells.erase(CellId("cell_3_0"));
  const auto status = Driver::check(eastward(), o);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("cell_3_0"), std::string::npos);
  EXPECT_TRUE(Driver::check(eastward(), options()));
}

}  // namespace
}  // namespace pallas::app
