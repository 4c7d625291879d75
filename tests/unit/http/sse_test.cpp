#include "http/sse.h"

#include <gtest/gtest.h>

#include "http/json_writer.h"

namespace pallas::http {
namespace {

StreamFace face(bool chat, bool resumable) {
  return {chat, resumable, true, chat ? "chatcmpl-1" : "cmpl-1", 1700000000, "tiny"};
}

node::TokenEvent token(std::string text) {
  return {Epoch(3), 120, 42, std::move(text), NodeId("gnb-b")};
}

const std::string kChatHead =
    R"(data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,)"
    R"("model":"tiny",)";

TEST(Sse, a_token_of_a_resumable_chat) {
  EXPECT_EQ(token_event(face(true, true), token("hé\n")),
            "id: 3.120\n" + kChatHead +
                R"("choices":[{"index":0,"delta":{"content":"hé\n"},"logprobs":null,)"
                R"("finish_reason":null}],)"
                R"("pallas":{"i":120,"id":42,"by":"gnb-b","epoch":3}})"
                "\n\n");
}

TEST(Sse, an_empty_text_makes_an_event_only_where_resume_was_asked_for) {
  EXPECT_NE(token_event(face(true, true), token("")).find(R"("content":"")"), std::string::npos);
  EXPECT_EQ(token_event(face(true, false), token("")), "");
}

TEST(Sse, a_plain_client_gets_plain_openai_chunks) {
  EXPECT_EQ(token_event(face(true, false), token("x")),
            kChatHead + R"("choices":[{"index":0,"delta":{"content":"x"},"logprobs":null,)"
                        R"("finish_reason":null}]})"
                        "\n\n");
  EXPECT_EQ(token_event(face(false, false), token("x")),
            R"(data: {"id":"cmpl-1","object":"text_completion","created":1700000000,)"
            R"("model":"tiny","choices":[{"index":0,"text":"x","logprobs":null,)"
            R"("finish_reason":null}]})"
            "\n\n");
}

TEST(Sse, only_a_chat_has_a_role) {
  EXPECT_EQ(role_event(face(true, true)),
            kChatHead + R"("choices":[{"index":0,"delta":{"role":"assistant","content":""},)"
                        R"("logprobs":null,"finish_reason":null}]})"
                        "\n\n");
  EXPECT_EQ(role_event(face(false, true)), "");
}

TEST(Sse, the_finish_is_reason_usage_and_done_once_each) {
  const node::FinishEvent event{wire::FinishReason::kLength, "", 10, 121};
  EXPECT_EQ(finish_events(face(true, true), event),
            kChatHead +
                R"("choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"length"}]})"
                "\n\n" +
                kChatHead +
                R"("choices":[],"usage":{"prompt_tokens":10,"completion_tokens":121,)"
                R"("total_tokens":131}})"
                "\n\ndata: [DONE]\n\n");
  auto without_usage = face(true, true);
  without_usage.include_usage = false;
  EXPECT_EQ(finish_events(without_usage, event).find("usage"), std::string::npos);
}

TEST(Sse, held_back_text_comes_with_the_finish) {
  const node::FinishEvent event{wire::FinishReason::kStop, "END", 10, 3};
  EXPECT_NE(finish_events(face(true, true), event)
                .find(R"("delta":{"content":"END"},"logprobs":null,"finish_reason":"stop")"),
            std::string::npos);
}

TEST(Sse, the_session_event_carries_what_a_resume_needs) {
  wire::SessionParams params;
  params.seed = 18446744073709551615u;
  params.resume_token = "secret";
  params.model = "tiny";
  params.completion_id = "chatcmpl-1";
  params.created_unix_s = 1700000000;
  wire::Compatibility record;
  record.model_hash = "m1";
  record.block_tokens = 16;
  EXPECT_EQ(session_event({SessionId("abc"), NodeId("gnb-a"), Epoch(2), &params, 8, record}),
            "event: pallas.session\n"
            R"(data: {"session":"abc","node":"gnb-a","epoch":2,"seed":18446744073709551615,)"
            R"("resume_token":"secret","model":"tiny","prompt_tokens":8,)"
            R"("completion_id":"chatcmpl-1","created":1700000000,)"
            R"("compatibility":{"model_hash":"m1","tokenizer_hash":"","context_tokens":0,)"
            R"("rope":"","kv_types":"","kv_layout":"","block_tokens":16,"adapter":"",)"
            R"("instruction_set":"","engine_build":"","threads":0,"flash_attention":false}})"
            "\n\n");
}

TEST(Sse, the_small_events) {
  EXPECT_EQ(next_event(NodeId("gnb-b")), "event: pallas.next\ndata: {\"node\":\"gnb-b\"}\n\n");
  EXPECT_EQ(next_event(NodeId()), "event: pallas.next\ndata: {\"node\":\"\"}\n\n");
  EXPECT_EQ(moved_event(face(true, true), NodeId("gnb-b")),
            "event: pallas.moved\ndata: {\"node\":\"gnb-b\"}\n\n");
  EXPECT_EQ(moved_event(face(true, false), NodeId("gnb-b")),
            R"(data: {"error":{"message":"The session went on at another gNB.",)"
            R"("type":"server_error","param":null,"code":"session_moved"}})"
            "\n\n");
  EXPECT_EQ(keep_alive_comment(), ": keep-alive\n\n");
}

TEST(Sse, errors_are_openai_error_objects) {
  EXPECT_EQ(error_json({400, "'n' above 1 is not supported.", "n", "invalid_value", std::nullopt}),
            R"({"error":{"message":"'n' above 1 is not supported.",)"
            R"("type":"invalid_request_error","param":"n","code":"invalid_value"}})");
  EXPECT_EQ(error_json({409, "old", "", "stale_epoch", 7}),
            R"({"error":{"message":"old","type":"invalid_request_error","param":null,)"
            R"("code":"stale_epoch","current":7}})");
  EXPECT_EQ(to_api_error({Errc::kInvalidArgument, "next_index: too large"}).param, "next_index");
}

TEST(Sse, an_answer_in_one_piece) {
  const node::FinishEvent event{wire::FinishReason::kStop, "", 10, 2};
  EXPECT_EQ(completion_json(face(true, false), "hi", event),
            R"({"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"tiny",)"
            R"("choices":[{"index":0,"message":{"role":"assistant","content":"hi",)"
            R"("refusal":null},"logprobs":null,"finish_reason":"stop"}],)"
            R"("usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}})");
  EXPECT_EQ(completion_json(face(false, false), "hi", event),
            R"({"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"tiny",)"
            R"("choices":[{"index":0,"text":"hi","logprobs":null,"finish_reason":"stop"}],)"
            R"("usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}})");
}

TEST(JsonWriter, escapes_what_json_and_event_streams_cannot_hold) {
  const auto text = [](std::string_view s) { return JsonWriter().value(s).take(); };
  EXPECT_EQ(text("a\"b\\c\n\r\t\x01"), R"("a\"b\\c\n\r\t\u0001")");
  EXPECT_EQ(text("é€😀"), "\"é€😀\"");
  // Cut characters, overlong forms, surrogates, bytes beyond Unicode.
  EXPECT_EQ(text("a\xE2\x82"), "\"a\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(text("\xC0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(text("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(text("\xF5"), "\"\xEF\xBF\xBD\"");
}

TEST(JsonWriter, numbers_and_absent_values) {
  JsonWriter json;
  json.begin_object()
      .member("a", 0.1)
      .member("b", -7)
      .member("c", std::optional<double>())
      .member("d", 1.0 / 0.0)
      .key("e")
      .begin_array()
      .value(true)
      .begin_object()
      .end_object()
      .end_array()
      .end_object();
  EXPECT_EQ(json.take(), R"({"a":0.1,"b":-7,"c":null,"d":null,"e":[true,{}]})");
}

}  // namespace
}  // namespace pallas::http
