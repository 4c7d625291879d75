#pragma once
// How much KV may wait in a link beyond the piece that is being written: so little that what is
// sent next is chosen late (the newest block first), so much that the link never idles.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/units.h"

namespace pallas::kv {

// Two blocks; on a fast link as much as it carries while engine and link each sleep and wake.
inline constexpr std::uint64_t kBlocksAhead = 2;
inline constexpr Seconds kTimeAhead{0.004};
inline constexpr std::uint64_t kMostAhead = 16u << 20;

// Bytes. `goodput`: of the link, if it is known.
inline std::uint64_t link_ahead(std::uint64_t block_bytes, std::optional<BytesPerSecond> goodput) {
  const double carried = goodput ? goodput->value * kTimeAhead.count() : 0;
  const auto fast =
      carried < static_cast<double>(kMostAhead) ? static_cast<std::uint64_t>(carried) : kMostAhead;
  return std::max(kBlocksAhead * block_bytes, fast);
}

}  // namespace pallas::kv
