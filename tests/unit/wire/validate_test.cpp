#include "wire/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "message_generator.h"
#include "wire/codec.h"

namespace pallas::wire {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class M>
M valid() {
  const std::size_t index = Message(M{}).index();
  return std::get<M>(MessageGenerator(42).make(index));
}

// Both validate() and encode() name the field that `spoil` broke.
template <class M>
void refuses(std::string_view field, const std::function<void(M&)>& spoil,
             Errc code = Errc::kInvalidArgument) {
  M message = valid<M>();
  ASSERT_TRUE(validate(message)) << validate(message).error().describe();
  spoil(message);
  const Status status = validate(message);
  ASSERT_FALSE(status) << field;
  EXPECT_THAT(status.error().message, StartsWith(std::string(field) + ":"));
  EXPECT_EQ(status.error().code, code) << field;
  EXPECT_FALSE(encode(message)) << field;
}

TEST(Validate, names_are_present_short_and_printable) {
  refuses<Hello>("Hello.node", [](Hello& m) { m.node.value.clear(); });
  refuses<Hello>("Hello.node", [](Hello& m) { m.node.value = std::string("a\nb"); });
  refuses<Hello>("Hello.node", [](Hello& m) { m.node.value = std::string("\xff"); });
  refuses<Hello>(
      "Hello.node", [](Hello& m) { m.node.value.assign(kMaxNameBytes + 1, 'x'); }, Errc::kTooLarge);
  refuses<LeaseRenew>("LeaseRenew.session", [](LeaseRenew& m) { m.session.value.clear(); });
  refuses<LeaseRenew>("LeaseRenew.attempt.owner",
                      [](LeaseRenew& m) { m.attempt.owner.value.clear(); });
  refuses<HandoverRequest>(
      "HandoverRequest.snapshot.params.tenant",
      [](HandoverRequest& m) { m.snapshot.params.tenant.assign(kMaxNameBytes + 1, 'x'); },
      Errc::kTooLarge);
}

TEST(Validate, texts_are_utf8_and_bounded) {
  refuses<ErrorMessage>("ErrorMessage.message",
                        [](ErrorMessage& m) { m.message = std::string("\xc3"); });
  refuses<ErrorMessage>(
      "ErrorMessage.message", [](ErrorMessage& m) { m.message.assign(kMaxTextBytes + 1, 'x'); },
      Errc::kTooLarge);
  refuses<HandoverRequest>(
      "HandoverRequest.snapshot.params.grammar",
      [](HandoverRequest& m) { m.snapshot.params.grammar.assign(kMaxTextBytes + 1, 'x'); },
      Errc::kTooLarge);
  refuses<HandoverRequest>("HandoverRequest.snapshot.params.stop",
                           [](HandoverRequest& m) { m.snapshot.params.stop.push_back("\x80"); });
}

TEST(Validate, numbers_are_finite_and_in_their_range) {
  using Spoil = std::function<void(SessionParams&)>;
  const auto param = [](std::string field, const Spoil& spoil) {
    refuses<HandoverRequest>("HandoverRequest.snapshot.params." + field,
                             [&](HandoverRequest& m) { spoil(m.snapshot.params); });
  };
  for (double bad : {kNan, kInfinity, -kInfinity}) {
    param("temperature", [&](SessionParams& p) { p.temperature = bad; });
    param("top_p", [&](SessionParams& p) { p.top_p = bad; });
    param("min_p", [&](SessionParams& p) { p.min_p = bad; });
    param("repeat_penalty", [&](SessionParams& p) { p.repeat_penalty = bad; });
    param("presence_penalty", [&](SessionParams& p) { p.presence_penalty = bad; });
    param("frequency_penalty", [&](SessionParams& p) { p.frequency_penalty = bad; });
    param("max_token_rate", [&](SessionParams& p) { p.max_token_rate = bad; });
    param("logit_bias",
          [&](SessionParams& p) { p.logit_bias.emplace_back(1, static_cast<float>(bad)); });
    refuses<HandoverRequest>("HandoverRequest.token_rate",
                             [&](HandoverRequest& m) { m.token_rate = bad; });
    refuses<HandoverRequest>("HandoverRequest.plan.window_s",
                             [&](HandoverRequest& m) { m.plan.window_s = bad; });
    refuses<HandoverRequest>("HandoverRequest.plan.expected_in_s",
                             [&](HandoverRequest& m) { m.plan.expected_in_s = bad; });
    refuses<RetrieveUeContextRequest>("RetrieveUeContextRequest.prefill_rate",
                                      [&](RetrieveUeContextRequest& m) { m.prefill_rate = bad; });
  }
  param("temperature", [](SessionParams& p) { p.temperature = -0.1; });
  param("top_p", [](SessionParams& p) { p.top_p = 0; });
  param("top_p", [](SessionParams& p) { p.top_p = 1.1; });
  param("top_k", [](SessionParams& p) { p.top_k = -1; });
  param("presence_penalty", [](SessionParams& p) { p.presence_penalty = 2.5; });
  param("max_tokens", [](SessionParams& p) { p.max_tokens = 0; });
  param("logit_bias", [](SessionParams& p) { p.logit_bias.emplace_back(-1, 0.0f); });
}

TEST(Validate, enumerators_exist) {
  refuses<Hello>("Hello.channel", [](Hello& m) { m.channel = static_cast<Channel>(2); });
  refuses<TokenUpdate>("TokenUpdate.finish",
                       [](TokenUpdate& m) { m.finish = static_cast<FinishReason>(5); });
  refuses<HandoverRequest>("HandoverRequest.plan.order",
                           [](HandoverRequest& m) { m.plan.order = static_cast<SendOrder>(4); });
  refuses<HandoverRequest>("HandoverRequest.snapshot.params.consistency", [](HandoverRequest& m) {
    m.snapshot.params.consistency = static_cast<Consistency>(255);
  });
}

TEST(Validate, a_snapshot_has_a_prompt_and_no_more_than_its_tokens) {
  refuses<HandoverRequest>("HandoverRequest.snapshot.prompt_tokens",
                           [](HandoverRequest& m) { m.snapshot.prompt_tokens = 0; });
  refuses<HandoverRequest>(
      "HandoverRequest.snapshot.prompt_tokens",
      [](HandoverRequest& m) {
        m.snapshot.prompt_tokens = static_cast<TokenPosition>(m.snapshot.tokens.size() + 1);
      },
      Errc::kTooLarge);
  refuses<HandoverRequest>(
      "HandoverRequest.snapshot.tokens",
      [](HandoverRequest& m) { m.snapshot.tokens.assign(kMaxTokens + 1, 1); }, Errc::kTooLarge);
  refuses<HandoverRequest>("HandoverRequest.snapshot.tokens",
                           [](HandoverRequest& m) { m.snapshot.tokens.back() = -1; });
  refuses<HandoverRequest>(
      "HandoverRequest.snapshot.sampled_by",
      [](HandoverRequest& m) { m.snapshot.sampled_by.emplace_back(NodeId("x"), 1); },
      Errc::kTooLarge);
  refuses<HandoverRequest>(
      "HandoverRequest.source_front",
      [](HandoverRequest& m) {
        m.source_front = static_cast<TokenPosition>(m.snapshot.tokens.size() + 1);
      },
      Errc::kTooLarge);
}

TEST(Validate, ranges_ascend_and_are_neither_empty_nor_overlapping) {
  const auto ranges = [](std::vector<kv::TokenRange> list, Errc code = Errc::kInvalidArgument) {
    refuses<PreparationProgress>(
        "PreparationProgress.staged", [&](PreparationProgress& m) { m.staged = list; }, code);
  };
  ranges({{3, 3}});
  ranges({{5, 2}});
  ranges({{4, 8}, {0, 2}});
  ranges({{0, 8}, {7, 9}});
  ranges({{0, kMaxTokens + 1}}, Errc::kTooLarge);
  ranges({{0, std::numeric_limits<TokenPosition>::max()}}, Errc::kTooLarge);
  std::vector<kv::TokenRange> many;
  for (TokenPosition i = 0; i <= kMaxRanges; ++i) many.push_back({2 * i, 2 * i + 1});
  ranges(many, Errc::kTooLarge);
}

TEST(Validate, a_kv_block_has_whole_rows_of_positions_that_exist) {
  refuses<KvBlock>("KvBlock.count", [](KvBlock& m) { m.count = 0; });
  refuses<KvBlock>("KvBlock.payload_bytes", [](KvBlock& m) { m.payload_bytes = 0; });
  refuses<KvBlock>(
      "KvBlock.first", [](KvBlock& m) { m.first = std::numeric_limits<TokenPosition>::max(); },
      Errc::kTooLarge);
  refuses<KvBlock>(
      "KvBlock.payload_bytes", [](KvBlock& m) { m.payload_bytes = kMaxKvBytes + 1; },
      Errc::kTooLarge);
  refuses<KvBlock>("KvBlock.payload_bytes", [](KvBlock& m) {
    m.count = 16;
    m.payload_bytes = 16 * 100 + 1;
  });
}

TEST(Validate, scattered_positions_ascend_and_are_as_many_as_the_rows) {
  const auto positions = [](std::vector<kv::TokenRange> list, TokenPosition count,
                            Errc code = Errc::kInvalidArgument) {
    refuses<KvBlock>(
        "KvBlock.positions",
        [&](KvBlock& m) {
          m.positions = list;
          m.first = 3;
          m.count = count;
          m.payload_bytes = 8ull * count;
        },
        code);
  };
  positions({{3, 4}, {6, 8}}, 4);          // three positions
  positions({{3, 4}, {6, 8}}, 2);          // likewise
  positions({{4, 5}, {6, 8}}, 3);          // do not begin at first
  positions({{3, 4}, {6, 6}, {7, 9}}, 3);  // an empty range
  positions({{3, 5}, {4, 6}}, 4);          // overlapping
  positions({{3, 4}, {1, 2}}, 2);          // descending
  positions({{3, 3}}, 1);
  positions({{3, 4}, {kMaxTokens, kMaxTokens + 1}}, 2, Errc::kTooLarge);
  std::vector<kv::TokenRange> many;
  for (TokenPosition i = 0; i <= kMaxRanges; ++i) many.push_back({3 + 2 * i, 4 + 2 * i});
  positions(many, kMaxRanges + 1, Errc::kTooLarge);

  KvBlock good = valid<KvBlock>();
  good.first = 3;
  good.positions = {{3, 4}, {6, 8}, {8, 9}};
  good.count = 4;
  good.payload_bytes = 32;
  EXPECT_TRUE(validate(good));
  EXPECT_EQ(good.covered().ranges(), (std::vector<kv::TokenRange>{{3, 4}, {6, 9}}));
  good.positions.clear();
  EXPECT_EQ(good.covered().ranges(), (std::vector<kv::TokenRange>{{3, 7}}));
}

TEST(Validate, a_fraction_lies_between_nothing_and_all) {
  for (const double bad : {-0.1, 1.1, kNan}) {
    refuses<HandoverRequest>("HandoverRequest.plan.partial_fraction",
                             [&](HandoverRequest& m) { m.plan.partial_fraction = bad; });
  }
  refuses<HandoverRequest>("HandoverRequest.plan.partial_deadline_s",
                           [](HandoverRequest& m) { m.plan.partial_deadline_s = -1; });
}

TEST(Validate, an_unprepared_cell_holds_no_more_kv_than_tokens) {
  refuses<RetrieveUeContextRequest>(
      "RetrieveUeContextRequest.kv_front",
      [](RetrieveUeContextRequest& m) { m.kv_front = m.tokens_known + 1; }, Errc::kTooLarge);
}

TEST(Validate, the_largest_message_within_the_limits_fits_a_frame) {
  HandoverRequest m = valid<HandoverRequest>();
  m.snapshot.tokens.assign(kMaxTokens, std::numeric_limits<TokenId>::max());
  m.snapshot.params.grammar.assign(kMaxTextBytes, 'g');
  m.snapshot.params.stop.assign(16, std::string(kMaxTextBytes, 's'));
  EXPECT_TRUE(encode(m));
}

TEST(Utf8, only_the_shortest_form_of_a_character_counts) {
  EXPECT_TRUE(is_utf8("plain"));
  EXPECT_TRUE(is_utf8("é€𝄞"));
  EXPECT_TRUE(is_utf8("\xf4\x8f\xbf\xbf"));
  for (std::string_view bad : {"\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                               "\xf5\x80\x80\x80", "\xe2\x82", "\x80", "\xc3("}) {
    EXPECT_FALSE(is_utf8(bad));
  }
}

}  // namespace
}  // namespace pallas::wire
