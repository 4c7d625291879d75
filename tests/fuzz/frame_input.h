#pragma once
// What the frame fuzzer does with one input; tests/unit/wire runs the committed corpus through it.

#include <cstdlib>
#include <span>

#include "wire/codec.h"

namespace pallas::wire {

// Decodes `input` as a frame without payload. A frame that is accepted must encode again, and to
// the same message; anything else ends the process. True when it was accepted.
inline bool run_frame_input(std::span<const std::byte> input) {
  if (input.size() < kHeaderBytes) return false;
  Result<FrameHeader> header = decode_header(input.first<kHeaderBytes>());
  if (!header) return false;
  const auto body = input.subspan(kHeaderBytes);
  // The fuzzer need not guess the length.
  header->body_bytes = static_cast<std::uint32_t>(body.size());
  const Result<Message> message = decode(*header, body);
  if (!message) return false;
  const Result<kv::Bytes> frame = encode(*message);
  if (!frame) std::abort();
  const auto again_header =
      decode_header(std::span<const std::byte, kHeaderBytes>(frame->data(), kHeaderBytes));
  if (!again_header) std::abort();
  const auto again = decode(*again_header, std::span(*frame).subspan(kHeaderBytes));
  if (!again || !(*again == *message)) std::abort();
  return true;
}

}  // namespace pallas::wire
