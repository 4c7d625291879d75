// Scenario files: what they say, and that every fault has its file, line and field.
#include "sim_scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sim_output.h"

namespace pallas::app {
namespace {

using testing::HasSubstr;

const std::filesystem::path kData = std::filesystem::path(PALLAS_SOURCE_DIR) / "data";

constexpr const char* kSmall = R"(name = "small"
schemes = ["pallas"]
duration_s = 10
[cells]
size_m = 100
columns = 3
rows = 3
[engine]
model = "llama-3-8b"
[network]
mbps = 500
[session]
prompt_tokens = 200
max_token_rate = 5
[mobility]
ues = 5
)";

Result<sim::Scenario> read(const std::string& text) {
  return read_scenario(text, "s.toml", kData);
}

std::string error_of(const std::string& text) {
  const auto scenario = read(text);
  return scenario ? "accepted" : scenario.error().message;
}

// kSmall with one line replaced.
std::string with(const std::string& line, const std::string& instead) {
  std::string text = kSmall;
  const std::size_t at = text.find(line);
  EXPECT_NE(at, std::string::npos) << line;
  return text.replace(at, line.size(), instead);
}

TEST(SimScenario, reads_what_a_file_says) {
  const auto s = read(kSmall);
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_EQ(s->name, "small");
  EXPECT_EQ(s->grid->columns, 3u);
  EXPECT_EQ(s->engine.kv_bytes_per_token, 131'072u);
  EXPECT_DOUBLE_EQ(std::get<sim::FixedRate>(s->network.rate).rate.mbps(), 500);
  EXPECT_EQ(s->session.prompt_tokens, 200u);
  EXPECT_EQ(s->walks->ues, 5u);
}

TEST(SimScenario, the_shipped_examples_are_accepted) {
  int examples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kData / "scenarios")) {
    if (entry.path().extension() != ".toml") continue;
    const auto s = read_scenario_file(entry.path().string());
    EXPECT_TRUE(s) << s.error().message;
    ++examples;
  }
  EXPECT_EQ(examples, 3);
}

TEST(SimScenario, a_fault_is_named_with_file_line_and_field) {
  EXPECT_THAT(error_of(with("ues = 5", "ues = 5\ncolour = 1")),
              HasSubstr("s.toml:17: unknown key 'colour' in [mobility]"));
  EXPECT_THAT(error_of(with("name = \"small\"", "nam = 1")),
              HasSubstr("s.toml:1: unknown key 'nam'"));
  EXPECT_THAT(error_of(with("mbps = 500", "mbps = 0")), HasSubstr("s.toml:11: network.mbps"));
  EXPECT_THAT(error_of(with("mbps = 500", "mbps = nan")),
              HasSubstr("s.toml:11: network.mbps: must be a finite"));
  EXPECT_THAT(error_of(with("mbps = 500", "mbps = -3")), HasSubstr("s.toml:11: "));
  EXPECT_THAT(error_of(with("duration_s = 10", "duration_s = \"long\"")),
              HasSubstr("s.toml:3: duration_s"));
  EXPECT_THAT(error_of(with("\"pallas\"", "\"teleport\"")), HasSubstr("s.toml:2: schemes"));
  EXPECT_THAT(error_of(with("[session]", "[node]\nalpha = 1.5\n[session]")),
              HasSubstr("s.toml:13: alpha"));
  EXPECT_THAT(error_of(with("size_m = 100", "size_m = -5")), HasSubstr("s.toml:5: cells.size_m"));
  EXPECT_THAT(error_of(with("columns = 3", "columns = 2.5")), HasSubstr("s.toml:6: cells.columns"));
  EXPECT_THAT(error_of(with("llama-3-8b", "gpt-2")), HasSubstr("s.toml:9: engine.model"));
  EXPECT_THAT(error_of("name = \n"), HasSubstr("s.toml:1"));
}

TEST(SimScenario, settings_that_contradict_each_other_are_refused) {
  EXPECT_THAT(error_of(with("mbps = 500", "mbps = 500\nsd_mbps = 5")),
              HasSubstr("sd_mbps: has no effect without rate"));
  EXPECT_THAT(error_of(with("ues = 5", "ues = 5\nhysteresis_db = 2")),
              HasSubstr("hysteresis_db: has no effect"));
  EXPECT_THAT(error_of(with("ues = 5", "ues = 5\nhorizon_s = 2")),
              HasSubstr("horizon_s: has no effect"));
  EXPECT_THAT(
      error_of(with("ues = 5", "ues = 5\ntrajectories = \"sumo_grid_64ue_300s_2hz.csv.gz\"")),
      HasSubstr("exclude each other"));
  EXPECT_THAT(error_of(with("mbps = 500", "rate = \"trace\"")), HasSubstr("needs trace"));
  EXPECT_THAT(error_of(with("mbps = 500", "mbps = 500\nshared_mbps = 9")),
              HasSubstr("shared_mbps: has no effect"));
  EXPECT_THAT(error_of(with("ues = 5", "low_mps = 5")), HasSubstr("low_mps: has no effect"));
  EXPECT_THAT(
      error_of(with("rows = 3", "rows = 3\n[[cells.site]]\ncell = \"x\"\nx_m = 1\ny_m = 1")),
      HasSubstr("exactly one"));
}

TEST(SimScenario, cells_that_overlap_and_empty_traces_are_refused) {
  const std::string cells =
      "[cells]\n[[cells.rectangle]]\ncell = \"p\"\nwidth_m = 10\nheight_m = 10\n"
      "[[cells.rectangle]]\ncell = \"q\"\nx_m = 9\nwidth_m = 10\nheight_m = 10\n"
      "[mobility]\ntrajectories = \"sumo_grid_64ue_300s_2hz.csv.gz\"\n";
  EXPECT_THAT(error_of(cells), HasSubstr("q overlaps p"));
  const auto folder = std::filesystem::temp_directory_path() / "pallas-sim-scenario-test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "empty.csv") << "t_ms,mbps\n";
  const auto s = read_scenario(with("mbps = 500", "rate = \"trace\"\ntrace = \"empty.csv\""),
                               "s.toml", folder);
  std::filesystem::remove_all(folder);
  ASSERT_FALSE(s);
  EXPECT_THAT(s.error().message, HasSubstr("s.toml:12: network.trace: goodput trace: has no line"));
}

TEST(SimScenario, a_measured_profile_takes_the_place_of_a_model) {
  const auto measured = parse_measured_engine(R"({"profile": {"chunk_tokens": 64,
      "prefill": [{"depth": 0, "per_token_s": 0.003}], "decode": [{"batch": 1, "depth": 0, "step_s": 0.02}],
      "export_per_token_s": 1e-6, "attach_per_token_s": 1e-6},
      "kv_bytes_per_token": 23040, "block_tokens": 32, "slots": 3})");
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_EQ(measured->profile.chunk_tokens, 64u);
  EXPECT_EQ(measured->kv_bytes_per_token, 23040u);
  EXPECT_EQ(measured->block_tokens, 32u);
  EXPECT_EQ(measured->slots, 3u);
  EXPECT_FALSE(measured->context_tokens);
  EXPECT_DOUBLE_EQ(measured->profile.prefill[0].per_token.count(), 0.003);
  EXPECT_THAT(parse_measured_engine("{}").error().message, HasSubstr("profile"));
  EXPECT_THAT(error_of(with("model = \"llama-3-8b\"", "profile = \"none.json\"")),
              HasSubstr("engine.profile"));
}

TEST(SimScenario, the_same_scenario_gives_the_same_output) {
  const auto s = read(kSmall);
  ASSERT_TRUE(s);
  const auto once = sim::run(*s), again = sim::run(*s);
  ASSERT_TRUE(once && again);
  EXPECT_EQ(runs_json(*once), runs_json(*again));
  EXPECT_EQ(runs_csv(*once), runs_csv(*again));
  EXPECT_EQ(handovers_json(*once), handovers_json(*again));
  EXPECT_EQ(handovers_csv(*once), handovers_csv(*again));
  EXPECT_THAT(runs_text("small", *once), HasSubstr("5 UEs, 9 gNBs"));
}

}  // namespace
}  // namespace pallas::app
