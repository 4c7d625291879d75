// What LlamaEngine does beyond the contract: refusals, pace, memory, grammar.
#include <fstream>

#include "engine_llama/model_store.h"
#include "session.h"

namespace pallas::test {
namespace {

using namespace std::chrono_literals;

class LlamaEngineTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { nodes_ = std::make_unique<Nodes>(); }
  static void TearDownTestSuite() { nodes_.reset(); }
  static Nodes& nodes() { return *nodes_; }
  static engine::LlamaEngine& engine() { return nodes().engine(); }
  static engine::SlotId open() {
    const auto slot = engine().reserve(400);
    EXPECT_TRUE(slot);
    return *slot;
  }
  void TearDown() override { EXPECT_EQ(engine().free_slots(), 4u); }

  static std::unique_ptr<Nodes> nodes_;
};
std::unique_ptr<Nodes> LlamaEngineTest::nodes_;

TEST_F(LlamaEngineTest, rows_with_nan_or_infinity_are_refused_and_leave_no_trace) {
  const std::vector<TokenId> ids = some_ids(17);
  const auto run = [&] {
    const engine::SlotId slot = open();
    engine().prefill(slot, 0, slice(ids, 0, 16));
    engine().decode(slot, decode_params(ids, 17, 4, hot_sampling()));
    EXPECT_TRUE(nodes().wait_for(slot, 0, &SlotRecord::sampled, 4));
    engine().release(slot);
    return nodes().record(slot).sampled;
  };
  const auto expected = run();
  kv::Bytes rows(64 * engine().info().geometry.bytes_per_token(), std::byte{});
  for (const std::size_t at : {std::size_t{1}, rows.size() - 1}) {
    rows[at] = std::byte{0x7e};  // the upper byte of an f16 NaN
    const engine::SlotId slot = open();
    engine().attach_kv(slot, 0, 64, rows);
    ASSERT_TRUE(nodes().wait([&] { return !nodes().record(slot).failed.empty(); }));
    EXPECT_EQ(nodes().record(slot).failed[0].code, Errc::kInvalidArgument);
    engine().release(slot);
    rows[at] = std::byte{0};
    EXPECT_TRUE(same_run(run(), expected)) << "in the very cells of the refused rows";
  }
}

TEST_F(LlamaEngineTest, ids_outside_the_vocabulary_fail_the_slot) {
  const TokenId beyond = engine().codec().vocabulary_size();
  for (const TokenId id : {TokenId{-1}, beyond}) {
    const engine::SlotId prefill = open();
    engine().prefill(prefill, 0, {5, id});
    const engine::SlotId decode = open();
    engine().decode(decode, decode_params({id}, 1, 4, hot_sampling()));
    for (const engine::SlotId slot : {prefill, decode}) {
      ASSERT_TRUE(nodes().wait([&] { return !nodes().record(slot).failed.empty(); }));
      EXPECT_EQ(nodes().record(slot).failed[0].code, Errc::kInvalidArgument);
      engine().release(slot);
    }
  }
}

TEST_F(LlamaEngineTest, sampling_parameters_out_of_range_fail_the_slot_and_name_the_field) {
  engine::SamplingParams wrong[4];
  wrong[0].repeat_penalty = 0;
  wrong[1].top_p = std::numeric_limits<double>::quiet_NaN();
  wrong[2].logit_bias = {{engine().codec().vocabulary_size(), 1.0f}};
  wrong[3].grammar = "root ::= (";
  const char* names[4] = {"repeat_penalty", "top_p", "logit_bias", "grammar"};
  for (int i = 0; i < 4; ++i) {
    const engine::SlotId slot = open();
    engine().decode(slot, decode_params({300}, 1, 4, wrong[i]));
    ASSERT_TRUE(nodes().wait([&] { return !nodes().record(slot).failed.empty(); }));
    EXPECT_NE(nodes().record(slot).failed[0].message.find(names[i]), std::string::npos)
        << nodes().record(slot).failed[0].describe();
    engine().release(slot);
  }
}

TEST_F(LlamaEngineTest, pause_between_paced_steps_takes_effect_at_once) {
  const engine::SlotId slot = open();
  engine::DecodeParams params = decode_params({300}, 1, 100, hot_sampling());
  params.max_token_rate = TokensPerSecond(0.1);  // the second one is due in 10 s
  engine().decode(slot, params);
  ASSERT_TRUE(nodes().wait_for(slot, 0, &SlotRecord::sampled, 1));
  const TimePoint before = nodes().harness().now();
  engine().pause(slot);
  ASSERT_TRUE(nodes().wait_for(slot, 0, &SlotRecord::paused, 1));
  EXPECT_LT(nodes().harness().now() - before, 3s);
  engine().release(slot);
}

std::size_t resident_kilobytes() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("VmRSS:", 0) == 0) return std::stoul(line.substr(6));
  }
  return 0;
}

TEST_F(LlamaEngineTest, five_hundred_sessions_leave_slots_and_memory_where_they_were) {
  const kv::Bytes rows(48 * engine().info().geometry.bytes_per_token(), std::byte{});
  const auto sessions = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const engine::SlotId slot = open();
      engine().attach_kv(slot, 0, 48, rows);
      engine().export_kv(slot, {0, 48});
      ASSERT_TRUE(nodes().wait_for(slot, 0, &SlotRecord::exported, 1));
      nodes().record(slot) = {};
      engine().release(slot);
    }
  };
  sessions(50);
  const std::size_t before = resident_kilobytes();
  sessions(500);
  EXPECT_EQ(engine().free_slots(), 4u);
  EXPECT_LT(resident_kilobytes(), before + 8 * 1024);
}

TEST_F(LlamaEngineTest, a_grammar_binds_and_goes_on_after_a_move_inside_it) {
  engine::SamplingParams sampling = hot_sampling(3);
  sampling.ignore_eos = false;
  sampling.grammar = "root ::= \"[\" [0-9]+ (\", \" [0-9]+){5} \"]\"";
  const std::vector<TokenId> prompt = *engine().codec().tokenize("Six numbers: ");
  const auto n = static_cast<TokenPosition>(prompt.size());
  const auto decode_all = [&](std::vector<TokenId> ids) {
    const engine::SlotId slot = open();
    engine().prefill(slot, 0, slice(ids, 0, n - 1));
    engine().replay(slot, n - 1, slice(ids, n - 1, ids.size() - 1));
    engine().decode(slot, decode_params(ids, n, 120, sampling));
    EXPECT_TRUE(nodes().wait([&] {
      const SlotRecord& r = nodes().record(slot);
      return !r.failed.empty() ||
             (!r.sampled.empty() && (r.sampled.back().end_of_generation || r.sampled.back().limit));
    }));
    EXPECT_TRUE(nodes().record(slot).failed.empty());
    engine().release(slot);
    return nodes().record(slot).sampled;
  };
  const auto whole = decode_all(prompt);
  std::string text;
  for (const engine::Sampled& token : whole) text += engine().codec().piece(token.id);
  EXPECT_EQ(text.front(), '[');
  EXPECT_TRUE(whole.back().end_of_generation || whole.back().limit);
  if (whole.back().end_of_generation) {
    EXPECT_EQ(text.back(), ']');
  }

  ASSERT_GT(whole.size(), 6u);
  std::vector<TokenId> half = prompt;
  for (std::size_t i = 0; i < 5; ++i) half.push_back(whole[i].id);
  const auto rest = decode_all(half);
  ASSERT_GE(rest.size(), 1u);
  const std::size_t compared = std::min(rest.size(), whole.size() - 5);
  EXPECT_TRUE(
      same_run({rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(compared)},
               {whole.begin() + 5, whole.begin() + 5 + static_cast<std::ptrdiff_t>(compared)}));
}

TEST_F(LlamaEngineTest, ids_that_a_grammar_does_not_allow_fail_the_slot_only) {
  engine::SamplingParams sampling;
  sampling.grammar = "root ::= \"yes\"";
  std::vector<TokenId> ids = some_ids(3);
  ids.push_back(nodes().harness().end_token());  // llama.cpp would abort the process
  const engine::SlotId slot = open();
  engine().prefill(slot, 0, slice(ids, 0, 3));
  engine().decode(slot, decode_params(ids, 3, 4, sampling));
  ASSERT_TRUE(nodes().wait([&] { return !nodes().record(slot).failed.empty(); }));
  EXPECT_EQ(nodes().record(slot).failed[0].code, Errc::kInvalidArgument);
  engine().release(slot);
}

TEST_F(LlamaEngineTest, settings_out_of_range_are_refused_by_name) {
  const engine::Post nowhere = [](std::unique_ptr<engine::Task>) {};
  engine::LlamaConfig config = test_config();
  config.slots = 0;
  auto made = engine::make_llama_engine(config, nowhere);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::kInvalidConfig);
  config = test_config();
  config.context_tokens = 1 << 20;
  made = engine::make_llama_engine(config, nowhere);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("context_tokens"), std::string::npos);
  config.model_path = "/nowhere.gguf";
  made = engine::make_llama_engine(config, nowhere);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::kNotFound);
}

TEST_F(LlamaEngineTest, a_file_that_is_no_model_is_refused) {
  const auto path = std::filesystem::path(testing::TempDir()) / "no_model.gguf";
  std::ofstream(path) << "GGUF but not really";
  const auto described = engine::describe_model(path);
  ASSERT_FALSE(described);
  EXPECT_EQ(described.error().code, Errc::kParse);
  EXPECT_FALSE(engine::prepare_model(path, testing::TempDir()));
  std::filesystem::remove(path);
}

TEST_F(LlamaEngineTest, the_small_model_is_described_as_movable) {
  const auto d = engine::describe_model(test_model());
  ASSERT_TRUE(d) << d.error().describe();
  EXPECT_EQ(d->architecture, "llama");
  EXPECT_EQ(d->layers, 30u);
  EXPECT_EQ(d->kv_heads, 3u);
  EXPECT_EQ(d->kv_bytes_per_token, 23040u);
  EXPECT_EQ(d->context_tokens, 8192u);
  EXPECT_TRUE(d->movable);
  EXPECT_NE(d->quantization.find("Q4_0"), std::string::npos) << d->quantization;
  EXPECT_EQ(*engine::prepare_model(test_model(), testing::TempDir()), test_model());
}

TEST_F(LlamaEngineTest, two_engines_of_one_file_are_compatible_and_exact) {
  const auto& a = engine().info().compatibility;
  const auto& b = nodes().engine(1).info().compatibility;
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.model_hash.size(), 32u);
  EXPECT_EQ(a.kv_layout, "rows-v1,layers=30,k=384,v=384");
  EXPECT_EQ(a.kv_types, "k=f16,v=f16");
  EXPECT_NE(a.rope.find("base=100000"), std::string::npos) << a.rope;
  EXPECT_FALSE(a.instruction_set.empty());
}

}  // namespace
}  // namespace pallas::test
