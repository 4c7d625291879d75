// KV out and in: moved, recomputed and replayed sessions against those that stayed.
#include "engine_contract.h"
#include "kv/rows.h"

namespace pallas::test {
namespace {

using namespace std::chrono_literals;
using engine::Sampled;

constexpr TokenIndex kAfter = 10;  // tokens compared after a move

struct Lengths {
  TokenPosition prompt;
  TokenIndex generated;
};
const std::vector<Lengths> kLengths{{1, 0},   {1, 3},   {15, 3},  {16, 3},  {17, 3}, {31, 3},
                                    {32, 3},  {33, 3},  {16, 0},  {33, 0},  {16, 1}, {16, 15},
                                    {16, 16}, {16, 17}, {33, 15}, {33, 16}, {33, 17}};

std::vector<TokenId> part(const std::vector<TokenId>& ids, std::size_t begin, std::size_t end) {
  return {ids.begin() + static_cast<std::ptrdiff_t>(begin),
          ids.begin() + static_cast<std::ptrdiff_t>(end)};
}
TokenPosition front_of(const TestSession& s) {
  return static_cast<TokenPosition>(s.ids.size() - 1);
}

TEST_P(EngineContract, a_moved_session_goes_on_with_the_same_ids_and_logits) {
  if (!can().exact_attach) GTEST_SKIP() << "not claimed";
  for (const Lengths& lengths : kLengths) {
    SCOPED_TRACE(testing::Message() << lengths.prompt << "+" << lengths.generated);
    TestSession source = open(lengths.prompt);
    prefill(source);
    generate(source, lengths.generated);
    TestSession target = open_copy(source, 1);
    const TokenPosition front = front_of(source);
    attach(target, 0, front, export_rows(source, {0, front}));
    EXPECT_TRUE(same_tokens(generate(target, kAfter), generate(source, kAfter)));
    engine(0).release(source.slot);
    engine(1).release(target.slot);
  }
}

TEST_P(EngineContract, a_moved_session_moves_back_and_goes_on) {
  if (!can().exact_attach) GTEST_SKIP() << "not claimed";
  TestSession stayed = open(20);
  prefill(stayed);
  const auto expected = ids_of(generate(stayed, 18));

  TestSession here = open_copy(stayed, 0);
  here.ids.resize(20);
  prefill(here);
  for (int hop = 0; hop < 6; ++hop) {
    generate(here, 3);
    TestSession there = open_copy(here, 1 - hop % 2);
    attach(there, 0, front_of(here), export_rows(here, {0, front_of(here)}));
    here.engine->release(here.slot);
    here = there;
  }
  EXPECT_EQ(part(here.ids, 20, here.ids.size()), expected);
}

TEST_P(EngineContract, rows_exported_in_parts_are_slices_of_the_whole) {
  const engine::EngineInfo& info = engine().info();
  TestSession s = open(20);
  prefill(s);
  generate(s, 16);
  const kv::TokenRange all{0, front_of(s)};
  const kv::Bytes whole = export_rows(s, all);
  ASSERT_EQ(whole.size(), all.size() * info.geometry.bytes_per_token());
  for (const kv::TokenRange range : {kv::TokenRange{0, 1}, {0, 16}, {16, 32}, {7, 29}, {34, 35}}) {
    EXPECT_EQ(export_rows(s, range), kv::slice_rows(info.geometry, whole, all, range))
        << range.begin << "," << range.end;
  }
}

TEST_P(EngineContract, attached_rows_come_out_as_they_went_in) {
  TestSession source = open(40);
  prefill(source);
  const kv::Bytes rows = export_rows(source, {0, 39});
  TestSession target = open_copy(source, 1);
  attach(target, 0, 39, rows);
  EXPECT_EQ(export_rows(target, {0, 39}), rows);
}

TEST_P(EngineContract, rows_attached_in_parts_equal_rows_attached_at_once) {
  if (!can().exact_attach || can().attach_granularity > 1) GTEST_SKIP() << "not claimed";
  TestSession source = open(33);
  prefill(source);
  generate(source, 8);
  TestSession target = open_copy(source, 1);
  TokenPosition from = 0;
  for (const TokenPosition to : {1u, 16u, 17u, 32u, front_of(source)}) {
    attach(target, from, to - from, export_rows(source, {from, to}));
    from = to;
  }
  EXPECT_TRUE(same_tokens(generate(target, kAfter), generate(source, kAfter)));
}

TEST_P(EngineContract, an_export_while_decoding_equals_one_when_idle) {
  TestSession s = open(24);
  prefill(s);
  start_decode(s, 14);
  ASSERT_TRUE(wait_sampled(s, 3));
  engine().export_kv(s.slot, {0, 16});
  engine().export_kv(s.slot, {16, 26});  // the front is 26 at the third token
  ASSERT_TRUE(wait_sampled(s, 14));
  const auto during = record(s).exported;
  ASSERT_EQ(during.size(), 2u) << "exports wait for no end of decoding";
  EXPECT_EQ(export_rows(s, {0, 16}), during[0].second);
  EXPECT_EQ(export_rows(s, {16, 26}), during[1].second);

  TestSession undisturbed = open_copy(s, 0);
  undisturbed.ids.resize(24);
  prefill(undisturbed);
  EXPECT_TRUE(same_tokens(generate(undisturbed, 14), record(s).sampled));
}

TEST_P(EngineContract, a_prompt_prefilled_in_any_parts_is_the_same) {
  if (!can().exact_chunked_prompt) GTEST_SKIP() << "not claimed";
  TestSession whole = open(70);
  prefill(whole);
  const auto expected = generate(whole, kAfter);
  for (const std::vector<TokenPosition>& cuts :
       {std::vector<TokenPosition>{1}, {16}, {31, 32}, {33, 64, 65}, {2, 3, 4, 68}}) {
    SCOPED_TRACE(testing::PrintToString(cuts));
    TestSession s = open_copy(whole, 1);
    s.ids.resize(70);
    TokenPosition from = 0;
    for (const TokenPosition to : cuts) {
      engine(1).prefill(s.slot, from, part(s.ids, from, to));
      from = to;
    }
    engine(1).prefill(s.slot, from, part(s.ids, from, 69));
    ASSERT_TRUE(run_until(
        [&] { return !record(s).prefilled.empty() && record(s).prefilled.back() == 69; }));
    EXPECT_TRUE(same_tokens(generate(s, kAfter), expected));
    engine(1).release(s.slot);
  }
}

TEST_P(EngineContract, a_recomputed_prefix_and_moved_rows_above_it_make_the_same_session) {
  if (!can().exact_chunked_prompt || !can().exact_attach || !can().late_attach) {
    GTEST_SKIP() << "not claimed";
  }
  TestSession source = open(60);
  prefill(source);
  generate(source, 20);
  const TokenPosition front = front_of(source);
  for (const TokenPosition split : {16u, 33u, 48u, 59u}) {
    SCOPED_TRACE(split);
    TestSession stayed = open_copy(source, 0);
    attach(stayed, 0, front, export_rows(source, {0, front}));
    TestSession target = open_copy(source, 1);
    engine(1).prefill(target.slot, 0, part(target.ids, 0, split));
    engine(1).attach_kv(target.slot, split, front - split, export_rows(source, {split, front}));
    EXPECT_TRUE(same_tokens(generate(target, kAfter), generate(stayed, kAfter)));
    engine(0).release(stayed.slot);
    engine(1).release(target.slot);
  }
}

TEST_P(EngineContract, replayed_tokens_have_the_rows_of_decoded_ones) {
  if (!can().exact_chunked_prompt || !can().exact_single_step) GTEST_SKIP() << "not claimed";
  for (const Lengths& lengths : {Lengths{16, 1}, {17, 15}, {33, 17}}) {
    SCOPED_TRACE(testing::Message() << lengths.prompt << "+" << lengths.generated);
    TestSession source = open(lengths.prompt);
    prefill(source);
    generate(source, lengths.generated + 1);
    const TokenPosition front = front_of(source);
    TestSession target = open_copy(source, 1);
    // The last prompt token was the input of the first decode step.
    const TokenPosition chunked = lengths.prompt - 1;
    engine(1).prefill(target.slot, 0, part(target.ids, 0, chunked));
    engine(1).replay(target.slot, chunked, part(target.ids, chunked, front));
    ASSERT_TRUE(run_until([&] {
      return !record(target).replayed.empty() && record(target).replayed.back() == front;
    }));
    EXPECT_EQ(record(target).replayed.size(), front - chunked) << "one event a step";
    EXPECT_TRUE(same_tokens(generate(target, kAfter), generate(source, kAfter)));
    engine(0).release(source.slot);
    engine(1).release(target.slot);
  }
}

TEST_P(EngineContract, a_replay_beside_decoding_neighbours_changes_neither) {
  if (!can().exact_single_step) GTEST_SKIP() << "not claimed";
  TestSession source = open(20);
  prefill(source);
  generate(source, 16);
  TestSession alone = open(12, 5, 1);
  prefill(alone);
  const auto neighbours_tokens = generate(alone, 30);

  TestSession neighbour = open_copy(alone, 1);
  neighbour.ids.resize(12);
  prefill(neighbour);
  TestSession target = open_copy(source, 1);
  start_decode(neighbour, 30);
  engine(1).prefill(target.slot, 0, part(target.ids, 0, 19));
  engine(1).replay(target.slot, 19, part(target.ids, 19, front_of(target)));
  ASSERT_TRUE(wait_sampled(neighbour, 30));
  EXPECT_TRUE(same_tokens(record(neighbour).sampled, neighbours_tokens));
  EXPECT_TRUE(same_tokens(generate(target, kAfter), generate(source, kAfter)));
}

TEST_P(EngineContract, a_follower_samples_what_its_source_samples_and_gets_its_rows) {
  if (!can().exact_attach || !can().exact_single_step) GTEST_SKIP() << "not claimed";
  TestSession source = open(25);
  prefill(source);
  generate(source, 5);
  TestSession follower = open_copy(source, 1);
  const TokenPosition met = front_of(source);
  attach(follower, 0, met, export_rows(source, {0, met}));
  const auto expected = generate(source, 12);
  std::vector<Sampled> sampled;
  // A command for each token, with all ids anew: the sampler's state is that of one long decode.
  for (std::size_t i = 0; i < expected.size(); ++i) sampled.push_back(generate(follower, 1).at(0));
  EXPECT_TRUE(same_tokens(sampled, expected));
  EXPECT_TRUE(sampled.back().limit);
  const kv::TokenRange steps{met, front_of(source)};
  EXPECT_EQ(export_rows(follower, steps), export_rows(source, steps));
}

TEST_P(EngineContract, a_sampled_token_that_is_not_taken_leaves_no_trace) {
  if (!can().exact_single_step) GTEST_SKIP() << "not claimed";
  TestSession follower = open(25);
  prefill(follower);
  for (unsigned i = 0; i < 6; ++i) {
    generate(follower, 1);
    follower.ids.back() = harness_->ordinary_token(300 + i);  // somebody else chose this one
  }
  TestSession replayed = open_copy(follower, 0);
  engine().prefill(replayed.slot, 0, part(replayed.ids, 0, 24));
  engine().replay(replayed.slot, 24, part(replayed.ids, 24, front_of(replayed)));
  EXPECT_TRUE(same_tokens(generate(follower, kAfter), generate(replayed, kAfter)));
}

TEST_P(EngineContract, generated_tokens_recomputed_in_chunks_are_the_same_where_claimed) {
  if (!can().exact_chunked_generated) GTEST_SKIP() << "not claimed";
  TestSession source = open(20);
  prefill(source);
  generate(source, 20);
  TestSession target = open_copy(source, 1);
  engine(1).prefill(target.slot, 0, part(target.ids, 0, front_of(target)));
  EXPECT_TRUE(same_tokens(generate(target, kAfter), generate(source, kAfter)));
}

TEST_P(EngineContract, a_truncated_cache_rebuilt_from_its_rows_goes_on_the_same) {
  if (!can().exact_attach) GTEST_SKIP() << "not claimed";
  TestSession s = open(33);
  prefill(s);
  generate(s, 12);
  const TokenPosition front = front_of(s);
  TestSession stayed = open_copy(s, 1);
  attach(stayed, 0, front, export_rows(s, {0, front}));
  const auto expected = generate(stayed, kAfter);
  for (const TokenPosition cut : {front - 1, 33u, 16u, 1u, 0u}) {
    SCOPED_TRACE(cut);
    const kv::Bytes below = export_rows(s, {0, cut});
    const kv::Bytes above = export_rows(s, {cut, front});
    truncate(s, cut);
    EXPECT_EQ(export_rows(s, {0, cut}), below);
    attach(s, cut, front - cut, above);
    TestSession again = open_copy(s, 1);
    attach(again, 0, front, export_rows(s, {0, front}));
    EXPECT_TRUE(same_tokens(generate(again, kAfter), expected));
    engine(1).release(again.slot);
  }
  EXPECT_TRUE(same_tokens(generate(s, kAfter), expected));
}

TEST_P(EngineContract, one_of_four_sessions_moves_while_all_decode) {
  if (!can().exact_attach) GTEST_SKIP() << "not claimed";
  std::vector<std::vector<TokenId>> alone;
  for (unsigned i = 0; i < 4; ++i) {
    TestSession s = open(16 + i, i);
    prefill(s);
    alone.push_back(ids_of(generate(s, 24)));
    engine().release(s.slot);
  }
  std::vector<TestSession> together;
  for (unsigned i = 0; i < 4; ++i) {
    together.push_back(open(16 + i, i));
    prefill(together.back());
  }
  for (const TestSession& s : together) start_decode(s, 24);
  TestSession& moving = together[1];
  ASSERT_TRUE(wait_sampled(moving, 6));
  engine(0).export_kv(moving.slot, {0, 16});  // ahead, while it decodes
  ASSERT_TRUE(wait_sampled(moving, 9));
  engine(0).pause(moving.slot);
  ASSERT_TRUE(run_until([&] { return !record(moving).paused.empty(); }));
  for (const Sampled& token : record(moving).sampled) moving.ids.push_back(token.id);
  const TokenPosition front = record(moving).paused.back();
  ASSERT_EQ(front, front_of(moving));
  ASSERT_EQ(record(moving).exported.size(), 1u);
  const kv::Bytes ahead = record(moving).exported[0].second;
  const kv::Bytes rest = export_rows(moving, {16, front});

  TestSession target = open_copy(moving, 1);
  attach(target, 0, 16, ahead);
  attach(target, 16, front - 16, rest);
  engine(0).release(moving.slot);
  const auto left = static_cast<TokenIndex>(24 - (target.ids.size() - target.prompt_tokens));
  generate(target, left);
  EXPECT_EQ(part(target.ids, target.prompt_tokens, target.ids.size()), alone[1]);
  for (const unsigned i : {0u, 2u, 3u}) {
    ASSERT_TRUE(wait_sampled(together[i], 24));
    EXPECT_EQ(ids_of(record(together[i]).sampled), alone[i]) << "session " << i;
  }
}

}  // namespace
}  // namespace pallas::test
