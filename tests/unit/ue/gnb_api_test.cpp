#include "ue/gnb_api.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ue/gnb_client.h"
#include "ue/openai_output.h"
#include "ue/ran_feed.h"
#include "ue/ue_settings.h"

namespace pallas::ue {
namespace {

using Json = nlohmann::json;

constexpr const char* kSession =
    R"({"session":"00ff","node":"gnb-a","epoch":1,"seed":18446744073709551615,"resume_token":"tok",)"
    R"("model":"m","prompt_tokens":12,"completion_id":"chatcmpl-1","created":99,"compatibility":{}})";

template <class T>
T parse_as(const SseEvent& event) {
  Result<StreamEvent> parsed = parse_stream_event(event);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().describe());
  if (!parsed || !std::holds_alternative<T>(*parsed)) {
    ADD_FAILURE() << "another kind of event: " << event.data;
    return {};
  }
  return std::get<T>(*parsed);
}

std::string refusal(const SseEvent& event) {
  const Result<StreamEvent> parsed = parse_stream_event(event);
  return parsed ? "accepted" : parsed.error().describe();
}

TEST(GnbApi, every_event_of_a_resumable_stream_is_read) {
  const auto session = parse_as<SessionEvent>({"pallas.session", kSession, ""});
  EXPECT_EQ(session.session, SessionId("00ff"));
  EXPECT_EQ(session.epoch, Epoch(1));
  EXPECT_EQ(session.resume_token, "tok");
  EXPECT_EQ(session.prompt_tokens, 12u);
  EXPECT_EQ(session.raw, kSession);

  const auto token = parse_as<StreamToken>(
      {"",
       R"({"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}],)"
       R"("pallas":{"i":3,"id":42,"by":"gnb-b","epoch":2}})",
       "2.3"});
  EXPECT_EQ(token.index, 3u);
  EXPECT_EQ(token.id, 42);
  EXPECT_EQ(token.by, NodeId("gnb-b"));
  EXPECT_EQ(token.text, "Hi");

  const auto completion = parse_as<StreamToken>(
      {"", R"({"choices":[{"text":"yo"}],"pallas":{"i":0,"id":1,"by":"a","epoch":1}})", ""});
  EXPECT_EQ(completion.text, "yo");

  EXPECT_EQ(parse_as<NextEvent>({"pallas.next", R"({"node":"gnb-b"})", ""}).node, NodeId("gnb-b"));
  EXPECT_EQ(parse_as<MovedEvent>({"pallas.moved", R"({"node":""})", ""}).node, NodeId(""));
  const auto finish = parse_as<FinishEvent>(
      {"", R"({"choices":[{"delta":{"content":"!"},"finish_reason":"stop"}]})", ""});
  EXPECT_EQ(finish.reason, "stop");
  EXPECT_EQ(finish.text, "!");
  const auto usage = parse_as<UsageEvent>(
      {"", R"({"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7}})", ""});
  EXPECT_EQ(usage.usage, (Usage{5, 7}));
  parse_as<DoneEvent>({"", "[DONE]", ""});
  parse_as<IgnoredEvent>({"", R"({"choices":[{"delta":{"role":"assistant","content":""}}]})", ""});
  parse_as<IgnoredEvent>({"pallas.later", "whatever", ""});
  const auto error = parse_as<ErrorEvent>(
      {"", R"({"error":{"message":"m","code":"stale_epoch","current":9}})", ""});
  EXPECT_EQ(error.error.current_epoch, 9u);
  EXPECT_EQ(error.error.status, 409);
}

TEST(GnbApi, malformed_events_are_refused_by_field) {
  EXPECT_NE(refusal({"", "{", ""}).find("JSON"), std::string::npos);
  EXPECT_NE(refusal({"pallas.session", R"({"session":"00","node":"a"})", ""}).find("epoch"),
            std::string::npos);
  EXPECT_NE(
      refusal({"pallas.session", R"({"session":"../x","node":"a","epoch":1})", ""}).find("session"),
      std::string::npos);
  EXPECT_NE(refusal({"pallas.session",
                     R"({"session":"00","node":"a","epoch":1,"resume_token":"a\r\nX: y"})", ""})
                .find("resume_token"),
            std::string::npos);
  const std::string head = R"({"choices":[{"text":""}],"pallas":)";
  EXPECT_NE(refusal({"", head + R"({"i":-1,"id":1,"by":"a","epoch":1}})", ""}).find(".i"),
            std::string::npos);
  EXPECT_NE(refusal({"", head + R"({"i":1,"id":4294967296,"by":"a","epoch":1}})", ""}).find(".id"),
            std::string::npos);
  EXPECT_NE(refusal({"", head + R"({"i":1,"id":1,"by":7,"epoch":1}})", ""}).find(".by"),
            std::string::npos);
  EXPECT_NE(refusal({"", head + "5}", ""}).find("pallas"), std::string::npos);
  EXPECT_NE(refusal({"", R"({"choices":7})", ""}).find("choices"), std::string::npos);
  EXPECT_NE(refusal({"", std::string(100, '['), ""}).find("nested"), std::string::npos);
  EXPECT_NE(refusal({"", R"({"choices":[{"delta":{"content":"plain"}}]})", ""}).find("no Pallas"),
            std::string::npos);
}

TEST(GnbApi, a_request_is_made_to_stream_with_usage_whatever_the_client_wants) {
  const auto plain = prepare_request(R"({"model":"m","messages":[],"x":1})");
  ASSERT_TRUE(plain);
  EXPECT_FALSE(plain->stream);
  EXPECT_FALSE(plain->include_usage);
  const Json json = Json::parse(plain->body);
  EXPECT_EQ(json["stream"], true);
  EXPECT_EQ(json["stream_options"]["include_usage"], true);
  EXPECT_EQ(json["x"], 1);

  const auto streaming =
      prepare_request(R"({"stream":true,"stream_options":{"include_usage":true}})");
  ASSERT_TRUE(streaming);
  EXPECT_TRUE(streaming->stream);
  EXPECT_TRUE(streaming->include_usage);
}

TEST(GnbApi, a_request_that_is_no_object_is_refused_by_name) {
  EXPECT_FALSE(prepare_request("nonsense"));
  EXPECT_FALSE(prepare_request("[]"));
  EXPECT_FALSE(prepare_request(R"({"stream":"yes"})"));
  EXPECT_FALSE(prepare_request(R"({"stream":true,"stream_options":1})"));
  EXPECT_FALSE(prepare_request(R"({"stream_options":{}})"));
  std::string deep(100000, '[');
  EXPECT_FALSE(prepare_request(R"({"a":)" + deep + std::string(100000, ']') + "}"));
}

TEST(GnbApi, an_attach_carries_the_whole_session) {
  SessionEvent session;
  session.raw = kSession;
  const std::vector<TokenRecord> records = {{0, 5, NodeId("a"), Epoch(1), {}, "x"},
                                            {1, 6, NodeId("a"), Epoch(1), {}, "y"},
                                            {2, 7, NodeId("b"), Epoch(2), {}, "z"}};
  const Json json = Json::parse(attach_body(Epoch(3), NodeId("b"), Endpoint::kCompletion,
                                            R"({"prompt":"p"})", session, records));
  EXPECT_EQ(json["epoch"], 3);
  EXPECT_EQ(json["next_index"], 3);
  EXPECT_EQ(json["last_node"], "b");
  EXPECT_EQ(json["endpoint"], "completions");
  EXPECT_EQ(json["request"]["prompt"], "p");
  EXPECT_EQ(json["session"]["seed"], 18446744073709551615u);
  EXPECT_EQ(json["ids"], Json::parse("[5,6,7]"));
  EXPECT_EQ(json["sampled_by"], Json::parse(R"([["a",2],["b",1]])"));
}

TEST(GnbApi, any_error_body_becomes_a_readable_error) {
  const ApiError stale = parse_api_error(
      409, R"({"error":{"message":"m","type":"t","param":null,"code":"stale_epoch","current":4}})");
  EXPECT_EQ(stale.code, "stale_epoch");
  EXPECT_EQ(stale.current_epoch, 4u);
  EXPECT_EQ(parse_api_error(502, "<html>").message, "HTTP status 502");
  EXPECT_EQ(parse_api_error(400, "[]").type, "invalid_request_error");
  EXPECT_EQ(Json::parse(to_json(stale))["error"]["param"], Json());
}

TEST(GnbApi, addresses_are_checked) {
  EXPECT_EQ(parse_address("127.0.0.1:80")->text(), "127.0.0.1:80");
  EXPECT_EQ(parse_address("http://host:8080/")->text(), "host:8080");
  EXPECT_EQ(parse_address("[::1]:9")->text(), "[::1]:9");
  for (const char* bad : {"", "host", "host:", "host:99999", "host:8x", ":80", "a b:80", "::1:80",
                          "u@h:80", "h/x:80"}) {
    EXPECT_FALSE(parse_address(bad)) << bad;
  }
}

// --- plain OpenAI output ---

TEST(OpenAiOutput, a_stream_has_one_role_one_finish_usage_and_done) {
  OpenAiOutput output(Endpoint::kChat, true);
  SessionEvent session;
  session.completion_id = "chatcmpl-1";
  session.model = "m";
  output.take_session(session);
  const std::string all = output.begin() + output.text("He") + output.text("") + output.text("y") +
                          output.finish("stop", "!", Usage{4, 3});
  const auto count = [&](const std::string& what) {
    std::size_t n = 0;
    for (auto at = all.find(what); at != std::string::npos; at = all.find(what, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(count("\"role\":\"assistant\""), 1u);
  EXPECT_EQ(count("\"finish_reason\":\"stop\""), 1u);
  EXPECT_EQ(count("\"total_tokens\":7"), 1u);
  EXPECT_EQ(count("data: [DONE]"), 1u);
  EXPECT_EQ(count("\"content\":"), 4u);  // role, He, y, !
  EXPECT_EQ(count("pallas"), 0u);
  EXPECT_TRUE(all.ends_with("data: [DONE]\n\n"));
}

TEST(OpenAiOutput, a_whole_answer_has_its_text_and_usage) {
  OpenAiOutput chat(Endpoint::kChat, false);
  const Json json = Json::parse(chat.whole("text", "length", Usage{4, 3}));
  EXPECT_EQ(json["object"], "chat.completion");
  EXPECT_EQ(json["choices"][0]["message"]["content"], "text");
  EXPECT_EQ(json["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(json["usage"]["total_tokens"], 7);
  OpenAiOutput completion(Endpoint::kCompletion, false);
  EXPECT_EQ(Json::parse(completion.whole("t", "stop", {}))["choices"][0]["text"], "t");
  EXPECT_EQ(completion.begin(), "");
}

// --- RAN feed ---

const std::map<CellId, NodeId> kCells = {{CellId("c1"), NodeId("a")}, {CellId("c2"), NodeId("b")}};

TEST(RanFeed, the_phases_say_where_the_radio_is) {
  RanFeed feed(UeId("veh"));
  const auto take = [&](const std::string& phase, const char* serving, int seq) {
    return feed.take(R"({"ue":"veh","seq":)" + std::to_string(seq) + R"(,"phase":")" + phase +
                         R"(","source":"c1","target":"c2"})",
                     CellId(serving), kCells);
  };
  EXPECT_EQ(take("preparation", "c1", 1).cell, std::nullopt);
  EXPECT_EQ(take("execution", "c1", 2).cell, CellId("c2"));
  EXPECT_EQ(take("completed", "c2", 3).cell, CellId("c2"));
  EXPECT_EQ(take("reestablished", "c1", 4).cell, CellId("c2"));
  EXPECT_EQ(take("rejected", "c2", 5).cell, CellId("c1"));
  EXPECT_EQ(take("cancelled", "c1", 6).cell, CellId("c1"));
  EXPECT_EQ(take("cancelled", "c3", 6).cell, std::nullopt);
  const auto old = take("execution", "c1", 5);
  ASSERT_TRUE(old.problem);
  EXPECT_EQ(old.problem->status, 409);
}

TEST(RanFeed, bad_objects_are_refused_by_field_and_change_nothing) {
  RanFeed feed(UeId("veh"));
  const std::pair<const char*, const char*> bad[] = {
      {"x", ""},
      {R"({"seq":1,"phase":"execution"})", "target"},
      {R"({"seq":1,"phase":7,"target":"c2"})", "phase"},
      {R"({"seq":1,"phase":"jump","target":"c2"})", "phase"},
      {R"({"seq":-1,"phase":"execution","target":"c2"})", "seq"},
      {R"({"phase":"execution","target":"c2"})", "seq"},
      {R"({"seq":1,"phase":"execution","target":"nowhere"})", "target"},
      {R"({"seq":1,"phase":"execution","source":"c2","target":"c2"})", "target"},
      {R"({"seq":1,"ue":"other","phase":"execution","target":"c2"})", "ue"},
  };
  for (const auto& [text, field] : bad) {
    const auto outcome = feed.take(text, CellId("c1"), kCells);
    ASSERT_TRUE(outcome.problem) << text;
    EXPECT_EQ(outcome.problem->field, field) << text;
    EXPECT_EQ(Json::parse(to_json(*outcome.problem))["status"], outcome.problem->status);
  }
  EXPECT_FALSE(
      feed.take(R"({"seq":0,"phase":"execution","target":"c2"})", CellId("c1"), kCells).problem);
}

// --- settings ---

constexpr const char* kToml = R"(
ue = "veh2"
cell_now = "c2"
give_up_s = 10
[gnbs]
gnb-b = "127.0.0.1:2"
gnb-a = "127.0.0.1:1"
[cells]
c2 = "gnb-b"
c1 = "gnb-a"
)";

TEST(UeSettings, a_file_becomes_a_configuration) {
  const auto settings = parse_ue_toml(kToml, "ue.toml");
  ASSERT_TRUE(settings) << settings.error().describe();
  EXPECT_EQ(settings->cells.front().first, "c2");  // in the file's order
  const auto config = to_follower_config(*settings);
  ASSERT_TRUE(config) << config.error().describe();
  EXPECT_EQ(config->cell, CellId("c2"));
  EXPECT_EQ(config->gnbs.at(NodeId("gnb-a")).port, 1);
  EXPECT_EQ(config->client.give_up, std::chrono::seconds(10));
}

TEST(UeSettings, without_cells_each_gnb_is_a_cell) {
  UeSettings settings;
  settings.gnbs = {{"b", "h:1"}, {"a", "h:2"}};
  const auto config = to_follower_config(settings);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->cell, CellId("b"));
  EXPECT_EQ(config->cells.size(), 2u);
}

TEST(UeSettings, what_is_wrong_is_named) {
  const auto message = [](const char* text) {
    const auto settings = parse_ue_toml(text, "f");
    if (!settings) return settings.error().message;
    const auto config = to_follower_config(*settings);
    return config ? std::string("accepted") : config.error().message;
  };
  EXPECT_NE(message("ue = \n").find("f, line 1"), std::string::npos);
  EXPECT_NE(message("\nfoo = 1\n").find("line 2: foo"), std::string::npos);
  EXPECT_NE(message("ue = 5\n").find("ue is not a string"), std::string::npos);
  EXPECT_NE(message("").find("gnb"), std::string::npos);
  EXPECT_NE(message("[gnbs]\na = \"nowhere\"\n").find("gnb 'a'"), std::string::npos);
  EXPECT_NE(message("[gnbs]\na = \"h:1\"\n[cells]\nc = \"b\"\n").find("cell 'c'"),
            std::string::npos);
  EXPECT_NE(message("cell_now = \"x\"\n[gnbs]\na = \"h:1\"\n").find("'x'"), std::string::npos);
  EXPECT_NE(message("give_up_s = -1\n[gnbs]\na = \"h:1\"\n").find("give_up_s"), std::string::npos);
  EXPECT_FALSE(parse_assignment("--gnb", "a"));
  EXPECT_FALSE(parse_assignment("--gnb", "=x"));
}

}  // namespace
}  // namespace pallas::ue
