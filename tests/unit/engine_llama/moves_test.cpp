// Every corner of a move between two engines: the 64 steps after it have the ids and the very
// logits of the run that stayed.
#include "session.h"

namespace pallas::test {
namespace {

constexpr TokenIndex kAfter = 64;

class Moves : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    engine::LlamaConfig config = test_config();
    config.slots = 8;
    // So that ranges leave and enter in several parts, between steps.
    config.transfer_bytes_per_step = 5 * 23040 + 1;
    nodes_ = std::make_unique<Nodes>(config);
  }
  static void TearDownTestSuite() { nodes_.reset(); }
  static Nodes& nodes() { return *nodes_; }

  static engine::SlotId open(int node) {
    const auto slot = nodes().engine(node).reserve(400);
    EXPECT_TRUE(slot);
    return *slot;
  }

  // What of `ids` [0, front) exists at the source is moved: [0, recomputed) is prefilled at the
  // target in odd parts, the rest comes as rows, 16 positions at a time.
  static void move(engine::SlotId source, engine::SlotId target, const std::vector<TokenId>& ids,
                   TokenPosition recomputed, TokenPosition front) {
    engine::LlamaEngine& to = nodes().engine(1);
    for (TokenPosition at = 0, size = 1; at < recomputed; size += 2) {
      const TokenPosition n = std::min(size, recomputed - at);
      to.prefill(target, at, slice(ids, at, at + n));
      at += n;
    }
    SlotRecord& record = nodes().record(source, 0);
    for (TokenPosition at = recomputed; at < front; at += 16) {
      const kv::TokenRange range{at, std::min(at + 16, front)};
      const std::size_t before = record.exported.size();
      nodes().engine(0).export_kv(source, range);
      ASSERT_TRUE(nodes().wait_for(source, 0, &SlotRecord::exported, before + 1));
      to.attach_kv(target, at, range.size(), std::move(record.exported.back().second));
    }
  }

  static std::unique_ptr<Nodes> nodes_;
};
std::unique_ptr<Nodes> Moves::nodes_;

class MovesByPrompt : public Moves, public testing::WithParamInterface<TokenPosition> {};

// All generated lengths of one prompt at once: the targets decode side by side.
TEST_P(MovesByPrompt, at_any_generated_length_ids_and_logits_go_on_unchanged) {
  const TokenPosition prompt = GetParam();
  const std::vector<TokenIndex> generated{0, 1, 15, 16, 17, 31, 32, 33};
  std::vector<TokenId> ids = some_ids(prompt, prompt);
  engine::LlamaEngine& from = nodes().engine(0);
  engine::LlamaEngine& to = nodes().engine(1);

  const engine::SlotId source = open(0);
  const TokenIndex all = generated.back() + kAfter;
  from.prefill(source, 0, slice(ids, 0, prompt - 1));
  from.decode(source, decode_params(ids, prompt, all, hot_sampling()));
  ASSERT_TRUE(nodes().wait_for(source, 0, &SlotRecord::sampled, all));
  const std::vector<engine::Sampled> stayed = nodes().record(source, 0).sampled;
  for (const engine::Sampled& token : stayed) ids.push_back(token.id);
  ASSERT_GT(std::set<TokenId>(ids.begin() + prompt, ids.end()).size(), 30u)
      << "a text that loops would prove little";

  std::vector<engine::SlotId> targets;
  for (const TokenIndex g : generated) {
    const engine::SlotId target = open(1);
    targets.push_back(target);
    const TokenPosition front = prompt + g - 1;
    move(source, target, ids, (prompt - 1) / 2, front);
    to.decode(target, decode_params(slice(ids, 0, prompt + g), prompt, kAfter, hot_sampling()));
  }
  for (std::size_t i = 0; i < generated.size(); ++i) {
    SCOPED_TRACE(generated[i]);
    ASSERT_TRUE(nodes().wait_for(targets[i], 1, &SlotRecord::sampled, kAfter));
    const auto begin = stayed.begin() + static_cast<std::ptrdiff_t>(generated[i]);
    EXPECT_TRUE(same_run(nodes().record(targets[i], 1).sampled, {begin, begin + kAfter}));
    to.release(targets[i]);
  }
  from.release(source);
}

INSTANTIATE_TEST_SUITE_P(prompts, MovesByPrompt, testing::Values(1, 15, 16, 17, 31, 32, 33),
                         testing::PrintToStringParamName());

TEST_F(Moves, in_mid_prompt_the_target_computes_the_rest) {
  const TokenPosition prompt = 120;
  const std::vector<TokenId> ids = some_ids(prompt, 9);
  engine::LlamaEngine& from = nodes().engine(0);
  engine::LlamaEngine& to = nodes().engine(1);
  const engine::SlotId source = open(0);
  from.prefill(source, 0, slice(ids, 0, 70));
  ASSERT_TRUE(nodes().wait([&] {
    const auto& fronts = nodes().record(source, 0).prefilled;
    return !fronts.empty() && fronts.back() == 70;
  }));
  const engine::SlotId target = open(1);
  move(source, target, ids, 21, 70);
  to.prefill(target, 70, slice(ids, 70, prompt - 1));
  to.decode(target, decode_params(ids, prompt, kAfter, hot_sampling()));

  from.prefill(source, 70, slice(ids, 70, prompt - 1));
  from.decode(source, decode_params(ids, prompt, kAfter, hot_sampling()));
  ASSERT_TRUE(nodes().wait_for(source, 0, &SlotRecord::sampled, kAfter));
  ASSERT_TRUE(nodes().wait_for(target, 1, &SlotRecord::sampled, kAfter));
  EXPECT_TRUE(same_run(nodes().record(target, 1).sampled, nodes().record(source, 0).sampled));
  from.release(source);
  to.release(target);
}

TEST_F(Moves, a_prompt_given_one_token_at_a_time_is_the_one_given_whole) {
  const TokenPosition prompt = 41;
  const std::vector<TokenId> ids = some_ids(prompt, 4);
  engine::LlamaEngine& engine = nodes().engine(0);
  const engine::SlotId whole = open(0);
  const engine::SlotId single = open(0);
  engine.prefill(whole, 0, ids);
  for (TokenPosition at = 0; at < prompt; ++at) engine.prefill(single, at, {ids[at]});
  for (const engine::SlotId slot : {whole, single}) engine.export_kv(slot, {0, prompt});
  ASSERT_TRUE(nodes().wait_for(whole, 0, &SlotRecord::exported, 1));
  ASSERT_TRUE(nodes().wait_for(single, 0, &SlotRecord::exported, 1));
  EXPECT_EQ(nodes().record(whole).exported[0].second, nodes().record(single).exported[0].second);

  // Replayed one per step they are of another class: that is why prefill pads.
  const engine::SlotId replayed = open(0);
  engine.replay(replayed, 0, ids);
  engine.export_kv(replayed, {0, prompt});
  ASSERT_TRUE(nodes().wait_for(replayed, 0, &SlotRecord::exported, 1));
  EXPECT_NE(nodes().record(whole).exported[0].second, nodes().record(replayed).exported[0].second);
  for (const engine::SlotId slot : {whole, single, replayed}) engine.release(slot);
}

TEST_F(Moves, a_single_token_at_the_contexts_very_end_is_prefilled) {
  const TokenPosition context = 512;
  engine::LlamaEngine& engine = nodes().engine(0);
  const std::vector<TokenId> ids = some_ids(context, 5);
  const auto slot = engine.reserve(context);
  ASSERT_TRUE(slot);
  const kv::Bytes rows((context - 1) * engine.info().geometry.bytes_per_token(), std::byte{});
  engine.attach_kv(*slot, 0, context - 1, rows);
  engine.prefill(*slot, context - 1, {ids.back()});
  ASSERT_TRUE(nodes().wait_for(*slot, 0, &SlotRecord::prefilled, 1));
  EXPECT_EQ(nodes().record(*slot).prefilled.back(), context);
  engine.release(*slot);
}

}  // namespace
}  // namespace pallas::test
