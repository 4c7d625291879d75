#include "sim/rates.h"

#include <cmath>
#include <string>

namespace pallas::sim {
namespace {

bool positive(BytesPerSecond rate) {
  return std::isfinite(rate.value) && rate.value > 0;
}

double draw_rate(const DrawnRate& drawn, std::uint64_t seed) {
  return Random(seed).normal_above(drawn.mean.value, drawn.sd.value, drawn.floor.value);
}

}  // namespace

Status check(const RateSettings& settings) {
  if (const auto* fixed = std::get_if<FixedRate>(&settings)) {
    if (!positive(fixed->rate)) return fail(Errc::kInvalidArgument, "mbps: must be above 0");
  }
  if (const auto* drawn = std::get_if<DrawnRate>(&settings)) {
    if (!positive(drawn->mean)) return fail(Errc::kInvalidArgument, "mbps: must be above 0");
    if (!std::isfinite(drawn->sd.value) || drawn->sd.value < 0) {
      return fail(Errc::kInvalidArgument, "sd_mbps: must be at least 0");
    }
    if (!positive(drawn->floor)) {
      return fail(Errc::kInvalidArgument, "floor_mbps: must be above 0");
    }
    if (drawn->floor.value > drawn->mean.value + 6 * drawn->sd.value) {
      return fail(Errc::kInvalidArgument, "floor_mbps: no draw reaches it");
    }
    if (drawn->period < Duration{0}) {
      return fail(Errc::kInvalidArgument, "period_s: must be at least 0");
    }
  }
  return {};
}

RateProcess::RateProcess(const RateSettings& settings, std::uint64_t seed, std::uint64_t key)
    : settings_(&settings), seed_(mix(seed, key)) {
  if (const auto* traced = std::get_if<TracedRate>(&settings); traced != nullptr && traced->shift) {
    const Seconds place = to_seconds(traced->trace.period()) * Random(seed_).uniform();
    shift_ = to_duration(place);
  }
}

BytesPerSecond RateProcess::at(TimePoint now) const {
  if (override_) return *override_;
  if (const auto* fixed = std::get_if<FixedRate>(settings_)) return fixed->rate;
  if (const auto* drawn = std::get_if<DrawnRate>(settings_)) {
    if (drawn->period <= Duration{0}) return drawn->mean;
    const auto turn = static_cast<std::uint64_t>(now.time_since_epoch() / drawn->period);
    return BytesPerSecond(draw_rate(*drawn, mix(seed_, turn)));
  }
  return std::get<TracedRate>(*settings_).trace.at(now.time_since_epoch() + shift_);
}

std::optional<TimePoint> RateProcess::next_change(TimePoint now) const {
  if (override_) return std::nullopt;
  if (const auto* drawn = std::get_if<DrawnRate>(settings_)) {
    if (drawn->period <= Duration{0}) return std::nullopt;
    return TimePoint((now.time_since_epoch() / drawn->period + 1) * drawn->period);
  }
  if (const auto* traced = std::get_if<TracedRate>(settings_)) {
    const auto next = traced->trace.next_change(now.time_since_epoch() + shift_);
    if (next) return TimePoint(*next - shift_);
  }
  return std::nullopt;
}

void RateProcess::draw(std::uint64_t name) {
  const auto* drawn = std::get_if<DrawnRate>(settings_);
  if (drawn == nullptr || drawn->period > Duration{0}) return;
  override_ = BytesPerSecond(draw_rate(*drawn, name));
}

}  // namespace pallas::sim
