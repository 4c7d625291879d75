#pragma once
// Reproducible random numbers: the same in every process, build type and standard library.

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace pallas {

// Finalizer of SplitMix64 (Steele, Lea, Flood 2014) over a strided counter: a pure function, so a
// draw can be named by what it is for instead of by its place in a sequence.
constexpr std::uint64_t mix(std::uint64_t seed, std::uint64_t counter) {
  std::uint64_t z = seed + (counter + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}
// Seed of something that has a name (FNV-1a, then mixed).
constexpr std::uint64_t mix(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  return mix(seed, hash);
}

// A sequence of draws from one seed.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) : seed_(mix(seed, std::uint64_t{0})) {}

  std::uint64_t bits() { return mix(seed_, counter_++); }
  // In [0, 1), 53 bits.
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  // In [0, n), n > 0. Biased by less than n / 2^53.
  std::uint64_t below(std::uint64_t n) {
    return static_cast<std::uint64_t>(uniform() * static_cast<double>(n)) % n;
  }
  // Box-Muller, one of the pair.
  double normal(double mean, double sd) {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return mean + sd * radius * std::cos(2 * std::numbers::pi * uniform());
  }
  // The normal distribution without what lies below `floor`, by rejection; `floor` itself when it
  // is so far out that no draw reaches it.
  double normal_above(double mean, double sd, double floor) {
    constexpr int kTries = 10'000;
    for (int i = 0; i < kTries; ++i) {
      const double x = normal(mean, sd);
      if (x >= floor) return x;
    }
    return floor;
  }
  double exponential(double mean) { return -mean * std::log(1 - uniform()); }

 private:
  std::uint64_t seed_;
  std::uint64_t counter_ = 0;
};

}  // namespace pallas
