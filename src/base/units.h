#pragma once
// Identifiers and quantities. A unit lives in the type.

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace pallas {

// All time inside the project is monotonic and comes from a Clock (base/clock.h), never from the
// system. Wall-clock time appears only at borders (logs, the OpenAI field `created`).
struct MonotonicClock {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<MonotonicClock>;
  static constexpr bool is_steady = true;
};
using Duration = std::chrono::nanoseconds;
using TimePoint = MonotonicClock::time_point;
using Seconds = std::chrono::duration<double>;

constexpr Duration to_duration(Seconds s) {
  return std::chrono::duration_cast<Duration>(s);
}
constexpr Seconds to_seconds(Duration d) {
  return std::chrono::duration_cast<Seconds>(d);
}
constexpr double to_ms(Duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

// A value that mixes with nothing but its own kind.
template <class Tag, class Rep>
struct Strong {
  Rep value{};

  constexpr Strong() = default;
  constexpr explicit Strong(Rep v) : value(std::move(v)) {}
  friend auto operator<=>(const Strong&, const Strong&) = default;
};

// Tokens. Ids are the model's; a position counts from the first prompt token (0); an index counts
// generated tokens (0 is the first one): position = prompt length + index.
using TokenId = std::int32_t;
using TokenPosition = std::uint32_t;
using TokenIndex = std::uint32_t;

using SessionId = Strong<struct SessionIdTag, std::string>;  // 32 hex digits: 128 random bits
using NodeId = Strong<struct NodeIdTag, std::string>;        // a gNB's configured name
using CellId = Strong<struct CellIdTag, std::string>;
using UeId = Strong<struct UeIdTag, std::string>;
using BootId = Strong<struct BootIdTag, std::uint64_t>;    // drawn anew at each start of a process
using Lineage = Strong<struct LineageTag, std::uint64_t>;  // protocol rule 3

// Counts the attachments of a session's UE; only grows. 0: never attached.
using Epoch = Strong<struct EpochTag, std::uint64_t>;

// Names one preparation. The paper's migration epoch.
struct Attempt {
  NodeId owner;  // the source that made it
  BootId boot;   // of that source
  std::uint64_t counter = 0;
  friend auto operator<=>(const Attempt&, const Attempt&) = default;
};

struct BytesPerSecond : Strong<struct BytesPerSecondTag, double> {
  using Strong::Strong;
  static constexpr BytesPerSecond from_mbps(double mbps) { return BytesPerSecond(mbps * 1e6 / 8); }
  constexpr double mbps() const { return value * 8 / 1e6; }
};
struct TokensPerSecond : Strong<struct TokensPerSecondTag, double> {
  using Strong::Strong;
};

}  // namespace pallas

template <class Tag, class Rep>
struct std::hash<pallas::Strong<Tag, Rep>> {
  std::size_t operator()(const pallas::Strong<Tag, Rep>& s) const {
    return std::hash<Rep>{}(s.value);
  }
};
