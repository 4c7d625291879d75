#pragma once
// How large the KV cache of one token is, and how rows travel.
//
// Row order on the wire (docs/protocol.md, "KV payload"): for a range of `count` positions, first
// K, then V; within each by layer; within a layer by position, ascending; within a position the
// layer's H_KV * d_h elements. A payload is exactly count * bytes_per_token() bytes.

#include <cstddef>
#include <cstdint>

#include "kv/bytes.h"

namespace pallas::kv {

struct Geometry {
  std::uint32_t layers = 0;
  // Bytes of one position's K row and V row in one layer. Models with equal layers only.
  std::uint32_t k_row_bytes = 0;
  std::uint32_t v_row_bytes = 0;
  std::uint32_t block_tokens = 16;  // transfer granularity

  // s_KV, Eq. 1 of Pallas.
  constexpr std::uint64_t bytes_per_token() const {
    return std::uint64_t{layers} * (std::uint64_t{k_row_bytes} + v_row_bytes);
  }
  friend bool operator==(const Geometry&, const Geometry&) = default;
};

}  // namespace pallas::kv
