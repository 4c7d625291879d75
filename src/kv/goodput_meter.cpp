#include "kv/goodput_meter.h"

#include <algorithm>

namespace pallas::kv {

void GoodputMeter::begin(TimePoint now, std::uint64_t delivered) {
  begun_at_ = now;
  begun_with_ = delivered;
}

void GoodputMeter::busy(TimePoint now, std::uint64_t delivered) {
  if (busy_) return;
  busy_ = true;
  begin(now, delivered);
}

void GoodputMeter::progress(TimePoint now, std::uint64_t delivered) {
  if (!busy_) return;
  const Duration took = now - begun_at_;
  const std::uint64_t bytes = delivered - std::min(delivered, begun_with_);
  // A link in an outage delivers few bytes: after kLongest that is a sample too.
  if (took < kShortest || (bytes < kFewest && took < kLongest)) return;
  const double rate = static_cast<double>(bytes) / to_seconds(took).count();
  const bool first = !estimate_ || !sampled_at_;
  estimate_ = BytesPerSecond(first ? rate : (1 - kWeight) * estimate_->value + kWeight * rate);
  sampled_at_ = now;
  begin(now, delivered);
}

void GoodputMeter::idle(TimePoint now, std::uint64_t delivered) {
  if (!busy_) return;
  progress(now, delivered);
  busy_ = false;
  const Duration took = now - begun_at_;
  const std::uint64_t bytes = delivered - std::min(delivered, begun_with_);
  if (bytes < kFewest || took <= Duration::zero()) return;
  const double rate = static_cast<double>(bytes) / to_seconds(took).count();
  // Acknowledgements that came at once after a pause look like a fast link: they are good
  // for a first estimate, not for a better one.
  if (estimate_ && (rate <= estimate_->value || took < kShortestRaise)) return;
  estimate_ = BytesPerSecond(rate);
  sampled_at_ = now;
}

std::optional<Duration> GoodputMeter::age(TimePoint now) const {
  if (!sampled_at_) return std::nullopt;
  return now - *sampled_at_;
}

}  // namespace pallas::kv
