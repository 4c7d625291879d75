#include "http/rate_limiter.h"

#include <algorithm>

namespace pallas::http {

bool RateLimiter::allow(const std::string& sender, TimePoint now) {
  if (per_second_ <= 0) return true;
  auto it = buckets_.find(sender);
  if (it == buckets_.end()) {
    if (buckets_.size() >= max_senders_) {
      // A full bucket remembers nothing that a new one would not know.
      std::erase_if(buckets_,
                    [&](const auto& entry) { return tokens_at(entry.second, now) >= burst(); });
      if (buckets_.size() >= max_senders_) return false;
    }
    it = buckets_.emplace(sender, Bucket{burst(), now}).first;
  }
  it->second = {tokens_at(it->second, now), now};
  if (it->second.tokens < 1) return false;
  it->second.tokens -= 1;
  return true;
}

double RateLimiter::tokens_at(const Bucket& bucket, TimePoint now) const {
  const double gained = to_seconds(now - bucket.filled).count() * per_second_;
  return std::min(burst(), bucket.tokens + gained);
}

}  // namespace pallas::http
