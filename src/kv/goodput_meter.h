#pragma once
// Measures a link's goodput from what was delivered over it (protocol rule 17). Pure.

#include <cstdint>
#include <optional>

#include "base/units.h"

namespace pallas::kv {

// Between busy() and idle() the sender's queue is never empty, so what is delivered shows what the
// link can do: each stretch long enough is a sample. A shorter one, cut off by the queue running
// empty, shows only a lower bound and may only raise the estimate.
class GoodputMeter {
 public:
  explicit GoodputMeter(std::optional<BytesPerSecond> initial) : estimate_(initial) {}

  // `delivered`: payload bytes that left this host and were acknowledged, ever growing.
  void busy(TimePoint now, std::uint64_t delivered);
  void progress(TimePoint now, std::uint64_t delivered);
  void idle(TimePoint now, std::uint64_t delivered);
  // The link broke: what was under way says nothing.
  void abandon() { busy_ = false; }

  std::optional<BytesPerSecond> estimate() const { return estimate_; }
  // Since the last sample that changed the estimate; none while it is the configured one.
  std::optional<Duration> age(TimePoint now) const;

 private:
  void begin(TimePoint now, std::uint64_t delivered);

  static constexpr Duration kShortest = std::chrono::milliseconds(100);
  static constexpr Duration kLongest = std::chrono::milliseconds(250);
  static constexpr Duration kShortestRaise = std::chrono::milliseconds(50);
  static constexpr std::uint64_t kFewest = 64u << 10;  // bytes
  static constexpr double kWeight = 0.3;               // of a new sample

  std::optional<BytesPerSecond> estimate_;
  std::optional<TimePoint> sampled_at_;
  bool busy_ = false;
  TimePoint begun_at_{};
  std::uint64_t begun_with_ = 0;
};

}  // namespace pallas::kv
