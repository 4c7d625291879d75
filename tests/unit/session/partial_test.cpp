// Partial handover in the session machines: what is sent in which order, when the target begins,
// and how it becomes whole.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "recorders.h"

namespace pallas::session {
namespace {

using Command = TargetRecorder::Command;
using Ranges = std::vector<kv::TokenRange>;
using State = TargetHandover::State;

wire::Plan partial(double fraction, double deadline_s = 0) {
  wire::Plan plan;
  plan.scheme = "partial";
  plan.order = wire::SendOrder::kByImportance;
  plan.partial_fraction = fraction;
  plan.partial_deadline_s = deadline_s;
  return plan;
}

// --- source ---

class PartialSource : public testing::Test {
 protected:
  SourceHandover make(const TokenLog& log, TokenPosition front) {
    SourceHandover::Setup s;
    s.session = SessionId("s");
    s.attempt = kAttempt;
    s.target = NodeId("b");
    s.plan = partial(0.4);
    s.geometry = kGeometry;
    s.self = NodeId("a");
    return SourceHandover(std::move(s), log, front, port);
  }
  // Ends the exports asked for so far.
  void answer(SourceHandover& source) {
    while (answered < port.exports.size()) {
      const auto range = port.exports[answered++];
      source.on_exported(range, kv::Bytes(range.size() * kGeometry.bytes_per_token(), std::byte{}));
    }
  }
  void run(SourceHandover& source) {
    for (int i = 0; i < 1000 && answered < port.exports.size(); ++i) {
      answer(source);
      port.backlog = 0;
      source.on_drained();
    }
  }
  static void pause(SourceHandover& source, TokenPosition n) {
    source.on_paused(n, wire::FinishReason::kNone, true, Duration{0});
  }
  static std::vector<TokenPosition> ascending(TokenPosition count) {
    std::vector<TokenPosition> order(count);
    std::iota(order.begin(), order.end(), 0u);
    return order;
  }

  SourceRecorder port;
  std::size_t answered = 0;
};

TEST_F(PartialSource, sends_what_is_always_sent_without_waiting_for_the_order) {
  const TokenLog log = log_of(100, 1);
  SourceHandover source = make(log, 100);
  source.begin_retrieved(Epoch(2), 0);
  source.claim(Epoch(2));
  pause(source, 100);
  // The last position, the first four, the latest two blocks, in two blocks and a rest.
  EXPECT_EQ(port.exports, (Ranges{{0, 4}, {88, 100}, {72, 88}}));
  EXPECT_EQ(port.ranks, 1);
  run(source);
  ASSERT_EQ(port.blocks.size(), 3u);
  EXPECT_EQ(port.blocks[0].positions, (Ranges{{0, 4}, {88, 100}}));
  EXPECT_EQ(port.blocks[0].first, 0u);
  EXPECT_EQ(port.blocks[0].count, 16u);
  EXPECT_EQ(port.blocks[0].token_hash, log.hash(100));
  EXPECT_TRUE(port.blocks[1].positions.empty());
  EXPECT_EQ(port.blocks[2].first, 68u);
  EXPECT_EQ(port.ranks, 1);  // and no more until the order is known
}

TEST_F(PartialSource, sends_the_rest_by_importance_in_blocks_of_ascending_positions) {
  const TokenLog log = log_of(100, 1);
  SourceHandover source = make(log, 100);
  source.begin_retrieved(Epoch(2), 0);
  source.claim(Epoch(2));
  pause(source, 100);
  run(source);
  std::vector<TokenPosition> order = ascending(100);
  // Even positions first, the highest of them first of all.
  std::stable_sort(order.begin(), order.end(),
                   [](auto a, auto b) { return a % 2 != b % 2 ? a % 2 < b % 2 : a > b; });
  source.on_ranked(order);
  run(source);
  ASSERT_GT(port.blocks.size(), 4u);
  Ranges evens;
  for (TokenPosition p = 36; p <= 66; p += 2) evens.push_back({p, p + 1});
  EXPECT_EQ(port.blocks[3].positions, evens);
  EXPECT_EQ(port.blocks[3].token_hash, log.hash(67));
  std::set<TokenPosition> all;
  for (const auto& block : port.blocks) {
    const kv::Coverage covered = block.covered();
    for (const auto& range : covered.ranges()) {
      for (TokenPosition p = range.begin; p < range.end; ++p) EXPECT_TRUE(all.insert(p).second);
    }
  }
  EXPECT_EQ(all.size(), 100u);
}

TEST_F(PartialSource, that_still_decodes_sends_completed_blocks_and_the_newest_after_the_status) {
  TokenLog log = log_of(100, 1);
  SourceHandover source = make(log, 100);
  wire::HandoverRequestAcknowledge ack;
  ack.attempt = kAttempt;
  source.on_acknowledged(ack);
  EXPECT_EQ(port.exports.front(), (kv::TokenRange{0, 4}));
  run(source);
  source.on_ranked(ascending(100));
  for (TokenPosition front = 101; front < 108; ++front) {
    log.append(9, NodeId("a"));
    source.on_front(front);
    run(source);
  }
  for (const auto& range : port.exports) EXPECT_LE(range.end, 96u);
  port.exports.clear();
  answered = 0;
  source.claim(Epoch(2));
  pause(source, 107);
  ASSERT_FALSE(port.exports.empty());
  EXPECT_EQ(port.exports.front(), (kv::TokenRange{96, 107}));
}

TEST_F(PartialSource, knows_nothing_sent_after_a_reconnect_but_what_the_target_lists) {
  const TokenLog log = log_of(64, 1);
  SourceHandover source = make(log, 64);
  source.begin_retrieved(Epoch(2), 0);
  source.claim(Epoch(2));
  pause(source, 64);
  run(source);
  source.on_ranked(ascending(64));
  run(source);
  port.blocks.clear();
  wire::HeldAttempt held;
  held.attempt = kAttempt;
  held.tokens_known = log.size();
  held.token_hash = log.hash(log.size());
  held.ranges = {{0, 10}, {12, 64}};
  source.on_resynchronized(&held);
  run(source);
  ASSERT_EQ(port.blocks.size(), 1u);
  EXPECT_EQ(port.blocks[0].covered().ranges(), (Ranges{{10, 12}}));
}

// --- target ---

class PartialTarget : public testing::Test {
 protected:
  PartialTarget() : staged(kGeometry), log(log_of(90, 11)) {}  // n = 100

  TargetHandover make(wire::Plan plan,
                      wire::Consistency consistency = wire::Consistency::kPreferExact,
                      bool holes = true, TokenPosition front = 0) {
    TargetHandover::Setup s;
    s.session = SessionId("s");
    s.attempt = kAttempt;
    s.source = NodeId("a");
    s.plan = std::move(plan);
    s.consistency = consistency;
    s.holes = holes;
    s.exact_single_step = true;
    s.run_tokens = 32;
    return TargetHandover(std::move(s), log, staged, front, port);
  }
  void arrive(TargetHandover& target) {
    target.on_attach();
    wire::SnStatusTransfer status;
    status.attempt = kAttempt;
    status.n = 100;
    status.first = 100;
    status.ids = log.copy(100, 101);
    status.token_hash = log.hash(101);
    target.on_status(status);
  }
  Status rows(TargetHandover& target, const Ranges& ranges) {
    wire::KvBlock header;
    header.attempt = kAttempt;
    header.first = ranges.front().begin;
    if (ranges.size() > 1) header.positions = ranges;
    for (const auto& range : ranges) header.count += range.size();
    header.token_hash = log.hash(ranges.back().end);
    return target.on_rows(header,
                          kv::Bytes(header.count * kGeometry.bytes_per_token(), std::byte{}));
  }
  void finish(TargetHandover& target) {
    target.on_front(port.commands.back().range.end, std::chrono::milliseconds(10));
  }
  void decode(TargetHandover& target) {  // in the old slot
    log.append(700, NodeId("b"));
    target.advance();
  }

  StagedRows staged;
  TokenLog log;
  TargetRecorder port;
};

TEST_F(PartialTarget, begins_as_soon_as_the_fraction_and_the_last_position_are_there) {
  auto target = make(partial(0.4));
  ASSERT_TRUE(rows(target, {{0, 4}, {30, 60}}));  // before the UE comes
  EXPECT_TRUE(port.commands.empty());
  arrive(target);
  EXPECT_TRUE(port.commands.empty());
  ASSERT_TRUE(rows(target, {{10, 16}}));  // 40 of 100, without the last one
  EXPECT_TRUE(port.commands.empty());
  ASSERT_TRUE(rows(target, {{99, 100}}));
  ASSERT_EQ(port.commands.back(), (Command{'s', {0, 100}}));
  EXPECT_EQ(port.part.positions.ranges(), (Ranges{{0, 4}, {10, 16}, {30, 60}, {99, 100}}));
  EXPECT_EQ(port.part.bytes.size(), 41 * kGeometry.bytes_per_token());
  ASSERT_TRUE(rows(target, {{70, 72}}));  // while they are attached
  finish(target);
  EXPECT_EQ(target.state(), State::kOnPart);
  EXPECT_EQ(target.counts().part_positions, 41u);
  EXPECT_EQ(target.counts().part_of, 100u);
  EXPECT_EQ(target.front(), 100u);
  EXPECT_EQ(target.first_hole(), 4u);
  EXPECT_FALSE(target.may_fill());
  EXPECT_EQ(target.progress().front, 0u);  // of the whole
  EXPECT_EQ(staged.coverage().total(), 43u);
  EXPECT_FALSE(target.counts().inexact);
}

TEST_F(PartialTarget, begins_after_the_deadline_with_what_is_always_sent) {
  auto target = make(partial(0.9, 0.5));
  arrive(target);
  ASSERT_TRUE(rows(target, {{0, 4}, {69, 100}}));
  target.on_deadline();
  EXPECT_TRUE(port.commands.empty());  // the latest two blocks are not complete
  ASSERT_TRUE(rows(target, {{68, 69}}));
  EXPECT_EQ(port.commands.back().kind, 's');
}

TEST_F(PartialTarget, that_has_all_rows_in_time_is_an_ordinary_one) {
  auto target = make(partial(0.4));
  ASSERT_TRUE(rows(target, {{0, 100}}));
  arrive(target);
  EXPECT_EQ(port.commands.back(), (Command{'a', {0, 100}}));
  finish(target);
  EXPECT_EQ(target.state(), State::kComplete);
  EXPECT_EQ(target.counts().part_positions, 0u);
}

TEST_F(PartialTarget, waits_for_everything_where_a_part_is_not_allowed) {
  for (const bool exact : {true, false}) {
    port.commands.clear();
    auto target = exact ? make(partial(0.1), wire::Consistency::kExact)
                        : make(partial(0.1), wire::Consistency::kFast, false);
    arrive(target);
    ASSERT_TRUE(rows(target, {{50, 100}}));
    EXPECT_TRUE(port.commands.empty());
    ASSERT_TRUE(rows(target, {{0, 50}}));
    EXPECT_EQ(port.commands, (std::vector<Command>{{'a', {0, 50}}, {'a', {50, 100}}}));
    staged.clear();
  }
}

TEST_F(PartialTarget, rebuilds_what_a_source_lost_before_it_could_begin_did_not_send) {
  auto target = make(partial(0.9));
  arrive(target);
  ASSERT_TRUE(rows(target, {{0, 4}, {68, 100}}));
  target.on_source_lost();
  EXPECT_EQ(port.commands.back(), (Command{'a', {0, 4}}));
  finish(target);
  EXPECT_EQ(port.commands.back(), (Command{'p', {4, 36}}));
}

TEST_F(PartialTarget, fills_another_slot_in_order_and_replays_what_was_decoded_meanwhile) {
  auto target = make(partial(0.4));
  arrive(target);
  ASSERT_TRUE(rows(target, {{0, 4}, {50, 100}}));
  finish(target);
  for (int i = 0; i < 6; ++i) decode(target);
  EXPECT_EQ(port.commands.size(), 1u);
  ASSERT_TRUE(rows(target, {{20, 22}, {30, 50}}));
  EXPECT_FALSE(target.may_fill());
  ASSERT_TRUE(rows(target, {{4, 20}, {22, 30}}));
  ASSERT_TRUE(target.may_fill());
  target.begin_whole(0);
  // Stretches that belong together in one command.
  ASSERT_EQ(port.commands.back(), (Command{'a', {0, 100}}));
  EXPECT_TRUE(staged.empty());
  finish(target);
  EXPECT_EQ(port.commands.back(), (Command{'r', {100, 104}}));
  EXPECT_FALSE(target.caught_up());
  finish(target);
  EXPECT_EQ(port.commands.back(), (Command{'r', {104, 106}}));
  finish(target);
  EXPECT_TRUE(target.caught_up());
  decode(target);  // the step that ran when the old slot was told to stop
  EXPECT_EQ(port.commands.back(), (Command{'r', {106, 107}}));
  finish(target);
  EXPECT_EQ(target.state(), State::kFilling);
  target.end_part();
  EXPECT_EQ(target.state(), State::kComplete);
  EXPECT_EQ(target.front(), 107u);
  EXPECT_EQ(target.counts().part_replayed, 7u);
  EXPECT_FALSE(target.counts().inexact);
}

TEST_F(PartialTarget, gives_up_catching_up_after_twice_what_it_was_behind) {
  auto target = make(partial(0.4));
  arrive(target);
  ASSERT_TRUE(rows(target, {{0, 4}, {50, 100}}));
  finish(target);
  for (int i = 0; i < 6; ++i) decode(target);
  ASSERT_TRUE(rows(target, {{4, 50}}));
  target.begin_whole(0);
  finish(target);
  int steps = 0;
  for (; !target.caught_up() && steps < 100; ++steps) {
    // As fast as the other.
    const TokenPosition first = port.commands.back().range.begin;
    for (TokenPosition p = first; p < port.commands.back().range.end; ++p) {
      log.append(700, NodeId("b"));
    }
    finish(target);
  }
  EXPECT_EQ(target.counts().part_replayed, 12u);
  EXPECT_EQ(target.behind(), 6u);
  target.end_part();
  while (target.state() != State::kComplete) {
    ASSERT_EQ(port.commands.back().kind, 'r');
    finish(target);
  }
}

TEST_F(PartialTarget, fills_its_own_slot_from_the_first_hole_on) {
  auto target = make(partial(0.4), wire::Consistency::kPreferExact, true, 8);
  arrive(target);
  ASSERT_TRUE(rows(target, {{8, 12}, {50, 100}}));
  EXPECT_EQ(port.commands.back(), (Command{'s', {8, 100}}));
  EXPECT_EQ(port.part.positions.ranges(), (Ranges{{8, 12}, {50, 100}}));
  finish(target);
  EXPECT_EQ(target.held_whole(), 8u);
  EXPECT_EQ(target.first_hole(), 12u);
  decode(target);
  ASSERT_TRUE(rows(target, {{12, 50}}));
  ASSERT_TRUE(target.may_fill());
  target.begin_whole(target.first_hole());
  EXPECT_EQ(port.commands.back(), (Command{'a', {12, 100}}));
  target.end_part();
  finish(target);
  EXPECT_EQ(port.commands.back(), (Command{'r', {100, 101}}));
  finish(target);
  EXPECT_EQ(target.state(), State::kComplete);
}

TEST_F(PartialTarget, computes_from_the_ids_what_a_lost_source_did_not_send) {
  auto target = make(partial(0.4), wire::Consistency::kFast);
  arrive(target);
  ASSERT_TRUE(rows(target, {{0, 4}, {50, 92}, {94, 100}}));
  finish(target);
  decode(target);
  EXPECT_FALSE(target.may_fill());
  target.on_source_lost();
  ASSERT_TRUE(target.may_fill());
  target.begin_whole(0);
  std::string kinds;
  for (int i = 0; i < 30 && !target.caught_up(); ++i) {
    kinds += port.commands.back().kind;
    finish(target);
  }
  // Prompt positions in chunks; generated ones never, though the session is a fast one.
  EXPECT_EQ(kinds, "appara");
  target.end_part();
  EXPECT_EQ(port.commands.back(), (Command{'r', {100, 101}}));
  EXPECT_FALSE(target.counts().inexact);
}

TEST_F(PartialTarget, replays_above_the_part_what_the_ue_has_beyond_the_source) {
  auto target = make(partial(0.4));
  arrive(target);
  log.append(800, NodeId("a"));
  ASSERT_TRUE(rows(target, {{0, 4}, {50, 100}}));
  finish(target);
  EXPECT_EQ(port.commands.back(), (Command{'r', {100, 101}}));
  ASSERT_TRUE(rows(target, {{4, 10}}));  // is not taken for computed already
  finish(target);
  EXPECT_EQ(target.state(), State::kOnPart);
  EXPECT_EQ(staged.coverage().total(), 60u);
}

TEST_F(PartialTarget, of_a_source_in_mid_prompt_is_an_ordinary_one) {
  auto target = make(partial(0.4));
  arrive(target);
  for (int i = 0; i < 5; ++i) log.append(800, NodeId("a"));
  ASSERT_TRUE(rows(target, {{0, 4}, {50, 100}}));
  EXPECT_EQ(port.commands.back(), (Command{'a', {0, 4}}));
}

TEST_F(PartialTarget, cut_below_the_source_leaves_the_part_at_its_first_hole) {
  auto target = make(partial(0.4));
  arrive(target);
  ASSERT_TRUE(rows(target, {{0, 4}, {50, 100}}));
  log.truncate(95);
  target.on_log_cut(95);
  finish(target);  // of the attach
  const auto cut = std::find(port.commands.begin(), port.commands.end(), Command{'t', {4, 4}});
  EXPECT_NE(cut, port.commands.end());
  EXPECT_EQ(port.commands.back().range.begin, 4u);
}

}  // namespace
}  // namespace pallas::session
