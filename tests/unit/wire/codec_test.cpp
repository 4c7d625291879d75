#include "wire/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "message_generator.h"

namespace pallas::wire {
namespace {

using ::testing::HasSubstr;
using HeaderSpan = std::span<const std::byte, kHeaderBytes>;

constexpr std::size_t kTypes = std::variant_size_v<Message>;

HeaderSpan header_of(const kv::Bytes& frame) {
  return HeaderSpan(frame.data(), kHeaderBytes);
}

std::span<const std::byte> body_of(const kv::Bytes& frame) {
  return std::span(frame).subspan(kHeaderBytes);
}

Result<Message> decode_frame(const kv::Bytes& frame) {
  if (frame.size() < kHeaderBytes) return fail(Errc::kParse, "short");
  auto header = decode_header(header_of(frame));
  if (!header) return Failure(header.error());
  return decode(*header, body_of(frame));
}

kv::Bytes bytes(std::initializer_list<int> values) {
  kv::Bytes out;
  for (int v : values) out.push_back(static_cast<std::byte>(v));
  return out;
}

TEST(Codec, every_message_comes_back_as_it_was) {
  for (std::size_t type = 0; type < kTypes; ++type) {
    MessageGenerator generator(type + 1);
    for (int round = 0; round < 200; ++round) {
      const Message message = generator.make(type);
      ASSERT_EQ(message.index(), type);
      auto frame = encode(message);
      ASSERT_TRUE(frame) << name_of(message) << ": " << frame.error().describe();
      auto again = decode_frame(*frame);
      ASSERT_TRUE(again) << name_of(message) << ": " << again.error().describe();
      EXPECT_TRUE(*again == message) << name_of(message) << " round " << round;
    }
  }
}

TEST(Codec, a_keep_alive_is_these_bytes) {
  const auto frame = encode(KeepAlive{300, true});
  ASSERT_TRUE(frame);
  EXPECT_EQ(*frame, bytes({'P',  'L',  'S',  '1',  3,   0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0,  // header
                           0x08, 0xac, 0x02, 0x10, 0x01}));
}

TEST(Codec, a_kv_block_is_these_bytes) {
  KvBlock block;
  block.session = SessionId("s");
  block.attempt = Attempt{NodeId("a"), BootId(1), 2};
  block.first = 16;
  block.count = 1;
  block.checksum = 0x0102030405060708;
  block.token_hash = 9;
  block.lineage = Lineage(10);
  block.payload_bytes = 0x123;
  const auto frame = encode(block);
  ASSERT_TRUE(frame);
  EXPECT_EQ(
      *frame,
      bytes({'P',  'L',  'S',  '1', 9,   0,    0, 0, 53, 0,    0,  0, 0x23, 1, 0,    0,  // header
             0x0a, 1,    's',                                                            // session
             0x12, 14,   0x0a, 1,   'a', 0x11, 1, 0, 0,  0,    0,  0, 0,    0, 0x18, 2,  // attempt
             0x18, 16,   0x20, 1,                                                        // range
             0x29, 8,    7,    6,   5,   4,    3, 2, 1,                                  // checksum
             0x31, 9,    0,    0,   0,   0,    0, 0, 0,  0x39, 10, 0, 0,    0, 0,    0,
             0,    0,  // hashes
             0x40, 0xa3, 0x02}));
}

TEST(Codec, a_frame_cut_at_any_byte_is_refused) {
  for (std::size_t type = 0; type < kTypes; ++type) {
    const kv::Bytes frame = *encode(MessageGenerator(7 + type).make(type));
    for (std::size_t length = 0; length < frame.size(); ++length) {
      EXPECT_FALSE(
          decode_frame(kv::Bytes(frame.begin(), frame.begin() + static_cast<long>(length))));
    }
  }
}

TEST(Codec, a_body_cut_at_any_byte_is_refused_or_valid_but_never_worse) {
  for (std::size_t type = 0; type < kTypes; ++type) {
    const kv::Bytes frame = *encode(MessageGenerator(7 + type).make(type));
    FrameHeader header = *decode_header(header_of(frame));
    for (std::size_t length = 0; length + kHeaderBytes < frame.size(); ++length) {
      header.body_bytes = static_cast<std::uint32_t>(length);
      auto message = decode(header, body_of(frame).first(length));
      EXPECT_TRUE(!message || encode(*message)) << "frame type " << type + 1;
    }
  }
}

TEST(Codec, a_frame_with_any_byte_changed_is_refused_or_valid_but_never_worse) {
  for (std::size_t type = 0; type < kTypes; ++type) {
    const kv::Bytes frame = *encode(MessageGenerator(70 + type).make(type));
    for (std::size_t at = 0; at < frame.size(); ++at) {
      for (unsigned flip : {0x01u, 0x80u, 0xffu}) {
        kv::Bytes changed = frame;
        changed[at] ^= static_cast<std::byte>(flip);
        auto message = decode_frame(changed);
        if (at < 4 || (at >= 5 && at < 12)) {
          EXPECT_FALSE(message) << "byte " << at;
        } else {
          EXPECT_TRUE(!message || encode(*message)) << "frame type " << type + 1;
        }
      }
    }
  }
}

TEST(Codec, a_header_names_what_is_wrong_in_it) {
  const kv::Bytes good = *encode(KeepAlive{1, false});
  const auto refused = [&](std::size_t at, int value) {
    kv::Bytes frame = good;
    frame[at] = static_cast<std::byte>(value);
    auto header = decode_header(header_of(frame));
    return header ? Error{Errc::kInternal, "accepted"} : header.error();
  };
  EXPECT_THAT(refused(0, 'G').message, HasSubstr("header.magic"));
  EXPECT_THAT(refused(4, 0).message, HasSubstr("header.type"));
  EXPECT_THAT(refused(4, kTypes + 1).message, HasSubstr("header.type"));
  EXPECT_THAT(refused(5, 1).message, HasSubstr("header.flags"));
  EXPECT_THAT(refused(6, 1).message, HasSubstr("header.zero"));
  EXPECT_THAT(refused(7, 1).message, HasSubstr("header.zero"));
  EXPECT_EQ(refused(11, 0xff).code, Errc::kTooLarge);
  EXPECT_THAT(refused(11, 0xff).message, HasSubstr("header.body"));
  EXPECT_THAT(refused(12, 1).message, HasSubstr("header.payload"));
}

TEST(Codec, lengths_near_2_to_the_32_are_refused_by_the_header) {
  for (int type = 1; type <= static_cast<int>(kTypes); ++type) {
    for (int last : {0xff, 0xfe, 0xf0, 0x00}) {
      const auto header =
          bytes({'P', 'L', 'S', '1', type, 0, 0, 0, last, 0xff, 0xff, 0xff, 0, 0, 0, 0});
      const auto result = decode_header(header_of(header));
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().code, Errc::kTooLarge);
    }
  }
  const auto payload = bytes({'P', 'L', 'S', '1', 9, 0, 0, 0, 4, 0, 0, 0, 0xff, 0xff, 0xff, 0xff});
  const auto result = decode_header(header_of(payload));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::kTooLarge);
}

TEST(Codec, fields_of_a_newer_minor_version_are_ignored) {
  for (std::size_t type = 0; type < kTypes; ++type) {
    const Message message = MessageGenerator(500 + type).make(type);
    kv::Bytes frame = *encode(message);
    FrameHeader header = *decode_header(header_of(frame));
    // Field 1000 as a varint, field 1001 as 3 bytes.
    const kv::Bytes more = bytes({0xc0, 0x3e, 0x05, 0xca, 0x3e, 3, 'n', 'e', 'w'});
    frame.insert(frame.end(), more.begin(), more.end());
    header.body_bytes += static_cast<std::uint32_t>(more.size());
    auto again = decode(header, body_of(frame));
    ASSERT_TRUE(again) << name_of(message) << ": " << again.error().describe();
    EXPECT_TRUE(*again == message) << name_of(message);
  }
}

TEST(Codec, a_payload_length_that_differs_from_the_header_is_refused) {
  KvBlock block = std::get<KvBlock>(MessageGenerator(3).make(8));
  const kv::Bytes frame = *encode(block);
  FrameHeader header = *decode_header(header_of(frame));
  header.payload_bytes += 1;
  const auto result = decode(header, body_of(frame));
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("KvBlock.payload_bytes"));
}

TEST(Codec, a_cause_of_a_newer_version_reads_as_unknown) {
  kv::Bytes frame =
      *encode(HandoverCancel{SessionId("s"), {NodeId("a"), BootId(1), 1}, Cause::kFinished});
  ASSERT_EQ(frame.back(), std::byte{9});
  frame.back() = std::byte{99};
  const auto message = decode_frame(frame);
  ASSERT_TRUE(message);
  EXPECT_EQ(std::get<HandoverCancel>(*message).cause, Cause::kUnknown);
}

TEST(Codec, the_checksum_is_xxh3_of_64_bits) {
  EXPECT_EQ(checksum({}), 0x2d06800538d394c2u);
  const kv::Bytes a = bytes({'a'});
  EXPECT_EQ(checksum(a), 0xe6c632b61e964e1fu);
}

TEST(Names, every_message_cause_and_reason_has_its_own) {
  for (std::size_t type = 0; type < kTypes; ++type) {
    EXPECT_FALSE(name_of(MessageGenerator(1).make(type)).empty());
  }
  EXPECT_EQ(name_of(SnStatusTransfer{}), "SnStatusTransfer");
  EXPECT_EQ(name_of(RetrieveUeContextFailure{}), "RetrieveUeContextFailure");
  EXPECT_EQ(to_string(FinishReason::kLength), "length");
  EXPECT_EQ(to_string(Cause::kIncompatible), "incompatible");
}

}  // namespace
}  // namespace pallas::wire
