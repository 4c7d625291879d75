#pragma once
// Random numbers that any node draws alike: a pure function of (seed, index, draw), without state.
// Changing it changes every sampled text; kSamplerVersion then grows.

#include <cstdint>

#include "base/units.h"

namespace pallas::engine {

// Part of CompatibilityRecord::engine_build.
constexpr int kSamplerVersion = 1;

// Finalizer of SplitMix64 (Steele, Lea, Flood 2014): each bit of the input reaches each bit of the
// output.
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ull;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// In [0, 1), 53 bits: SplitMix64's sequence from a hashed seed. `draw` tells apart numbers for the
// same token.
constexpr double uniform(std::uint64_t seed, TokenIndex index, std::uint32_t draw) {
  constexpr std::uint64_t kStride = 0x9e3779b97f4a7c15ull;
  const std::uint64_t counter = (std::uint64_t{draw} << 32) | index;
  const std::uint64_t bits = mix_bits(mix_bits(seed + kStride) + (counter + 1) * kStride);
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

}  // namespace pallas::engine
