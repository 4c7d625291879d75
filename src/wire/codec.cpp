#include "wire/codec.h"

#include <xxhash.h>

#include "wire/body.h"
#include "wire/validate.h"

namespace pallas::wire {
namespace {

constexpr std::uint8_t kKvBlockType = type_of<KvBlock>();

// Bodies without token ids are small; a small limit for them bounds what parsing can allocate.
constexpr std::size_t kSmallBodyBytes = 256u << 10;
constexpr std::size_t kHelloBodyBytes = 1u << 20;

constexpr std::size_t max_body_bytes(std::uint8_t type) {
  switch (type) {
    case type_of<HandoverRequest>():
    case type_of<TokenUpdate>():
    case type_of<SnStatusTransfer>():
    case type_of<Moved>():
    case type_of<RetrieveUeContextResponse>():
      return kMaxFrameBytes - kHeaderBytes;
    case type_of<Hello>():
      return kHelloBodyBytes;
    case type_of<RetrieveUeContextRequest>():
      return kHelloBodyBytes;  // a compatibility record may be as large
    default:
      return kSmallBodyBytes;
  }
}

std::uint32_t load_u32(const std::byte* at) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = (value << 8) | std::to_integer<std::uint32_t>(at[i]);
  return value;
}

void store_u32(std::byte* at, std::uint32_t value) {
  for (int i = 0; i < 4; ++i, value >>= 8) at[i] = static_cast<std::byte>(value & 0xff);
}

// The magic as text when it is printable: somebody may have sent HTTP to this port.
std::string show(std::span<const std::byte> bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string hex = "0x";
  for (std::byte b : bytes) {
    hex += kHex[std::to_integer<unsigned>(b) >> 4];
    hex += kHex[std::to_integer<unsigned>(b) & 15];
  }
  return hex;
}

}  // namespace

Result<FrameHeader> decode_header(std::span<const std::byte, kHeaderBytes> bytes) {
  if (load_u32(bytes.data()) != kMagic) {
    return fail(Errc::kParse, "header.magic: " + show(bytes.first<4>()) + " is not \"PLS1\"");
  }
  FrameHeader header;
  header.type = std::to_integer<std::uint8_t>(bytes[4]);
  header.body_bytes = load_u32(bytes.data() + 8);
  header.payload_bytes = load_u32(bytes.data() + 12);
  if (header.type == 0 || header.type > kMessageTypes) {
    return fail(Errc::kParse, "header.type: " + std::to_string(header.type) + " is not a message");
  }
  if (bytes[5] != std::byte{0}) return fail(Errc::kParse, "header.flags: must be 0");
  if (bytes[6] != std::byte{0} || bytes[7] != std::byte{0}) {
    return fail(Errc::kParse, "header.zero: must be 0");
  }
  const std::size_t limit = max_body_bytes(header.type);
  if (header.body_bytes > limit) {
    return fail(Errc::kTooLarge, "header.body: " + std::to_string(header.body_bytes) +
                                     " bytes, at most " + std::to_string(limit));
  }
  if (header.type != kKvBlockType && header.payload_bytes != 0) {
    return fail(Errc::kParse, "header.payload: only a KvBlock has one");
  }
  if (header.payload_bytes > kMaxKvBytes) {
    return fail(Errc::kTooLarge, "header.payload: " + std::to_string(header.payload_bytes) +
                                     " bytes, at most " + std::to_string(kMaxKvBytes));
  }
  return header;
}

Result<kv::Bytes> encode(const Message& message) {
  if (Status valid = validate(message); !valid) return Failure(valid.error());
  const auto type = static_cast<std::uint8_t>(message.index() + 1);
  std::optional<kv::Bytes> frame = to_body(message, kHeaderBytes);
  if (!frame || frame->size() - kHeaderBytes > max_body_bytes(type)) {
    return fail(Errc::kTooLarge, std::string(name_of(message)) + ": the frame exceeds " +
                                     std::to_string(max_body_bytes(type)) + " bytes");
  }
  const auto* block = std::get_if<KvBlock>(&message);
  store_u32(frame->data(), kMagic);
  (*frame)[4] = static_cast<std::byte>(type);
  store_u32(frame->data() + 8, static_cast<std::uint32_t>(frame->size() - kHeaderBytes));
  store_u32(frame->data() + 12,
            block != nullptr ? static_cast<std::uint32_t>(block->payload_bytes) : 0);
  return std::move(*frame);
}

Result<Message> decode(const FrameHeader& header, std::span<const std::byte> body) {
  if (header.type == 0 || header.type > kMessageTypes) {
    return fail(Errc::kParse, "header.type: " + std::to_string(header.type) + " is not a message");
  }
  if (body.size() != header.body_bytes || body.size() > max_body_bytes(header.type)) {
    return fail(Errc::kParse, "header.body: " + std::to_string(header.body_bytes) +
                                  " bytes announced, " + std::to_string(body.size()) + " came");
  }
  std::optional<Message> message = from_body(header.type, body);
  if (!message) {
    return fail(Errc::kParse, "the body of frame type " + std::to_string(header.type) +
                                  " is not a protobuf message");
  }
  if (Status valid = validate(*message); !valid) return Failure(valid.error());
  if (const auto* block = std::get_if<KvBlock>(&*message);
      block != nullptr && block->payload_bytes != header.payload_bytes) {
    return fail(Errc::kInvalidArgument,
                "KvBlock.payload_bytes: " + std::to_string(block->payload_bytes) +
                    ", but the header says " + std::to_string(header.payload_bytes));
  }
  return std::move(*message);
}

std::uint64_t checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace pallas::wire
