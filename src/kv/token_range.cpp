#include "kv/token_range.h"

namespace pallas::kv {

void Coverage::add(TokenRange range) {
  if (range.empty()) return;
  auto first = std::lower_bound(ranges_.begin(), ranges_.end(), range.begin,
                                [](const TokenRange& r, TokenPosition p) { return r.end < p; });
  auto last = first;
  while (last != ranges_.end() && last->begin <= range.end) {
    range.begin = std::min(range.begin, last->begin);
    range.end = std::max(range.end, last->end);
    ++last;
  }
  first = ranges_.erase(first, last);
  ranges_.insert(first, range);
}

void Coverage::remove(TokenRange range) {
  if (range.empty()) return;
  std::vector<TokenRange> kept;
  kept.reserve(ranges_.size() + 1);
  for (const TokenRange& r : ranges_) {
    const TokenRange below{r.begin, std::min(r.end, range.begin)};
    const TokenRange above{std::max(r.begin, range.end), r.end};
    if (!below.empty()) kept.push_back(below);
    if (!above.empty()) kept.push_back(above);
  }
  ranges_ = std::move(kept);
}

bool Coverage::covers(TokenRange range) const {
  if (range.empty()) return true;
  auto it = std::upper_bound(ranges_.begin(), ranges_.end(), range.begin,
                             [](TokenPosition p, const TokenRange& r) { return p < r.end; });
  return it != ranges_.end() && it->begin <= range.begin && it->end >= range.end;
}

std::vector<TokenRange> Coverage::missing(TokenRange range) const {
  std::vector<TokenRange> holes;
  TokenPosition from = range.begin;
  for (const TokenRange& r : ranges_) {
    if (from >= range.end) break;
    if (r.end <= from) continue;
    const TokenRange hole{from, std::min(r.begin, range.end)};
    if (!hole.empty()) holes.push_back(hole);
    from = std::max(from, r.end);
  }
  if (from < range.end) holes.push_back({from, range.end});
  return holes;
}

std::optional<TokenRange> Coverage::highest_missing(TokenRange range) const {
  const auto holes = missing(range);
  if (holes.empty()) return std::nullopt;
  return holes.back();
}

std::optional<TokenRange> Coverage::lowest_missing(TokenRange range) const {
  const auto holes = missing(range);
  if (holes.empty()) return std::nullopt;
  return holes.front();
}

TokenPosition Coverage::total() const {
  TokenPosition sum = 0;
  for (const TokenRange& r : ranges_) sum += r.size();
  return sum;
}

}  // namespace pallas::kv
