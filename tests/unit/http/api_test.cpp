#include "http/api.h"

#include <gtest/gtest.h>

#include "fakes.h"
#include "virtual_clock.h"

namespace pallas::http {
namespace {

class ApiTest : public testing::Test {
 protected:
  ApiTest() { api.set_backend(&backend); }

  static ApiOptions options() {
    ApiOptions o;
    o.random = counting_random();
    o.unix_time = [] { return std::int64_t{1700000000}; };
    o.ran_messages_per_second = 5;
    return o;
  }
  std::optional<node::StreamId> send(
      const std::string& method, const std::string& path, std::string body = "",
      std::vector<std::pair<std::string, std::string>> headers = {}) {
    answer = KeptAnswer();
    HttpRequest request{method, path, "", std::move(headers), std::move(body)};
    if (const auto mark = path.find('?'); mark != std::string::npos) {
      request.path = path.substr(0, mark);
      request.query = path.substr(mark + 1);
    }
    return api.handle(request, answer);
  }
  int status() const { return answer.response ? answer.response->status : 0; }
  bool body_has(const std::string& part) const {
    return answer.response && answer.response->body.find(part) != std::string::npos;
  }
  bool has(const std::string& part) const { return answer.text.find(part) != std::string::npos; }
  void run_posted() {
    while (!posted.empty()) {
      auto task = std::move(posted.front());
      posted.pop_front();
      task();
    }
  }
  wire::SessionSnapshot snapshot() const {
    wire::SessionSnapshot s;
    s.params.model = "tiny";
    s.params.completion_id = "chatcmpl-x";
    s.params.resume_token = "secret";
    s.prompt_tokens = 8;
    s.epoch = Epoch(4);
    return s;
  }
  const std::vector<std::pair<std::string, std::string>> resume{{"pallas-resume", "1"},
                                                                {"Pallas-UE", "u1"}};
  const std::vector<std::pair<std::string, std::string>> with_token{
      {"Pallas-Resume-Token", "secret"}};

  ByteCodec codec;
  test::VirtualClock clock;
  std::deque<std::function<void()>> posted;
  FakeBackend backend;
  KeptAnswer answer;
  Api api{codec, clock, options(),
          [this](std::function<void()> task) { posted.push_back(std::move(task)); }};
  node::UeLink& ue = api.ue_link();
};

TEST_F(ApiTest, a_resumable_stream_starts_with_session_and_role) {
  const auto stream = send("POST", "/v1/chat/completions", kChatBody, resume);
  ASSERT_TRUE(stream);
  ASSERT_EQ(backend.opened.size(), 1u);
  EXPECT_TRUE(backend.opened[0].request.resumable);
  EXPECT_EQ(backend.opened[0].request.params.ue, UeId("u1"));
  EXPECT_TRUE(answer.begun);
  EXPECT_TRUE(answer.text.starts_with("event: pallas.session\ndata: {\"session\":\""));
  EXPECT_LT(answer.text.find("pallas.session"), answer.text.find("\"role\":\"assistant\""));
  ue.deliver(*stream, token(0, "a"));
  ue.announce(*stream, NodeId("gnb-b"));
  ue.keep_alive(*stream);
  EXPECT_TRUE(has("id: 1.0\n"));
  EXPECT_TRUE(has("event: pallas.next\n"));
  EXPECT_TRUE(has(": keep-alive\n\n"));
  EXPECT_FALSE(answer.ended);
  ue.close(*stream, NodeId("gnb-b"));
  EXPECT_TRUE(answer.text.ends_with("event: pallas.moved\ndata: {\"node\":\"gnb-b\"}\n\n"));
  EXPECT_TRUE(answer.ended);
}

TEST_F(ApiTest, a_plain_stream_shows_nothing_of_ours) {
  const auto stream = send("POST", "/v1/chat/completions", kChatBody);
  ASSERT_TRUE(stream);
  EXPECT_FALSE(backend.opened[0].request.resumable);
  ue.deliver(*stream, token(0, "a"));
  ue.deliver(*stream, token(1, ""));
  ue.announce(*stream, NodeId("gnb-b"));
  ue.finish(*stream, {wire::FinishReason::kStop, "", 8, 2});
  EXPECT_EQ(answer.text.find("pallas"), std::string::npos);
  EXPECT_EQ(answer.text.find("id: "), std::string::npos);
  EXPECT_EQ(answer.text.find("\"content\":\"\"},\"logprobs\""),
            answer.text.find("\"role\"") + std::string("\"role\":\"assistant\",").size());
  EXPECT_TRUE(answer.text.ends_with("data: [DONE]\n\n"));
  EXPECT_TRUE(answer.ended);
}

TEST_F(ApiTest, tokens_that_come_within_open_follow_the_session_event) {
  backend.on_open = [this](node::StreamId stream) {
    ue.deliver(stream, token(0, "early"));
    ue.finish(stream, {wire::FinishReason::kStop, "", 8, 1});
  };
  ASSERT_TRUE(send("POST", "/v1/chat/completions", kChatBody, resume));
  EXPECT_LT(answer.text.find("pallas.session"), answer.text.find("early"));
  EXPECT_LT(answer.text.find("early"), answer.text.find("[DONE]"));
  EXPECT_TRUE(answer.ended);
}

TEST_F(ApiTest, a_request_without_stream_is_answered_whole) {
  const auto stream = send("POST", "/v1/completions", R"({"model":"tiny","prompt":"abc"})", resume);
  ASSERT_TRUE(stream);
  EXPECT_FALSE(backend.opened[0].request.resumable);
  ue.deliver(*stream, token(0, "x"));
  ue.deliver(*stream, token(1, "y"));
  ue.keep_alive(*stream);
  EXPECT_FALSE(answer.response);
  ue.finish(*stream, {wire::FinishReason::kLength, "z", 3, 3});
  EXPECT_EQ(status(), 200);
  EXPECT_TRUE(body_has("\"text\":\"xyz\""));
  EXPECT_TRUE(body_has("\"finish_reason\":\"length\""));
  EXPECT_TRUE(body_has("\"total_tokens\":6"));
  EXPECT_FALSE(answer.begun);
}

TEST_F(ApiTest, a_failure_in_mid_stream_is_an_error_event_and_one_before_it_a_status) {
  const auto stream = send("POST", "/v1/chat/completions", kChatBody, resume);
  ue.fail(*stream, {Errc::kEngine, "the engine stopped"});
  EXPECT_TRUE(has("data: {\"error\":{\"message\":\"the engine stopped\""));
  EXPECT_FALSE(has("[DONE]"));
  EXPECT_TRUE(answer.ended);

  const auto whole = send("POST", "/v1/completions", R"({"model":"tiny","prompt":"abc"})");
  ue.fail(*whole, {Errc::kEngine, "the engine stopped"});
  EXPECT_EQ(status(), 500);

  backend.open_error = {Errc::kResourceExhausted, "sessions: all places are taken"};
  EXPECT_FALSE(send("POST", "/v1/chat/completions", kChatBody, resume));
  EXPECT_EQ(status(), 503);
  EXPECT_FALSE(answer.begun);
}

TEST_F(ApiTest, a_client_that_goes_is_told_to_the_node_once) {
  const auto stream = send("POST", "/v1/chat/completions", kChatBody, resume);
  api.on_disconnected(*stream);
  api.on_disconnected(*stream);
  EXPECT_EQ(backend.closed, std::vector<node::StreamId>{*stream});
  ue.deliver(*stream, token(0, "late"));
  EXPECT_FALSE(has("late"));

  const auto finished = send("POST", "/v1/chat/completions", kChatBody, resume);
  ue.finish(*finished, {wire::FinishReason::kStop, "", 8, 1});
  api.on_disconnected(*finished);
  EXPECT_EQ(backend.closed.size(), 1u);
}

TEST_F(ApiTest, an_attach_goes_on_from_the_next_index) {
  backend.known = snapshot();
  const auto stream = send("POST", "/v1/sessions/" + kSession + "/attach",
                           R"({"epoch":4,"next_index":7,"last_node":"gnb-b"})", with_token);
  ASSERT_TRUE(stream);
  const auto& request = backend.attached.at(0).request;
  EXPECT_EQ(request.session.value, kSession);
  EXPECT_EQ(request.resume_token, "secret");
  EXPECT_EQ(request.next_index, 7u);
  EXPECT_TRUE(has("\"epoch\":4,"));
  EXPECT_FALSE(has("\"role\""));
  ue.deliver(*stream, token(7, "seven", 4));
  EXPECT_TRUE(has("id: 4.7\n"));
}

TEST_F(ApiTest, an_attach_at_index_zero_of_a_chat_has_the_role) {
  backend.known = snapshot();
  ASSERT_TRUE(send("POST", "/v1/sessions/" + kSession + "/attach", R"({"epoch":5,"next_index":0})",
                   with_token));
  EXPECT_TRUE(has("\"epoch\":5,"));
  EXPECT_TRUE(has("\"role\":\"assistant\""));
}

TEST_F(ApiTest, events_resume_after_the_last_event_id) {
  backend.known = snapshot();
  auto headers = with_token;
  headers.emplace_back("Last-Event-ID", "6.41");
  ASSERT_TRUE(send("GET", "/v1/sessions/" + kSession + "/events", "", headers));
  EXPECT_EQ(backend.attached[0].request.epoch, Epoch(7));
  EXPECT_EQ(backend.attached[0].request.next_index, 42u);

  headers.emplace_back("Pallas-Epoch", "9");
  ASSERT_TRUE(send("GET", "/v1/sessions/" + kSession + "/events", "", headers));
  EXPECT_EQ(backend.attached[1].request.epoch, Epoch(9));

  ASSERT_TRUE(send("GET", "/v1/sessions/" + kSession + "/events", "", with_token));
  EXPECT_EQ(backend.attached[2].request.epoch, Epoch(5));  // 1 + what the node knows
  EXPECT_EQ(backend.attached[2].request.next_index, 0u);

  for (const char* bad : {"x", "1", "1.99999999999"}) {
    auto wrong = with_token;
    wrong.emplace_back("Last-Event-ID", bad);
    EXPECT_FALSE(send("GET", "/v1/sessions/" + kSession + "/events", "", wrong));
    EXPECT_EQ(status(), 400);
    EXPECT_TRUE(body_has("Last-Event-ID"));
  }
}

TEST_F(ApiTest, an_unknown_session_and_a_wrong_token_look_the_same) {
  std::vector<std::string> bodies;
  for (const auto code : {Errc::kNotFound, Errc::kUnauthorized}) {
    backend.attach_error = {code, "session: the particulars"};
    backend.stop_error = backend.attach_error;
    EXPECT_FALSE(send("POST", "/v1/sessions/" + kSession + "/attach",
                      R"({"epoch":4,"next_index":7})", with_token));
    EXPECT_EQ(status(), 404);
    bodies.push_back(answer.response->body);
    send("DELETE", "/v1/sessions/" + kSession, "", with_token);
    EXPECT_EQ(status(), 404);
    bodies.push_back(answer.response->body);
  }
  for (const auto& path : {"/v1/sessions/short/attach", "/v1/sessions/../attach"}) {
    send("POST", path, R"({"epoch":4,"next_index":7})", with_token);
    EXPECT_EQ(status(), 404);
    bodies.push_back(answer.response->body);
  }
  send("POST", "/v1/sessions/" + kSession + "/attach", R"({"epoch":4,"next_index":7})");
  bodies.push_back(answer.response->body);
  for (const auto& body : bodies) EXPECT_EQ(body, bodies[0]);
}

TEST_F(ApiTest, an_id_that_is_not_the_tokens_own_is_taken_nowhere) {
  // Nothing is known here of either: the token alone must do.
  const auto invented = std::string(31, '0');
  for (const char digit : {'1', 'a', 'f'}) {
    const std::string path = "/v1/sessions/" + invented + digit;
    // Refused before the body is looked at.
    EXPECT_FALSE(send("POST", path + "/attach", "{", with_token));
    EXPECT_EQ(status(), 404);
    const auto body = answer.response->body;
    EXPECT_FALSE(send("GET", path + "/events", "", with_token));
    EXPECT_EQ(std::pair(status(), answer.response->body), std::pair(404, body));
    EXPECT_FALSE(send("DELETE", path + "?last_node=gnb-b", "", with_token));
    EXPECT_EQ(std::pair(status(), answer.response->body), std::pair(404, body));
  }
  EXPECT_TRUE(backend.attached.empty() && backend.stopped.empty());
  EXPECT_TRUE(send("POST", "/v1/sessions/" + kSession + "/attach", R"({"epoch":4,"next_index":0})",
                   with_token));
  EXPECT_EQ(backend.attached.size(), 1u);
}

TEST_F(ApiTest, a_session_opens_with_the_token_that_it_was_given) {
  ASSERT_TRUE(send("POST", "/v1/chat/completions", kChatBody, resume));
  const auto& opened = backend.opened.at(0).request;
  EXPECT_EQ(opened.session.value, session_of(opened.params.resume_token));
}

TEST_F(ApiTest, a_session_of_an_older_gnb_is_opened_where_it_is_known) {
  backend.known = snapshot();
  EXPECT_TRUE(send("GET", "/v1/sessions/" + std::string(32, '7') + "/events", "", with_token));
}

TEST_F(ApiTest, a_stale_epoch_is_a_conflict_that_tells_the_current_one) {
  backend.known = snapshot();
  backend.attach_error = {Errc::kStaleEpoch, "epoch: 3, the current one is 4"};
  EXPECT_FALSE(send("POST", "/v1/sessions/" + kSession + "/attach", R"({"epoch":3,"next_index":7})",
                    with_token));
  EXPECT_EQ(status(), 409);
  EXPECT_TRUE(body_has("\"code\":\"stale_epoch\",\"current\":4"));
}

TEST_F(ApiTest, a_session_that_must_be_fetched_first_shows_life_and_then_itself) {
  const auto stream = send("POST", "/v1/sessions/" + kSession + "/attach",
                           R"({"epoch":5,"next_index":7})", with_token);
  ASSERT_TRUE(stream);
  EXPECT_FALSE(answer.begun);
  ue.keep_alive(*stream);
  EXPECT_FALSE(answer.begun);  // not from inside the node's call
  run_posted();
  EXPECT_EQ(answer.text, ": keep-alive\n\n");
  ue.deliver(*stream, token(7, "seven", 5));
  ue.deliver(*stream, token(8, "eight", 5));
  backend.known = snapshot();
  run_posted();
  EXPECT_LT(answer.text.find("pallas.session"), answer.text.find("seven"));
  EXPECT_TRUE(has("\"resume_token\":\"secret\""));
  ue.deliver(*stream, token(9, "nine", 5));
  EXPECT_LT(answer.text.find("eight"), answer.text.find("nine"));
}

TEST_F(ApiTest, a_session_that_cannot_be_fetched_is_404_if_nothing_was_said_yet) {
  const auto quiet = send("POST", "/v1/sessions/" + kSession + "/attach",
                          R"({"epoch":5,"next_index":7})", with_token);
  ue.fail(*quiet, {Errc::kNotFound, "session: unknown"});
  run_posted();
  EXPECT_EQ(status(), 404);

  const auto begun = send("POST", "/v1/sessions/" + kSession + "/attach",
                          R"({"epoch":5,"next_index":7})", with_token);
  ue.keep_alive(*begun);
  run_posted();
  ue.fail(*begun, {Errc::kNotFound, "session: unknown"});
  run_posted();
  EXPECT_FALSE(answer.response);
  EXPECT_TRUE(has("\"code\":\"not_found\""));
  EXPECT_TRUE(answer.ended);
}

TEST_F(ApiTest, a_client_that_goes_while_its_session_is_fetched_leaves_nothing) {
  const auto stream = send("POST", "/v1/sessions/" + kSession + "/attach",
                           R"({"epoch":5,"next_index":7})", with_token);
  ue.keep_alive(*stream);
  api.on_disconnected(*stream);
  run_posted();
  EXPECT_EQ(answer.text, "");
  EXPECT_EQ(backend.closed.size(), 1u);
}

TEST_F(ApiTest, delete_is_idempotent_and_may_name_the_last_node) {
  auto headers = with_token;
  headers.emplace_back("Pallas-Last-Node", "gnb-c");
  for (int i = 0; i < 2; ++i) {
    send("DELETE", "/v1/sessions/" + kSession, "", headers);
    EXPECT_EQ(status(), 200);
    EXPECT_EQ(answer.response->body, "{\"id\":\"" + kSession + "\",\"deleted\":true}");
  }
  EXPECT_EQ(backend.stopped[0], kSession + "/secret/gnb-c");
  send("DELETE", "/v1/sessions/" + kSession + "?last_node=gnb%2Dd", "", with_token);
  EXPECT_EQ(backend.stopped[2], kSession + "/secret/gnb-d");
}

TEST_F(ApiTest, the_ran_feed_is_taken_or_answered_with_a_problem) {
  const std::string good = R"({"ue":"u","seq":1,"serving":"a","target":"b","in_ms":100})";
  send("POST", "/v1/predictions", good);
  EXPECT_EQ(status(), 204);
  EXPECT_EQ(backend.predictions.size(), 1u);
  send("POST", "/v1/predictions", R"({"ue":"u"})");
  EXPECT_EQ(status(), 400);
  EXPECT_EQ(answer.response->content_type, "application/problem+json");
  EXPECT_TRUE(body_has("\"field\":\"seq\""));
  backend.ran_error = {Errc::kOutOfOrder, "seq: old"};
  send("POST", "/v1/predictions", good);
  EXPECT_EQ(status(), 409);
  send("POST", "/v1/handovers",
       R"({"ue":"u","seq":1,"phase":"execution","source":"a","target":"b"})");
  EXPECT_EQ(backend.handover_events.size(), 1u);
  send("POST", "/v1/positions", R"({"ue":"u","seq":1,"t_ms":1,"x":0,"y":0})");
  EXPECT_EQ(backend.positions.size(), 1u);
}

TEST_F(ApiTest, a_flood_about_one_ue_is_429_and_others_go_on) {
  const auto position = [](const char* ue_name) {
    return std::string(R"({"ue":")") + ue_name + R"(","seq":1,"t_ms":1,"x":0,"y":0})";
  };
  for (int i = 0; i < 5; ++i) send("POST", "/v1/positions", position("u"));
  EXPECT_EQ(status(), 204);
  send("POST", "/v1/positions", position("u"));
  EXPECT_EQ(status(), 429);
  EXPECT_EQ(backend.positions.size(), 5u);
  send("POST", "/v1/positions", position("v"));
  EXPECT_EQ(status(), 204);
  clock.run_for(std::chrono::seconds(1));
  send("POST", "/v1/positions", position("u"));
  EXPECT_EQ(status(), 204);
}

TEST_F(ApiTest, operators_see_sessions_handovers_health_and_metrics) {
  backend.session_infos.push_back({});
  backend.session_infos[0].session = SessionId(kSession);
  backend.session_infos[0].role = "serving";
  backend.reports.resize(2);
  backend.reports[0].session = SessionId(kSession);
  backend.reports[0].first_token_ms = 12.5;
  backend.reports[1].session = SessionId("other");
  backend.reports[1].partial = node::PartialReport{0.5, 200, 31, 32, true, 1250.5};
  backend.session_infos[0].partial = true;
  backend.node_stats.partial_handovers = 7;
  backend.node_stats.free_slots = 3;
  send("GET", "/v1/sessions");
  EXPECT_TRUE(body_has("{\"object\":\"list\",\"data\":[{\"id\":\"" + kSession + "\""));
  EXPECT_TRUE(body_has("\"partial\":true"));
  send("GET", "/v1/handovers");
  EXPECT_TRUE(body_has("\"first_token_ms\":12.5"));
  EXPECT_TRUE(body_has("other"));
  EXPECT_TRUE(body_has("\"partial\":null"));
  EXPECT_TRUE(
      body_has("\"partial\":{\"fraction\":0.5,\"positions\":200,\"tokens\":31,"
               "\"tokens_replayed\":32,\"second_slot\":true,\"complete_ms\":1250.5}"));
  send("GET", "/v1/handovers?session=" + kSession);
  EXPECT_FALSE(body_has("other"));
  send("GET", "/health");
  EXPECT_EQ(status(), 200);
  EXPECT_TRUE(body_has("\"status\":\"ok\",\"node\":\"gnb-a\""));
  backend.is_ready = false;
  send("GET", "/health");
  EXPECT_EQ(status(), 503);
  send("POST", "/v1/chat/completions", kChatBody);
  EXPECT_EQ(status(), 503);
  api.set_metrics([] { return std::vector<Metric>{{"pallas_peer_up", "x", false, {}, 1}}; });
  send("GET", "/metrics");
  EXPECT_TRUE(body_has("\npallas_free_slots 3\n"));
  EXPECT_TRUE(body_has("\npallas_partial_handovers_total 7\n"));
  EXPECT_TRUE(body_has("\npallas_peer_up 1\n"));
}

TEST_F(ApiTest, reports_tell_the_phases_at_both_ends_and_date_their_zero) {
  ApiOptions dated = options();
  dated.anchor = [] {
    return ClockAnchor{"boot", TimePoint(std::chrono::seconds(10)), 500'000'000};
  };
  Api api_of_b(codec, clock, dated, [](const std::function<void()>&) {});
  api_of_b.set_backend(&backend);
  backend.reports.resize(1);
  auto& phases = backend.reports[0].phases;
  phases->attached.set(TimePoint(std::chrono::seconds(9)));
  phases->fronts_met.set(TimePoint(std::chrono::milliseconds(8750)));
  phases->prefill.started(TimePoint(std::chrono::seconds(8)));
  phases->prefill.ended(TimePoint(std::chrono::milliseconds(8500)), 64,
                        std::chrono::milliseconds(400));
  backend.departure_list.resize(1);
  backend.departure_list[0].session = SessionId("gone");
  backend.departure_list[0].phases.claim_received.set(TimePoint(std::chrono::seconds(9)));
  answer = KeptAnswer();
  api_of_b.handle({"GET", "/v1/handovers", "", {}, ""}, answer);
  for (const char* part :
       {"\"role\":\"target\"", "\"attached_ms\":0", "\"fronts_met_ms\":-250", "\"covered_ms\":null",
        "\"replay\":null",
        "\"prefill\":{\"begin_ms\":-1000,\"end_ms\":-500,\"count\":1,\"tokens\":64,"
        "\"busy_ms\":400}",
        "\"clock\":{\"id\":\"boot\",\"monotonic_us\":9000000,\"unix_us\":499000000}",
        "\"departures\":[{\"role\":\"source\"", "\"claim_received_ms\":0",
        "\"status_sent_ms\":null"}) {
    EXPECT_TRUE(body_has(part)) << part << " in " << answer.response->body;
  }
  HttpRequest other{"GET", "/v1/handovers", "session=other", {}, ""};
  answer = KeptAnswer();
  api_of_b.handle(other, answer);
  EXPECT_EQ(answer.response->body, "{\"object\":\"list\",\"data\":[],\"departures\":[]}");
}

TEST_F(ApiTest, the_operators_key_guards_what_is_the_operators) {
  auto guarded = options();
  guarded.operator_key = "key";
  Api other(codec, clock, guarded, [](std::function<void()>) {});
  other.set_backend(&backend);
  const auto status_of_call = [&](HttpRequest request) {
    KeptAnswer kept;
    other.handle(request, kept);
    return kept.response->status;
  };
  for (const char* path : {"/v1/sessions", "/v1/handovers", "/v1/engine"}) {
    EXPECT_EQ(status_of_call({"GET", path, "", {}, ""}), 401);
    EXPECT_EQ(status_of_call({"GET", path, "", {{"Authorization", "Bearer kex"}}, ""}), 401);
    EXPECT_EQ(status_of_call({"GET", path, "", {{"Authorization", "Bearer key"}}, ""}), 200);
  }
  const auto session = "/v1/sessions/" + kSession;
  EXPECT_EQ(status_of_call({"DELETE", session, "", {}, ""}), 401);
  EXPECT_EQ(status_of_call({"DELETE", session, "", with_token, ""}), 200);
}

TEST_F(ApiTest, the_engine_says_what_it_costs_and_what_is_exact_in_it) {
  backend.info_.profile.chunk_tokens = 32;
  backend.info_.profile.prefill = {{16, Seconds(0.004)}, {516, Seconds(0.005)}};
  backend.info_.profile.decode = {{1, 0, Seconds(0.0125)}};
  backend.info_.capabilities.exact_attach = true;
  send("GET", "/v1/engine");
  EXPECT_EQ(status(), 200);
  EXPECT_TRUE(body_has(R"({"model":"tiny","slots":0,"context_tokens":1000,)"));
  EXPECT_TRUE(body_has(R"("prefill":[{"depth":16,"per_token_s":0.004},{"depth":516,)"));
  EXPECT_TRUE(body_has(R"("decode":[{"batch":1,"depth":0,"step_s":0.0125}])"));
  EXPECT_TRUE(body_has(R"("exact_chunked_prompt":false,"exact_chunked_generated":false,)"
                       R"("exact_single_step":false,"exact_attach":true)"));
}

TEST_F(ApiTest, models_are_listed) {
  send("GET", "/v1/models");
  EXPECT_EQ(answer.response->body,
            R"({"object":"list","data":[{"id":"tiny","object":"model","created":1700000000,)"
            R"("owned_by":"pallas"}]})");
  send("GET", "/v1/models/tiny");
  EXPECT_EQ(status(), 200);
  send("GET", "/v1/models/huge");
  EXPECT_EQ(status(), 404);
  EXPECT_TRUE(body_has("model_not_found"));
}

TEST_F(ApiTest, unknown_paths_and_methods_are_json_errors) {
  for (const char* path : {"/", "/v1", "/v2/models", "/v1/sessions/", "/v1/sessions/a/b/events"}) {
    send("GET", path);
    EXPECT_EQ(status(), 404) << path;
    EXPECT_TRUE(body_has("{\"error\":{")) << path;
  }
  send("GET", "/v1/chat/completions");
  EXPECT_EQ(status(), 405);
  EXPECT_EQ(answer.response->headers[0], (std::pair<std::string, std::string>("Allow", "POST")));
  send("OPTIONS", "/v1/handovers");
  EXPECT_EQ(status(), 405);
  EXPECT_EQ(answer.response->headers[0].second, "POST, GET");
}

TEST_F(ApiTest, before_the_node_is_there_everything_waits) {
  api.set_backend(nullptr);
  send("POST", "/v1/chat/completions", kChatBody);
  EXPECT_EQ(status(), 503);
  EXPECT_TRUE(body_has("not_ready"));
  send("GET", "/health");
  EXPECT_EQ(status(), 503);
  send("GET", "/metrics");
  EXPECT_EQ(status(), 200);
}

TEST_F(ApiTest, a_move_is_taken_with_an_id_and_shown_by_it) {
  send("POST", "/v1/sessions/" + kSession + "/move", R"({"target":"gnb-b"})");
  EXPECT_EQ(status(), 202);
  EXPECT_TRUE(body_has("\"id\":\"" + kSession + ".m1\""));
  EXPECT_TRUE(body_has("\"state\":\"preparing\""));
  ASSERT_EQ(answer.response->headers.size(), 1u);
  EXPECT_EQ(answer.response->headers[0].second, "/v1/handovers/" + kSession + ".m1");
  ASSERT_EQ(backend.moves.size(), 1u);
  EXPECT_EQ(backend.moves[0].target, NodeId("gnb-b"));
  EXPECT_FALSE(backend.moves[0].dry_run);

  node::MoveReport ran;
  ran.id = kSession + ".m1";
  ran.state = node::MoveState::kFailed;
  ran.reason = "gnb-b refuses: no_resources";
  ran.ordered_at = TimePoint(std::chrono::seconds(5));
  ran.ended_at = TimePoint(std::chrono::milliseconds(5250));
  ran.phases.request_sent.set(TimePoint(std::chrono::milliseconds(5001)));
  backend.ran_move = ran;
  send("GET", "/v1/handovers/" + ran.id);
  EXPECT_EQ(status(), 200);
  EXPECT_TRUE(body_has("\"state\":\"failed\",\"reason\":\"gnb-b refuses: no_resources\""));
  EXPECT_TRUE(body_has("\"ended_ms\":250"));
  EXPECT_TRUE(body_has("\"request_sent_ms\":1"));
  send("GET", "/v1/handovers/" + kSession + ".m2");
  EXPECT_EQ(status(), 404);
}

TEST_F(ApiTest, a_dry_run_of_a_move_is_an_answer_and_no_order) {
  send("POST", "/v1/sessions/" + kSession + "/move", R"({"target":"gnb-b","dry_run":true})");
  EXPECT_EQ(status(), 200);
  EXPECT_TRUE(body_has("\"id\":null"));
  EXPECT_TRUE(body_has("\"state\":\"planned\""));
  EXPECT_TRUE(body_has("\"bytes\":4096"));
  EXPECT_TRUE(answer.response->headers.empty());
  EXPECT_TRUE(backend.moves[0].dry_run);
}

TEST_F(ApiTest, a_move_that_cannot_be_is_refused_with_its_reason) {
  for (const char* body :
       {"", "{}", R"({"target":7})", R"({"target":""})", R"({"target":"gnb-b","dry_run":1})"}) {
    send("POST", "/v1/sessions/" + kSession + "/move", body);
    EXPECT_EQ(status(), 400) << body;
  }
  send("POST", "/v1/sessions/short/move", R"({"target":"gnb-b"})");
  EXPECT_EQ(status(), 404);
  EXPECT_TRUE(backend.moves.empty());
  for (const auto& [code, expected] : {std::pair{Errc::kNotFound, 404},
                                       {Errc::kNotOwner, 409},
                                       {Errc::kAlreadyExists, 409},
                                       {Errc::kOutOfOrder, 409},
                                       {Errc::kUnreachable, 409},
                                       {Errc::kIncompatible, 409},
                                       {Errc::kInvalidArgument, 400},
                                       {Errc::kResourceExhausted, 503}}) {
    backend.move_error = {code, "target: why"};
    send("POST", "/v1/sessions/" + kSession + "/move", R"({"target":"gnb-b"})");
    EXPECT_EQ(status(), expected) << to_string(code);
    EXPECT_TRUE(body_has("target: why"));
  }
}

TEST_F(ApiTest, reports_are_found_by_the_id_of_their_handover) {
  node::HandoverReport report;
  report.id = kSession + ":2";
  report.scheme = "two-front";
  backend.reports.push_back(report);
  node::DepartureReport departure;
  departure.id = kSession + ":3";
  backend.departure_list.push_back(departure);
  send("GET", "/v1/handovers/" + kSession + ":2");
  EXPECT_EQ(status(), 200);
  EXPECT_TRUE(body_has("\"state\":\"completed\""));
  EXPECT_TRUE(body_has("\"departure\":null"));
  send("GET", "/v1/handovers/" + kSession + ":3");
  EXPECT_TRUE(body_has("\"arrival\":null"));
  send("GET", "/v1/handovers/" + kSession + ":4");
  EXPECT_EQ(status(), 404);
}

TEST_F(ApiTest, draining_is_ordered_with_a_peer_and_a_limit_and_can_be_watched) {
  send("POST", "/v1/drain");
  EXPECT_EQ(status(), 501);  // a program that does not
  std::vector<DrainOrder> orders;
  Status begun;
  api.set_drain({[&](const DrainOrder& order) {
                   orders.push_back(order);
                   return begun;
                 },
                 [] { return std::optional<Duration>(std::chrono::seconds(4)); }});
  send("POST", "/v1/drain", R"({"to":"gnb-b","limit_s":4.5})");
  EXPECT_EQ(status(), 202);
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].to, NodeId("gnb-b"));
  EXPECT_EQ(orders[0].limit, Duration(std::chrono::milliseconds(4500)));
  send("POST", "/v1/drain");
  EXPECT_EQ(status(), 202);
  EXPECT_EQ(orders[1].to, NodeId());
  EXPECT_FALSE(orders[1].limit);
  for (const char* body : {R"({"limit_s":-1})", R"({"to":3})", "[]"}) {
    send("POST", "/v1/drain", body);
    EXPECT_EQ(status(), 400) << body;
  }
  begun = fail(Errc::kInvalidArgument, "to: 'x' is no peer of this gNB");
  send("POST", "/v1/drain", R"({"to":"x"})");
  EXPECT_EQ(status(), 400);
  backend.drain_state.draining = true;
  backend.drain_state.serving = 2;
  backend.drain_state.leaving = 1;
  backend.drain_state.moved = 7;
  send("GET", "/v1/drain");
  EXPECT_EQ(status(), 200);
  EXPECT_TRUE(body_has("\"left\":3"));
  EXPECT_TRUE(body_has("\"moved\":7"));
  EXPECT_TRUE(body_has("\"ends_in_s\":4"));
}

TEST_F(ApiTest, a_drained_gnb_refuses_requests_with_a_reason_and_a_time) {
  backend.is_ready = false;
  send("POST", "/v1/chat/completions", kChatBody);
  EXPECT_EQ(status(), 503);
  EXPECT_TRUE(body_has("\"code\":\"draining\""));
  EXPECT_EQ(answer.response->headers[0], (std::pair<std::string, std::string>("Retry-After", "1")));
  EXPECT_TRUE(backend.opened.empty());
  send("GET", "/health");
  EXPECT_EQ(status(), 503);
}

TEST_F(ApiTest, orders_are_operators_business) {
  const std::string move = "/v1/sessions/" + kSession + "/move";
  for (const auto& [method, path] : {std::pair<std::string, std::string>{"POST", move},
                                     {"POST", "/v1/drain"},
                                     {"GET", "/v1/drain"},
                                     {"GET", "/v1/handovers/x"}}) {
    answer = KeptAnswer();
    const HttpRequest request{method, path, "", {}, R"({"target":"gnb-b"})"};
    api.handle(request, answer, Audience::kClients);
    EXPECT_EQ(status(), 404) << path;
  }
  EXPECT_TRUE(backend.moves.empty());
}

TEST_F(ApiTest, a_tenant_above_its_share_is_told_to_come_again) {
  backend.open_error = {Errc::kRateLimited, "all 2 sessions that one tenant may have are in use"};
  send("POST", "/v1/chat/completions", kChatBody);
  EXPECT_EQ(status(), 429);
  EXPECT_EQ(answer.response->headers[0], (std::pair<std::string, std::string>("Retry-After", "1")));
}

TEST_F(ApiTest, a_ue_name_must_be_a_name) {
  EXPECT_FALSE(
      send("POST", "/v1/chat/completions", kChatBody, {{"Pallas-UE", std::string(200, 'u')}}));
  EXPECT_EQ(status(), 400);
  EXPECT_TRUE(body_has("Pallas-UE"));
}

}  // namespace
}  // namespace pallas::http
