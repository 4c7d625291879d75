// KV with holes: decoding on a part of the rows, completing, and which rows matter.
#include "engine_contract.h"
#include "kv/rows.h"

namespace pallas::test {
namespace {

using engine::Ordering;
using engine::RankRequest;
using engine::Sampled;

constexpr TokenPosition kPrompt = 60;
constexpr TokenIndex kBefore = 9;  // generated before the move
constexpr TokenIndex kMeanwhile = 7;
constexpr TokenIndex kAfter = 10;

kv::Coverage positions_of(const std::vector<kv::TokenRange>& ranges) {
  kv::Coverage positions;
  for (const kv::TokenRange& range : ranges) positions.add(range);
  return positions;
}
TokenPosition front_of(const TestSession& s) {
  return static_cast<TokenPosition>(s.ids.size() - 1);
}
constexpr TokenPosition kFront = kPrompt + kBefore - 1;
const kv::Coverage kPart = positions_of({{0, 4}, {9, 10}, {20, 41}, {52, kFront}});
const kv::Coverage kOtherPart = positions_of({{0, 5}, {9, 10}, {20, 41}, {53, kFront}});

RankRequest request_of(Ordering ordering, const std::vector<TokenId>& ids, std::uint64_t seed = 3) {
  return {ordering, seed, {ids.end() - 8, ids.end()}};
}

TEST_P(EngineContract, scattered_rows_are_refused_where_holes_are_not_claimed) {
  if (can().holes) GTEST_SKIP() << "claimed";
  const TestSession s = open(8);
  expect_failure(s, Errc::kUnsupported, [&] {
    engine().attach_scattered(s.slot, positions_of({{1, 2}}),
                              kv::Bytes(engine().info().geometry.bytes_per_token(), std::byte{}));
  });
}

TEST_P(EngineContract, a_session_decodes_on_the_rows_that_are_there) {
  if (!can().holes) GTEST_SKIP() << "not claimed";
  const MovedSession moved = open_moved(kPrompt, kBefore);
  TestSession source = moved.source;
  TestSession part = open_part(moved, kPart);
  TestSession same = open_part(moved, kPart);
  TestSession other = open_part(moved, kOtherPart);
  const std::vector<Sampled> tokens = generate(part, kAfter);
  ASSERT_EQ(tokens.size(), kAfter);
  EXPECT_EQ(tokens[0].position, kPrompt + kBefore);
  EXPECT_TRUE(same_tokens(generate(same, kAfter), tokens));
  EXPECT_FALSE(same_tokens(generate(other, kAfter), tokens)) << "one position more or less";
  EXPECT_FALSE(same_tokens(generate(source, kAfter), tokens));
}

TEST_P(EngineContract, rows_scattered_over_several_commands_are_the_same) {
  if (!can().holes) GTEST_SKIP() << "not claimed";
  const MovedSession moved = open_moved(kPrompt, kBefore);
  TestSession at_once = open_part(moved, kPart);
  TestSession in_steps = open_copy(moved.source, 1);
  for (const kv::TokenRange& range : kPart.ranges()) {
    attach_scattered(in_steps, positions_of({range}), moved.rows, kFront);
  }
  EXPECT_TRUE(same_tokens(generate(in_steps, kAfter), generate(at_once, kAfter)));
}

TEST_P(EngineContract, scattered_rows_without_a_hole_are_an_ordinary_attach) {
  if (!can().holes) GTEST_SKIP() << "not claimed";
  const MovedSession moved = open_moved(kPrompt, kBefore);
  TestSession source = moved.source;
  TestSession scattered = open_part(moved, positions_of({{0, kFront}}));
  EXPECT_TRUE(same_tokens(generate(scattered, kAfter), generate(source, kAfter)));
}

TEST_P(EngineContract, rows_between_holes_come_out_as_they_went_in_and_a_hole_does_not) {
  if (!can().holes) GTEST_SKIP() << "not claimed";
  const MovedSession moved = open_moved(kPrompt, kBefore);
  const TestSession part = open_part(moved, kPart);
  const engine::EngineInfo& info = engine().info();
  for (const kv::TokenRange range : {kv::TokenRange{0, 4}, {2, 3}, {22, 41}, {52, kFront}}) {
    EXPECT_EQ(export_rows(part, range),
              kv::slice_rows(info.geometry, moved.rows, {0, kFront}, range));
  }
  for (const kv::TokenRange range : {kv::TokenRange{4, 5}, {3, 10}, {40, 53}, {0, kFront}}) {
    SCOPED_TRACE(range.begin);
    const TestSession s = open_part(moved, kPart);
    expect_failure(s, Errc::kOutOfOrder, [&] { s.engine->export_kv(s.slot, range); });
    s.engine->release(s.slot);
  }
}

// What a full transfer makes: all rows, and the tokens decoded meanwhile replayed.
TEST_P(EngineContract, a_completed_session_has_the_very_rows_and_logits_of_a_full_transfer) {
  if (!can().holes) GTEST_SKIP() << "not claimed";
  const MovedSession moved = open_moved(kPrompt, kBefore);
  if (!can().exact_attach || !can().exact_single_step) GTEST_SKIP() << "not claimed";
  for (const TokenPosition from : {0u, 3u, 4u}) {  // any cut up to the first hole
    SCOPED_TRACE(from);
    TestSession part = open_part(moved, kPart);
    generate(part, kMeanwhile);
    const TokenPosition front = front_of(part);
    const std::vector<TokenId> meanwhile(part.ids.begin() + kFront, part.ids.begin() + front);

    truncate(part, from);
    attach(part, from, kFront - from,
           kv::slice_rows(engine().info().geometry, moved.rows, {0, kFront}, {from, kFront}));
    part.engine->replay(part.slot, kFront, meanwhile);
    TestSession full = open_copy(part, 1);
    attach(full, 0, kFront, moved.rows);
    full.engine->replay(full.slot, kFront, meanwhile);
    for (const TestSession& s : {part, full}) {
      ASSERT_TRUE(run_until(
          [&] { return !record(s).replayed.empty() && record(s).replayed.back() == front; }));
    }
    EXPECT_EQ(export_rows(part, {0, front}), export_rows(full, {0, front}));
    EXPECT_TRUE(same_tokens(generate(part, kAfter), generate(full, kAfter)));
    part.engine->release(part.slot);
    full.engine->release(full.slot);
  }
}

// As a node does it: the whole is built beside the slot that decodes, which does not stand still.
TEST_P(EngineContract,
       a_whole_built_beside_a_slot_that_decodes_on_a_part_is_that_of_a_full_transfer) {
  if (!can().holes) GTEST_SKIP() << "not claimed";
  const MovedSession moved = open_moved(kPrompt, kBefore);
  if (!can().exact_attach || !can().exact_single_step) GTEST_SKIP() << "not claimed";
  TestSession part = open_part(moved, kPart);
  TestSession whole = open_copy(part, 1);
  start_decode(part, kMeanwhile);
  ASSERT_TRUE(wait_sampled(part, 2));
  // In several commands, and each replay as soon as its id is known.
  for (const kv::TokenRange range : {kv::TokenRange{0, 20}, {20, kFront}}) {
    whole.engine->attach_kv(
        whole.slot, range.begin, range.size(),
        kv::slice_rows(engine().info().geometry, moved.rows, {0, kFront}, range));
  }
  std::vector<TokenId> meanwhile{part.ids.back()};
  for (std::size_t k = 0; k < kMeanwhile; ++k) {
    ASSERT_TRUE(wait_sampled(part, k + 1));
    whole.engine->replay(whole.slot, kFront + static_cast<TokenPosition>(k), {meanwhile.back()});
    meanwhile.push_back(record(part).sampled[k].id);
  }
  const TokenPosition front = kFront + kMeanwhile;
  const auto replayed = [&](const TestSession& s) {
    return !record(s).replayed.empty() && record(s).replayed.back() == front;
  };
  ASSERT_TRUE(run_until([&] { return replayed(whole); }));
  part.engine->release(part.slot);

  whole.ids.insert(whole.ids.end(), meanwhile.begin() + 1, meanwhile.end());
  TestSession full = open_copy(whole, 1);
  attach(full, 0, kFront, moved.rows);
  full.engine->replay(full.slot, kFront, {meanwhile.begin(), meanwhile.end() - 1});
  ASSERT_TRUE(run_until([&] { return replayed(full); }));
  EXPECT_EQ(export_rows(whole, {0, front}), export_rows(full, {0, front}));
  EXPECT_TRUE(same_tokens(generate(whole, kAfter), generate(full, kAfter)));
}

TEST_P(EngineContract, a_released_slot_leaves_no_holes_to_the_next) {
  if (!can().holes) GTEST_SKIP() << "not claimed";
  const MovedSession moved = open_moved(kPrompt, kBefore);
  TestSession source = moved.source;
  TestSession part = open_part(moved, kPart);
  generate(part, 3);
  part.engine->release(part.slot);
  TestSession next = open_copy(moved.source, 1);
  attach(next, 0, kFront, moved.rows);
  EXPECT_TRUE(same_tokens(generate(next, kAfter), generate(source, kAfter)));
}

TEST_P(EngineContract, scattered_rows_below_the_front_or_of_a_wrong_size_or_place_are_refused) {
  if (!can().holes) GTEST_SKIP() << "not claimed";
  const MovedSession moved = open_moved(kPrompt, kBefore);
  const std::size_t row = engine().info().geometry.bytes_per_token();
  struct Case {
    kv::Coverage positions;
    std::size_t rows;
    Errc code;
  };
  const std::vector<Case> cases{
      {positions_of({{7, 9}}), 2, Errc::kOutOfOrder},
      {positions_of({{8, 9}, {11, 12}}), 1, Errc::kInvalidArgument},
      {positions_of({{8, 9}, {11, 12}}), 3, Errc::kInvalidArgument},
      {positions_of({{8, 9}, {kReserve, kReserve + 1}}), 2, Errc::kContextExceeded},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.positions.ranges().back().end);
    const TestSession s = open_copy(moved.source, 1);
    attach(s, 0, 8, kv::slice_rows(engine().info().geometry, moved.rows, {0, kFront}, {0, 8}));
    expect_failure(s, c.code, [&] {
      s.engine->attach_scattered(s.slot, c.positions, kv::Bytes(c.rows * row, std::byte{}));
    });
    s.engine->release(s.slot);
  }
}

TEST_P(EngineContract, a_cut_right_above_a_hole_is_refused_and_one_below_it_is_not) {
  if (!can().holes) GTEST_SKIP() << "not claimed";
  const MovedSession moved = open_moved(kPrompt, kBefore);
  const TestSession kept = open_part(moved, kPart);
  truncate(kept, 25);
  for (const TokenPosition cut : {5u, 9u, 20u}) {
    SCOPED_TRACE(cut);
    const TestSession s = open_part(moved, kPart);
    expect_failure(s, Errc::kOutOfOrder, [&] { s.engine->truncate(s.slot, cut); });
    s.engine->release(s.slot);
  }
}

TEST_P(EngineContract, scores_are_given_for_every_position_and_change_nothing) {
  TestSession ranked = open(40);
  TestSession plain = open(40);
  prefill(ranked);
  prefill(plain);
  for (const Ordering ordering : {Ordering::kSinksRecency, Ordering::kRandom}) {
    const auto scores = rank(ranked, request_of(ordering, ranked.ids));
    EXPECT_EQ(scores.size(), 39u) << name_of(ordering);
  }
  if (can().holes) {
    for (const Ordering ordering :
         {Ordering::kKeyNorm, Ordering::kKeyDiff, Ordering::kObservationWindow}) {
      const auto scores = rank(ranked, request_of(ordering, ranked.ids));
      EXPECT_EQ(scores.size(), 39u) << name_of(ordering);
      EXPECT_GT(std::set<double>(scores.begin(), scores.end()).size(), 20u) << name_of(ordering);
    }
  }
  EXPECT_TRUE(same_tokens(generate(ranked, kAfter), generate(plain, kAfter)));
}

TEST_P(EngineContract, scores_follow_from_the_rows_alone) {
  if (!can().holes) GTEST_SKIP() << "not claimed";
  const MovedSession moved = open_moved(kPrompt, kBefore);
  const TestSession copy = open_part(moved, positions_of({{0, kFront}}));
  for (const Ordering ordering : engine::kOrderings) {
    EXPECT_EQ(rank(copy, request_of(ordering, moved.source.ids)),
              rank(moved.source, request_of(ordering, moved.source.ids)))
        << name_of(ordering);
  }
  const auto random = [&](std::uint64_t seed) {
    return rank(moved.source, request_of(Ordering::kRandom, moved.source.ids, seed));
  };
  EXPECT_NE(random(1), random(2));
}

TEST_P(EngineContract, a_decoding_slot_tells_scores_and_goes_on_the_same) {
  if (!can().holes) GTEST_SKIP() << "not claimed";
  const MovedSession moved = open_moved(kPrompt, kBefore);
  TestSession undisturbed = open_part(moved, positions_of({{0, kFront}}));
  const auto expected = generate(undisturbed, 20);
  for (const Ordering ordering : engine::kOrderings) {
    SCOPED_TRACE(name_of(ordering));
    TestSession s = open_part(moved, positions_of({{0, kFront}}));
    start_decode(s, 20);
    ASSERT_TRUE(wait_sampled(s, 2));
    s.engine->rank(s.slot, request_of(ordering, s.ids));
    ASSERT_TRUE(wait_sampled(s, 20));
    ASSERT_EQ(record(s).ranked.size(), 1u);
    EXPECT_GE(record(s).ranked[0].size(), kFront + 2u);
    EXPECT_TRUE(same_tokens(record(s).sampled, expected));
    s.engine->release(s.slot);
  }
}

TEST_P(EngineContract, scores_of_a_cache_with_holes_or_of_no_window_are_refused) {
  if (!can().holes) GTEST_SKIP() << "not claimed";
  const MovedSession moved = open_moved(kPrompt, kBefore);
  const TestSession part = open_part(moved, kPart);
  expect_failure(part, Errc::kOutOfOrder,
                 [&] { part.engine->rank(part.slot, request_of(Ordering::kKeyDiff, part.ids)); });
  for (const std::size_t size : {std::size_t{0}, std::size_t{engine::kMaxWindow} + 1}) {
    const TestSession s = open(8);
    prefill(s);
    expect_failure(s, Errc::kInvalidArgument, [&] {
      engine().rank(s.slot,
                    {Ordering::kObservationWindow, 0, std::vector<TokenId>(size, s.ids[0])});
    });
  }
}

}  // namespace
}  // namespace pallas::test
