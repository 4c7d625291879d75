#pragma once
// Inside of the codec: native messages to protobuf bodies and back. to_protobuf.cpp and
// from_protobuf.cpp are the only two sources that see protobuf's headers.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/messages.h"

namespace pallas::wire {

inline constexpr std::size_t kMessageTypes = std::variant_size_v<Message>;

// Frame types are 1 + the index in Message.
template <class T, std::size_t I = 0>
constexpr std::uint8_t type_of() {
  if constexpr (std::is_same_v<std::variant_alternative_t<I, Message>, T>) {
    return static_cast<std::uint8_t>(I + 1);
  } else {
    return type_of<T, I + 1>();
  }
}

// `headroom` zero bytes, then the body. The message must have passed validate().
// Empty when the frame would exceed kMaxFrameBytes.
std::optional<kv::Bytes> to_body(const Message& message, std::size_t headroom);

// Converts without judging: values that do not fit their native type become one that validate()
// refuses. `type` is in [1, kMessageTypes]. Empty when the bytes are not a protobuf message.
std::optional<Message> from_body(std::uint8_t type, std::span<const std::byte> body);

}  // namespace pallas::wire
