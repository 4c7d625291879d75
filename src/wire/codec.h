#pragma once
// Frames: how messages travel on a byte stream. docs/protocol.md has the format byte by byte.
//
//   0       4       5       6       8              16                16+body    16+body+payload
//   | magic | type  | flags | zero  | body  payload | protobuf body   | raw rows (KvBlock only) |
//     u32     u8      u8      u16     u32    u32        `body` bytes      `payload` bytes
//
// All integers little-endian. The decoder refuses a frame by its header, before it allocates, when
// magic, type, reserved bytes or a length is wrong; then by its body, naming the field.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "kv/geometry.h"
#include "wire/messages.h"

namespace pallas::wire {

inline constexpr std::size_t kHeaderBytes = 16;
inline constexpr std::uint32_t kMagic = 0x31534c50;  // "PLS1"

struct FrameHeader {
  std::uint8_t type = 0;  // 1 + index in Message
  std::uint32_t body_bytes = 0;
  std::uint32_t payload_bytes = 0;  // > 0 only for KvBlock
};

Result<FrameHeader> decode_header(std::span<const std::byte, kHeaderBytes> bytes);

// Header and body. For a KvBlock the caller sends the payload right after it, from where it lies.
// Fails with kTooLarge when a limit of messages.h is exceeded.
Result<kv::Bytes> encode(const Message& message);

// `body` is what follows the header, without payload. Every range of messages.h is checked.
Result<Message> decode(const FrameHeader& header, std::span<const std::byte> body);

// XXH3-64, the checksum of payloads.
std::uint64_t checksum(std::span<const std::byte> bytes);

}  // namespace pallas::wire
