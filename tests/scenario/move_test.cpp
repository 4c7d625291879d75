// Moves by an operator's order, in both orders of the events that they may cross.

#include <gtest/gtest.h>

#include "scenario_checks.h"

namespace pallas::test {
namespace {

using namespace std::chrono_literals;
using mobility::HandoverPhase;
using node::MoveState;

constexpr Duration kDelays[] = {0us,  100us, 300us, 1ms,   3ms,   10ms,  18ms,
                                40ms, 90ms,  200ms, 400ms, 600ms, 900ms, 1500ms};

class Moves : public testing::Test {
 protected:
  explicit Moves(VirtualGnbs::Options options = {}) : world(std::move(options)) {}

  VirtualUe& talk(std::uint32_t max_tokens = 250) { return talk(world, max_tokens); }
  static VirtualUe& talk(VirtualGnbs& w, std::uint32_t max_tokens = 250) {
    VirtualUe& ue = w.open("a", 200, [&](auto& p) { p.max_tokens = max_tokens; });
    w.clock.run_for(2s);
    return ue;
  }
  // Goes where its stream sends it, a moment later, as the UE library does.
  static void follow(VirtualGnbs& w, VirtualUe& ue, Duration within = 15s) {
    w.clock.run_until([&] { return ue.closed || ue.finished || ue.failed; }, within);
    if (!ue.closed || ue.finished) return;
    w.clock.run_for(2ms);
    if (!w.attach(ue, ue.closed_for.value)) {
      ASSERT_TRUE(w.attach(ue, "a"));  // its retry
    }
  }
  static node::MoveReport order(VirtualGnbs& w, VirtualUe& ue, const std::string& to) {
    const auto ordered = w.node("a").move({ue.session, NodeId(to), false});
    EXPECT_TRUE(ordered) << ordered.error().describe();
    return ordered ? *ordered : node::MoveReport{};
  }
  static node::MoveReport state(VirtualGnbs& w, const std::string& id) {
    return w.node("a").moved(id).value_or(node::MoveReport{});
  }

  VirtualGnbs world;
};

TEST_F(Moves, an_ordered_session_goes_on_at_the_target_without_a_lost_token_in_every_scheme) {
  for (const char* scheme : {"two-front", "pallas", "pallas-no-rc", "pallas-no-sm", "full-copy",
                             "recompute", "ctho", "detour"}) {
    VirtualGnbs w({.scheme = scheme});
    VirtualUe& ue = talk(w);
    const auto move = order(w, ue, "b");
    EXPECT_EQ(move.scheme, scheme);
    follow(w, ue);
    EXPECT_EQ(ue.at, NodeId("b")) << scheme;
    w.clock.run_until([&] { return state(w, move.id).ended_at.has_value(); }, 10s);
    const auto after = state(w, move.id);
    EXPECT_EQ(after.state, MoveState::kCompleted) << scheme << ": " << after.reason;
    expect_whole(w, ue);
    expect_nothing_left(w);
    if (HasFailure()) FAIL() << scheme;
  }
}

TEST_F(Moves, the_ue_is_told_to_go_only_when_the_target_has_caught_up) {
  VirtualUe& ue = talk();
  const auto move = order(world, ue, "b");
  EXPECT_EQ(move.state, MoveState::kPreparing);
  EXPECT_EQ(ue.announced, NodeId("b"));
  ASSERT_TRUE(world.clock.run_until([&] { return ue.closed; }, 10s));
  const auto told = state(world, move.id);
  EXPECT_EQ(told.state, MoveState::kExecuting);
  const double waited = to_seconds(*told.told_at - told.ordered_at).count();
  EXPECT_LE(waited, 2 * move.window_s + 0.1);
  EXPECT_EQ(ue.closed_for, NodeId("b"));
  ASSERT_TRUE(world.attach(ue, "b"));
  world.clock.run_for(500ms);
  EXPECT_LT(to_ms(ue.gap_at(ue.epoch)), 100);
  const auto& report = world.node("b").handovers().front();
  EXPECT_TRUE(report.prepared);
  EXPECT_EQ(state(world, move.id).handover, report.id);
  EXPECT_TRUE(state(world, move.id).phases.released.happened());
  expect_whole(world, ue);
}

TEST_F(Moves, a_repeated_order_is_answered_with_the_same_id_and_begins_nothing) {
  VirtualUe& ue = talk();
  const auto first = order(world, ue, "b");
  for (const Duration delay : {Duration(0s), Duration(10ms), Duration(300ms)}) {
    world.clock.run_for(delay);
    EXPECT_EQ(order(world, ue, "b").id, first.id);
    const auto other = world.node("a").move({ue.session, NodeId("c"), false});
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code, Errc::kAlreadyExists);
  }
  follow(world, ue);
  world.clock.run_for(1s);
  EXPECT_EQ(world.count("a", "b", "HandoverRequest"), 1u);
  EXPECT_EQ(world.node("a").stats().moves_ordered, 1u);
  const auto late = world.node("a").move({ue.session, NodeId("b"), false});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::kNotOwner);
  expect_whole(world, ue);
}

TEST_F(Moves, a_dry_run_says_what_would_be_done_and_does_nothing) {
  VirtualUe& ue = talk();
  const auto plan = world.node("a").move({ue.session, NodeId("b"), true});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->state, MoveState::kPlanned);
  EXPECT_TRUE(plan->id.empty());
  EXPECT_EQ(plan->scheme, "two-front");
  EXPECT_GT(plan->window_s, 0);
  EXPECT_GT(plan->context, 200u);
  EXPECT_NEAR(plan->recomputed + plan->bytes / 32, plan->context, 140);
  EXPECT_GT(plan->interruption_s, 0);
  world.clock.run_for(2s);
  EXPECT_EQ(world.count("a", "b", "HandoverRequest"), 0u);
  EXPECT_EQ(world.node("a").stats().moves_ordered, 0u);
  EXPECT_FALSE(ue.closed);
  EXPECT_EQ(ue.announced, NodeId());
}

TEST_F(Moves, what_cannot_be_moved_is_refused_by_name_and_stays) {
  VirtualUe& ue = talk(4000);
  const auto refused = [&](const SessionId& session, const char* to) {
    const auto answer = world.node("a").move({session, NodeId(to), false});
    return answer ? Errc::kInternal : answer.error().code;
  };
  EXPECT_EQ(refused(SessionId(std::string(32, '9')), "b"), Errc::kNotFound);
  EXPECT_EQ(refused(ue.session, "a"), Errc::kInvalidArgument);
  EXPECT_EQ(refused(ue.session, "nobody"), Errc::kInvalidArgument);
  world.cut("a", "b");
  EXPECT_EQ(refused(ue.session, "b"), Errc::kUnreachable);
  world.join("a", "b");
  world.ran(ue, HandoverPhase::kExecution, "a", "c");
  EXPECT_EQ(refused(ue.session, "b"), Errc::kAlreadyExists);
  world.ran(ue, HandoverPhase::kCancelled, "a", "c");
  world.leave(ue);
  EXPECT_EQ(refused(ue.session, "b"), Errc::kOutOfOrder);
  ASSERT_TRUE(world.attach(ue, "a"));
  EXPECT_TRUE(world.node("a").stop(ue.session, ue.resume_token, NodeId()));
  EXPECT_EQ(refused(ue.session, "b"), Errc::kOutOfOrder);
  EXPECT_EQ(world.node("a").stats().moves_ordered, 0u);
}

TEST_F(Moves, an_order_and_a_stop_may_cross_at_any_time) {
  for (const Duration delay : kDelays) {
    for (const char* where : {"a", "b"}) {
      VirtualGnbs w({});
      VirtualUe& ue = talk(w, 3000);
      const auto move = order(w, ue, "b");
      bool stopped = false;
      w.clock.after(delay, [&] {
        stopped = w.node(where).stop(ue.session, ue.resume_token, NodeId("a")).has_value();
      });
      follow(w, ue, 3s);
      w.clock.run_for(3s);
      EXPECT_TRUE(stopped);
      ASSERT_TRUE(ue.finished) << where;
      EXPECT_EQ(ue.finished->reason, wire::FinishReason::kCancelled);
      EXPECT_EQ(ue.finishes, 1);
      const auto end = state(w, move.id).state;
      EXPECT_TRUE(end == MoveState::kCompleted || end == MoveState::kFailed);
      expect_clean(w, ue);
      expect_nothing_left(w);
      if (HasFailure()) FAIL() << "stopped at " << where << " after " << to_ms(delay) << " ms";
    }
  }
}

TEST_F(Moves, an_order_for_a_session_that_was_stopped_is_refused) {
  VirtualUe& ue = talk();
  EXPECT_TRUE(world.node("a").stop(ue.session, ue.resume_token, NodeId()));
  const auto answer = world.node("a").move({ue.session, NodeId("b"), false});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::kOutOfOrder);
}

TEST_F(Moves, an_order_and_a_handover_by_the_radio_may_cross_at_any_time) {
  for (const Duration delay : kDelays) {
    for (const char* target : {"b", "c"}) {
      for (const bool order_first : {true, false}) {
        VirtualGnbs w({});
        VirtualUe& ue = talk(w);
        std::string id;
        const auto go = [&] {
          const auto ordered = w.node("a").move({ue.session, NodeId("b"), false});
          if (ordered) id = ordered->id;
        };
        const auto radio = [&] {
          if (ue.finished) return;
          w.ran(ue, HandoverPhase::kExecution, "a", target);
          ASSERT_TRUE(w.attach(ue, target));
          w.ran(ue, HandoverPhase::kCompleted, "a", target);
        };
        if (order_first) {
          go();
          // The UE that was told to go in between is on its way, and the radio has its say.
          w.clock.run_for(delay);
          radio();
        } else {
          radio();
          w.clock.run_for(delay);
          go();
          follow(w, ue, 1ms);
        }
        expect_whole(w, ue);
        EXPECT_EQ(ue.at, NodeId(target));
        if (!id.empty()) {
          const auto end = state(w, id);
          EXPECT_EQ(end.state,
                    std::string(target) == "b" ? MoveState::kCompleted : MoveState::kFailed)
              << end.reason;
        }
        expect_nothing_left(w);
        if (HasFailure()) {
          FAIL() << target << ", order first " << order_first << ", " << to_ms(delay) << " ms";
        }
      }
    }
  }
}

TEST_F(Moves, a_doubtful_prediction_of_the_radio_does_not_make_an_order_doubtful) {
  VirtualUe& ue = talk();
  const auto certain = world.node("a").move({ue.session, NodeId("b"), true});
  mobility::Prediction doubtful;
  doubtful.ue = ue.id;
  doubtful.seq = 1;
  doubtful.serving = CellId("cell-a");
  doubtful.target = CellId("cell-c");
  doubtful.in = 4s;
  doubtful.confidence = 0.01;
  doubtful.sigma = 3s;
  ASSERT_TRUE(world.node("a").on_prediction(doubtful));
  const auto planned = world.node("a").move({ue.session, NodeId("b"), true});
  ASSERT_TRUE(certain && planned);
  EXPECT_NEAR(planned->window_s, certain->window_s, 0.01);
}

TEST_F(Moves, predictions_of_the_radio_do_not_disturb_an_order) {
  for (const char* predicted : {"b", "c"}) {
    VirtualGnbs w({});
    VirtualUe& ue = talk(w);
    w.predict(ue, "a", predicted, 800ms);
    w.clock.run_for(500ms);
    const auto move = order(w, ue, "b");
    w.clock.run_for(20ms);
    w.predict(ue, "a", predicted, 600ms);
    w.withdraw(ue, "a");
    follow(w, ue);
    EXPECT_EQ(ue.at, NodeId("b"));
    w.clock.run_for(1s);
    EXPECT_EQ(state(w, move.id).state, MoveState::kCompleted) << state(w, move.id).reason;
    expect_whole(w, ue);
    expect_nothing_left(w);
  }
}

TEST_F(Moves, a_target_that_refuses_leaves_the_session_where_it_is) {
  VirtualUe& ue = talk();
  world.engine("b").refuse_reservations(true);
  const auto move = order(world, ue, "b");
  world.clock.run_for(100ms);
  const auto end = state(world, move.id);
  EXPECT_EQ(end.state, MoveState::kFailed);
  EXPECT_NE(end.reason.find("b refuses: "), std::string::npos) << end.reason;
  EXPECT_FALSE(ue.closed);
  EXPECT_EQ(ue.announced, NodeId());
  const auto soon = world.node("a").move({ue.session, NodeId("b"), false});
  ASSERT_FALSE(soon);
  EXPECT_EQ(soon.error().code, Errc::kResourceExhausted);
  expect_whole(world, ue);
  EXPECT_EQ(ue.at, NodeId("a"));
}

TEST_F(Moves, a_target_that_dies_at_any_time_costs_no_token) {
  for (const Duration delay : kDelays) {
    for (const bool restarts : {true, false}) {
      VirtualGnbs w({});
      VirtualUe& ue = talk(w, 400);
      const auto move = order(w, ue, "b");
      w.clock.after(delay, [&] {
        w.kill("b");
        if (restarts) w.clock.after(300ms, [&] { w.restart("b"); });
      });
      const auto until = w.clock.now() + 15s;
      while (!ue.finished && !ue.failed && w.clock.now() < until) {
        w.clock.run_until([&] { return ue.closed || ue.finished || ue.failed; }, 500ms);
        if (ue.finished || ue.stream.value != 0) continue;
        if (w.alive("b") && w.attach(ue, "b")) continue;
        ASSERT_TRUE(w.attach(ue, "a"));  // as the UE library does when nobody answers there
      }
      expect_whole(w, ue);
      const auto end = state(w, move.id).state;
      EXPECT_TRUE(end == MoveState::kCompleted || end == MoveState::kFailed);
      expect_nothing_left(w);
      if (HasFailure()) FAIL() << "died after " << to_ms(delay) << " ms, back " << restarts;
    }
  }
}

TEST_F(Moves, a_target_that_never_answers_is_given_up) {
  VirtualUe& ue = talk(1500);
  world.delay_messages(wire::Message(std::in_place_type<wire::HandoverRequestAcknowledge>).index(),
                       1h);
  const auto move = order(world, ue, "b");
  world.clock.run_for(11s);
  EXPECT_EQ(state(world, move.id).state, MoveState::kFailed);
  EXPECT_FALSE(ue.closed);
  EXPECT_EQ(world.node("a").sessions().front().role, "serving");
}

TEST_F(Moves, a_ue_that_comes_back_instead_is_served_on) {
  VirtualUe& ue = talk();
  const auto move = order(world, ue, "b");
  ASSERT_TRUE(world.clock.run_until([&] { return ue.closed; }, 10s));
  world.clock.run_for(300ms);
  ASSERT_TRUE(world.attach(ue, "a"));
  EXPECT_EQ(state(world, move.id).state, MoveState::kFailed);
  expect_whole(world, ue);
  EXPECT_EQ(ue.at, NodeId("a"));
  expect_nothing_left(world);
}

// --- draining ---

TEST_F(Moves, a_drained_gnb_gives_its_sessions_to_the_peer_and_takes_none) {
  VirtualGnbs w({.engine = [] {
    engine::FakeEngineConfig config;
    config.info.slots = 8;
    return config;
  }()});
  std::vector<VirtualUe*> ues;
  for (int i = 0; i < 5; ++i) ues.push_back(&w.open("a", 100, [](auto& p) { p.max_tokens = 200; }));
  w.clock.run_for(1s);
  ASSERT_FALSE(w.node("a").drain(NodeId("a")));
  ASSERT_FALSE(w.node("a").drain(NodeId("nobody")));
  EXPECT_TRUE(w.node("a").ready());
  ASSERT_TRUE(w.node("a").drain(NodeId("b")));
  EXPECT_FALSE(w.node("a").ready());
  node::OpenRequest request;
  request.session = SessionId(std::string(32, '7'));
  request.prompt = {1, 2, 3};
  request.params.max_tokens = 5;
  const auto opened = w.node("a").open(request, node::StreamId(999));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::kResourceExhausted);
  for (int step = 0; step < 4000 && w.node("a").drain_status().left() > 0; ++step) {
    w.clock.run_for(5ms);
    for (VirtualUe* ue : ues) {
      if (std::exchange(ue->closed, false)) {
        ASSERT_TRUE(w.attach(*ue, ue->closed_for.value));
      }
    }
  }
  const auto status = w.node("a").drain_status();
  EXPECT_EQ(status.left(), 0u);
  EXPECT_EQ(status.moved, 5u);
  for (VirtualUe* ue : ues) {
    expect_whole(w, *ue);
    EXPECT_EQ(ue->at, NodeId("b"));
  }
}

TEST_F(Moves, transfers_in_flight_commit_or_go_back_when_either_end_is_drained) {
  for (const char* drained : {"a", "b"}) {
    for (const Duration delay : {Duration(50ms), Duration(400ms), Duration(900ms), Duration(1s)}) {
      VirtualGnbs w({.engine = [] {
        engine::FakeEngineConfig config;
        config.info.slots = 8;
        return config;
      }()});
      std::vector<VirtualUe*> ues;
      for (int i = 0; i < 5; ++i) {
        ues.push_back(&w.open("a", 150, [](auto& p) { p.max_tokens = 120; }));
      }
      w.clock.run_for(1s);
      for (VirtualUe* ue : ues) w.predict(*ue, "a", "b", 1s);
      w.clock.run_for(delay);
      ASSERT_TRUE(w.node(drained).drain(NodeId()));
      w.clock.run_for(1s - delay);
      for (VirtualUe* ue : ues) {
        w.ran(*ue, HandoverPhase::kExecution, "a", "b");
        if (w.attach(*ue, "b")) {
          w.ran(*ue, HandoverPhase::kCompleted, "a", "b");
        } else {  // refused: the UE tries where it was
          EXPECT_STREQ(drained, "b");
          ASSERT_TRUE(w.attach(*ue, "a"));
        }
      }
      for (VirtualUe* ue : ues) {
        expect_whole(w, *ue);
        EXPECT_EQ(ue->at, NodeId(std::string(drained) == "a" ? "b" : "a"));
      }
      EXPECT_EQ(w.node(drained).drain_status().left(), 0u);
      expect_nothing_left(w);
      if (HasFailure()) FAIL() << drained << " drained after " << to_ms(delay) << " ms";
    }
  }
}

TEST_F(Moves, what_is_left_at_the_limit_is_cut_off_with_a_word) {
  VirtualUe& ue = talk(4000);
  ASSERT_TRUE(world.node("a").drain(NodeId("b")));
  world.engine("b").refuse_reservations(true);
  world.clock.run_for(500ms);
  EXPECT_EQ(world.node("a").cut_off(), 1u);
  EXPECT_TRUE(ue.closed);
  EXPECT_EQ(ue.closed_for, NodeId("b"));
  world.engine("b").refuse_reservations(false);
  world.kill("a");
  ASSERT_TRUE(world.attach(ue, "b"));
  world.clock.run_for(5s);
  expect_clean(world, ue);
  EXPECT_EQ(ue.transcript.entries().back().by, NodeId("b"));
}

// --- room ---

TEST_F(Moves, residents_and_incoming_never_exceed_the_cache) {
  VirtualUe& mover = talk();
  std::vector<VirtualUe*> residents;
  for (int i = 0; i < 4; ++i) {
    residents.push_back(&world.open("b", 100, [](auto& p) { p.max_tokens = 200; }));
  }
  world.clock.run_for(500ms);
  EXPECT_EQ(world.node("b").stats().free_slots, 0u);
  const auto move = order(world, mover, "b");
  world.clock.run_for(500ms);
  EXPECT_EQ(state(world, move.id).state, MoveState::kFailed);
  EXPECT_EQ(world.node("b").stats().preparations_refused, 1u);
  for (VirtualUe* ue : residents) expect_whole(world, *ue);
  expect_whole(world, mover);
}

TEST_F(Moves, a_target_whose_memory_for_rows_is_full_refuses_further_preparations) {
  VirtualGnbs w({.configure = [](node::NodeConfig& c) { c.max_staged_bytes = 1024; }});
  VirtualUe& first = w.open("a", 600, [](auto& p) { p.max_tokens = 300; });
  VirtualUe& second = w.open("a", 600, [](auto& p) { p.max_tokens = 300; });
  w.clock.run_for(3s);
  w.predict(first, "a", "b", 1s);
  ASSERT_TRUE(w.clock.run_until([&] { return w.node("b").stats().staged_bytes == 1024; }, 1s));
  w.predict(second, "a", "b", 500ms);
  w.clock.run_for(5ms);
  EXPECT_EQ(w.node("b").stats().preparations_refused, 1u);
  EXPECT_LE(w.node("b").stats().staged_bytes, 1024u);
  w.hand_over(first, "a", "b", 0s);
  expect_whole(w, first);
  expect_whole(w, second);
}

TEST_F(Moves, figures_of_memory_are_those_of_the_engine) {
  VirtualUe& ue = talk();
  world.predict(ue, "a", "b", 1s);
  world.clock.run_for(900ms);
  const std::uint64_t row = world.node("a").engine_info().geometry.bytes_per_token();
  const auto source = world.node("a").stats(), target = world.node("b").stats();
  const auto front = world.node("a").sessions().front().kv_front;
  EXPECT_EQ(source.kv_live_bytes, front * row);
  EXPECT_EQ(source.kv_prepared_bytes, 0u);
  EXPECT_EQ(target.kv_prepared_bytes, world.node("b").sessions().front().kv_front * row);
  EXPECT_GT(target.kv_prepared_bytes, 0u);
  EXPECT_GE(source.log_bytes, ue.prompt_tokens * sizeof(TokenId));
}

TEST_F(Moves, a_tenant_has_no_more_sessions_than_its_share) {
  VirtualGnbs w({.configure = [](node::NodeConfig& c) { c.max_sessions_tenant = 2; }});
  const auto open = [&](const char* id, const char* tenant) -> Errc {
    node::OpenRequest request;
    request.session = SessionId(std::string(32, *id));
    request.prompt = {1, 2, 3};
    request.params.max_tokens = 50;
    request.params.tenant = tenant;
    const auto opened = w.node("a").open(request, node::StreamId(900 + *id));
    return opened ? Errc::kInternal : opened.error().code;
  };
  EXPECT_EQ(open("1", "x"), Errc::kInternal);
  EXPECT_EQ(open("2", "x"), Errc::kInternal);
  EXPECT_EQ(open("3", "x"), Errc::kRateLimited);
  EXPECT_EQ(open("4", "y"), Errc::kInternal);
  EXPECT_EQ(w.node("a").stats().opens_refused, 1u);
}

}  // namespace
}  // namespace pallas::test
