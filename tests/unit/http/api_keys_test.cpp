// Keys, tenants and listeners: who may do what.

#include "http/api_keys.h"

#include <gmock/gmock.h>

#include "fakes.h"
#include "tls/secrets.h"
#include "virtual_clock.h"

namespace pallas::http {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kRedKey = "red-key-0123456789", kBlueKey = "blue-key-0123456789";

std::string refusal(const std::string& text) {
  const auto keys = ApiKeys::parse(text);
  return keys ? "" : keys.error().message;
}

TEST(ApiKeys, a_key_tells_its_tenant) {
  const auto keys = ApiKeys::parse("# who\n\n red\t" + kRedKey + " \r\nblue " + kBlueKey +
                                   "\nred another-key-0123456789");
  ASSERT_TRUE(keys) << keys.error().message;
  EXPECT_EQ(keys->size(), 3u);
  EXPECT_EQ(keys->tenant_of(kRedKey), "red");
  EXPECT_EQ(keys->tenant_of("another-key-0123456789"), "red");
  EXPECT_EQ(keys->tenant_of(kBlueKey), "blue");
  for (const std::string& key :
       {std::string(), kRedKey.substr(1), kRedKey + " ", std::string("red")}) {
    EXPECT_FALSE(keys->tenant_of(key)) << key;
  }
}

TEST(ApiKeys, a_file_may_hold_digests_instead) {
  const auto keys = ApiKeys::parse("red sha256:" + tls::to_hex(tls::sha256(kRedKey)));
  ASSERT_TRUE(keys);
  EXPECT_EQ(keys->tenant_of(kRedKey), "red");
  EXPECT_FALSE(keys->tenant_of(tls::to_hex(tls::sha256(kRedKey))));
}

TEST(ApiKeys, a_wrong_line_is_named_without_its_key) {
  EXPECT_THAT(refusal(""), HasSubstr("holds no key"));
  EXPECT_THAT(refusal("red"), HasSubstr("line 1"));
  EXPECT_THAT(refusal("red " + kRedKey + "\nblue too-short"), HasSubstr("line 2"));
  EXPECT_THAT(refusal("red " + kRedKey + "\nblue too-short"), Not(HasSubstr("too-short")));
  EXPECT_THAT(refusal("red two words-0123456789"), HasSubstr("line 1"));
  EXPECT_THAT(refusal("red " + kRedKey + "\nblue " + kRedKey), HasSubstr("already"));
  EXPECT_THAT(refusal("red sha256:12"), HasSubstr("64 hex digits"));
  EXPECT_THAT(refusal(std::string(200, 'x') + " " + kRedKey), HasSubstr("tenant"));
}

TEST(ApiKeys, a_bearer_key_is_found_in_its_header_only) {
  EXPECT_EQ(bearer_key("Bearer abc"), "abc");
  EXPECT_EQ(bearer_key("bearer  abc "), "abc");
  EXPECT_FALSE(bearer_key("Basic abc"));
  EXPECT_FALSE(bearer_key("Bearer"));
  EXPECT_FALSE(bearer_key(""));
}

TEST(ApiKeys, a_token_is_bound_to_its_tenant) {
  EXPECT_EQ(bind_token("red", "t"), bind_token("red", "t"));
  EXPECT_NE(bind_token("red", "t"), bind_token("blue", "t"));
  EXPECT_NE(bind_token("ab", "c"), bind_token("a", "bc"));
  EXPECT_LE(bind_token("red", "t").size(), wire::kMaxNameBytes);
}

TEST(ApiKeys, a_session_is_bound_to_its_token) {
  // The same at every gNB, of whatever version.
  EXPECT_EQ(session_of("secret"), kSession);
  EXPECT_NE(session_of("Secret"), kSession);
  EXPECT_TRUE(is_session_id(session_of("")));
}

class TenantsTest : public testing::Test {
 protected:
  using Headers = std::vector<std::pair<std::string, std::string>>;

  void make(const std::string& operator_key = "the-operators-key") {
    ApiOptions options;
    options.random = counting_random();
    options.unix_time = [] { return std::int64_t{1700000000}; };
    options.operator_key = operator_key;
    options.keys = *ApiKeys::parse("red " + kRedKey + "\nblue " + kBlueKey);
    api.emplace(codec, clock, options,
                [this](std::function<void()> task) { posted.push_back(task); });
    api->set_backend(&backend);
  }
  int ask(const std::string& method, const std::string& path, Headers headers,
          const std::string& body = "", Audience audience = Audience::kEverybody) {
    answer = KeptAnswer();
    const HttpRequest request{method, path, "", std::move(headers), body};
    stream = api->handle(request, answer, audience);
    return answer.response ? answer.response->status : 200;
  }
  static std::pair<std::string, std::string> key(const std::string& text) {
    return {"Authorization", "Bearer " + text};
  }
  // A resumable session of red's; its token as red was told.
  std::string begin_session() {
    EXPECT_EQ(
        ask("POST", "/v1/chat/completions", {key(kRedKey), {"Pallas-Resume", "1"}}, kChatBody),
        200);
    const std::string mark = "\"resume_token\":\"";
    const auto at = answer.text.find(mark);
    if (at == std::string::npos) return "";
    return answer.text.substr(at + mark.size(), 32);
  }

  ByteCodec codec;
  test::VirtualClock clock;
  std::deque<std::function<void()>> posted;
  FakeBackend backend;
  KeptAnswer answer;
  std::optional<Api> api;
  std::optional<node::StreamId> stream;
};

TEST_F(TenantsTest, without_a_key_nothing_is_served_but_health) {
  make();
  for (const Headers& headers :
       {Headers{}, Headers{key("wrong-key-0123456789")}, Headers{{"Authorization", kRedKey}}}) {
    EXPECT_EQ(ask("POST", "/v1/chat/completions", headers, kChatBody), 401);
    EXPECT_EQ(ask("GET", "/v1/models", headers), 401);
    EXPECT_EQ(ask("POST", "/v1/sessions/" + kSession + "/attach", headers, "{}"), 401);
    EXPECT_EQ(ask("GET", "/v1/sessions/" + kSession + "/events", headers), 401);
    EXPECT_EQ(ask("DELETE", "/v1/sessions/" + kSession, headers), 401);
    EXPECT_EQ(ask("GET", "/health", headers), 200);
  }
  EXPECT_TRUE(backend.opened.empty() && backend.attached.empty() && backend.stopped.empty());
  EXPECT_EQ(ask("GET", "/v1/models", {key(kBlueKey)}), 200);
}

TEST_F(TenantsTest, a_session_is_its_tenants_whatever_the_body_says) {
  make();
  const std::string body =
      R"({"model":"tiny","user":"blue","stream":true,"messages":[{"role":"user","content":"hi"}]})";
  EXPECT_EQ(ask("POST", "/v1/chat/completions", {key(kRedKey)}, body), 200);
  ASSERT_EQ(backend.opened.size(), 1u);
  EXPECT_EQ(backend.opened[0].request.params.tenant, "red");
}

TEST_F(TenantsTest, another_tenants_session_is_like_one_that_is_not_there) {
  make();
  const auto token = begin_session();
  ASSERT_EQ(token.size(), 32u);
  const auto session = backend.opened.at(0).request.session.value;
  const auto kept = backend.opened.at(0).request.params.resume_token;
  EXPECT_NE(kept, token) << "what the gNBs know opens nothing";
  backend.attach_error = {Errc::kNotFound, "no session"};
  backend.stop_error = {Errc::kNotFound, "no session"};
  const Headers by_blue{key(kBlueKey), {"Pallas-Resume-Token", token}};
  for (const std::string& id : {session, kSession}) {
    EXPECT_EQ(ask("GET", "/v1/sessions/" + id + "/events", by_blue), 404);
    const auto first = answer.response->body;
    EXPECT_EQ(ask("DELETE", "/v1/sessions/" + id, by_blue), 404);
    EXPECT_EQ(answer.response->body, first);
  }
  // Nor does the gNBs' own token help.
  EXPECT_EQ(
      ask("DELETE", "/v1/sessions/" + session, {key(kBlueKey), {"Pallas-Resume-Token", kept}}),
      404);
  EXPECT_TRUE(backend.stopped.empty());
}

TEST_F(TenantsTest, its_own_session_is_resumed_moved_and_stopped) {
  make();
  const auto token = begin_session();
  const auto session = backend.opened.at(0).request.session.value;
  const auto kept = backend.opened.at(0).request.params.resume_token;
  const Headers by_red{key(kRedKey), {"Pallas-Resume-Token", token}};
  EXPECT_EQ(
      ask("POST", "/v1/sessions/" + session + "/attach", by_red, R"({"epoch":2,"next_index":0})"),
      200);
  ASSERT_EQ(backend.attached.size(), 1u);
  EXPECT_EQ(backend.attached[0].request.resume_token, kept);
  EXPECT_NE(answer.text.find("\"resume_token\":\"" + token + "\""), std::string::npos)
      << "the token of the client, not the gNBs'";
  EXPECT_EQ(answer.text.find(kept), std::string::npos);
  EXPECT_EQ(ask("GET", "/v1/sessions/" + session + "/events", by_red), 200);
  EXPECT_EQ(backend.attached.at(1).request.resume_token, kept);
  EXPECT_EQ(ask("DELETE", "/v1/sessions/" + session, by_red), 200);
  EXPECT_EQ(backend.stopped.back(), session + "/" + kept + "/");
  EXPECT_EQ(ask("DELETE", "/v1/sessions/" + session, {key(kRedKey)}), 401) << "a token is needed";
}

TEST_F(TenantsTest, a_session_that_a_client_brings_is_the_bringers) {
  make();
  const auto body =
      R"({"epoch":2,"next_index":1,"last_node":"gnb-b","endpoint":"chat","request":)" + kChatBody +
      R"(,"session":{"seed":7,"completion_id":"chatcmpl-x","created":1700000001,"prompt_tokens":8},"ids":[1],"sampled_by":[["gnb-b",1]]})";
  const auto session = session_of(bind_token("blue", "shown"));
  const auto attach = [&](const std::string& by) {
    return ask("POST", "/v1/sessions/" + session + "/attach",
               {key(by), {"Pallas-Resume-Token", "shown"}}, body);
  };
  EXPECT_EQ(attach(kRedKey), 404);
  ASSERT_EQ(attach(kBlueKey), 200) << answer.response->body;
  const auto& request = backend.attached.at(0).request;
  ASSERT_TRUE(request.context);
  EXPECT_EQ(request.context->params.tenant, "blue");
  EXPECT_EQ(request.context->params.resume_token, bind_token("blue", "shown"));
}

TEST_F(TenantsTest, a_tenants_key_is_not_the_operators) {
  make();
  const auto prediction = R"({"ue":"u","seq":1,"serving":"a","target":"b","in_ms":100})";
  for (const auto& [path, method] : {std::pair<std::string, std::string>{"/v1/sessions", "GET"},
                                     {"/v1/handovers", "GET"},
                                     {"/v1/engine", "GET"},
                                     {"/metrics", "GET"},
                                     {"/v1/predictions", "POST"},
                                     {"/v1/handovers", "POST"},
                                     {"/v1/positions", "POST"}}) {
    EXPECT_EQ(ask(method, path, {}, prediction), 401) << path;
    EXPECT_EQ(ask(method, path, {key(kRedKey)}, prediction), 401) << path;
  }
  EXPECT_TRUE(backend.predictions.empty());
  EXPECT_EQ(ask("GET", "/v1/sessions", {key("the-operators-key")}), 200);
  EXPECT_EQ(ask("POST", "/v1/predictions", {key("the-operators-key")}, prediction), 204);
  EXPECT_EQ(ask("POST", "/v1/chat/completions", {key("the-operators-key")}, kChatBody), 401);
  EXPECT_EQ(ask("DELETE", "/v1/sessions/" + kSession, {key("the-operators-key")}), 200);
}

TEST_F(TenantsTest, nobody_is_the_operator_where_clients_have_keys_and_the_operator_has_none) {
  make("");
  EXPECT_EQ(ask("GET", "/v1/sessions", {}), 401);
  EXPECT_EQ(ask("DELETE", "/v1/sessions/" + kSession, {key(kRedKey)}), 401);
  EXPECT_EQ(ask("GET", "/v1/sessions", {}, "", Audience::kOperators), 200)
      << "but on a listener of its own";
}

TEST_F(TenantsTest, each_listener_has_its_own_routes) {
  make();
  const auto op = key("the-operators-key");
  EXPECT_EQ(ask("GET", "/v1/sessions", {op}, "", Audience::kClients), 404);
  EXPECT_EQ(ask("POST", "/v1/predictions", {op}, "{}", Audience::kClients), 404);
  EXPECT_EQ(ask("POST", "/v1/handovers", {op}, "{}", Audience::kClients), 404);
  EXPECT_EQ(ask("GET", "/metrics", {op}, "", Audience::kClients), 404);
  EXPECT_EQ(ask("DELETE", "/v1/sessions/" + kSession, {op}, "", Audience::kClients), 401);
  EXPECT_EQ(ask("GET", "/v1/models", {key(kRedKey)}, "", Audience::kOperators), 404);
  EXPECT_EQ(ask("POST", "/v1/chat/completions", {key(kRedKey)}, kChatBody, Audience::kOperators),
            404);
  EXPECT_EQ(ask("GET", "/v1/sessions", {op}, "", Audience::kOperators), 200);
  EXPECT_EQ(ask("GET", "/health", {}, "", Audience::kOperators), 200);
  EXPECT_EQ(ask("GET", "/health", {}, "", Audience::kClients), 200);
}

TEST_F(TenantsTest, new_keys_count_at_once) {
  make();
  EXPECT_EQ(ask("GET", "/v1/models", {key(kRedKey)}), 200);
  api->set_keys(*ApiKeys::parse("red another-key-0123456789"));
  EXPECT_EQ(ask("GET", "/v1/models", {key(kRedKey)}), 401);
  EXPECT_EQ(ask("GET", "/v1/models", {key("another-key-0123456789")}), 200);
}

}  // namespace
}  // namespace pallas::http
