#include <gtest/gtest.h>

#include <algorithm>

#include "bench_transfer_options.h"
#include "bench_transfer_output.h"

namespace pallas::app {
namespace {

TransferOptions quick() {
  TransferOptions options;
  options.engine = "fake";
  options.paths = {"tcp", "tcp-xxh3", "pallas"};
  return options;
}

std::string refusal(const TransferOptions& options) {
  const auto plan = make_transfer_plan(options);
  return plan ? "" : plan.error().message;
}

TEST(BenchTransfer, all_paths_are_measured_unless_some_are_named) {
  auto options = quick();
  EXPECT_EQ(make_transfer_plan(options)->paths.size(), 3u);
  options.paths.clear();
  const auto plan = make_transfer_plan(options);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->paths.size(), transfer_paths().size());
  const auto libraries = std::count_if(plan->paths.begin(), plan->paths.end(),
                                       [](const TransferPath& path) { return path.library; });
  EXPECT_EQ(libraries, 2);
}

TEST(BenchTransfer, the_order_of_the_paths_rotates) {
  const auto plan = make_transfer_plan(quick());
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->order(0), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(plan->order(1), (std::vector<std::size_t>{1, 2, 0}));
  EXPECT_EQ(plan->order(5), (std::vector<std::size_t>{2, 0, 1}));
}

TEST(BenchTransfer, models_are_types_of_the_shipped_one_and_files) {
  auto options = quick();
  EXPECT_EQ(make_transfer_plan(options)->models.front().label, "fake");
  options.engine = "llama";
  options.with_llama = true;
  options.model_types = {"f16", "q8_0"};
  options.models = {"/some/where/small.Q4_1.gguf"};
  const auto plan = make_transfer_plan(options);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->models.size(), 3u);
  EXPECT_EQ(plan->models[1].type, "q8_0");
  EXPECT_EQ(plan->models[2].label, "small.Q4_1");
  EXPECT_EQ(plan->models[2].file, "/some/where/small.Q4_1.gguf");
}

TEST(BenchTransfer, bad_options_are_refused_by_name) {
  const auto with = [](const auto& change) {
    auto options = quick();
    change(options);
    return refusal(options);
  };
  const auto starts = [](const std::string& text, const char* field) {
    return text.rfind(std::string(field) + ": ", 0) == 0;
  };
  EXPECT_EQ(refusal(quick()), "");
  EXPECT_TRUE(starts(with([](auto& o) { o.paths = {"pigeon"}; }), "path"));
  EXPECT_TRUE(starts(with([](auto& o) { o.paths = {"tcp", "tcp"}; }), "path"));
  EXPECT_TRUE(starts(with([](auto& o) { o.block_tokens.clear(); }), "block_tokens"));
  EXPECT_TRUE(starts(with([](auto& o) { o.block_tokens = {16, 0}; }), "block_tokens"));
  EXPECT_TRUE(starts(with([](auto& o) { o.block_tokens = {o.context + 1}; }), "block_tokens"));
  EXPECT_TRUE(starts(with([](auto& o) { o.megabytes = 0; }), "megabytes"));
  EXPECT_TRUE(starts(with([](auto& o) { o.repeat = 0; }), "repeat"));
  EXPECT_TRUE(starts(with([](auto& o) { o.context = 15, o.block_tokens = {8}; }), "context"));
  EXPECT_TRUE(starts(with([](auto& o) { o.congestion_control = "a_name_that_is_long"; }),
                     "congestion_control"));
  EXPECT_TRUE(starts(with([](auto& o) { o.engine = "llama"; }), "engine"));
  EXPECT_TRUE(
      starts(with([](auto& o) { o.engine = "llama", o.with_llama = true, o.model_types = {"q2"}; }),
             "model_type"));
}

TransferRow row(const char* path, TokenPosition block_tokens, std::vector<TransferSample> samples) {
  TransferRow row;
  row.path = path;
  row.model = "q4_0";
  row.block_tokens = block_tokens;
  row.block_bytes = block_tokens * 1000;
  row.bytes = 2'000'000'000;
  row.samples = std::move(samples);
  return row;
}

const TransferScene kScene{"cubic", "Source on core 0, target on core 1"};

TEST(BenchTransfer, figures_are_medians_and_ratios_within_a_setting) {
  // The yardstick of the other setting is ten times as slow.
  const auto figures = transfer_figures(
      {row("tcp-xxh3", 16, {{1, 0.5, 0.5}, {2, 0.6, 0.6}, {0.5, 0.4, 0.4}}),
       row("pallas", 16, {{2, 1, 2}, {4, 2, 2}, {8, 3, 2}}), row("tcp-xxh3", 64, {{10, 1, 1}}),
       row("pallas", 64, {{5, 1, 1}}), row("nixl", 64, {})});
  EXPECT_DOUBLE_EQ(*figures[0].bytes_per_s, 2e9);
  EXPECT_DOUBLE_EQ(*figures[0].cpu_s_per_gb, 0.5);
  EXPECT_DOUBLE_EQ(*figures[0].speed_ratio, 1);
  EXPECT_DOUBLE_EQ(*figures[1].bytes_per_s, 0.5e9);
  EXPECT_DOUBLE_EQ(*figures[1].cpu_s_per_gb, 2);
  EXPECT_DOUBLE_EQ(*figures[1].source_cpu_s_per_gb, 1);
  EXPECT_DOUBLE_EQ(*figures[1].speed_ratio, 0.25);
  EXPECT_DOUBLE_EQ(*figures[1].cpu_ratio, 4);
  EXPECT_DOUBLE_EQ(*figures[3].speed_ratio, 2);
  EXPECT_FALSE(figures[4].bytes_per_s || figures[4].speed_ratio || figures[4].cpu_s_per_gb);
}

TEST(BenchTransfer, tls_is_compared_with_tls_too) {
  const auto figures =
      transfer_figures({row("tcp-xxh3", 16, {{1, 0.5, 0.5}}), row("tls-xxh3", 16, {{2, 1, 1}}),
                        row("pallas-tls", 16, {{4, 3, 3}}), row("pallas-tls", 64, {{4, 3, 3}})});
  EXPECT_DOUBLE_EQ(*figures[2].speed_ratio, 0.25);
  EXPECT_DOUBLE_EQ(*figures[2].tls_speed_ratio, 0.5);
  EXPECT_DOUBLE_EQ(*figures[2].tls_cpu_ratio, 3);
  EXPECT_DOUBLE_EQ(*figures[0].tls_speed_ratio, 2);
  EXPECT_FALSE(figures[3].tls_speed_ratio || figures[3].tls_cpu_ratio) << "another setting";
}

TEST(BenchTransfer, a_table_has_a_heading_for_each_setting_and_says_what_is_missing) {
  auto missing = row("nixl", 64, {});
  missing.why_not = "not installed: do this";
  auto ours = row("pallas", 64, {{5, 1, 1}});
  ours.rows_equal = false;
  const auto table = transfer_table({row("tcp-xxh3", 16, {{1, 0.5, 0.5}}), missing, ours}, kScene);
  EXPECT_NE(table.find("q4_0, blocks of 16 tokens (16000 bytes), 2000 MB a sample"), table.npos);
  EXPECT_NE(table.find("blocks of 64 tokens (64000 bytes)"), table.npos);
  EXPECT_NE(table.find("not installed: do this"), table.npos);
  EXPECT_NE(table.find("ROWS DIFFER"), table.npos);
  EXPECT_NE(table.find("Congestion control of all: cubic"), table.npos);
  // Columns stand under their heads.
  const auto line_of = [&](const char* word) {
    const auto at = table.find(std::string("  ") + word);
    return table.substr(at, table.find('\n', at) - at);
  };
  EXPECT_EQ(line_of("path").find("GB/s") + 4, line_of("tcp-xxh3").find("2.00") + 4);
}

TEST(BenchTransfer, rows_without_samples_are_null_in_json) {
  auto missing = row("nixl", 64, {});
  missing.why_not = "not installed";
  const auto json = transfer_json({missing}, kScene);
  for (const char* part : {R"("path":"nixl")", R"("bytes_per_s":null)", R"("cpu_s_per_gb":null)",
                           R"("samples":0)", R"("rows_equal":null)", R"("why_not":"not installed")",
                           R"("congestion_control":"cubic")", R"("seconds":[])"}) {
    EXPECT_NE(json.find(part), json.npos) << part << " in " << json;
  }
}

}  // namespace
}  // namespace pallas::app
