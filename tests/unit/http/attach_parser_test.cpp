#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fakes.h"
#include "http/request_parser.h"

namespace pallas::http {
namespace {

using Json = nlohmann::json;
const ByteCodec kCodec;

Json whole_body() {
  return Json::parse(R"({
    "epoch": 3, "next_index": 4, "last_node": "gnb-a", "endpoint": "chat",
    "request": {"model":"tiny","stream":true,"temperature":0.3,
                "messages":[{"role":"user","content":"hi"}]},
    "session": {"session":"1cbb4aa5ced9fe72ced7486048b22b5a","node":"gnb-a","epoch":2,"seed":77,
                "resume_token":"secret","model":"tiny","prompt_tokens":8,
                "completion_id":"chatcmpl-x","created":1700000001,
                "compatibility":{"model_hash":"m1","tokenizer_hash":"t1"}},
    "ids": [1,2,3,4], "sampled_by": [["gnb-a",3],["gnb-b",1]]})");
}

Parsed<node::AttachRequest> parse(const Json& body, const wire::SessionSnapshot* known = nullptr) {
  wire::Compatibility ours;
  ours.model_hash = "m1";
  ours.tokenizer_hash = "t1";
  const ParserContext context{&kCodec,           "tiny",    1000, wire::Consistency::kPreferExact,
                              counting_random(), 1700000000};
  return parse_attach(body.dump(), SessionId(kSession), "secret", ours, context, known);
}

TEST(AttachParser, a_short_body_is_enough) {
  const auto parsed = parse(Json::parse(R"({"epoch":2,"next_index":0})"));
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->session.value, kSession);
  EXPECT_EQ(parsed->resume_token, "secret");
  EXPECT_EQ(parsed->epoch, Epoch(2));
  EXPECT_EQ(parsed->next_index, 0u);
  EXPECT_FALSE(parsed->context);
}

TEST(AttachParser, a_whole_body_carries_the_session) {
  const auto parsed = parse(whole_body());
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->last_node, NodeId("gnb-a"));
  ASSERT_TRUE(parsed->context);
  const auto& context = *parsed->context;
  EXPECT_EQ(text_of(context.prompt), "user:hi;");
  EXPECT_EQ(context.generated, (std::vector<TokenId>{1, 2, 3, 4}));
  ASSERT_EQ(context.sampled_by.size(), 2u);
  EXPECT_EQ(context.sampled_by[1].first, NodeId("gnb-b"));
  EXPECT_EQ(context.params.temperature, 0.3);
  EXPECT_EQ(context.params.seed, 77u);
  EXPECT_EQ(context.params.completion_id, "chatcmpl-x");
  EXPECT_EQ(context.params.created_unix_s, 1700000001);
  EXPECT_EQ(context.params.resume_token, "secret");
}

TEST(AttachParser, ids_without_sampled_by_are_the_last_nodes) {
  auto body = whole_body();
  body.erase("sampled_by");
  const auto parsed = parse(body);
  ASSERT_TRUE(parsed);
  ASSERT_EQ(parsed->context->sampled_by.size(), 1u);
  EXPECT_EQ(parsed->context->sampled_by[0], (std::pair{NodeId("gnb-a"), 4u}));
}

TEST(AttachParser, of_a_known_session_does_not_read_the_request_again) {
  wire::SessionSnapshot known;
  known.prompt_tokens = 8;
  known.params.max_tokens = 4;
  auto body = whole_body();
  body["request"]["messages"][0]["content"] = "not what it was";
  const auto parsed = parse(body, &known);
  ASSERT_TRUE(parsed) << parsed.error().message;
  ASSERT_TRUE(parsed->context);
  EXPECT_TRUE(parsed->context->prompt.empty());
  EXPECT_EQ(parsed->context->generated, (std::vector<TokenId>{1, 2, 3, 4}));

  known.prompt_tokens = 9;
  const auto other_prompt = parse(body, &known);
  ASSERT_FALSE(other_prompt);
  EXPECT_EQ(other_prompt.error().param, "session.prompt_tokens");
  known.prompt_tokens = 8;
  known.params.max_tokens = 3;
  const auto too_many = parse(body, &known);
  ASSERT_FALSE(too_many);
  EXPECT_EQ(too_many.error().param, "ids");
}

struct Change {
  const char* param;
  const char* pointer;
  const char* value;  // "": removed
};
void PrintTo(const Change& change, std::ostream* out) {
  *out << change.pointer << " = " << change.value;
}
class BadAttach : public testing::TestWithParam<Change> {};

TEST_P(BadAttach, is_refused_by_its_field) {
  auto body = whole_body();
  const Json::json_pointer pointer(GetParam().pointer);
  if (GetParam().value[0] == '\0') {
    body[pointer.parent_pointer()].erase(pointer.back());
  } else {
    body[pointer] = Json::parse(GetParam().value);
  }
  const auto parsed = parse(body);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().param, GetParam().param);
}

INSTANTIATE_TEST_SUITE_P(
    AttachParser, BadAttach,
    testing::Values(
        Change{"epoch", "/epoch", ""}, Change{"epoch", "/epoch", "0"},
        Change{"epoch", "/epoch", "-1"}, Change{"epoch", "/epoch", "1.5"},
        Change{"epoch", "/epoch", "18446744073709551615"}, Change{"next_index", "/next_index", ""},
        Change{"next_index", "/next_index", "4294967295"}, Change{"last_node", "/last_node", "5"},
        Change{"endpoint", "/endpoint", "\"images\""}, Change{"request", "/request", "7"},
        Change{"session", "/session", ""},
        Change{"request.temperature", "/request/temperature", "9"},
        Change{"request.model", "/request/model", "\"huge\""},
        Change{"session.seed", "/session/seed", ""},
        Change{"session.completion_id", "/session/completion_id", "\"\""},
        Change{"session.created", "/session/created", "-1"},
        Change{"session.prompt_tokens", "/session/prompt_tokens", "9"},
        Change{"session.session", "/session/session", "\"other\""},
        Change{"session.compatibility.model_hash", "/session/compatibility/model_hash", "\"m2\""},
        Change{"session.compatibility.tokenizer_hash", "/session/compatibility/tokenizer_hash",
               "\"t2\""},
        Change{"ids", "/ids", "[1,2,3]"}, Change{"ids", "/ids", "[1,2,3,300]"},
        Change{"ids", "/ids", "[1,2,3,-4]"}, Change{"ids", "/ids", "\"x\""},
        Change{"ids", "/request/max_tokens", "3"},
        Change{"sampled_by", "/sampled_by", "[[\"gnb-a\",3]]"},
        Change{"sampled_by", "/sampled_by", "[[\"gnb-a\",0],[\"gnb-b\",4]]"},
        Change{"sampled_by", "/sampled_by", "[[\"gnb-a\",4294967300]]"},
        Change{"sampled_by", "/sampled_by", "[[\"\",4]]"},
        Change{"sampled_by", "/sampled_by", "[[\"gnb-a\"]]"},
        Change{"sampled_by", "/sampled_by", "{}"}));

TEST(AttachParser, another_model_is_a_conflict_not_a_bad_request) {
  auto body = whole_body();
  body["session"]["compatibility"]["model_hash"] = "m2";
  const auto parsed = parse(body);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().status, 409);
  EXPECT_EQ(parsed.error().code, "incompatible");
}

}  // namespace
}  // namespace pallas::http
