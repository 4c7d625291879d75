// Reservation, order of commands, abort, release, refusals.
#include "engine_contract.h"

namespace pallas::test {
namespace {

using namespace std::chrono_literals;
using engine::SlotId;

std::vector<TokenId> part(const std::vector<TokenId>& ids, std::size_t begin, std::size_t end) {
  return {ids.begin() + static_cast<std::ptrdiff_t>(begin),
          ids.begin() + static_cast<std::ptrdiff_t>(end)};
}

TEST_P(EngineContract, info_is_complete) {
  const engine::EngineInfo& info = engine().info();
  EXPECT_FALSE(info.model_name.empty());
  EXPECT_FALSE(info.compatibility.model_hash.empty());
  EXPECT_FALSE(info.compatibility.kv_layout.empty());
  EXPECT_GT(info.geometry.bytes_per_token(), 0u);
  EXPECT_EQ(info.compatibility.block_tokens, info.geometry.block_tokens);
  EXPECT_GT(info.profile.chunk_tokens, 0u);
  EXPECT_GT(info.profile.prefill_rate(0, 100).value, 0);
  EXPECT_GT(info.profile.decode_step(1, 100).count(), 0);
  EXPECT_GE(info.slots, 4u) << "the contract's tests need four";
  EXPECT_GE(info.context_tokens, 512u);
  EXPECT_TRUE(engine::check_compatible(info.compatibility, engine(1).info().compatibility));
}

TEST_P(EngineContract, reservations_count_at_once_and_are_refused_when_none_is_free) {
  const std::uint32_t free = engine().free_slots();
  std::set<SlotId> slots;
  for (std::uint32_t i = 0; i < free; ++i) {
    const auto slot = engine().reserve(kReserve);
    ASSERT_TRUE(slot) << slot.error().describe();
    slots.insert(*slot);
    EXPECT_EQ(engine().free_slots(), free - i - 1);
  }
  EXPECT_EQ(slots.size(), free);
  const auto refused = engine().reserve(kReserve);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kResourceExhausted);

  engine().release(*slots.begin());
  EXPECT_EQ(engine().free_slots(), 1u);
  const auto again = engine().reserve(kReserve);
  ASSERT_TRUE(again);
  EXPECT_FALSE(slots.contains(*again)) << "slot ids are never reused";
}

TEST_P(EngineContract, a_reservation_above_the_context_is_refused_and_takes_nothing) {
  const std::uint32_t free = engine().free_slots();
  const auto slot = engine().reserve(engine().info().context_tokens + 1);
  ASSERT_FALSE(slot);
  EXPECT_EQ(slot.error().code, Errc::kContextExceeded);
  EXPECT_EQ(engine().free_slots(), free);
}

TEST_P(EngineContract, prefill_reports_each_chunk_up_to_its_end) {
  const TestSession s = open(101);
  prefill(s);
  const auto& fronts = record(s).prefilled;
  ASSERT_FALSE(fronts.empty());
  EXPECT_EQ(fronts.back(), 100u);
  EXPECT_GE(fronts.size(), 2u) << "100 tokens in one chunk block every neighbour";
  EXPECT_TRUE(std::is_sorted(fronts.begin(), fronts.end()));
  for (const Duration busy : record(s).busy) EXPECT_GT(busy, 0ns);
  EXPECT_EQ(record(s).order, std::string(fronts.size(), 'p'));
}

TEST_P(EngineContract, commands_of_one_slot_run_in_the_order_given) {
  const TestSession s = open(20);
  engine().prefill(s.slot, 0, part(s.ids, 0, 8));
  engine().prefill(s.slot, 8, part(s.ids, 8, 12));
  engine().export_kv(s.slot, {2, 12});
  engine().truncate(s.slot, 10);
  engine().replay(s.slot, 10, part(s.ids, 10, 12));
  engine().prefill(s.slot, 12, part(s.ids, 12, 19));
  engine::DecodeParams params = decode_params(s, 2);
  engine().decode(s.slot, params);
  ASSERT_TRUE(wait_sampled(s, 2));
  EXPECT_EQ(record(s).order, "ppETrrpss");
  EXPECT_EQ(record(s).prefilled, (std::vector<TokenPosition>{8, 12, 19}));
  EXPECT_EQ(record(s).replayed, (std::vector<TokenPosition>{11, 12}));
  EXPECT_EQ(record(s).sampled[0].position, 20u);
}

TEST_P(EngineContract, a_command_that_does_not_start_at_the_front_fails_the_slot) {
  const std::size_t row = engine().info().geometry.bytes_per_token();
  using Command = std::function<void(const TestSession&)>;
  const std::vector<std::pair<const char*, Command>> commands{
      {"prefill above", [&](const TestSession& s) { engine().prefill(s.slot, 9, {s.ids[9]}); }},
      {"prefill below", [&](const TestSession& s) { engine().prefill(s.slot, 7, {s.ids[7]}); }},
      {"replay above", [&](const TestSession& s) { engine().replay(s.slot, 9, {s.ids[9]}); }},
      {"replay below", [&](const TestSession& s) { engine().replay(s.slot, 0, {s.ids[0]}); }},
      {"attach above",
       [&](const TestSession& s) {
         engine().attach_kv(s.slot, 9, 1, kv::Bytes(row, std::byte{}));
       }},
      {"attach below",
       [&](const TestSession& s) {
         engine().attach_kv(s.slot, 0, 1, kv::Bytes(row, std::byte{}));
       }},
      {"decode above", [&](const TestSession& s) { engine().decode(s.slot, decode_params(s, 2)); }},
  };
  for (const auto& [name, give] : commands) {
    SCOPED_TRACE(name);
    const TestSession s = open(12);
    engine().prefill(s.slot, 0, part(s.ids, 0, 8));
    expect_failure(s, Errc::kOutOfOrder, [&, give = give] { give(s); });
    EXPECT_EQ(record(s).order.back(), 'F');
    engine().release(s.slot);
  }
}

TEST_P(EngineContract, a_command_given_while_the_slot_decodes_fails_it) {
  const std::size_t row = engine().info().geometry.bytes_per_token();
  using Command = std::function<void(const TestSession&)>;
  const std::vector<std::pair<const char*, Command>> commands{
      {"prefill", [&](const TestSession& s) { engine().prefill(s.slot, 7, {s.ids[0]}); }},
      {"replay", [&](const TestSession& s) { engine().replay(s.slot, 7, {s.ids[0]}); }},
      {"attach",
       [&](const TestSession& s) {
         engine().attach_kv(s.slot, 7, 1, kv::Bytes(row, std::byte{}));
       }},
      {"truncate", [&](const TestSession& s) { engine().truncate(s.slot, 2); }},
      {"decode", [&](const TestSession& s) { engine().decode(s.slot, decode_params(s, 2)); }},
  };
  for (const auto& [name, give] : commands) {
    SCOPED_TRACE(name);
    const TestSession s = open(8);
    prefill(s);
    start_decode(s, 200);
    ASSERT_TRUE(wait_sampled(s, 1));
    expect_failure(s, Errc::kOutOfOrder, [&, give = give] { give(s); });
    engine().release(s.slot);
  }
}

TEST_P(EngineContract, a_failed_slot_stays_silent_and_its_neighbours_go_on) {
  TestSession alone = open(10, 1);
  prefill(alone);
  const auto expected = ids_of(generate(alone, 6));
  engine().release(alone.slot);

  TestSession neighbour = open(10, 1);
  prefill(neighbour);
  const TestSession s = open(10, 2);
  start_decode(neighbour, 6);
  expect_failure(s, Errc::kOutOfOrder, [&] { engine().prefill(s.slot, 5, {s.ids[5]}); });
  engine().prefill(s.slot, 0, s.ids);  // ignored
  engine().export_kv(s.slot, {0, 1});
  engine().pause(s.slot);
  ASSERT_TRUE(wait_sampled(neighbour, 6));
  EXPECT_EQ(ids_of(record(neighbour).sampled), expected);
  EXPECT_EQ(record(s).order, "F");
}

TEST_P(EngineContract, more_tokens_than_reserved_fail_the_slot) {
  const auto slot = engine().reserve(16);
  ASSERT_TRUE(slot);
  TestSession s = open(40);
  engine().release(s.slot);
  s.slot = *slot;
  expect_failure(s, Errc::kContextExceeded,
                 [&] { engine().prefill(s.slot, 0, part(s.ids, 0, 17)); });
}

TEST_P(EngineContract, abort_stops_a_prefill_after_its_chunk_and_tells_the_front) {
  TestSession whole = open(201);
  prefill(whole);
  const auto expected = generate(whole, 4);

  TestSession s = open(201);
  engine().prefill(s.slot, 0, part(s.ids, 0, 150));
  engine().prefill(s.slot, 150, part(s.ids, 150, 200));  // dropped
  ASSERT_TRUE(run_until([&] { return !record(s).prefilled.empty(); }));
  engine().abort(s.slot);
  ASSERT_TRUE(run_until([&] { return !record(s).paused.empty(); }));
  const TokenPosition front = record(s).paused.back();
  EXPECT_EQ(front, record(s).prefilled.back());
  EXPECT_LT(front, 150u);

  engine().prefill(s.slot, front, part(s.ids, front, 200));
  ASSERT_TRUE(run_until([&] { return record(s).prefilled.back() == 200; }));
  const auto tokens = generate(s, 4);
  if (can().exact_chunked_prompt) {
    EXPECT_TRUE(same_tokens(tokens, expected));
  }
}

TEST_P(EngineContract, abort_stops_a_replay_after_its_step) {
  const TestSession s = open(101);
  engine().replay(s.slot, 0, part(s.ids, 0, 100));
  ASSERT_TRUE(run_until([&] { return record(s).replayed.size() >= 3; }));
  engine().abort(s.slot);
  ASSERT_TRUE(run_until([&] { return !record(s).paused.empty(); }));
  EXPECT_EQ(record(s).paused.back(), record(s).replayed.back());
  EXPECT_LT(record(s).paused.back(), 20u);
}

TEST_P(EngineContract, abort_and_pause_of_an_idle_slot_tell_the_front) {
  const TestSession s = open(9);
  prefill(s);
  engine().abort(s.slot);
  engine().pause(s.slot);
  ASSERT_TRUE(run_until([&] { return record(s).paused.size() == 2; }));
  EXPECT_EQ(record(s).paused, (std::vector<TokenPosition>{8, 8}));
}

TEST_P(EngineContract, no_event_names_a_slot_after_release_in_any_state) {
  // What the last look at the slot was; TearDown reports any event after it.
  const TestSession prefilling = open(200, 0);
  engine().prefill(prefilling.slot, 0, part(prefilling.ids, 0, 199));
  ASSERT_TRUE(run_until([&] { return !record(prefilling).prefilled.empty(); }));
  engine().release(prefilling.slot);

  const TestSession replaying = open(50, 1);
  engine().replay(replaying.slot, 0, part(replaying.ids, 0, 49));
  ASSERT_TRUE(run_until([&] { return !record(replaying).replayed.empty(); }));
  engine().release(replaying.slot);

  const TestSession decoding = open(8, 2);
  prefill(decoding);
  start_decode(decoding, 100);
  ASSERT_TRUE(wait_sampled(decoding, 2));
  engine().export_kv(decoding.slot, {0, 8});
  engine().release(decoding.slot);

  const TestSession never_begun = open(8, 3);
  engine().prefill(never_begun.slot, 3, never_begun.ids);  // would fail
  engine().release(never_begun.slot);
  run_for(300ms);
  EXPECT_TRUE(record(never_begun).order.empty());
}

TEST_P(EngineContract, a_slot_may_be_released_inside_its_own_event) {
  const TestSession s = open(8);
  const TestSession neighbour = open(8, 1);
  prefill(s);
  prefill(neighbour);
  engine().after_event = [&](SlotId slot) {
    if (slot == s.slot && !record(s).sampled.empty()) engine().release(slot);
  };
  start_decode(s, 50);
  start_decode(neighbour, 4);
  ASSERT_TRUE(wait_sampled(neighbour, 4));
  run_for(100ms);
  EXPECT_EQ(record(s).sampled.size(), 1u);
}

TEST_P(EngineContract, release_of_an_unknown_or_released_slot_does_nothing) {
  const std::uint32_t free = engine().free_slots();
  const auto slot = engine().reserve(kReserve);
  ASSERT_TRUE(slot);
  engine().release(*slot);
  engine().release(*slot);
  EXPECT_EQ(engine().free_slots(), free);
}

TEST_P(EngineContract, a_new_slot_in_the_place_of_a_released_one_sees_nothing_of_it) {
  TestSession fresh = open(12, 1);
  prefill(fresh);
  const auto expected = generate(fresh, 6);
  engine().release(fresh.slot);

  std::vector<TestSession> used;
  for (std::uint32_t i = 0; engine().free_slots() > 0; ++i) {
    used.push_back(open(40, 10 + i));
    engine().prefill(used.back().slot, 0, part(used.back().ids, 0, 39));
  }
  ASSERT_TRUE(run_until([&] { return !record(used.back()).prefilled.empty(); }));
  for (const TestSession& s : used) engine().release(s.slot);  // some still prefilling

  TestSession again = open(12, 1);
  prefill(again);
  EXPECT_TRUE(same_tokens(generate(again, 6), expected));
}

TEST_P(EngineContract, rows_of_a_wrong_size_are_refused_without_harm_to_a_neighbour) {
  TestSession alone = open(10, 1);
  prefill(alone);
  const auto expected = ids_of(generate(alone, 8));
  engine().release(alone.slot);

  TestSession neighbour = open(10, 1);
  prefill(neighbour);
  start_decode(neighbour, 8);
  const std::size_t row = engine().info().geometry.bytes_per_token();
  for (const std::size_t size : {std::size_t{0}, 16 * row - 1, 16 * row + 1, 15 * row, 32 * row}) {
    SCOPED_TRACE(size);
    const TestSession s = open(20);
    engine().attach_kv(s.slot, 0, 16, kv::Bytes(size, std::byte{}));
    ASSERT_TRUE(run_until([&] { return !record(s).failed.empty(); }));
    EXPECT_TRUE(record(s).attached.empty());
    engine().release(s.slot);
  }
  ASSERT_TRUE(wait_sampled(neighbour, 8));
  EXPECT_EQ(ids_of(record(neighbour).sampled), expected);
}

TEST_P(EngineContract, an_export_or_truncate_beyond_the_front_fails_the_slot) {
  const TestSession exporting = open(9);
  prefill(exporting);
  engine().export_kv(exporting.slot, {4, 9});
  const TestSession cutting = open(9);
  prefill(cutting);
  engine().truncate(cutting.slot, 9);
  ASSERT_TRUE(run_until(
      [&] { return !record(exporting).failed.empty() && !record(cutting).failed.empty(); }));
  EXPECT_TRUE(record(exporting).exported.empty());
}

}  // namespace
}  // namespace pallas::test
