// SourceHandover and TargetHandover alone, each against a recording port.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "recorders.h"
#include "session/transcript.h"

namespace pallas::session {
namespace {

class Source : public testing::Test {
 protected:
  static SourceHandover::Setup setup(wire::Plan plan) {
    SourceHandover::Setup s;
    s.session = SessionId("s");
    s.attempt = kAttempt;
    s.target = NodeId("b");
    s.plan = std::move(plan);
    s.geometry = kGeometry;
    s.self = NodeId("a");
    return s;
  }
  static wire::Plan two_front() {
    wire::Plan plan;
    plan.order = wire::SendOrder::kHighestFirst;
    plan.meet = true;
    plan.partial_ranges = true;
    return plan;
  }
  static wire::Plan full_copy() {
    wire::Plan plan;
    plan.order = wire::SendOrder::kOldestFirst;
    return plan;
  }
  // Answers every export at once and drains the link until nothing more is asked for.
  void run(SourceHandover& source) {
    for (std::size_t i = 0; i < 1000 && answered_ < port.exports.size(); ++i) {
      const auto range = port.exports[answered_++];
      source.on_exported(range, kv::Bytes(range.size() * kGeometry.bytes_per_token(), std::byte{}));
      port.backlog = 0;
      source.on_drained();
    }
  }
  void acknowledge(SourceHandover& source) {
    wire::HandoverRequestAcknowledge ack;
    ack.attempt = kAttempt;
    source.on_acknowledged(ack);
  }

  SourceRecorder port;
  std::size_t answered_ = 0;
};

TEST_F(Source, sends_no_row_before_the_acknowledgement) {
  const TokenLog log = log_of(64, 1);
  SourceHandover source(setup(two_front()), log, 64, port);
  source.on_front(64);
  EXPECT_TRUE(port.exports.empty());
  acknowledge(source);
  EXPECT_FALSE(port.exports.empty());
}

TEST_F(Source, two_front_sends_the_newest_block_first_and_keeps_two_in_the_link) {
  const TokenLog log = log_of(100, 1);
  SourceHandover source(setup(two_front()), log, 100, port);
  acknowledge(source);
  EXPECT_EQ(port.exports, (std::vector<kv::TokenRange>{{80, 96}, {64, 80}}));
  run(source);
  const std::vector<kv::TokenRange> expected{{80, 96}, {64, 80}, {48, 64}, {32, 48},
                                             {16, 32}, {0, 16},  {96, 100}};
  EXPECT_EQ(port.exports, expected);
}

TEST_F(Source, whose_link_is_divided_sends_when_it_is_told_to) {
  const TokenLog log = log_of(100, 1);
  port.divided = true;
  SourceHandover source(setup(two_front()), log, 100, port);
  source.on_front(100);
  EXPECT_EQ(port.asked_for_turns, 0);  // nothing may be sent yet
  EXPECT_EQ(source.wanted_bytes(), 0u);
  EXPECT_FALSE(source.send_next());
  acknowledge(source);
  EXPECT_EQ(port.asked_for_turns, 1);
  EXPECT_TRUE(port.exports.empty());
  const std::uint64_t block = 16 * kGeometry.bytes_per_token();
  EXPECT_EQ(source.wanted_bytes(), block);
  EXPECT_EQ(source.covered(), 0u);
  // However much waits: that is for whoever divides the link to say.
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(source.send_next());
  EXPECT_EQ(port.exports, (std::vector<kv::TokenRange>{{80, 96}, {64, 80}, {48, 64}}));
  EXPECT_EQ(source.exporting_bytes(), 3 * block);
  EXPECT_EQ(source.covered(), 48u);
  wire::PreparationProgress progress;
  progress.attempt = kAttempt;
  progress.front = 32;
  progress.prefill_goal = 48;
  source.on_progress(progress);
  EXPECT_EQ(source.covered(), 80u);
  EXPECT_EQ(source.wanted_bytes(), 0u);  // the fronts meet, and the link is not idle
  source.on_exported({80, 96}, kv::Bytes(block, std::byte{}));
  EXPECT_EQ(source.exporting_bytes(), 2 * block);
  EXPECT_EQ(port.asked_for_turns, 3);
}

TEST_F(Source, two_front_stops_at_the_front_that_the_target_reports) {
  const TokenLog log = log_of(96, 1);
  SourceHandover source(setup(two_front()), log, 96, port);
  acknowledge(source);
  wire::PreparationProgress progress;
  progress.attempt = kAttempt;
  progress.front = 40;
  progress.prefill_goal = 50;
  source.on_progress(progress);
  run(source);
  EXPECT_EQ(port.exports, (std::vector<kv::TokenRange>{{80, 96}, {64, 80}, {50, 64}}));
}

TEST_F(Source, oldest_first_sends_completed_blocks_only_until_the_status_and_then_the_rest) {
  const TokenLog log = log_of(40, 1);
  SourceHandover source(setup(full_copy()), log, 40, port);
  acknowledge(source);
  run(source);
  EXPECT_EQ(port.exports, (std::vector<kv::TokenRange>{{0, 16}, {16, 32}}));
  EXPECT_TRUE(source.claim(Epoch(2)));
  source.on_paused(40, wire::FinishReason::kNone, true, Duration{0});
  run(source);
  EXPECT_EQ(port.exports.back(), (kv::TokenRange{32, 40}));
  const auto status = all_of<wire::SnStatusTransfer>(port.sent);
  ASSERT_EQ(status.size(), 1u);
  EXPECT_EQ(status.front().n, 40u);
  EXPECT_EQ(status.front().ids.back(), log.at(40));
  EXPECT_EQ(status.front().token_hash, log.hash(41));
}

TEST_F(Source, tells_each_token_once_and_none_after_the_status) {
  TokenLog log = log_of(10, 0);
  SourceHandover source(setup(two_front()), log, 9, port);
  log.append(500, NodeId("a"));
  source.on_tokens(wire::FinishReason::kNone);
  source.on_tokens(wire::FinishReason::kNone);
  ASSERT_EQ(all_of<wire::TokenUpdate>(port.sent).size(), 1u);
  EXPECT_EQ(all_of<wire::TokenUpdate>(port.sent).front().first, 10u);
  source.claim(Epoch(2));
  source.on_paused(10, wire::FinishReason::kNone, true, Duration{0});
  log.append(501, NodeId("a"));
  source.on_tokens(wire::FinishReason::kNone);
  EXPECT_EQ(all_of<wire::TokenUpdate>(port.sent).size(), 1u);
}

TEST_F(Source, a_repeated_claim_gets_the_status_again_under_its_epoch) {
  const TokenLog log = log_of(20, 1);
  SourceHandover source(setup(two_front()), log, 20, port);
  EXPECT_TRUE(source.claim(Epoch(2)));
  source.on_paused(20, wire::FinishReason::kNone, true, Duration{0});
  EXPECT_FALSE(source.claim(Epoch(3)));
  const auto status = all_of<wire::SnStatusTransfer>(port.sent);
  ASSERT_EQ(status.size(), 2u);
  EXPECT_EQ(status.back().epoch, Epoch(3));
}

TEST_F(Source, a_claim_revives_a_cancelled_attempt_and_resends_what_was_taken_back) {
  const TokenLog log = log_of(48, 1);
  SourceHandover source(setup(two_front()), log, 48, port);
  acknowledge(source);
  run(source);
  const auto before = port.exports.size();
  source.cancel(wire::Cause::kWithdrawn);
  ASSERT_EQ(all_of<wire::HandoverCancel>(port.sent).size(), 1u);
  EXPECT_TRUE(source.claim(Epoch(2)));
  source.on_paused(48, wire::FinishReason::kNone, true, Duration{0});
  run(source);
  EXPECT_EQ(port.exports.size(), 2 * before);
}

TEST_F(Source, sends_nothing_while_the_target_follows_and_the_rest_when_it_no_longer_does) {
  TokenLog log = log_of(64, 1);
  SourceHandover source(setup(two_front()), log, 64, port);
  acknowledge(source);
  run(source);
  wire::PreparationProgress progress;
  progress.attempt = kAttempt;
  progress.front = progress.prefill_goal = 64;
  progress.follows = true;
  source.on_progress(progress);
  port.exports.clear();
  answered_ = 0;
  for (TokenPosition front = 65; front < 90; ++front) {
    log.append(7, NodeId("a"));
    source.on_front(front);
    run(source);
  }
  source.claim(Epoch(2));
  source.on_paused(89, wire::FinishReason::kNone, true, Duration{0});
  run(source);
  EXPECT_TRUE(port.exports.empty());
  progress.front = progress.prefill_goal = 87;
  progress.follows = false;
  source.on_progress(progress);
  run(source);
  EXPECT_EQ(port.exports, (std::vector<kv::TokenRange>{{87, 89}}));
}

TEST_F(Source, knows_its_target_level_while_that_samples_the_next_token_itself) {
  TokenLog log = log_of(64, 1);
  SourceHandover source(setup(two_front()), log, 64, port);
  acknowledge(source);
  EXPECT_FALSE(source.target_is_level());
  wire::PreparationProgress progress;
  progress.attempt = kAttempt;
  progress.front = progress.prefill_goal = 64;
  progress.follows = true;
  progress.sampled_to = 65;  // it replays the last known id
  source.on_progress(progress);
  EXPECT_FALSE(source.target_is_level());
  progress.sampled_to = 66;
  source.on_progress(progress);
  EXPECT_TRUE(source.target_is_level());
  log.append(7, NodeId("a"));  // and the target cannot have said yet what it makes of it
  source.on_front(65);
  EXPECT_FALSE(source.target_is_level());
  progress.sampled_to = 67;
  progress.follows = false;
  source.on_progress(progress);
  EXPECT_FALSE(source.target_is_level());
}

TEST_F(Source, after_a_reconnect_only_what_the_target_lacks_is_sent_again) {
  const TokenLog log = log_of(64, 3);
  SourceHandover source(setup(two_front()), log, 64, port);
  acknowledge(source);
  run(source);
  port.exports.clear();
  answered_ = 0;
  wire::HeldAttempt held;
  held.attempt = kAttempt;
  held.tokens_known = 65;
  held.token_hash = log.hash(65);
  held.ranges = {{0, 16}, {48, 64}};
  source.on_resynchronized(&held);
  run(source);
  EXPECT_EQ(port.exports, (std::vector<kv::TokenRange>{{32, 48}, {16, 32}}));
  const auto updates = all_of<wire::TokenUpdate>(port.sent);
  ASSERT_FALSE(updates.empty());
  EXPECT_EQ(updates.back().first, 65u);
  EXPECT_EQ(updates.back().ids.size(), 2u);
}

class Target : public testing::Test {
 protected:
  Target() : staged(kGeometry), log(log_of(64, 9)) {}

  TargetHandover make(wire::Plan plan, wire::Consistency consistency = wire::Consistency::kExact,
                      Seconds row_wire = Seconds(0)) {
    TargetHandover::Setup s;
    s.row_wire = row_wire;
    s.prefill_per_token = Seconds(0.01);
    s.session = SessionId("s");
    s.attempt = kAttempt;
    s.source = NodeId("a");
    s.plan = std::move(plan);
    s.consistency = consistency;
    s.run_tokens = 32;
    return TargetHandover(std::move(s), log, staged, 0, port);
  }
  static wire::Plan two_front(TokenPosition recompute_end) {
    wire::Plan plan;
    plan.recompute_end = recompute_end;
    plan.order = wire::SendOrder::kHighestFirst;
    plan.meet = true;
    return plan;
  }
  wire::KvBlock block(TokenPosition first, TokenPosition count) {
    wire::KvBlock header;
    header.attempt = kAttempt;
    header.first = first;
    header.count = count;
    header.token_hash = log.hash(first + count);
    return header;
  }
  static kv::Bytes bytes(TokenPosition count) {
    return kv::Bytes(count * kGeometry.bytes_per_token(), std::byte{});
  }
  // Ends the running command.
  void finish(TargetHandover& target) {
    target.on_front(port.commands.back().range.end, std::chrono::milliseconds(10));
  }

  StagedRows staged;
  TokenLog log;
  TargetRecorder port;
};

TEST_F(Target, prefills_up_to_the_lowest_staged_row_and_attaches_from_there) {
  auto target = make(two_front(1000));
  target.advance();
  EXPECT_EQ(port.commands.back(), (TargetRecorder::Command{'p', {0, 32}}));
  ASSERT_TRUE(target.on_rows(block(48, 16), bytes(16)));
  finish(target);
  EXPECT_EQ(port.commands.back(), (TargetRecorder::Command{'p', {32, 48}}));
  finish(target);
  EXPECT_EQ(port.commands.back(), (TargetRecorder::Command{'a', {48, 64}}));
}

TEST_F(Target, prefills_towards_the_rows_no_further_than_where_they_will_be_by_then) {
  auto target = make(two_front(1000), wire::Consistency::kFast, Seconds(0.03));
  ASSERT_TRUE(target.on_rows(block(40, 24), bytes(24)));  // on their way: three for one row
  EXPECT_EQ(port.commands.back(), (TargetRecorder::Command{'p', {0, 30}}));
  ASSERT_TRUE(target.on_rows(block(36, 4), bytes(4)));
  finish(target);
  EXPECT_EQ(port.commands.back(), (TargetRecorder::Command{'p', {30, 35}}));
  finish(target);
  EXPECT_EQ(port.commands.back(), (TargetRecorder::Command{'p', {35, 36}})) << "never none";
  finish(target);
  EXPECT_EQ(port.commands.back(), (TargetRecorder::Command{'a', {40, 64}}));

  auto slow = make(two_front(1000), wire::Consistency::kFast, Seconds(10));
  slow.advance();
  EXPECT_EQ(port.commands.back(), (TargetRecorder::Command{'p', {0, 32}})) << "a run at most";
}

TEST_F(Target, attaches_all_that_lies_at_the_front_at_once) {
  auto target = make(two_front(32));
  ASSERT_TRUE(target.on_rows(block(48, 16), bytes(16)));
  ASSERT_TRUE(target.on_rows(block(32, 16), bytes(16)));
  ASSERT_EQ(port.commands.back(), (TargetRecorder::Command{'p', {0, 32}}));
  finish(target);
  ASSERT_EQ(port.commands.size(), 3u);
  EXPECT_EQ(port.commands[1], (TargetRecorder::Command{'a', {32, 48}}));
  EXPECT_EQ(port.commands[2], (TargetRecorder::Command{'a', {48, 64}}));
  target.on_front(48, {});
  EXPECT_TRUE(target.busy());
  target.on_front(64, {});
  EXPECT_EQ(target.front(), 64u);
  EXPECT_EQ(target.counts().received, 32u);
}

TEST_F(Target, exact_never_computes_generated_positions_in_chunks) {
  auto target = make(two_front(1000));
  target.advance();
  finish(target);
  EXPECT_EQ(port.commands.back(), (TargetRecorder::Command{'p', {32, 63}}));  // 63: decode class
  finish(target);
  EXPECT_EQ(port.commands.back().kind, 'r');
  EXPECT_FALSE(target.counts().inexact);
}

TEST_F(Target, fast_computes_everything_in_chunks_and_says_that_it_is_not_exact) {
  auto target = make(two_front(1000), wire::Consistency::kFast);
  target.advance();
  finish(target);
  EXPECT_EQ(port.commands.back(), (TargetRecorder::Command{'p', {32, 64}}));
  finish(target);
  EXPECT_EQ(port.commands.back(), (TargetRecorder::Command{'p', {64, 72}}));
  EXPECT_TRUE(target.counts().inexact);
}

TEST_F(Target, is_complete_when_the_status_is_known_and_only_the_last_id_has_no_row) {
  auto target = make(two_front(0));
  target.advance();
  EXPECT_TRUE(port.commands.empty());
  target.on_attach();
  EXPECT_EQ(target.state(), TargetHandover::State::kClaiming);
  wire::SnStatusTransfer status;
  status.attempt = kAttempt;
  status.n = 72;
  status.first = log.size() - 2;
  status.ids = log.copy(log.size() - 2, log.size());
  status.token_hash = log.hash(log.size());
  target.on_status(status);
  EXPECT_EQ(target.state(), TargetHandover::State::kCompleting);
  ASSERT_TRUE(target.on_rows(block(0, 72), bytes(72)));
  EXPECT_EQ(port.commands.back(), (TargetRecorder::Command{'a', {0, 72}}));
  finish(target);
  EXPECT_EQ(target.state(), TargetHandover::State::kComplete);
  EXPECT_FALSE(target.counts().inexact);
}

TEST_F(Target, rebuilds_alone_what_a_lost_source_no_longer_sends) {
  auto target = make(two_front(0));
  ASSERT_TRUE(target.on_rows(block(16, 48), bytes(48)));
  target.on_attach();
  target.on_source_lost();
  EXPECT_EQ(port.commands.back(), (TargetRecorder::Command{'p', {0, 16}}));
  finish(target);
  EXPECT_EQ(port.commands.back(), (TargetRecorder::Command{'a', {16, 64}}));
  finish(target);
  while (target.state() != TargetHandover::State::kComplete) {
    ASSERT_EQ(port.commands.back().kind, 'r');
    finish(target);
  }
  EXPECT_EQ(target.front(), 72u);
  EXPECT_EQ(target.counts().replayed, 8u);
}

TEST_F(Target, refuses_rows_of_other_ids_or_above_what_it_knows) {
  auto target = make(two_front(0));
  auto wrong = block(16, 16);
  wrong.token_hash ^= 1;
  EXPECT_EQ(target.on_rows(wrong, bytes(16)).error().code, Errc::kInvalidArgument);
  auto above = block(48, 16);
  above.first = 64;
  EXPECT_EQ(target.on_rows(above, bytes(16)).error().code, Errc::kOutOfOrder);
  auto wraps = block(48, 16);
  wraps.first = std::numeric_limits<TokenPosition>::max() - 3;
  EXPECT_FALSE(target.on_rows(wraps, bytes(16)));
  EXPECT_EQ(target.counts().blocks_refused, 3u);
  EXPECT_TRUE(staged.empty());
}

TEST_F(Target, exact_refuses_rows_of_another_lineage_and_others_report_it) {
  auto exact = make(two_front(0));
  auto other = block(0, 16);
  other.lineage = Lineage(5);
  EXPECT_FALSE(exact.on_rows(other, bytes(16)));
  auto relaxed = make(two_front(0), wire::Consistency::kPreferExact);
  EXPECT_TRUE(relaxed.on_rows(other, bytes(16)));
  EXPECT_TRUE(relaxed.counts().inexact);
}

TEST_F(Target, a_gap_in_the_ids_is_named_and_changes_nothing) {
  auto target = make(two_front(0));
  wire::TokenUpdate update;
  update.first = log.size() + 3;
  update.ids = {1};
  const auto taken = target.on_tokens(update);
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().message.find("TokenUpdate.first"), std::string::npos);
}

// The KV has caught up with 64 + 9 ids, and the engine has time.
class Follower : public Target {
 protected:
  Seconds row_wire{0};
  Seconds interval{0};
  TargetHandover make_follower(wire::Consistency consistency = wire::Consistency::kExact,
                               bool exact_single_step = true, double window_s = 1) {
    TargetHandover::Setup s;
    s.session = SessionId("s");
    s.attempt = kAttempt;
    s.source = NodeId("a");
    s.self = NodeId("b");
    s.plan = two_front(0);
    s.plan.window_s = window_s;
    s.consistency = consistency;
    s.exact_single_step = exact_single_step;
    s.last_position = 80;
    s.row_wire = row_wire;
    s.interval = interval;
    port.idle = true;
    return TargetHandover(std::move(s), log, staged, 72, port);
  }
  void sample(TargetHandover& target, TokenId id) {
    ASSERT_EQ(port.commands.back().kind, 'd');
    target.on_shadow({target.front() + 1, id, false});
  }
  Status tell(TargetHandover& target, std::vector<TokenId> ids) {
    wire::TokenUpdate update;
    update.first = log.size();
    update.ids = std::move(ids);
    update.by = NodeId("a");
    return target.on_tokens(update);
  }
  wire::SnStatusTransfer status() {
    wire::SnStatusTransfer s;
    s.n = log.size() - 1;
    s.first = log.size();
    s.token_hash = log.hash(log.size());
    return s;
  }
  std::size_t steps() const {
    return static_cast<std::size_t>(
        std::count_if(port.commands.begin(), port.commands.end(),
                      [](const auto& command) { return command.kind == 'd'; }));
  }
};

TEST_F(Follower, goes_two_tokens_ahead_of_the_source_and_no_further) {
  auto target = make_follower();
  target.advance();
  EXPECT_TRUE(target.progress().follows);
  EXPECT_EQ(target.progress().sampled_to, target.progress().tokens_known + 1) << "a step runs";
  EXPECT_TRUE(port.ahead.empty());
  sample(target, 600);
  EXPECT_EQ(port.ahead, (std::vector<TokenId>{600}));
  sample(target, 601);
  target.advance();
  EXPECT_EQ(steps(), 2u);
  EXPECT_EQ(target.front(), 74u);
  EXPECT_EQ(target.progress().front, 73u) << "no more than the source knows of";
  EXPECT_EQ(target.progress().front, target.progress().tokens_known);
  EXPECT_EQ(target.progress().sampled_to, target.progress().tokens_known + 2);
  ASSERT_TRUE(tell(target, {600}));
  EXPECT_EQ(port.ahead, (std::vector<TokenId>{601}));
  sample(target, 602);
  ASSERT_TRUE(tell(target, {601}));
  EXPECT_EQ(steps(), 4u);
  EXPECT_EQ(target.counts().shadow_tokens, 3u);
  EXPECT_EQ(target.counts().shadow_agreed, 2u);
  EXPECT_FALSE(target.counts().inexact);
}

TEST_F(Follower, goes_one_token_ahead_where_a_reader_sets_the_pace) {
  interval = Seconds(0.1);
  auto target = make_follower();
  target.advance();
  sample(target, 600);
  EXPECT_EQ(steps(), 1u);
  ASSERT_TRUE(tell(target, {600}));
  EXPECT_EQ(steps(), 2u);
}

TEST_F(Follower, builds_nothing_upon_the_last_token) {
  auto target = make_follower();
  target.advance();
  target.on_shadow({73, 600, true});
  EXPECT_EQ(steps(), 1u);
}

TEST_F(Follower, compares_a_token_that_comes_after_the_sources) {
  auto target = make_follower();
  target.advance();
  ASSERT_TRUE(tell(target, {600}));
  target.on_shadow({73, 600, false});
  EXPECT_EQ(target.counts().shadow_agreed, 1u);
  EXPECT_EQ(steps(), 2u);
}

TEST_F(Follower, hands_its_token_over_after_the_status) {
  auto target = make_follower();
  target.advance();
  sample(target, 600);
  sample(target, 601);
  target.on_attach();
  EXPECT_EQ(target.state(), TargetHandover::State::kClaiming);
  target.on_status(status());
  ASSERT_EQ(target.state(), TargetHandover::State::kComplete);
  const auto tokens = target.take_shadow();
  ASSERT_EQ(tokens.size(), 2u);
  EXPECT_EQ(tokens[0].position, 73u);
  EXPECT_EQ(tokens[0].id, 600);
  EXPECT_EQ(tokens[1].position, 74u);
  EXPECT_EQ(tokens[1].id, 601);
  EXPECT_TRUE(target.take_shadow().empty());
}

TEST_F(Follower, waits_for_the_step_that_runs_when_the_status_comes) {
  auto target = make_follower();
  target.advance();
  target.on_attach();
  target.on_status(status());
  EXPECT_EQ(target.state(), TargetHandover::State::kCompleting);
  target.on_shadow({73, 600, false});
  ASSERT_EQ(target.state(), TargetHandover::State::kComplete);
  EXPECT_EQ(target.take_shadow().size(), 1u);
}

TEST_F(Follower, wants_rows_again_when_it_is_a_step_behind) {
  auto target = make_follower();
  target.advance();
  ASSERT_TRUE(tell(target, {600}));
  EXPECT_TRUE(target.progress().follows);
  ASSERT_TRUE(tell(target, {601}));
  EXPECT_FALSE(target.progress().follows);
  target.on_shadow({73, 600, false});
  EXPECT_EQ(port.commands.size(), 1u) << "rows take no time here";
}

TEST_F(Follower, replays_what_it_missed_where_rows_are_slow) {
  row_wire = Seconds(0.1);  // a step takes 20 ms
  auto target = make_follower();
  target.advance();
  target.on_attach();
  ASSERT_TRUE(tell(target, {600, 601, 602}));
  target.on_status(status());
  target.on_shadow({73, 600, false});
  EXPECT_EQ(port.commands.back(), (TargetRecorder::Command{'r', {73, 75}}));
  finish(target);
  EXPECT_EQ(target.state(), TargetHandover::State::kComplete);
  EXPECT_TRUE(target.take_shadow().empty());
}

TEST_F(Follower, drops_a_token_that_differs_and_stops) {
  auto target = make_follower();
  target.advance();
  sample(target, 600);
  ASSERT_TRUE(tell(target, {999}));
  EXPECT_EQ(log.at(73), 999);
  EXPECT_EQ(target.counts().shadow_differed, 1u);
  EXPECT_TRUE(target.counts().inexact);
  EXPECT_FALSE(target.progress().follows);
  EXPECT_EQ(steps(), 2u) << "the second one runs";
  sample(target, 601);
  EXPECT_EQ(port.commands.back(), (TargetRecorder::Command{'t', {73, 73}}));
  EXPECT_EQ(target.front(), 73u);
  EXPECT_TRUE(target.take_shadow().empty());
}

TEST_F(Follower, cuts_at_once_what_was_built_upon_a_token_that_differs) {
  auto target = make_follower();
  target.advance();
  sample(target, 600);
  sample(target, 601);
  ASSERT_TRUE(tell(target, {999}));
  EXPECT_EQ(port.commands.back(), (TargetRecorder::Command{'t', {73, 73}}));
  EXPECT_EQ(target.front(), 73u);
  EXPECT_EQ(target.counts().shadow_differed, 1u);
}

TEST_F(Follower, that_is_late_takes_the_step_without_sampling_and_is_in_step_with_the_next_id) {
  auto target = make_follower();
  port.age = std::chrono::milliseconds(5);  // a step takes 20
  target.advance();
  EXPECT_EQ(port.commands.back(), (TargetRecorder::Command{'r', {72, 73}}));
  finish(target);
  EXPECT_EQ(port.commands.size(), 1u) << "nothing more until the next id";
  port.age = {};
  ASSERT_TRUE(tell(target, {600}));
  EXPECT_EQ(port.commands.back().kind, 'd');
}

TEST_F(Follower, of_a_source_that_decodes_others_too_has_more_time_for_a_step) {
  for (const auto& [step, command] :
       {std::pair(Seconds(0.07), 'd'), std::pair(Seconds(0.09), 'r')}) {
    auto target = make_follower();
    port.age = std::chrono::milliseconds(15);
    port.interval = std::chrono::milliseconds(75);
    port.step = step;
    target.advance();
    EXPECT_EQ(port.commands.back().kind, command);
  }
}

TEST_F(Follower, that_is_late_needs_no_token_at_the_handover) {
  auto target = make_follower();
  port.age = std::chrono::milliseconds(5);
  target.advance();
  target.on_attach();
  ASSERT_TRUE(tell(target, {600}));
  target.on_status(status());
  finish(target);
  EXPECT_EQ(target.state(), TargetHandover::State::kComplete);
  EXPECT_EQ(target.front(), log.size() - 1);
  EXPECT_TRUE(target.take_shadow().empty());
}

TEST_F(Follower, goes_on_after_a_difference_where_the_session_is_fast) {
  auto target = make_follower(wire::Consistency::kFast);
  target.advance();
  sample(target, 600);
  ASSERT_TRUE(tell(target, {999}));
  sample(target, 601);
  EXPECT_EQ(steps(), 3u);
  EXPECT_TRUE(port.ahead.empty());
  sample(target, 602);
  EXPECT_EQ(steps(), 3u) << "its tokens may differ";
}

TEST_F(Follower, needs_exact_steps_a_window_and_time) {
  for (const auto consistency : {wire::Consistency::kExact, wire::Consistency::kPreferExact}) {
    auto unproven = make_follower(consistency, false);
    unproven.advance();
    EXPECT_EQ(steps(), 0u);
  }
  auto unprepared = make_follower(wire::Consistency::kExact, true, 0);
  unprepared.advance();
  EXPECT_EQ(steps(), 0u);
  auto busy = make_follower();
  port.idle = false;
  busy.advance();
  EXPECT_EQ(steps(), 0u);
  EXPECT_FALSE(busy.progress().follows);
  port.idle = true;
  ASSERT_TRUE(tell(busy, {}));
  EXPECT_EQ(steps(), 1u);
}

TEST_F(Follower, takes_no_step_at_the_sessions_end) {
  auto target = make_follower();
  target.advance();
  sample(target, 600);
  sample(target, 601);
  ASSERT_TRUE(tell(target, {600, 601, 602, 603, 604, 605, 606, 607}));  // 81 ids, none follows
  while (port.commands.back().kind != 'd' && target.front() < 80) finish(target);
  EXPECT_EQ(steps(), 2u);
}

TEST_F(Follower, cuts_its_kv_when_the_ue_has_other_ids) {
  auto target = make_follower();
  target.advance();
  log.truncate(70);
  target.on_log_cut(70);
  EXPECT_EQ(port.commands.back().kind, 'd') << "not while a step runs";
  target.on_shadow({73, 600, false});
  EXPECT_EQ(port.commands.back(), (TargetRecorder::Command{'t', {70, 70}}));
  EXPECT_EQ(target.front(), 70u);
  EXPECT_TRUE(target.take_shadow().empty());
}

TEST_F(Follower, waits_for_a_step_of_an_earlier_preparation_and_uses_what_it_sampled) {
  auto target = make_follower();
  target.wait_for_step();
  target.advance();
  EXPECT_TRUE(port.commands.empty());
  target.on_shadow({73, 600, false});
  EXPECT_EQ(target.front(), 73u);
  ASSERT_TRUE(tell(target, {600}));
  EXPECT_EQ(target.counts().shadow_agreed, 1u);
}

TEST_F(Follower, is_named_for_a_token_that_it_had_before_the_source_told_it_here) {
  auto target = make_follower();
  target.advance();
  sample(target, 600);
  ASSERT_TRUE(tell(target, {600}));
  EXPECT_EQ(log.by(9), NodeId("a")) << "the UE got it from the source";
  target.on_attach();
  sample(target, 601);
  ASSERT_TRUE(tell(target, {601, 602}));
  EXPECT_EQ(log.by(10), NodeId("b"));
  EXPECT_EQ(log.by(11), NodeId("a"));
}

TEST(Transcript, names_a_lost_a_repeated_and_a_contradicted_token) {
  Transcript t;
  t.add({0, 10, Epoch(1), NodeId("a"), NodeId("a"), {}});
  t.add({0, 10, Epoch(1), NodeId("a"), NodeId("a"), {}});
  t.add({0, 11, Epoch(1), NodeId("a"), NodeId("a"), {}});
  t.add({2, 12, Epoch(1), NodeId("a"), NodeId("a"), {}});
  ASSERT_EQ(t.breaches().size(), 3u);
  EXPECT_NE(t.breaches()[0].find("twice"), std::string::npos);
  EXPECT_NE(t.breaches()[1].find("another id"), std::string::npos);
  EXPECT_NE(t.breaches()[2].find("lost"), std::string::npos);
}

TEST(Transcript, names_two_emitters_of_one_epoch_and_a_stale_epoch) {
  Transcript t;
  t.add({0, 10, Epoch(2), NodeId("a"), NodeId("a"), {}});
  t.add({1, 11, Epoch(2), NodeId("a"), NodeId("b"), {}});
  t.add({2, 12, Epoch(1), NodeId("a"), NodeId("a"), {}});
  ASSERT_EQ(t.breaches().size(), 2u);
  EXPECT_NE(t.breaches()[0].find("two emitters"), std::string::npos);
  EXPECT_NE(t.breaches()[1].find("stale"), std::string::npos);
}

}  // namespace
}  // namespace pallas::session
