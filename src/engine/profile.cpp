#include "engine/profile.h"

#include <algorithm>
#include <span>
#include <string_view>

namespace pallas::engine {
namespace {

// Piecewise linear through (x, y), constant beyond the ends, 0 without points. Two points at the
// same x: the later one counts from there on.
struct CurvePoint {
  double x = 0;
  double y = 0;
};

double value_at(std::span<const CurvePoint> curve, double x) {
  if (curve.empty()) return 0;
  if (x <= curve.front().x) return curve.front().y;
  for (std::size_t i = 1; i < curve.size(); ++i) {
    const CurvePoint& a = curve[i - 1];
    const CurvePoint& b = curve[i];
    if (x < b.x) return a.y + (b.y - a.y) * (x - a.x) / (b.x - a.x);
  }
  return curve.back().y;
}

double integral(std::span<const CurvePoint> curve, double from, double to) {
  double sum = 0;
  double x = from;
  const auto add_up_to = [&](double next) {
    // Exact: the curve is linear between x and next.
    sum += (next - x) * (value_at(curve, x) + value_at(curve, next)) / 2;
    x = next;
  };
  for (const CurvePoint& p : curve) {
    if (p.x > x && p.x < to) add_up_to(p.x);
  }
  if (to > x) add_up_to(to);
  return sum;
}

std::vector<CurvePoint> prefill_curve(const Profile& profile) {
  std::vector<CurvePoint> curve;
  curve.reserve(profile.prefill.size());
  for (const auto& p : profile.prefill) {
    curve.push_back({static_cast<double>(p.depth), p.per_token.count()});
  }
  return curve;
}

template <class T>
std::string in_words(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return "\"" + value + "\"";
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "on" : "off";
  } else {
    return std::to_string(value);
  }
}

// Collects the first field that differs.
class FirstDifference {
 public:
  template <class T>
  FirstDifference& field(std::string_view name, const T& ours, const T& theirs) {
    if (name_.empty() && !(ours == theirs)) {
      name_ = name;
      message_ =
          std::string(name) + " differs: ours " + in_words(ours) + ", theirs " + in_words(theirs);
    }
    return *this;
  }
  const std::string& name() const { return name_; }
  const std::string& message() const { return message_; }

 private:
  std::string name_;
  std::string message_;
};

}  // namespace

Seconds Profile::prefill_time(TokenPosition from, TokenPosition to) const {
  if (from >= to) return Seconds(0);
  return Seconds(integral(prefill_curve(*this), from, to));
}

TokensPerSecond Profile::prefill_rate(TokenPosition from, TokenPosition to) const {
  if (from >= to) {  // the limit of an ever shorter range
    const double per_token = value_at(prefill_curve(*this), from);
    return TokensPerSecond(per_token > 0 ? 1 / per_token : 0);
  }
  const double seconds = prefill_time(from, to).count();
  return TokensPerSecond(seconds > 0 ? (to - from) / seconds : 0);
}

Seconds Profile::decode_step(std::uint32_t batch, TokenPosition depth) const {
  std::vector<CurvePoint> by_batch;    // at this depth
  std::vector<CurvePoint> over_depth;  // of one batch size
  for (std::size_t i = 0; i < decode.size(); ++i) {
    over_depth.push_back({static_cast<double>(decode[i].depth), decode[i].step.count()});
    if (i + 1 == decode.size() || decode[i + 1].batch != decode[i].batch) {
      by_batch.push_back({static_cast<double>(decode[i].batch), value_at(over_depth, depth)});
      over_depth.clear();
    }
  }
  return Seconds(value_at(by_batch, std::max<std::uint32_t>(batch, 1)));
}

Status check_compatible(const CompatibilityRecord& ours, const CompatibilityRecord& theirs) {
  FirstDifference difference;
  difference.field("model_hash", ours.model_hash, theirs.model_hash)
      .field("tokenizer_hash", ours.tokenizer_hash, theirs.tokenizer_hash)
      .field("context_tokens", ours.context_tokens, theirs.context_tokens)
      .field("rope", ours.rope, theirs.rope)
      .field("kv_types", ours.kv_types, theirs.kv_types)
      .field("kv_layout", ours.kv_layout, theirs.kv_layout)
      .field("block_tokens", ours.block_tokens, theirs.block_tokens)
      .field("adapter", ours.adapter, theirs.adapter);
  if (!difference.name().empty()) return fail(Errc::kIncompatible, difference.message());
  return {};
}

std::string why_not_exact(const CompatibilityRecord& ours, const CompatibilityRecord& theirs) {
  FirstDifference difference;
  difference.field("instruction_set", ours.instruction_set, theirs.instruction_set)
      .field("engine_build", ours.engine_build, theirs.engine_build)
      .field("threads", ours.threads, theirs.threads)
      .field("flash_attention", ours.flash_attention, theirs.flash_attention);
  return difference.name();
}

}  // namespace pallas::engine
