// Decoding: positions, ends, pace, neighbours, randomness.
#include "engine_contract.h"

namespace pallas::test {
namespace {

using namespace std::chrono_literals;
using engine::Sampled;

TEST_P(EngineContract, decode_reports_each_token_with_its_position_and_step) {
  TestSession s = open(12);
  prefill(s);
  const auto tokens = generate(s, 5);
  ASSERT_EQ(tokens.size(), 5u);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(tokens[i].position, 12 + i);
    EXPECT_GT(tokens[i].step, 0ns);
    EXPECT_EQ(tokens[i].batch, 1u);
    EXPECT_NE(tokens[i].logits_digest, 0u);
    EXPECT_FALSE(tokens[i].end_of_generation);
  }
}

TEST_P(EngineContract, a_session_of_one_prompt_token_decodes_from_an_empty_cache) {
  TestSession s = open(1);
  EXPECT_EQ(generate(s, 3).size(), 3u);
}

TEST_P(EngineContract, logits_are_digested_only_when_asked_for) {
  const TestSession s = open(8);
  prefill(s);
  engine::DecodeParams params = decode_params(s, 2);
  params.digest_logits = false;
  engine().decode(s.slot, params);
  ASSERT_TRUE(wait_sampled(s, 2));
  EXPECT_EQ(record(s).sampled[0].logits_digest, 0u);
}

TEST_P(EngineContract, the_limit_ends_decoding_as_if_paused) {
  TestSession s = open(8);
  prefill(s);
  const auto tokens = generate(s, 4);
  for (std::size_t i = 0; i < tokens.size(); ++i) EXPECT_EQ(tokens[i].limit, i == 3);
  run_for(150ms);
  EXPECT_EQ(record(s).sampled.size(), 4u);
  EXPECT_TRUE(record(s).paused.empty()) << "only pause() and abort() are answered by on_paused";
  // Idle, with KV up to the last token's position: every idle command works.
  EXPECT_EQ(export_rows(s, {0, 11}).size(), 11 * engine().info().geometry.bytes_per_token());
  truncate(s, 5);
}

TEST_P(EngineContract, decoding_in_two_parts_equals_decoding_at_once) {
  TestSession whole = open(8);
  prefill(whole);
  const auto expected = generate(whole, 10);
  TestSession parts = open_copy(whole, 0);
  parts.ids.resize(8);
  prefill(parts);
  auto tokens = generate(parts, 4);
  for (const Sampled& token : generate(parts, 6)) tokens.push_back(token);
  EXPECT_TRUE(same_tokens(tokens, expected));
}

TEST_P(EngineContract, the_end_of_generation_ends_decoding_but_not_below_min_tokens) {
  const TestSession s = open(8);
  prefill(s);
  engine::DecodeParams params = decode_params(s, 50);
  params.sampling.ignore_eos = false;
  params.sampling.min_tokens = 4;
  params.sampling.logit_bias = {{harness_->end_token(), 1000.0F}};
  engine().decode(s.slot, params);
  ASSERT_TRUE(run_until(
      [&] { return !record(s).sampled.empty() && record(s).sampled.back().end_of_generation; }));
  EXPECT_EQ(record(s).sampled.size(), 5u);  // indices 0 to 3 may not end
  EXPECT_EQ(record(s).sampled.back().id, harness_->end_token());
  EXPECT_FALSE(record(s).sampled.back().limit);
  run_for(100ms);
  EXPECT_EQ(record(s).sampled.size(), 5u);
  EXPECT_TRUE(record(s).paused.empty());
  truncate(s, 8);  // idle
}

TEST_P(EngineContract, ignore_eos_never_ends) {
  const TestSession s = open(8);
  prefill(s);
  engine::DecodeParams params = decode_params(s, 8);
  params.sampling.ignore_eos = true;
  params.sampling.logit_bias = {{harness_->end_token(), 1000.0F}};
  engine().decode(s.slot, params);
  ASSERT_TRUE(wait_sampled(s, 8));
  for (const Sampled& token : record(s).sampled) {
    EXPECT_FALSE(token.end_of_generation);
    EXPECT_NE(token.id, harness_->end_token());
  }
}

TEST_P(EngineContract, pause_lets_the_running_step_report_its_token_and_then_stops) {
  TestSession whole = open(8);
  prefill(whole);
  const auto expected = generate(whole, 12);

  TestSession s = open_copy(whole, 0);
  s.ids.resize(8);
  prefill(s);
  start_decode(s, 200);
  ASSERT_TRUE(wait_sampled(s, 3));
  run_for(5ms);  // into the next step
  const std::size_t before = record(s).sampled.size();
  engine().pause(s.slot);
  ASSERT_TRUE(run_until([&] { return !record(s).paused.empty(); }));
  const auto sampled = record(s).sampled;
  // The step that ran, and one whose event was on its way.
  EXPECT_LE(sampled.size(), before + 2);
  EXPECT_EQ(record(s).paused.back(), sampled.back().position);
  EXPECT_EQ(record(s).order.back(), 'P');
  run_for(150ms);
  EXPECT_EQ(record(s).sampled.size(), sampled.size());

  // And it goes on as if it had not been paused.
  for (const Sampled& token : sampled) s.ids.push_back(token.id);
  auto tokens = sampled;
  for (const Sampled& token : generate(s, static_cast<TokenIndex>(12 - sampled.size()))) {
    tokens.push_back(token);
  }
  EXPECT_TRUE(same_tokens(tokens, expected));
}

TEST_P(EngineContract, a_pause_given_inside_an_event_lets_no_further_step_begin_afterwards) {
  const TestSession s = open(8);
  prefill(s);
  engine().after_event = [&](engine::SlotId) {
    if (record(s).sampled.size() == 2 && record(s).order.back() == 's') engine().pause(s.slot);
  };
  start_decode(s, 100);
  ASSERT_TRUE(run_until([&] { return !record(s).paused.empty(); }));
  EXPECT_LE(record(s).sampled.size(), 4u);
}

TEST_P(EngineContract, tokens_come_no_faster_than_max_token_rate_on_a_fixed_schedule) {
  const TestSession s = open(8);
  prefill(s);
  engine::DecodeParams params = decode_params(s, 9);
  params.max_token_rate = TokensPerSecond(10);
  params.first_due = 300ms;
  const TimePoint start = harness_->now();
  engine().decode(s.slot, params);
  ASSERT_TRUE(wait_sampled(s, 9));
  const auto& at = record(s).sampled_at;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const Duration due = 300ms + i * 100ms;
    // A step may be begun so that its token is ready when due.
    EXPECT_GE(at[i] - start, due - record(s).sampled[i].step - 5ms) << "token " << i;
  }
  // Delays do not add up: the last is as late as the first may be.
  EXPECT_LE(at.back() - start, 300ms + 8 * 100ms + 150ms);
}

TEST_P(EngineContract, neighbours_change_no_token) {
  std::vector<std::vector<Sampled>> alone;
  for (unsigned i = 0; i < 4; ++i) {
    TestSession s = open(10 + 7 * i, i);
    prefill(s);
    alone.push_back(generate(s, 12));
    engine().release(s.slot);
  }
  std::vector<TestSession> together;
  for (unsigned i = 0; i < 4; ++i) {
    together.push_back(open(10 + 7 * i, i));
    prefill(together.back());
  }
  std::uint32_t largest_batch = 0;
  for (const TestSession& s : together) start_decode(s, 12);
  for (unsigned i = 0; i < 4; ++i) {
    ASSERT_TRUE(wait_sampled(together[i], 12));
    EXPECT_TRUE(same_tokens(record(together[i]).sampled, alone[i])) << "session " << i;
    for (const Sampled& token : record(together[i]).sampled) {
      largest_batch = std::max(largest_batch, token.batch);
    }
  }
  EXPECT_EQ(largest_batch, 4u) << "sessions that decode at once share steps";
}

TEST_P(EngineContract, an_awaited_session_changes_no_token_of_its_own_or_its_neighbours) {
  std::vector<std::vector<Sampled>> alone;
  std::vector<TestSession> together;
  for (unsigned i = 0; i < 4; ++i) {
    TestSession s = open(10 + 7 * i, i);
    prefill(s);
    alone.push_back(generate(s, 8));
    engine().release(s.slot);
  }
  for (unsigned i = 0; i < 4; ++i) {
    together.push_back(open(10 + 7 * i, i));
    prefill(together.back());
  }
  for (unsigned i = 0; i < 3; ++i) start_decode(together[i], 8);
  ASSERT_TRUE(wait_sampled(together[0], 2));
  engine::DecodeParams params = decode_params(together[3], 8);
  params.awaited = true;
  engine().decode(together[3].slot, params);
  for (unsigned i = 0; i < 4; ++i) {
    ASSERT_TRUE(wait_sampled(together[i], 8));
    EXPECT_TRUE(same_tokens(record(together[i]).sampled, alone[i])) << "session " << i;
  }
}

TEST_P(EngineContract, a_long_prefill_and_a_decoding_neighbour_advance_side_by_side) {
  constexpr TokenIndex kTokens = 60;
  TestSession alone = open(10, 1);
  prefill(alone);
  const auto expected = generate(alone, kTokens);
  engine().release(alone.slot);

  const TestSession neighbour = open(10, 1);
  prefill(neighbour);
  start_decode(neighbour, kTokens);
  ASSERT_TRUE(wait_sampled(neighbour, 1));
  const TestSession s = open(201, 2);
  // Most chunks in a row without a token of the neighbour.
  std::size_t in_a_row = 0, longest = 0;
  engine().after_event = [&](engine::SlotId slot) {
    if (record(neighbour).sampled.size() >= kTokens) return;
    in_a_row = slot == s.slot ? in_a_row + 1 : 0;
    longest = std::max(longest, in_a_row);
  };
  prefill(s);
  EXPECT_LE(longest, 1u) << "chunks in a row";
  EXPECT_LT(record(neighbour).sampled.size(), kTokens) << "the prefill waited for its neighbour";
  ASSERT_TRUE(wait_sampled(neighbour, kTokens));
  EXPECT_TRUE(same_tokens(record(neighbour).sampled, expected));
}

TEST_P(EngineContract, the_random_number_depends_on_seed_and_index_alone) {
  TestSession first = open(10);
  first.sampling.temperature = 1.5;
  prefill(first);
  const auto expected = generate(first, 12);

  // Another slot, another history of calls: the same tokens.
  TestSession same = open_copy(first, 0);
  same.ids.resize(10);
  prefill(same);
  generate(same, 7);
  same.ids.resize(10 + 3);
  truncate(same, 10 + 2);
  const auto resumed = generate(same, 9);
  EXPECT_TRUE(same_tokens(resumed, {expected.begin() + 3, expected.end()}));

  TestSession other_seed = open_copy(first, 0);
  other_seed.ids.resize(10);
  other_seed.sampling.seed += 1;
  prefill(other_seed);
  EXPECT_NE(ids_of(generate(other_seed, 12)), ids_of(expected));
}

TEST_P(EngineContract, greedy_decoding_ignores_the_seed) {
  TestSession a = open(10);
  a.sampling.temperature = 0;
  TestSession b = open(10);
  b.sampling.temperature = 0;
  b.sampling.seed = a.sampling.seed + 99;
  prefill(a);
  prefill(b);
  EXPECT_TRUE(same_tokens(generate(a, 8), generate(b, 8)));
}

TEST_P(EngineContract, decode_refuses_token_lists_that_do_not_match_the_cache) {
  for (const int surplus : {-1, 1}) {
    const TestSession s = open(8);
    prefill(s);
    engine::DecodeParams params = decode_params(s, 4);
    params.tokens = prompt(static_cast<TokenPosition>(8 + surplus));
    expect_failure(s, Errc::kOutOfOrder, [&] { engine().decode(s.slot, params); });
    engine().release(s.slot);
  }
}

}  // namespace
}  // namespace pallas::test
