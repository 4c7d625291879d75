#include "engine/profile.h"

#include <algorithm>
#include <string_view>

namespace pallas::engine {
namespace {

// Piecewise linear through the points (x, y), constant beyond the ends, 0 without points. Two
// points at the same x: the later one counts from there on. Points come one by one, x ascending.
class Interpolation {
 public:
  explicit Interpolation(double x) : x_(x) {}
  void point(double x, double y) {
    if (!any_ || x <= x_) {
      value_ = y;
    } else if (!past_) {
      value_ = last_y_ + (y - last_y_) * (x_ - last_x_) / (x - last_x_);
    }
    past_ = x > x_;
    any_ = true;
    last_x_ = x;
    last_y_ = y;
  }
  double value() const { return value_; }

 private:
  double x_;
  double value_ = 0;
  double last_x_ = 0, last_y_ = 0;
  bool any_ = false;
  bool past_ = false;
};

double prefill_at(const Profile& profile, double depth) {
  Interpolation curve(depth);
  for (const auto& p : profile.prefill) curve.point(p.depth, p.per_token.count());
  return curve.value();
}

double integral(const Profile& profile, double from, double to) {
  double sum = 0;
  double x = from;
  const auto add_up_to = [&](double next) {
    // Exact: the curve is linear between x and next.
    sum += (next - x) * (prefill_at(profile, x) + prefill_at(profile, next)) / 2;
    x = next;
  };
  for (const auto& p : profile.prefill) {
    if (p.depth > x && p.depth < to) add_up_to(p.depth);
  }
  if (to > x) add_up_to(to);
  return sum;
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
  return Seconds(integral(*this, from, to));
}

TokensPerSecond Profile::prefill_rate(TokenPosition from, TokenPosition to) const {
  if (from >= to) {  // the limit of an ever shorter range
    const double per_token = prefill_at(*this, from);
    return TokensPerSecond(per_token > 0 ? 1 / per_token : 0);
  }
  const double seconds = prefill_time(from, to).count();
  return TokensPerSecond(seconds > 0 ? (to - from) / seconds : 0);
}

Seconds Profile::decode_step(std::uint32_t batch, TokenPosition depth) const {
  Interpolation by_batch(std::max<std::uint32_t>(batch, 1));
  Interpolation over_depth(depth);  // of one batch size
  for (std::size_t i = 0; i < decode.size(); ++i) {
    over_depth.point(decode[i].depth, decode[i].step.count());
    if (i + 1 == decode.size() || decode[i + 1].batch != decode[i].batch) {
      by_batch.point(decode[i].batch, over_depth.value());
      over_depth = Interpolation(depth);
    }
  }
  return Seconds(by_batch.value());
}

bool Profile::step_first(std::size_t few, std::size_t batch, TokenPosition depth) const {
  if (few == 0 || few >= batch) return false;
  const auto step = [&](std::size_t size) {
    return decode_step(static_cast<std::uint32_t>(size), depth).count();
  };
  return 2 * step(few) <= step(batch);
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
