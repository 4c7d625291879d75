// The follower against two scripted gNBs on loopback.

#include "ue/follower.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "scripted_gnb.h"

namespace pallas::ue {
namespace {

using namespace std::chrono_literals;
using Exchange = LocalServer::Exchange;

constexpr const char* kBody = R"({"model":"tiny","messages":[{"role":"user","content":"hi"}]})";

class FollowerTest : public testing::Test {
 protected:
  void make(std::optional<Address> b_address = {}, HttpTimeouts timeouts = {}) {
    FollowerConfig config;
    config.ue = UeId("veh2");
    config.gnbs = {{NodeId("gnb-a"), a.address()},
                   {NodeId("gnb-b"), b_address ? *b_address : b->address()}};
    config.cells = {{CellId("c1"), NodeId("gnb-a")},
                    {CellId("c2"), NodeId("gnb-b")},
                    {CellId("c3"), NodeId("gnb-b")}};
    config.cell = CellId("c1");
    config.http = timeouts;
    config.client.first_backoff = 2ms;
    auto made = Follower::create(loop.io, loop.clock, config);
    ASSERT_TRUE(made) << made.error().describe();
    follower = std::move(*made);
  }
  void start() {
    FollowerCallbacks calls;
    calls.on_session = [this](const SessionEvent&) { ++sessions; };
    calls.on_token = [this](const TokenRecord& token) {
      text += token.text;
      if (token.index + 1 == stop_after) follower->stop(number);
    };
    calls.on_finish = [this](const std::string& why, const std::string& rest,
                             const std::optional<Usage>& figures) {
      text += rest;
      reason = why;
      usage = figures;
    };
    calls.on_error = [this](const ApiError& e) { error = e; };
    calls.on_keep_alive = [this] { ++keep_alives; };
    const auto started = follower->start(kBody, Endpoint::kChat, calls);
    ASSERT_TRUE(started);
    number = *started;
  }
  // A stream of `n` tokens at A, then nothing.
  void serve_at_a(TokenIndex n) {
    a.on_open = [this, n](Exchange e, const IncomingRequest&) {
      a.session(e, 1);
      a.role(e);
      a.tokens(e, 0, n, 1);
    };
  }
  void until_tokens(std::size_t n) {
    loop.until([&] { return text == words(static_cast<TokenIndex>(n)); }, "tokens");
  }
  void until_finished() {
    loop.until([&] { return !reason.empty(); }, "the finish");
  }

  Loop loop;
  ScriptedGnb a{loop, "gnb-a"};
  std::unique_ptr<ScriptedGnb> b = std::make_unique<ScriptedGnb>(loop, "gnb-b");
  std::unique_ptr<Follower> follower;
  Follower::SessionNo number = 0;
  std::string text, reason;
  std::optional<Usage> usage;
  std::optional<ApiError> error;
  int sessions = 0, keep_alives = 0;
  TokenIndex stop_after = 0;
};

TEST_F(FollowerTest, a_handover_in_mid_stream_drops_what_the_new_gnb_repeats) {
  make();
  serve_at_a(5);
  b->on_attach = [&](Exchange e, const IncomingRequest&) {
    b->session(e, 2);
    b->tokens(e, 2, 9, 2);  // 2, 3 and 4 are known
    b->done(e, 9);
  };
  start();
  until_tokens(5);
  ASSERT_TRUE(follower->on_cell(CellId("c2")));
  until_finished();
  EXPECT_EQ(text, words(9));
  EXPECT_EQ(sessions, 1);
  EXPECT_EQ(usage, (Usage{4, 9}));

  ASSERT_EQ(a.opens.size(), 1u);
  EXPECT_EQ(a.opens[0].header("Pallas-Resume"), "1");
  EXPECT_EQ(a.opens[0].header("pallas-ue"), "veh2");
  ASSERT_EQ(b->attaches.size(), 1u);
  EXPECT_EQ(b->attaches[0].target, "/v1/sessions/00c0ffee/attach");
  EXPECT_EQ(b->attaches[0].header("Pallas-Resume-Token"), "secret");
  const auto body = nlohmann::json::parse(b->attaches[0].body);
  EXPECT_EQ(body["epoch"], 2);
  EXPECT_EQ(body["next_index"], 5);
  EXPECT_EQ(body["last_node"], "gnb-a");
  EXPECT_EQ(body["ids"].size(), 5u);
  EXPECT_EQ(body["request"]["messages"][0]["content"], "hi");

  const auto report = follower->report(number);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->state, "finished");
  EXPECT_EQ(report->counters.duplicates, 3u);
  ASSERT_EQ(report->handovers.size(), 1u);
  EXPECT_EQ(report->handovers[0].to, NodeId("gnb-b"));
  EXPECT_EQ(report->handovers[0].last_before, 4u);
  EXPECT_TRUE(report->handovers[0].sit_ms);
  EXPECT_TRUE(report->handovers[0].gap_ms);
}

TEST_F(FollowerTest, a_stale_epoch_answer_is_followed_by_one_above_the_current) {
  make();
  serve_at_a(2);
  b->on_attach = [&](Exchange e, const IncomingRequest& request) {
    const auto body = nlohmann::json::parse(request.body);
    if (body["epoch"] < 10) return b->refuse(e, 409, "stale_epoch", 9);
    EXPECT_EQ(body["epoch"], 10);
    b->session(e, 10);
    b->tokens(e, 2, 4, 10);
    b->done(e, 4);
  };
  start();
  until_tokens(2);
  ASSERT_TRUE(follower->on_cell(CellId("c2")));
  until_finished();
  EXPECT_EQ(text, words(4));
  EXPECT_EQ(b->attaches.size(), 2u);
}

TEST_F(FollowerTest, a_cut_connection_is_attached_again_at_the_same_gnb) {
  make();
  serve_at_a(3);
  a.on_attach = [&](Exchange e, const IncomingRequest&) {
    a.session(e, 2);
    a.tokens(e, 3, 6, 2);
    a.done(e, 6);
  };
  start();
  until_tokens(3);
  a.server->cut(a.last);
  until_finished();
  EXPECT_EQ(text, words(6));
  EXPECT_TRUE(follower->report(number)->handovers.empty());
}

TEST_F(FollowerTest, a_gnb_that_refuses_connections_is_retried_until_it_listens) {
  const Address later = b->address();
  b.reset();
  make(later);
  serve_at_a(3);
  // The source does not know the session any more, so that only the target can go on.
  a.on_attach = [&](Exchange e, const IncomingRequest&) { a.refuse(e, 503, "resource_exhausted"); };
  start();
  until_tokens(3);
  ASSERT_TRUE(follower->on_cell(CellId("c2")));
  loop.until([&] { return follower->report(number)->counters.retries >= 3; }, "retries");
  b = std::make_unique<ScriptedGnb>(loop, "gnb-b", later.port);
  b->on_attach = [&](Exchange e, const IncomingRequest&) {
    b->session(e, 20);
    b->tokens(e, 3, 5, 20);
    b->done(e, 5);
  };
  until_finished();
  EXPECT_EQ(text, words(5));
  EXPECT_EQ(follower->report(number)->handovers.size(), 1u);
}

TEST_F(FollowerTest, keep_alives_show_life_and_end_nothing) {
  make();
  a.on_open = [&](Exchange e, const IncomingRequest&) {
    a.session(e, 1);
    for (int i = 0; i < 3; ++i) a.server->write(e, ": keep-alive\n\n");
    a.tokens(e, 0, 2, 1);
    a.done(e, 2);
  };
  start();
  until_finished();
  EXPECT_GE(keep_alives, 1);
  EXPECT_EQ(text, words(2));
}

TEST_F(FollowerTest, a_silent_stream_counts_as_lost) {
  make({}, HttpTimeouts{.connect = 1s, .answer = 1s, .silence = 30ms});
  serve_at_a(2);
  a.on_attach = [&](Exchange e, const IncomingRequest&) {
    a.session(e, 2);
    a.done(e, 2);
  };
  start();
  until_finished();
  EXPECT_EQ(a.attaches.size(), 1u);
}

TEST_F(FollowerTest, a_gnb_that_does_not_answer_is_given_up_in_time) {
  make({}, HttpTimeouts{.connect = 1s, .answer = 30ms, .silence = 5s});
  serve_at_a(2);
  b->on_attach = [&](Exchange e, const IncomingRequest&) {
    if (b->attaches.size() < 2) return;  // never answered
    b->session(e, 3);
    b->done(e, 2);
  };
  start();
  until_tokens(2);
  ASSERT_TRUE(follower->on_cell(CellId("c2")));
  until_finished();
  EXPECT_EQ(b->attaches.size(), 2u);
}

TEST_F(FollowerTest, an_announced_gnb_gets_its_connection_before_the_handover) {
  make();
  serve_at_a(2);
  b->on_attach = [&](Exchange e, const IncomingRequest&) {
    b->session(e, 2);
    b->done(e, 2);
  };
  start();
  until_tokens(2);
  a.event(a.last, "pallas.next", "gnb-b");
  loop.until([&] { return follower->connections().connections == 2; }, "the warm connection");
  loop.for_a_while(5ms);
  ASSERT_TRUE(follower->on_cell(CellId("c2")));
  until_finished();
  EXPECT_EQ(follower->connections().warm_connections, 1u);
  EXPECT_EQ(follower->connections().connections, 2u);
}

TEST_F(FollowerTest, a_warm_connection_that_the_gnb_closed_is_replaced) {
  make();
  serve_at_a(2);
  start();
  until_tokens(2);
  a.event(a.last, "pallas.next", "gnb-b");
  loop.until([&] { return follower->connections().connections == 2; }, "the warm connection");
  loop.for_a_while(5ms);
  const std::uint16_t port = b->server->port();
  b = std::make_unique<ScriptedGnb>(loop, "gnb-b");  // the old one's port is free only now
  b = std::make_unique<ScriptedGnb>(loop, "gnb-b", port);
  b->on_attach = [&](Exchange e, const IncomingRequest&) {
    b->session(e, 2);
    b->done(e, 2);
  };
  // No turn of the loop between: the closed connection is found out by using it.
  ASSERT_TRUE(follower->on_cell(CellId("c2")));
  until_finished();
  EXPECT_EQ(follower->report(number)->counters.retries, 0u);
}

TEST_F(FollowerTest, moved_is_followed_and_an_unknown_name_waits_for_the_radio) {
  make();
  serve_at_a(2);
  b->on_attach = [&](Exchange e, const IncomingRequest&) {
    b->session(e, 2);
    b->done(e, 2);
  };
  start();
  until_tokens(2);
  a.event(a.last, "pallas.moved", "gnb-nowhere");
  a.server->end(a.last);
  loop.for_a_while(5ms);
  EXPECT_TRUE(a.attaches.empty());
  ASSERT_TRUE(follower->on_cell(CellId("c2")));
  until_finished();
}

TEST_F(FollowerTest, cells_of_one_gnb_are_one_place) {
  make();
  serve_at_a(1);
  b->on_attach = [&](Exchange e, const IncomingRequest&) { b->session(e, 2); };
  start();
  until_tokens(1);
  ASSERT_TRUE(follower->on_cell(CellId("c2")));
  loop.until([&] { return b->attaches.size() == 1; }, "the attach");
  ASSERT_TRUE(follower->on_cell(CellId("c3")));
  loop.for_a_while(5ms);
  EXPECT_EQ(b->attaches.size(), 1u);
  EXPECT_EQ(follower->cell(), CellId("c3"));
  EXPECT_FALSE(follower->on_cell(CellId("c9")));
  EXPECT_EQ(follower->cell(), CellId("c3"));
}

TEST_F(FollowerTest, stop_from_a_callback_deletes_the_session_and_says_no_more) {
  make();
  serve_at_a(5);
  stop_after = 2;
  start();
  loop.until([&] { return a.deletes.size() == 1; }, "the DELETE");
  EXPECT_EQ(text, words(2));
  EXPECT_EQ(a.deletes[0].target, "/v1/sessions/00c0ffee");
  EXPECT_EQ(a.deletes[0].header("Pallas-Resume-Token"), "secret");
  EXPECT_EQ(a.deletes[0].header("Pallas-Last-Node"), "gnb-a");
  loop.until([&] { return follower->pending_deletes() == 0; }, "the answer");
  loop.until([&] { return a.gone.size() == 1; }, "the end of the stream");
  EXPECT_FALSE(error);
  EXPECT_TRUE(reason.empty());
  EXPECT_EQ(follower->active(), 0u);
}

TEST_F(FollowerTest, a_refused_request_is_passed_on_as_it_was) {
  make();
  a.on_open = [&](Exchange e, const IncomingRequest&) { a.refuse(e, 400, "unknown_model"); };
  start();
  loop.until([&] { return error.has_value(); }, "the error");
  EXPECT_EQ(error->status, 400);
  EXPECT_EQ(error->code, "unknown_model");
}

TEST_F(FollowerTest, a_server_without_resume_is_named_as_such) {
  make();
  a.on_open = [&](Exchange e, const IncomingRequest&) {
    a.server->begin_stream(e, "text/event-stream");
    a.server->write(e, "data: {\"choices\":[{\"delta\":{\"content\":\"plain\"}}]}\n\n");
  };
  start();
  loop.until([&] { return error.has_value(); }, "the error");
  EXPECT_NE(error->message.find("no Pallas gNB"), std::string::npos);
}

TEST_F(FollowerTest, garbage_instead_of_events_is_retried_and_then_fails) {
  make();
  a.on_open = [&](Exchange e, const IncomingRequest&) {
    a.session(e, 1);
    a.server->write(e, "data: garbage\n\n");
  };
  a.on_attach = [&](Exchange e, const IncomingRequest&) {
    a.session(e, 2);
    a.server->write(e, "data: garbage\n\n");
  };
  start();
  loop.until([&] { return error.has_value(); }, "the error");
  EXPECT_LE(a.attaches.size(), 5u);
}

TEST_F(FollowerTest, only_so_many_ended_sessions_are_remembered) {
  make();
  a.on_open = [&](Exchange e, const IncomingRequest&) {
    a.session(e, 1);
    a.done(e, 0);
  };
  for (int i = 0; i < 20; ++i) {
    reason.clear();
    start();
    until_finished();
  }
  EXPECT_EQ(follower->report().sessions.size(), 16u);
  EXPECT_FALSE(follower->report(1));
}

TEST_F(FollowerTest, several_sessions_of_one_ue_move_together) {
  make();
  serve_at_a(2);
  int attached = 0;
  b->on_attach = [&](Exchange e, const IncomingRequest&) {
    ++attached;
    b->session(e, 2);
  };
  start();
  start();
  loop.until([&] { return text.size() == 2 * words(2).size(); }, "both streams");
  ASSERT_TRUE(follower->on_cell(CellId("c2")));
  loop.until([&] { return attached == 2; }, "both attaches");
}

TEST_F(FollowerTest, it_may_be_destroyed_in_mid_stream) {
  make();
  serve_at_a(2);
  start();
  until_tokens(2);
  follower.reset();
  loop.until([&] { return a.gone.size() == 1; }, "the end of the stream");
}

TEST(FollowerConfigTest, what_is_missing_is_named) {
  Loop loop;
  FollowerConfig config;
  const auto message = [&] {
    const auto made = Follower::create(loop.io, loop.clock, config);
    return made ? std::string("made") : made.error().message;
  };
  EXPECT_NE(message().find("gnbs"), std::string::npos);
  config.gnbs[NodeId("a")] = {"127.0.0.1", 1};
  config.cells[CellId("c")] = NodeId("b");
  EXPECT_NE(message().find("'b'"), std::string::npos);
  config.cells[CellId("c")] = NodeId("a");
  config.cell = CellId("d");
  EXPECT_NE(message().find("'d'"), std::string::npos);
}

}  // namespace
}  // namespace pallas::ue
