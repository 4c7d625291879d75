#include "http/request_parser.h"

#include <gtest/gtest.h>

#include "fakes.h"

namespace pallas::http {
namespace {

const ByteCodec kCodec;

ParserContext context(TokenPosition tokens = 1000) {
  return {&kCodec, "tiny", tokens, wire::Consistency::kPreferExact, counting_random(), 1700000000};
}

Parsed<ParsedRequest> chat(const std::string& more) {
  return parse_request(Endpoint::kChat,
                       R"({"model":"tiny","messages":[{"role":"user","content":"hi"}])" +
                           (more.empty() ? "" : "," + more) + "}",
                       context());
}

Parsed<ParsedRequest> completion(const std::string& prompt, const std::string& more = "") {
  return parse_request(Endpoint::kCompletions, R"({"model":"tiny","prompt":)" + prompt + more + "}",
                       context());
}

TEST(RequestParser, a_bare_chat_request_gets_every_default) {
  const auto parsed = chat("");
  ASSERT_TRUE(parsed);
  EXPECT_FALSE(parsed->stream);
  const auto& open = parsed->open;
  EXPECT_EQ(text_of(open.prompt), "user:hi;");
  wire::SessionParams expected;
  expected.model = "tiny";
  expected.max_tokens = 1000 - 8;
  expected.completion_id = "chatcmpl-00000000000000020000000000000003";
  expected.created_unix_s = 1700000000;
  expected.seed = 1 >> 11;
  expected.resume_token = "00000000000000040000000000000005";
  EXPECT_EQ(open.params, expected);
  EXPECT_EQ(open.session.value, "2d783c827858b57e2008c03d462298f7");
  EXPECT_TRUE(is_session_id(open.session.value));
  EXPECT_FALSE(open.resumable);
}

TEST(RequestParser, every_field_arrives_in_its_native_type) {
  const auto parsed = chat(R"("temperature":0.5,"top_p":0.9,"top_k":40,"min_p":0.05,
    "repeat_penalty":1.1,"presence_penalty":-1,"frequency_penalty":2,"penalty_last_n":32,
    "seed":18446744073709551615,"max_tokens":50,"min_tokens":10,"ignore_eos":true,
    "stop":["a","b"],"logit_bias":{"7":-100,"3":1.5},"max_token_rate":25,"consistency":"exact",
    "stream":true,"stream_options":{"include_usage":true},"user":"me","n":1,"best_of":1,
    "logprobs":false,"tools":[],"response_format":{"type":"json_object"})");
  ASSERT_TRUE(parsed) << parsed.error().message;
  const auto& p = parsed->open.params;
  EXPECT_EQ(p.temperature, 0.5);
  EXPECT_EQ(p.top_p, 0.9);
  EXPECT_EQ(p.top_k, 40);
  EXPECT_EQ(p.min_p, 0.05);
  EXPECT_EQ(p.repeat_penalty, 1.1);
  EXPECT_EQ(p.presence_penalty, -1);
  EXPECT_EQ(p.frequency_penalty, 2);
  EXPECT_EQ(p.penalty_last_n, 32);
  EXPECT_EQ(p.seed, UINT64_MAX);
  EXPECT_EQ(p.max_tokens, 50u);
  EXPECT_EQ(p.min_tokens, 10u);
  EXPECT_TRUE(p.ignore_eos);
  EXPECT_EQ(p.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(p.logit_bias, (std::vector<std::pair<TokenId, float>>{{3, 1.5f}, {7, -100.0f}}));
  EXPECT_EQ(p.max_token_rate, 25);
  EXPECT_EQ(p.consistency, wire::Consistency::kExact);
  EXPECT_TRUE(p.include_usage);
  EXPECT_EQ(p.tenant, "me");
  EXPECT_EQ(p.grammar, R"(grammar of {"type":"object"})");
  EXPECT_TRUE(parsed->stream);
}

TEST(RequestParser, null_counts_as_absent) {
  const auto parsed = chat(R"("temperature":null,"seed":null,"stop":null,"tools":null,"n":null)");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->open.params.temperature, 0.8);
}

struct BadField {
  const char* name;
  const char* json;
};
void PrintTo(const BadField& field, std::ostream* out) {
  *out << field.json;
}

class BadFields : public testing::TestWithParam<BadField> {};

TEST_P(BadFields, are_refused_by_their_name) {
  const auto parsed = chat(GetParam().json);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().status, 400);
  EXPECT_EQ(parsed.error().param, GetParam().name);
  EXPECT_NE(parsed.error().message.find(GetParam().name), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    RequestParser, BadFields,
    testing::Values(
        BadField{"temperature", R"("temperature":2.1)"},
        BadField{"temperature", R"("temperature":-0.1)"},
        BadField{"temperature", R"("temperature":"hot")"}, BadField{"top_p", R"("top_p":0)"},
        BadField{"top_p", R"("top_p":1.01)"}, BadField{"top_k", R"("top_k":-2)"},
        BadField{"top_k", R"("top_k":2147483648)"}, BadField{"top_k", R"("top_k":1.5)"},
        BadField{"min_p", R"("min_p":1.5)"}, BadField{"repeat_penalty", R"("repeat_penalty":0)"},
        BadField{"presence_penalty", R"("presence_penalty":3)"},
        BadField{"frequency_penalty", R"("frequency_penalty":-3)"},
        BadField{"penalty_last_n", R"("penalty_last_n":-1)"}, BadField{"seed", R"("seed":1.5)"},
        BadField{"seed", R"("seed":"x")"}, BadField{"max_tokens", R"("max_tokens":0)"},
        BadField{"max_tokens", R"("max_tokens":-1)"},
        BadField{"max_tokens", R"("max_tokens":18446744073709551615)"},
        BadField{"max_completion_tokens", R"("max_completion_tokens":0)"},
        BadField{"min_tokens", R"("min_tokens":5,"max_tokens":4)"},
        BadField{"min_tokens", R"("min_tokens":-5)"}, BadField{"ignore_eos", R"("ignore_eos":1)"},
        BadField{"stop", R"("stop":"")"}, BadField{"stop", R"("stop":["a",""])"},
        BadField{"stop", R"("stop":7)"},
        BadField{"stop", R"("stop":["1","2","3","4","5","6","7","8","9","10","11","12","13","14",
                            "15","16","17"])"},
        BadField{"logit_bias", R"("logit_bias":[1])"},
        BadField{"logit_bias", R"("logit_bias":{"x":1})"},
        BadField{"logit_bias", R"("logit_bias":{"300":1})"},
        BadField{"logit_bias", R"("logit_bias":{"-1":1})"},
        BadField{"logit_bias", R"("logit_bias":{"1":101})"},
        BadField{"response_format", R"("response_format":"json")"},
        BadField{"response_format.type", R"("response_format":{})"},
        BadField{"response_format.type", R"("response_format":{"type":"xml"})"},
        BadField{"response_format.json_schema.schema",
                 R"("response_format":{"type":"json_schema"})"},
        BadField{"response_format",
                 R"("response_format":{"type":"json_schema",
                    "json_schema":{"schema":{"unsupported":1}}})"},
        BadField{"stream", R"("stream":"yes")"},
        BadField{"stream_options", R"("stream_options":{"include_usage":true})"},
        BadField{"stream_options.include_usage",
                 R"("stream":true,"stream_options":{"include_usage":1})"},
        BadField{"max_token_rate", R"("max_token_rate":-1)"},
        BadField{"consistency", R"("consistency":"sloppy")"}, BadField{"user", R"("user":5)"},
        BadField{"n", R"("n":2)"}, BadField{"n", R"("n":0)"}, BadField{"best_of", R"("best_of":3)"},
        BadField{"logprobs", R"("logprobs":true)"}, BadField{"top_logprobs", R"("top_logprobs":2)"},
        BadField{"tools", R"("tools":[{"type":"function"}])"},
        BadField{"tool_choice", R"("tool_choice":"required")"},
        BadField{"functions", R"("functions":[{}])"}, BadField{"mirostat", R"("mirostat":2)"},
        BadField{"mirostat_tau", R"("mirostat_tau":5.0)"},
        BadField{"dynatemp_range", R"("dynatemp_range":0.5)"},
        BadField{"xtc_probability", R"("xtc_probability":0.5)"},
        BadField{"dry_multiplier", R"("dry_multiplier":0.8)"},
        BadField{"dry_sequence_breakers", R"("dry_sequence_breakers":["x"])"},
        BadField{"adaptive_target", R"("adaptive_target":0.5)"},
        BadField{"typical_p", R"("typical_p":0.5)"}, BadField{"samplers", R"("samplers":["x"])"}));

TEST(RequestParser, a_sampler_group_that_is_switched_off_is_let_through) {
  EXPECT_TRUE(chat(R"("mirostat":0,"mirostat_tau":5.0,"dry_multiplier":0,"dry_base":1.75,
                      "xtc_probability":0,"xtc_threshold":0.1,"dynatemp_range":0)"));
}

struct BadChat {
  const char* name;
  const char* messages;
};
void PrintTo(const BadChat& bad, std::ostream* out) {
  *out << bad.messages;
}
class BadMessages : public testing::TestWithParam<BadChat> {};

TEST_P(BadMessages, are_refused_by_their_place) {
  const auto parsed = parse_request(
      Endpoint::kChat, std::string(R"({"model":"tiny","messages":)") + GetParam().messages + "}",
      context());
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().param, GetParam().name);
}

INSTANTIATE_TEST_SUITE_P(
    RequestParser, BadMessages,
    testing::Values(
        BadChat{"messages", "null"}, BadChat{"messages", "[]"}, BadChat{"messages", "{}"},
        BadChat{"messages[0]", R"(["hi"])"}, BadChat{"messages[0].role", R"([{"content":"x"}])"},
        BadChat{"messages[1].role",
                R"([{"role":"user","content":"x"},{"role":"king","content":"x"}])"},
        BadChat{"messages[0].content", R"([{"role":"user"}])"},
        BadChat{"messages[0].content", R"([{"role":"user","content":7}])"},
        BadChat{"messages[0].content[0].type", R"([{"role":"user","content":["x"]}])"},
        BadChat{"messages[0].content[1].type",
                R"([{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url"}]}])"},
        BadChat{"messages[0].content[0].text", R"([{"role":"user","content":[{"type":"text"}]}])"},
        BadChat{"messages[0].tool_calls",
                R"([{"role":"assistant","content":null,"tool_calls":[{}]}])"}));

TEST(RequestParser, content_parts_are_joined_and_developer_is_system) {
  const auto parsed =
      parse_request(Endpoint::kChat,
                    R"({"model":"tiny","messages":[{"role":"developer","content":"be brief"},
          {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]})",
                    context());
  ASSERT_TRUE(parsed);
  EXPECT_EQ(text_of(parsed->open.prompt), "system:be brief;user:ab;");
}

TEST(RequestParser, a_completion_takes_text_or_ids) {
  EXPECT_EQ(text_of(completion(R"("abc")")->open.prompt), "abc");
  EXPECT_EQ(text_of(completion(R"(["abc"])")->open.prompt), "abc");
  EXPECT_EQ(completion("[5,299]")->open.prompt, (std::vector<TokenId>{5, 299}));
  EXPECT_EQ(completion("[[5]]")->open.prompt, std::vector<TokenId>{5});
  EXPECT_TRUE(completion(R"("abc")")->open.params.completion_id.starts_with("cmpl-"));
  EXPECT_FALSE(completion(R"("abc")")->open.params.chat);
  for (const char* bad :
       {"\"\"", "[]", "[300]", "[-1]", "[1.5]", "[\"a\",\"b\"]", "{}", "7", "[1,\"a\"]", "null"}) {
    const auto parsed = completion(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().param, "prompt") << bad;
  }
  EXPECT_EQ(completion("\"a\"", R"(,"echo":true)").error().param, "echo");
  EXPECT_EQ(completion("\"a\"", R"(,"suffix":"x")").error().param, "suffix");
}

TEST(RequestParser, an_unknown_model_is_404_and_a_missing_one_is_the_served_one) {
  const auto unknown = parse_request(
      Endpoint::kChat, R"({"model":"huge","messages":[{"role":"user","content":"x"}]})", context());
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().status, 404);
  EXPECT_EQ(unknown.error().code, "model_not_found");
  const auto missing =
      parse_request(Endpoint::kChat, R"({"messages":[{"role":"user","content":"x"}]})", context());
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->open.params.model, context().model);
}

TEST(RequestParser, a_prompt_longer_than_the_context_names_both_figures) {
  const std::string body = R"({"model":"tiny","prompt":"12345678901234567890"})";
  const auto parsed = parse_request(Endpoint::kCompletions, body, context(20));
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, "context_length_exceeded");
  EXPECT_EQ(parsed.error().param, "prompt");
  EXPECT_NE(parsed.error().message.find("20 tokens"), std::string::npos);
  const auto fits = parse_request(Endpoint::kCompletions, body, context(21));
  ASSERT_TRUE(fits);
  EXPECT_EQ(fits->open.params.max_tokens, 1u);
}

TEST(RequestParser, max_tokens_is_cut_to_what_fits) {
  EXPECT_EQ(completion("\"ab\"", R"(,"max_tokens":5000)")->open.params.max_tokens, 998u);
  EXPECT_EQ(
      completion("\"ab\"", R"(,"max_tokens":5,"max_completion_tokens":7)")->open.params.max_tokens,
      7u);
}

TEST(RequestParser, what_is_no_json_object_is_refused) {
  for (const std::string bad : {"", "nonsense", "[]", "7", "{\"model\":", "{\"model\":\"\xff\"}",
                                "{\"top_p\":1e999}", "\"text\""}) {
    const auto parsed = parse_request(Endpoint::kChat, bad, context());
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().status, 400);
    EXPECT_EQ(parsed.error().code, "invalid_json");
  }
  const std::string deep = R"({"model":)" + std::string(100000, '[');
  EXPECT_EQ(parse_request(Endpoint::kChat, deep, context()).error().code, "invalid_json");
  std::string wide = R"({"model":[1)";
  for (int i = 0; i < 700000; ++i) wide += ",1";
  EXPECT_EQ(parse_request(Endpoint::kChat, wide + "]}", context()).error().code, "invalid_json");
}

TEST(RequestParser, event_ids_are_two_whole_numbers) {
  const auto id = parse_event_id("3.120");
  ASSERT_TRUE(id);
  EXPECT_EQ(id->epoch, Epoch(3));
  EXPECT_EQ(id->index, 120u);
  for (const char* bad : {"", "3", "3.", ".3", "3.1 ", "a.b", "-1.2", "3.4294967296", "1.2.3"}) {
    EXPECT_FALSE(parse_event_id(bad)) << bad;
  }
}

}  // namespace
}  // namespace pallas::http
