// The UE's side of a session on virtual time: every order of handover, end of stream, stale epoch,
// duplicate and contradiction.

#include "ue/client_machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace pallas::ue {
namespace {

using namespace std::chrono_literals;

const NodeId kA("gnb-a"), kB("gnb-b"), kC("gnb-c");

// Drives one machine and keeps what it asked for.
class Bench {
 public:
  explicit Bench(ClientConfig config = {}) : machine(config, kA) {
    machine.start(now);
    collect();
  }

  void collect() {
    for (ClientAction& action : machine.take_actions()) {
      if (auto* open = std::get_if<OpenStream>(&action)) opened.push_back(*open);
      if (auto* attach = std::get_if<AttachStream>(&action)) attached.push_back(*attach);
      if (auto* close = std::get_if<CloseStream>(&action)) closed.push_back(close->stream);
      if (auto* warm = std::get_if<WarmConnection>(&action)) warmed.push_back(warm->gnb.value);
      if (auto* stop = std::get_if<DeleteSession>(&action)) deletes.push_back(*stop);
      if (std::holds_alternative<SessionOpened>(action)) ++sessions;
      if (auto* token = std::get_if<DeliverToken>(&action)) {
        ids.push_back(token->token.id);
        indices.push_back(token->token.index);
      }
      if (auto* end = std::get_if<SessionFinished>(&action)) finishes.push_back(*end);
      if (auto* failure = std::get_if<SessionFailed>(&action)) failures.push_back(failure->error);
      last_stream = std::max(last_stream, stream_of(action));
    }
  }
  static StreamNo stream_of(const ClientAction& action) {
    if (const auto* open = std::get_if<OpenStream>(&action)) return open->stream;
    if (const auto* attach = std::get_if<AttachStream>(&action)) return attach->stream;
    return 0;
  }

  void event(StreamNo stream, StreamEvent event) {
    machine.on_event(stream, std::move(event), now);
    collect();
  }
  void session(StreamNo stream, std::uint64_t epoch, const NodeId& node = kA) {
    SessionEvent event;
    event.session = SessionId("5e55");
    event.node = node;
    event.epoch = Epoch(epoch);
    event.resume_token = "secret";
    event.raw = "{}";
    this->event(stream, event);
  }
  // The id of index i is always 100 + i: what every honest gNB would say.
  void token(StreamNo stream, TokenIndex index, const NodeId& by = kA, std::uint64_t epoch = 1) {
    event(stream, StreamToken{index, static_cast<TokenId>(100 + index), by, Epoch(epoch), "t"});
  }
  void tokens(StreamNo stream, TokenIndex from, TokenIndex to, const NodeId& by = kA) {
    for (TokenIndex i = from; i < to; ++i) token(stream, i, by);
  }
  void done(StreamNo stream) {
    event(stream, FinishEvent{"stop", ""});
    event(stream, UsageEvent{{10, machine.next_index()}});
    event(stream, DoneEvent{});
  }
  void handover(const NodeId& gnb) {
    machine.on_handover(gnb, now);
    collect();
  }
  void lost(StreamNo stream) {
    machine.on_lost(stream, Error{Errc::kUnreachable, "cut"}, now);
    collect();
  }
  void refused(StreamNo stream, int status, std::string code, std::uint64_t current = 0) {
    ApiError error{status, "refused", "x", "", std::move(code), current};
    machine.on_refused(stream, error, now);
    collect();
  }
  // Moves time to the machine's timer and fires it.
  bool fire() {
    if (!machine.next_timer()) return false;
    now = std::max(now, *machine.next_timer());
    machine.on_timer(now);
    collect();
    return true;
  }
  void expect_indices_once_and_in_order() const {
    for (std::size_t i = 0; i < indices.size(); ++i) EXPECT_EQ(indices[i], i);
    for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(ids[i], static_cast<TokenId>(100 + i));
  }

  ClientMachine machine;
  TimePoint now{1s};
  std::vector<OpenStream> opened;
  std::vector<AttachStream> attached;
  std::vector<StreamNo> closed;
  std::vector<std::string> warmed;
  std::vector<DeleteSession> deletes;
  std::vector<TokenId> ids;
  std::vector<TokenIndex> indices;
  std::vector<SessionFinished> finishes;
  std::vector<ApiError> failures;
  int sessions = 0;
  StreamNo last_stream = 0;
};

TEST(ClientMachine, a_session_without_handover_delivers_every_token_and_finishes) {
  Bench b;
  ASSERT_EQ(b.opened.size(), 1u);
  EXPECT_EQ(b.opened[0].gnb, kA);
  b.session(1, 1);
  b.tokens(1, 0, 5);
  b.done(1);
  EXPECT_EQ(b.sessions, 1);
  EXPECT_EQ(b.ids.size(), 5u);
  b.expect_indices_once_and_in_order();
  ASSERT_EQ(b.finishes.size(), 1u);
  EXPECT_EQ(b.finishes[0].reason, "stop");
  EXPECT_EQ(b.finishes[0].usage, (Usage{10, 5}));
  EXPECT_EQ(b.closed, std::vector<StreamNo>{1});
  EXPECT_FALSE(b.machine.next_timer());
}

TEST(ClientMachine, a_handover_attaches_at_once_under_the_next_epoch) {
  Bench b;
  b.session(1, 1);
  b.tokens(1, 0, 3);
  b.handover(kB);
  ASSERT_EQ(b.attached.size(), 1u);
  EXPECT_EQ(b.attached[0].gnb, kB);
  EXPECT_EQ(b.attached[0].epoch, Epoch(2));
  EXPECT_EQ(b.attached[0].next_index, 3u);
  EXPECT_EQ(b.attached[0].last_node, kA);
  EXPECT_EQ(b.closed, std::vector<StreamNo>{1});
  ASSERT_EQ(b.machine.handovers().size(), 1u);
  EXPECT_EQ(b.machine.handovers()[0].last_before, 2u);
  EXPECT_EQ(b.machine.handovers()[0].epoch, Epoch(2));
}

TEST(ClientMachine, what_an_ended_stream_still_says_is_not_believed) {
  Bench b;
  b.session(1, 1);
  b.tokens(1, 0, 3);
  b.handover(kB);
  b.token(1, 3);
  b.done(1);
  EXPECT_EQ(b.ids.size(), 3u);
  EXPECT_TRUE(b.finishes.empty());
  EXPECT_EQ(b.machine.counters().fenced, 4u);
  b.session(2, 2, kB);
  b.tokens(2, 3, 6, kB);
  b.expect_indices_once_and_in_order();
  EXPECT_EQ(b.ids.size(), 6u);
}

TEST(ClientMachine, a_kept_old_stream_delivers_until_the_new_one_is_granted) {
  ClientConfig config;
  config.keep_old_stream = true;
  Bench b(config);
  b.session(1, 1);
  b.tokens(1, 0, 3);
  b.handover(kB);
  EXPECT_TRUE(b.closed.empty());
  b.tokens(1, 3, 5);  // overtakes the attach, which asked for 3
  b.session(2, 2, kB);
  EXPECT_EQ(b.closed, std::vector<StreamNo>{1});
  b.token(1, 5);  // too late
  b.tokens(2, 3, 8, kB);
  EXPECT_EQ(b.ids.size(), 8u);
  b.expect_indices_once_and_in_order();
  EXPECT_EQ(b.machine.counters().duplicates, 2u);
  EXPECT_EQ(b.machine.counters().fenced, 1u);
}

TEST(ClientMachine, the_end_of_a_kept_old_stream_is_no_reason_to_retry) {
  ClientConfig config;
  config.keep_old_stream = true;
  Bench b(config);
  b.session(1, 1);
  b.handover(kB);
  b.event(1, MovedEvent{kB});
  EXPECT_EQ(b.attached.size(), 1u);
  EXPECT_FALSE(b.machine.next_timer());
}

TEST(ClientMachine, indices_sent_twice_are_dropped_and_counted) {
  Bench b;
  b.session(1, 1);
  b.tokens(1, 0, 4);
  b.tokens(1, 1, 6);
  EXPECT_EQ(b.ids.size(), 6u);
  b.expect_indices_once_and_in_order();
  EXPECT_EQ(b.machine.counters().duplicates, 3u);
  EXPECT_EQ(b.machine.counters().contradictions, 0u);
}

TEST(ClientMachine, a_contradicted_token_keeps_its_first_id) {
  Bench b;
  b.session(1, 1);
  b.tokens(1, 0, 2);
  b.event(1, StreamToken{1, 999, kA, Epoch(1), "x"});
  EXPECT_EQ(b.machine.records()[1].id, 101);
  EXPECT_EQ(b.machine.counters().contradictions, 1u);
  EXPECT_EQ(b.ids.size(), 2u);
}

TEST(ClientMachine, a_skipped_index_drops_the_stream_and_asks_again) {
  Bench b;
  b.session(1, 1);
  b.tokens(1, 0, 2);
  b.token(1, 3);
  EXPECT_EQ(b.machine.counters().skipped, 1u);
  EXPECT_EQ(b.ids.size(), 2u);
  ASSERT_TRUE(b.fire());
  ASSERT_EQ(b.attached.size(), 1u);
  EXPECT_EQ(b.attached[0].next_index, 2u);
}

TEST(ClientMachine, a_cut_stream_is_attached_again_at_once_then_with_back_off) {
  Bench b;
  b.session(1, 1);
  b.tokens(1, 0, 2);
  const TimePoint cut = b.now;
  b.lost(1);
  EXPECT_EQ(b.machine.next_timer(), cut);
  std::vector<Duration> waits;
  for (int i = 0; i < 8; ++i) {
    const TimePoint before = b.now;
    ASSERT_TRUE(b.fire());
    waits.push_back(b.now - before);
    b.lost(b.last_stream);
  }
  EXPECT_EQ(waits, (std::vector<Duration>{0ms, 50ms, 100ms, 200ms, 400ms, 800ms, 1s, 1s}));
  EXPECT_EQ(b.attached[0].epoch, Epoch(2));
  EXPECT_EQ(b.attached[7].epoch, Epoch(9));  // tried epochs count as used
}

TEST(ClientMachine, after_two_tries_the_previous_gnb_takes_turns_with_the_current) {
  Bench b;
  b.session(1, 1);
  b.tokens(1, 0, 2);
  b.handover(kB);
  for (int i = 0; i < 5; ++i) {
    b.lost(b.last_stream);
    ASSERT_TRUE(b.fire());
  }
  std::vector<NodeId> asked;
  for (const AttachStream& attach : b.attached) asked.push_back(attach.gnb);
  EXPECT_EQ(asked, (std::vector<NodeId>{kB, kB, kB, kA, kB, kA}));
  b.session(b.last_stream, 7, kA);  // it still has it
  b.token(b.last_stream, 2);
  EXPECT_EQ(b.ids.size(), 3u);
}

TEST(ClientMachine, an_announced_gnb_is_asked_when_its_own_is_gone) {
  Bench b;
  b.session(1, 1);
  b.tokens(1, 0, 2);
  b.event(1, NextEvent{kC});
  EXPECT_EQ(b.warmed, std::vector<std::string>{"gnb-c"});
  for (int i = 0; i < 3; ++i) {
    b.lost(b.last_stream);
    ASSERT_TRUE(b.fire());
  }
  EXPECT_EQ(b.attached.back().gnb, kC);
}

TEST(ClientMachine, nobody_answers_and_the_session_fails_after_its_patience) {
  Bench b;
  b.session(1, 1);
  b.lost(1);
  const TimePoint begin = b.now;
  for (int i = 0; i < 200 && b.failures.empty() && b.fire(); ++i) b.lost(b.last_stream);
  ASSERT_EQ(b.failures.size(), 1u);
  EXPECT_EQ(b.failures[0].code, "unreachable");
  EXPECT_GE(b.now - begin, 30s);
  EXPECT_LT(b.now - begin, 32s);
  EXPECT_FALSE(b.machine.next_timer());
}

TEST(ClientMachine, a_new_request_gives_up_sooner) {
  Bench b;
  const TimePoint begin = b.now;
  b.lost(1);
  for (int i = 0; i < 200 && b.failures.empty() && b.fire(); ++i) b.lost(b.last_stream);
  ASSERT_EQ(b.failures.size(), 1u);
  EXPECT_LT(b.now - begin, 7s);
  EXPECT_GT(b.opened.size(), 3u);
}

TEST(ClientMachine, a_stale_epoch_is_answered_with_one_above_the_current) {
  Bench b;
  b.session(1, 1);
  b.tokens(1, 0, 2);
  b.handover(kB);
  b.refused(2, 409, "stale_epoch", 7);
  ASSERT_EQ(b.attached.size(), 2u);
  EXPECT_EQ(b.attached[1].gnb, kB);
  EXPECT_EQ(b.attached[1].epoch, Epoch(8));
  EXPECT_EQ(b.machine.handovers()[0].epoch, Epoch(8));
  EXPECT_EQ(b.machine.counters().stale_answers, 1u);
}

TEST(ClientMachine, endless_stale_answers_are_slowed_down) {
  Bench b;
  b.session(1, 1);
  b.handover(kB);
  for (int i = 0; i < 4; ++i) b.refused(b.last_stream, 409, "stale_epoch", 100);
  EXPECT_TRUE(b.machine.next_timer());
  EXPECT_EQ(b.attached.size(), 4u);
}

TEST(ClientMachine, a_stale_epoch_seen_on_the_stream_raises_the_next_one) {
  Bench b;
  b.session(1, 1);
  b.event(1, StreamToken{0, 100, kA, Epoch(6), "t"});
  b.handover(kB);
  EXPECT_EQ(b.attached[0].epoch, Epoch(7));
}

TEST(ClientMachine, unknown_session_everywhere_is_the_end) {
  Bench b;
  b.session(1, 1);
  b.handover(kB);
  b.refused(2, 404, "not_found");
  EXPECT_TRUE(b.failures.empty());
  for (int i = 0; i < 200 && b.failures.empty() && b.fire(); ++i) {
    b.refused(b.last_stream, 404, "not_found");
  }
  ASSERT_EQ(b.failures.size(), 1u);
  EXPECT_EQ(b.failures[0].status, 404);
  EXPECT_EQ(b.attached.back().gnb, kA);
}

TEST(ClientMachine, an_incompatible_gnb_sends_the_ue_back_to_the_other) {
  Bench b;
  b.session(1, 1);
  b.handover(kB);
  b.refused(2, 409, "incompatible");
  for (int i = 0; i < 200 && b.attached.back().gnb == kB; ++i) {
    ASSERT_TRUE(b.fire());
    if (b.attached.back().gnb == kB) b.refused(b.last_stream, 409, "incompatible");
  }
  b.session(b.last_stream, 9, kA);
  b.token(b.last_stream, 0);
  EXPECT_EQ(b.ids.size(), 1u);
  EXPECT_TRUE(b.failures.empty());
}

TEST(ClientMachine, a_malformed_attach_is_not_repeated) {
  Bench b;
  b.session(1, 1);
  b.handover(kB);
  b.refused(2, 400, "invalid_argument");
  ASSERT_EQ(b.failures.size(), 1u);
  EXPECT_FALSE(b.machine.next_timer());
}

TEST(ClientMachine, a_full_gnb_is_asked_again) {
  Bench b;
  b.session(1, 1);
  b.handover(kB);
  b.refused(2, 503, "resource_exhausted");
  EXPECT_TRUE(b.failures.empty());
  ASSERT_TRUE(b.fire());
  EXPECT_EQ(b.attached.size(), 2u);
}

TEST(ClientMachine, the_refusal_of_a_new_request_is_the_users_answer) {
  Bench b;
  b.refused(1, 503, "resource_exhausted");
  ASSERT_EQ(b.failures.size(), 1u);
  EXPECT_EQ(b.failures[0].status, 503);
}

TEST(ClientMachine, moved_to_a_named_gnb_is_followed_before_the_radio_speaks) {
  Bench b;
  b.session(1, 1);
  b.tokens(1, 0, 2);
  b.event(1, MovedEvent{kB});
  ASSERT_EQ(b.attached.size(), 1u);
  EXPECT_EQ(b.attached[0].gnb, kB);
  b.handover(kB);  // the radio confirms: nothing new
  EXPECT_EQ(b.attached.size(), 1u);
  EXPECT_EQ(b.machine.handovers().size(), 1u);
}

TEST(ClientMachine, the_radio_overrules_what_moved_said) {
  Bench b;
  b.session(1, 1);
  b.event(1, MovedEvent{kB});
  b.handover(kC);
  ASSERT_EQ(b.attached.size(), 2u);
  EXPECT_EQ(b.attached[1].gnb, kC);
  EXPECT_EQ(b.attached[1].epoch, Epoch(3));
}

TEST(ClientMachine, a_ue_that_trusts_its_radio_follows_moved_only_when_that_stays_silent) {
  ClientConfig config;
  config.follow_moved_after = 200ms;
  Bench told(config);
  told.session(1, 1);
  told.event(1, MovedEvent{kB});
  EXPECT_TRUE(told.attached.empty());
  told.now += 70ms;  // the radio's interruption
  told.handover(kB);
  ASSERT_EQ(told.attached.size(), 1u);
  EXPECT_EQ(told.machine.handovers()[0].executed_at, TimePoint(1s) + 70ms);
  EXPECT_EQ(told.machine.handovers()[0].attach_sent_at, TimePoint(1s) + 70ms);
  EXPECT_FALSE(told.machine.handovers()[0].granted_at);
  told.now += 5ms;
  told.session(2, 2);
  EXPECT_EQ(told.machine.handovers()[0].granted_at, TimePoint(1s) + 75ms);
  EXPECT_FALSE(told.machine.next_timer());

  Bench untold(config);
  untold.session(1, 1);
  untold.event(1, MovedEvent{kB});
  ASSERT_TRUE(untold.fire());
  EXPECT_EQ(untold.now, TimePoint(1s) + 200ms);
  ASSERT_EQ(untold.attached.size(), 1u);
  EXPECT_EQ(untold.attached[0].gnb, kB);
}

TEST(ClientMachine, a_handover_that_is_called_off_attaches_here_again) {
  ClientConfig config;
  config.follow_moved_after = 200ms;
  Bench b(config);
  b.session(1, 1);
  b.event(1, MovedEvent{kB});
  b.handover(kA);
  ASSERT_EQ(b.attached.size(), 1u);
  EXPECT_EQ(b.attached[0].gnb, kA);
  EXPECT_TRUE(b.machine.handovers().empty());
}

TEST(ClientMachine, moved_without_a_name_waits_for_the_radio_first) {
  Bench b;
  b.session(1, 1);
  b.event(1, MovedEvent{});
  EXPECT_TRUE(b.attached.empty());
  ASSERT_TRUE(b.machine.next_timer());
  b.now += 100ms;
  b.handover(kB);
  ASSERT_EQ(b.attached.size(), 1u);
  EXPECT_EQ(b.attached[0].gnb, kB);
}

TEST(ClientMachine, moved_without_a_name_and_a_silent_radio_attach_here_again) {
  Bench b;
  b.session(1, 1);
  b.event(1, MovedEvent{});
  ASSERT_TRUE(b.fire());
  ASSERT_EQ(b.attached.size(), 1u);
  EXPECT_EQ(b.attached[0].gnb, kA);
  EXPECT_EQ(b.now, TimePoint(1s) + 500ms);
}

TEST(ClientMachine, a_handover_inside_one_gnb_does_nothing) {
  Bench b;
  b.session(1, 1);
  b.handover(kA);
  EXPECT_TRUE(b.attached.empty());
  EXPECT_TRUE(b.machine.handovers().empty());
}

TEST(ClientMachine, a_quick_return_attaches_at_the_first_gnb_under_a_new_epoch) {
  Bench b;
  b.session(1, 1);
  b.tokens(1, 0, 2);
  b.handover(kB);
  b.handover(kA);
  ASSERT_EQ(b.attached.size(), 2u);
  EXPECT_EQ(b.attached[1].gnb, kA);
  EXPECT_EQ(b.attached[1].epoch, Epoch(3));
  b.session(2, 2, kB);  // the answer of the attach that was given up
  EXPECT_EQ(b.machine.state(), ClientMachine::State::kConnecting);
  b.session(3, 3, kA);
  b.tokens(3, 2, 4);
  EXPECT_EQ(b.ids.size(), 4u);
}

TEST(ClientMachine, a_handover_before_the_session_event_waits_for_it) {
  Bench b;
  b.handover(kB);
  EXPECT_TRUE(b.attached.empty());
  b.now += 20ms;
  b.session(1, 1);
  ASSERT_EQ(b.attached.size(), 1u);
  EXPECT_EQ(b.attached[0].gnb, kB);
  EXPECT_EQ(b.attached[0].next_index, 0u);
  ASSERT_EQ(b.machine.handovers().size(), 1u);
  EXPECT_EQ(b.machine.handovers()[0].executed_at, TimePoint(1s));
  EXPECT_EQ(b.machine.handovers()[0].last_before, std::nullopt);
}

TEST(ClientMachine, a_handover_before_a_session_event_that_never_comes_asks_afresh) {
  Bench b;
  b.handover(kB);
  ASSERT_TRUE(b.fire());
  ASSERT_EQ(b.opened.size(), 2u);
  EXPECT_EQ(b.opened[1].gnb, kB);
  b.session(1, 1);  // too late: that session is given up
  EXPECT_EQ(b.sessions, 0);
  b.session(2, 1, kB);
  EXPECT_EQ(b.sessions, 1);
  EXPECT_TRUE(b.machine.handovers().empty());
}

TEST(ClientMachine, back_and_forth_before_the_session_event_needs_no_attach) {
  Bench b;
  b.handover(kB);
  b.handover(kA);
  b.session(1, 1);
  EXPECT_TRUE(b.attached.empty());
  EXPECT_EQ(b.machine.state(), ClientMachine::State::kStreaming);
}

TEST(ClientMachine, a_handover_ends_the_back_off) {
  Bench b;
  b.session(1, 1);
  for (int i = 0; i < 6; ++i) {
    b.lost(b.last_stream);
    if (i < 5) {
      ASSERT_TRUE(b.fire());
    }
  }
  b.handover(kB);
  EXPECT_EQ(b.attached.back().gnb, kB);
  EXPECT_FALSE(b.machine.next_timer());
}

TEST(ClientMachine, an_error_event_that_another_try_may_cure_is_tried) {
  Bench b;
  b.session(1, 1);
  b.tokens(1, 0, 2);
  b.event(1, ErrorEvent{ApiError{500, "lost", "", "", "unreachable", 0}});
  ASSERT_TRUE(b.fire());
  ASSERT_EQ(b.attached.size(), 1u);
  b.session(2, 2);
  b.token(2, 2);
  b.expect_indices_once_and_in_order();
}

TEST(ClientMachine, an_error_event_of_the_session_itself_ends_it) {
  Bench b;
  b.session(1, 1);
  b.event(1, ErrorEvent{ApiError{500, "no", "", "", "context_exceeded", 0}});
  ASSERT_EQ(b.failures.size(), 1u);
  EXPECT_EQ(b.failures[0].code, "context_exceeded");
}

TEST(ClientMachine, an_error_event_before_the_session_event_counts_as_a_refusal) {
  Bench b;
  b.session(1, 1);
  b.handover(kB);
  b.event(2, ErrorEvent{ApiError{409, "stale", "", "", "stale_epoch", 4}});
  ASSERT_EQ(b.attached.size(), 2u);
  EXPECT_EQ(b.attached[1].epoch, Epoch(5));
}

TEST(ClientMachine, streams_that_never_get_on_are_given_up) {
  Bench b;
  b.session(1, 1);
  int rounds = 0;
  while (b.failures.empty() && ++rounds < 50) {
    b.lost(b.last_stream);
    if (!b.fire()) break;
    b.session(b.last_stream, static_cast<std::uint64_t>(rounds) + 1);
  }
  ASSERT_EQ(b.failures.size(), 1u);
  EXPECT_LE(rounds, 5);
}

TEST(ClientMachine, a_finished_session_needs_no_done_once_its_usage_is_known) {
  Bench b;
  b.session(1, 1);
  b.event(1, FinishEvent{"length", ""});
  b.event(1, UsageEvent{{3, 0}});
  b.lost(1);
  ASSERT_EQ(b.finishes.size(), 1u);
  EXPECT_EQ(b.finishes[0].reason, "length");
}

TEST(ClientMachine, a_tail_that_is_cut_is_fetched_again_and_finishes_once) {
  Bench b;
  b.session(1, 1);
  b.tokens(1, 0, 2);
  b.event(1, FinishEvent{"stop", "end"});
  b.lost(1);
  ASSERT_TRUE(b.fire());
  b.session(2, 2);
  b.event(2, FinishEvent{"stop", "end"});
  b.event(2, UsageEvent{{3, 2}});
  b.event(2, DoneEvent{});
  ASSERT_EQ(b.finishes.size(), 1u);
  EXPECT_EQ(b.finishes[0].text, "end");
  EXPECT_EQ(b.finishes[0].usage, (Usage{3, 2}));
}

TEST(ClientMachine, a_whole_text_is_not_lost_for_want_of_its_usage) {
  Bench b;
  b.session(1, 1);
  b.event(1, FinishEvent{"stop", ""});
  b.lost(1);
  ASSERT_TRUE(b.fire());
  b.refused(b.last_stream, 404, "not_found");
  EXPECT_EQ(b.finishes.size(), 1u);
  EXPECT_TRUE(b.failures.empty());
}

TEST(ClientMachine, done_without_a_finish_reason_is_a_lost_stream) {
  Bench b;
  b.session(1, 1);
  b.token(1, 0);
  b.event(1, DoneEvent{});
  EXPECT_TRUE(b.finishes.empty());
  EXPECT_TRUE(b.machine.next_timer());
}

TEST(ClientMachine, tokens_before_the_session_event_are_refused) {
  Bench b;
  b.token(1, 0);
  EXPECT_TRUE(b.ids.empty());
  EXPECT_TRUE(b.machine.next_timer());
}

TEST(ClientMachine, another_session_id_is_refused) {
  Bench b;
  b.session(1, 1);
  b.handover(kB);
  SessionEvent other;
  other.session = SessionId("bad");
  other.epoch = Epoch(2);
  b.event(2, other);
  EXPECT_EQ(b.machine.session().session, SessionId("5e55"));
  EXPECT_TRUE(b.machine.next_timer());
}

TEST(ClientMachine, a_node_that_fetches_the_session_does_not_erase_what_resume_needs) {
  Bench b;
  b.session(1, 1);
  b.handover(kB);
  SessionEvent bare;
  bare.session = SessionId("5e55");
  bare.node = kB;
  bare.epoch = Epoch(2);
  b.event(2, bare);
  EXPECT_EQ(b.machine.session().resume_token, "secret");
  EXPECT_EQ(b.machine.session().raw, "{}");
  EXPECT_EQ(b.machine.session().node, kB);
}

TEST(ClientMachine, a_server_that_is_no_gnb_is_an_error_at_once) {
  Bench b;
  b.machine.on_lost(1, Error{Errc::kUnsupported, "plain OpenAI"}, b.now);
  b.collect();
  ASSERT_EQ(b.failures.size(), 1u);
  EXPECT_FALSE(b.machine.next_timer());
}

TEST(ClientMachine, stop_deletes_at_the_gnb_that_serves_and_names_the_last_sampler) {
  Bench b;
  b.session(1, 1);
  b.handover(kB);
  b.session(2, 2, kB);
  b.token(2, 0, kA);
  b.machine.stop();
  b.collect();
  ASSERT_EQ(b.deletes.size(), 1u);
  EXPECT_EQ(b.deletes[0].gnb, kB);
  EXPECT_EQ(b.deletes[0].last_node, kA);
  b.token(2, 1);
  EXPECT_EQ(b.ids.size(), 1u);
  EXPECT_TRUE(b.finishes.empty());
}

TEST(ClientMachine, an_announcement_is_warmed_once_and_dropped_when_withdrawn) {
  Bench b;
  b.session(1, 1);
  b.event(1, NextEvent{kB});
  b.event(1, NextEvent{kB});
  b.event(1, NextEvent{});
  EXPECT_EQ(b.warmed, (std::vector<std::string>{"gnb-b", ""}));
}

TEST(ClientMachine, the_warm_connection_survives_the_handover_that_uses_it) {
  Bench b;
  b.session(1, 1);
  b.event(1, NextEvent{kB});
  b.handover(kB);
  EXPECT_EQ(b.warmed, std::vector<std::string>{"gnb-b"});
  b.session(2, 2, kB);
  b.event(2, NextEvent{kC});
  b.handover(kA);  // somewhere else than announced
  EXPECT_EQ(b.warmed, (std::vector<std::string>{"gnb-b", "gnb-c", ""}));
}

// Every interleaving of an honest world and a chaotic one: the guarantees hold.
TEST(ClientMachine, any_order_of_events_keeps_indices_epochs_and_ids) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    ClientConfig config;
    config.keep_old_stream = seed % 2 == 0;
    if (seed % 3 == 0) config.follow_moved_after = 30ms;
    Bench b(config);
    const auto pick = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
    const NodeId nodes[] = {kA, kB, kC};
    for (int step = 0; step < 400 && !b.machine.over(); ++step) {
      const StreamNo stream = b.last_stream - std::min<StreamNo>(b.last_stream - 1, pick(3));
      const NodeId& node = nodes[pick(3)];
      switch (pick(12)) {
        case 0:
          b.handover(node);
          break;
        case 1:
          b.lost(stream);
          break;
        case 2:
          b.refused(stream, 409, "stale_epoch", b.machine.highest_epoch().value + pick(3));
          break;
        case 3:
          b.session(stream, b.machine.highest_epoch().value + 1, node);
          break;
        case 4:
          b.event(stream, MovedEvent{pick(2) == 0 ? NodeId{} : node});
          break;
        case 5:
          b.event(stream, NextEvent{node});
          break;
        case 6:
          b.fire();
          break;
        case 7:
          b.event(stream, StreamToken{b.machine.next_index() / 2, -1, node, Epoch(1), "bad"});
          break;
        case 8:
          b.token(stream, b.machine.next_index() + pick(2), node);
          break;
        default:
          b.token(stream, b.machine.next_index() - std::min(b.machine.next_index(), pick(3)), node);
      }
      b.now += std::chrono::milliseconds(pick(40));
      ASSERT_TRUE(b.machine.over() || b.machine.state() != ClientMachine::State::kWaiting ||
                  b.machine.next_timer())
          << "seed " << seed << ": it waits for nothing";
    }
    for (std::size_t i = 0; i < b.indices.size(); ++i) ASSERT_EQ(b.indices[i], i) << seed;
    std::vector<Epoch> epochs;
    for (const AttachStream& attach : b.attached) epochs.push_back(attach.epoch);
    for (std::size_t i = 1; i < epochs.size(); ++i) ASSERT_LT(epochs[i - 1], epochs[i]) << seed;
    ASSERT_LE(b.finishes.size() + b.failures.size(), 1u);
  }
}

}  // namespace
}  // namespace pallas::ue
