#pragma once
// A token bucket for each sender's name. Bounded: strangers choose the names.

#include <cstddef>
#include <string>
#include <unordered_map>

#include "base/units.h"

namespace pallas::http {

class RateLimiter {
 public:
  // `per_second` of each sender, in bursts of at most one second's worth (at least 1).
  // 0: no limit.
  explicit RateLimiter(double per_second, std::size_t max_senders = 8192)
      : per_second_(per_second), max_senders_(max_senders) {}

  // Takes one; false when the sender has none left, or when too many senders are active.
  bool allow(const std::string& sender, TimePoint now);

 private:
  struct Bucket {
    double tokens = 0;
    TimePoint filled{};
  };
  double burst() const { return per_second_ < 1 ? 1 : per_second_; }
  double tokens_at(const Bucket& bucket, TimePoint now) const;

  double per_second_;
  std::size_t max_senders_;
  std::unordered_map<std::string, Bucket> buckets_;
};

}  // namespace pallas::http
