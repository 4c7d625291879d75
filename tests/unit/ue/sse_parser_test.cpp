#include "ue/sse_parser.h"

#include <gtest/gtest.h>

namespace pallas::ue {
namespace {

std::vector<SseEvent> parse_in(std::string_view text, std::size_t piece) {
  SseParser parser;
  std::vector<SseEvent> events;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    EXPECT_TRUE(parser.feed(text.substr(at, piece), events));
  }
  return events;
}

constexpr std::string_view kStream =
    "\xEF\xBB\xBF: keep-alive\n"
    "event: pallas.session\ndata: {\"a\":1}\n\n"
    "id: 1.0\r\ndata: first\r\ndata:second\r\n\r\n"
    "data\rdata:\r\r"
    "event: nothing\n\n"
    ": another\n\n"
    "unknown: field\ndata:  two spaces\nretry: 5\n\n"
    "data: [DONE]\n\n"
    "data: cut off by the end";

const std::vector<SseEvent> kEvents = {
    {"pallas.session", "{\"a\":1}", ""},
    {"", "first\nsecond", "1.0"},
    {"", "\n", ""},
    {"", " two spaces", ""},
    {"", "[DONE]", ""},
};

TEST(SseParser, a_stream_split_at_every_byte_gives_the_same_events) {
  EXPECT_EQ(parse_in(kStream, kStream.size()), kEvents);
  for (std::size_t split = 1; split < kStream.size(); ++split) {
    SseParser parser;
    std::vector<SseEvent> events;
    ASSERT_TRUE(parser.feed(kStream.substr(0, split), events));
    ASSERT_TRUE(parser.feed(kStream.substr(split), events));
    ASSERT_EQ(events, kEvents) << "split at " << split;
    EXPECT_EQ(parser.comments(), 2u);
  }
}

TEST(SseParser, a_stream_in_pieces_of_any_size_gives_the_same_events) {
  for (std::size_t piece = 1; piece < 20; ++piece) EXPECT_EQ(parse_in(kStream, piece), kEvents);
}

TEST(SseParser, a_line_above_the_limit_is_refused_before_it_is_kept) {
  SseParser parser({.line_bytes = 16, .event_bytes = 100});
  std::vector<SseEvent> events;
  ASSERT_TRUE(parser.feed("data: 0123456789", events));
  const Status status = parser.feed("x", events);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::kTooLarge);
}

TEST(SseParser, an_event_of_many_lines_above_the_limit_is_refused) {
  SseParser parser({.line_bytes = 16, .event_bytes = 20});
  std::vector<SseEvent> events;
  EXPECT_TRUE(parser.feed("data: 12345678\n", events));
  EXPECT_TRUE(parser.feed("data: 12345678\n", events));
  EXPECT_FALSE(parser.feed("data: 12345678\n", events));
}

TEST(SseParser, a_small_event_is_there_with_its_last_byte) {
  SseParser parser;
  std::vector<SseEvent> events;
  ASSERT_TRUE(parser.feed("data: x\n", events));
  EXPECT_TRUE(events.empty());
  ASSERT_TRUE(parser.feed("\n", events));
  EXPECT_EQ(events.size(), 1u);
}

}  // namespace
}  // namespace pallas::ue
