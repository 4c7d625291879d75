// The local OpenAI endpoint and the terminal chat over scripted gNBs on loopback.

#include "ue/local_endpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "scripted_gnb.h"
#include "ue/terminal_chat.h"

namespace pallas::ue {
namespace {

using Json = nlohmann::json;
using Exchange = LocalServer::Exchange;

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

class LocalEndpointTest : public testing::Test {
 protected:
  void SetUp() override {
    FollowerConfig config;
    config.ue = UeId("veh2");
    config.gnbs = {{NodeId("gnb-a"), a.address()}, {NodeId("gnb-b"), b.address()}};
    config.cells = {{CellId("c1"), NodeId("gnb-a")}, {CellId("c2"), NodeId("gnb-b")}};
    config.cell = CellId("c1");
    follower = std::move(*Follower::create(loop.io, loop.clock, config));
    auto made = LocalEndpoint::listen(loop.io, *follower, {"127.0.0.1", 0});
    ASSERT_TRUE(made) << made.error().describe();
    endpoint = std::move(*made);
    here = {"127.0.0.1", endpoint->port()};
  }

  HttpReply ask(const std::string& method, const std::string& target,
                const std::string& body = {}) {
    std::optional<Result<HttpReply>> answer;
    client.fetch(here, {method, target, {}, body},
                 [&](Result<HttpReply> r) { answer = std::move(r); });
    loop.until([&] { return answer.has_value(); }, "an answer");
    if (!answer || !*answer) {
      ADD_FAILURE() << (answer ? answer->error().describe() : "none");
      return {};
    }
    return **answer;
  }
  // A streaming request; `bytes` collects what comes, `ended` its end.
  GnbClient::Exchange stream(const std::string& body) {
    GnbClient::StreamHandlers handlers;
    handlers.on_data = [this](std::string_view part) { bytes += part; };
    handlers.on_refused = [this](const HttpReply& reply) {
      refused = reply;
      ended = true;
    };
    handlers.on_end = [this](const Error&) { ended = true; };
    return client.stream(here, {"POST", "/v1/chat/completions", {}, body}, std::move(handlers));
  }
  std::string joined_text() const {
    std::string text;
    std::size_t at = 0;
    while ((at = bytes.find("data: {", at)) != std::string::npos) {
      const std::size_t end = bytes.find("\n\n", at);
      const Json json = Json::parse(bytes.substr(at + 6, end - at - 6));
      if (json.contains("choices") && !json["choices"].empty()) {
        text += json["choices"][0]["delta"].value("content", "");
      }
      at = end;
    }
    return text;
  }
  HttpReply move(const std::string& phase, const std::string& from, const std::string& to,
                 int seq) {
    const Json json{
        {"ue", "veh2"}, {"seq", seq}, {"phase", phase}, {"source", from}, {"target", to}};
    return ask("POST", "/v1/handovers", json.dump());
  }
  // A serves 4 tokens; B, once attached, the rest up to 9.
  void serve_both() {
    a.on_open = [this](Exchange e, const IncomingRequest&) {
      a.session(e, 1);
      a.role(e);
      a.tokens(e, 0, 4, 1);
    };
    b.on_attach = [this](Exchange e, const IncomingRequest&) {
      b.session(e, 2);
      b.tokens(e, 3, 9, 2);
      b.done(e, 9);
    };
  }

  Loop loop;
  ScriptedGnb a{loop, "gnb-a"}, b{loop, "gnb-b"};
  std::unique_ptr<Follower> follower;
  std::unique_ptr<LocalEndpoint> endpoint;
  GnbClient client{loop.io, {}};
  Address here;
  std::string bytes;
  std::optional<HttpReply> refused;
  bool ended = false;
};

constexpr const char* kStreaming =
    R"({"model":"tiny","messages":[],"stream":true,"stream_options":{"include_usage":true}})";

TEST_F(LocalEndpointTest, a_stream_over_a_handover_is_plain_openai) {
  serve_both();
  stream(kStreaming);
  loop.until([&] { return bytes.find("w3 ") != std::string::npos; }, "the first tokens");
  EXPECT_EQ(move("execution", "c1", "c2", 1).status, 204);
  loop.until([&] { return ended; }, "the end");
  EXPECT_EQ(joined_text(), words(9));
  EXPECT_EQ(count(bytes, "\"role\""), 1u);
  EXPECT_EQ(count(bytes, "\"finish_reason\":\"stop\""), 1u);
  EXPECT_EQ(count(bytes, "\"total_tokens\":13"), 1u);
  EXPECT_EQ(count(bytes, "[DONE]"), 1u);
  EXPECT_EQ(count(bytes, "pallas"), 0u);
  EXPECT_EQ(count(bytes, "\"id\":\"chatcmpl-7\""), count(bytes, "chat.completion.chunk"));
  EXPECT_TRUE(bytes.ends_with("data: [DONE]\n\n"));

  EXPECT_EQ(move("completed", "c1", "c2", 2).status, 204);
  EXPECT_EQ(b.attaches.size(), 1u);
  const Json list = Json::parse(ask("GET", "/v1/handovers").body);
  ASSERT_EQ(list["handovers"].size(), 1u);
  EXPECT_EQ(list["handovers"][0]["from"], "gnb-a");
  EXPECT_EQ(list["handovers"][0]["to"], "gnb-b");
  EXPECT_TRUE(list["handovers"][0]["sit_ms"].is_number());
  EXPECT_EQ(Json::parse(ask("GET", "/health").body)["cell"], "c2");
}

TEST_F(LocalEndpointTest, usage_comes_only_when_asked_for) {
  a.on_open = [this](Exchange e, const IncomingRequest&) {
    a.session(e, 1);
    a.tokens(e, 0, 2, 1);
    a.done(e, 2);
  };
  stream(R"({"messages":[],"stream":true})");
  loop.until([&] { return ended; }, "the end");
  EXPECT_EQ(count(bytes, "usage"), 0u);
  EXPECT_EQ(count(bytes, "[DONE]"), 1u);
}

TEST_F(LocalEndpointTest, an_answer_that_does_not_stream_is_assembled) {
  a.on_open = [this](Exchange e, const IncomingRequest&) {
    a.session(e, 1);
    a.tokens(e, 0, 3, 1);
    a.done(e, 3);
  };
  const HttpReply reply = ask("POST", "/v1/chat/completions", R"({"messages":[]})");
  EXPECT_EQ(reply.status, 200);
  const Json json = Json::parse(reply.body);
  EXPECT_EQ(json["object"], "chat.completion");
  EXPECT_EQ(json["choices"][0]["message"]["content"], words(3));
  EXPECT_EQ(json["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(json["usage"]["completion_tokens"], 3);
  EXPECT_EQ(json["id"], "chatcmpl-7");
}

TEST_F(LocalEndpointTest, errors_are_openai_error_objects) {
  a.on_open = [this](Exchange e, const IncomingRequest&) { a.refuse(e, 404, "model_not_found"); };
  const HttpReply refusal = ask("POST", "/v1/chat/completions", R"({"messages":[]})");
  EXPECT_EQ(refusal.status, 404);
  EXPECT_EQ(Json::parse(refusal.body)["error"]["code"], "model_not_found");
  const HttpReply malformed = ask("POST", "/v1/completions", "{");
  EXPECT_EQ(malformed.status, 400);
  EXPECT_NE(Json::parse(malformed.body)["error"]["message"].get<std::string>().find("JSON"),
            std::string::npos);
  EXPECT_EQ(ask("GET", "/nothing").status, 404);
  EXPECT_EQ(ask("DELETE", "/v1/chat/completions").status, 404);
}

TEST_F(LocalEndpointTest, a_session_that_is_lost_ends_with_an_error_event) {
  a.on_open = [this](Exchange e, const IncomingRequest&) {
    a.session(e, 1);
    a.token(e, 0, 1);
    a.server->write(e, "data: {\"error\":{\"message\":\"gone\",\"code\":\"cancelled\"}}\n\n");
    a.server->end(e);
  };
  stream(kStreaming);
  loop.until([&] { return ended; }, "the end");
  EXPECT_EQ(count(bytes, "\"message\":\"gone\""), 1u);
  EXPECT_EQ(count(bytes, "[DONE]"), 0u);
}

TEST_F(LocalEndpointTest, a_client_that_leaves_stops_its_session) {
  serve_both();
  const auto exchange = stream(kStreaming);
  loop.until([&] { return bytes.find("w3 ") != std::string::npos; }, "the first tokens");
  client.close(exchange);
  loop.until([&] { return a.deletes.size() == 1; }, "the DELETE");
  EXPECT_EQ(follower->active(), 0u);
}

TEST_F(LocalEndpointTest, models_are_the_gnbs_own) {
  const HttpReply reply = ask("GET", "/v1/models");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(Json::parse(reply.body)["data"][0]["id"], "tiny");
}

TEST_F(LocalEndpointTest, bad_handovers_are_problem_documents_and_move_nothing) {
  const HttpReply reply = move("execution", "c1", "c9", 1);
  EXPECT_EQ(reply.status, 422);
  EXPECT_EQ(reply.content_type, "application/problem+json");
  EXPECT_EQ(Json::parse(reply.body)["field"], "target");
  EXPECT_EQ(ask("POST", "/v1/handovers", "x").status, 400);
  EXPECT_EQ(move("preparation", "c1", "c2", 5).status, 204);
  EXPECT_EQ(move("execution", "c1", "c2", 4).status, 409);
  EXPECT_EQ(follower->cell(), CellId("c1"));
  EXPECT_EQ(move("reestablished", "c1", "c2", 6).status, 204);
  EXPECT_EQ(follower->cell(), CellId("c2"));
}

TEST_F(LocalEndpointTest, a_port_in_use_is_named) {
  const auto second = LocalEndpoint::listen(loop.io, *follower, here);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::kAlreadyExists);
  EXPECT_NE(second.error().message.find(here.text()), std::string::npos);
  EXPECT_FALSE(LocalEndpoint::listen(loop.io, *follower, {"nohost", 0}));
}

TEST_F(LocalEndpointTest, it_may_be_destroyed_in_mid_stream) {
  serve_both();
  stream(kStreaming);
  loop.until([&] { return bytes.find("w3 ") != std::string::npos; }, "the first tokens");
  endpoint.reset();
  loop.until([&] { return ended && a.deletes.size() == 1; }, "the end at both sides");
}

// --- terminal chat ---

TEST_F(LocalEndpointTest, a_chat_shows_which_gnb_made_each_part_and_keeps_the_conversation) {
  serve_both();
  std::string shown;
  std::optional<bool> over;
  ChatOptions options;
  options.model = "tiny";
  TerminalChat chat(
      *follower, options, [&](std::string_view t) { shown += t; }, [&](bool good) { over = good; });
  chat.on_line("first");
  loop.until([&] { return shown.find("w3 ") != std::string::npos; }, "the first tokens");
  chat.on_line("second");  // waits
  chat.on_line("/cell c2");
  b.on_open = [this](Exchange e, const IncomingRequest&) {
    b.session(e, 1);
    b.tokens(e, 0, 1, 1);
    b.done(e, 1);
  };
  chat.on_end_of_input();
  loop.until([&] { return over.has_value(); }, "the end of the chat");
  EXPECT_EQ(over, true);
  EXPECT_NE(shown.find("[gnb-a] w0 w1 w2 w3 [gnb-b] w4 w5 w6 w7 w8 \n"), std::string::npos)
      << shown;
  EXPECT_NE(shown.find("gnb-a -> gnb-b: gap "), std::string::npos);
  ASSERT_EQ(b.opens.size(), 1u);
  const Json body = Json::parse(b.opens[0].body);
  ASSERT_EQ(body["messages"].size(), 3u);
  EXPECT_EQ(body["messages"][1]["content"], words(9));
  EXPECT_EQ(body["messages"][2]["content"], "second");
}

TEST_F(LocalEndpointTest, a_json_chat_prints_one_object_an_answer) {
  a.on_open = [this](Exchange e, const IncomingRequest&) {
    if (a.opens.size() == 2) return a.refuse(e, 503, "resource_exhausted");
    a.session(e, 1);
    a.tokens(e, 0, 2, 1);
    a.done(e, 2);
  };
  std::string shown;
  std::optional<bool> over;
  ChatOptions options;
  options.json = true;
  TerminalChat chat(
      *follower, options, [&](std::string_view t) { shown += t; }, [&](bool good) { over = good; });
  chat.greet();
  chat.on_line("one");
  chat.on_line("");
  chat.on_line("two");
  chat.on_end_of_input();
  loop.until([&] { return over.has_value(); }, "the end of the chat");
  EXPECT_EQ(over, false);
  const std::size_t end = shown.find('\n');
  EXPECT_EQ(Json::parse(shown.substr(0, end))["text"], words(2));
  EXPECT_EQ(Json::parse(shown.substr(end))["error"]["code"], "resource_exhausted");
}

TEST(LineReaderTest, lines_come_from_a_pipe_in_pieces) {
  Loop loop;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::vector<std::string> lines;
  bool ended = false;
  LineReader reader(
      loop.io, ends[0], [&](std::string line) { lines.push_back(std::move(line)); },
      [&] { ended = true; });
  ASSERT_EQ(::write(ends[1], "one\ntw", 6), 6);
  loop.until([&] { return lines.size() == 1; }, "a line");
  ASSERT_EQ(::write(ends[1], "o\nrest", 6), 6);
  ::close(ends[1]);
  loop.until([&] { return ended; }, "the end");
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "rest"}));
  ::close(ends[0]);
}

}  // namespace
}  // namespace pallas::ue
