#pragma once
// Half-open ranges of token positions, and sets of them.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"

namespace pallas::kv {

// [begin, end); empty when begin >= end.
struct TokenRange {
  TokenPosition begin = 0;
  TokenPosition end = 0;

  constexpr bool empty() const { return begin >= end; }
  constexpr TokenPosition size() const { return empty() ? 0 : end - begin; }
  constexpr bool contains(TokenPosition p) const { return p >= begin && p < end; }
  friend auto operator<=>(const TokenRange&, const TokenRange&) = default;
};

// A set of positions kept as ascending, disjoint, non-adjacent, non-empty ranges.
class Coverage {
 public:
  void add(TokenRange range);
  void remove(TokenRange range);
  void clear() { ranges_.clear(); }

  bool covers(TokenRange range) const;  // an empty range is always covered
  bool contains(TokenPosition p) const { return covers({p, p + 1}); }
  // The part of `range` that is not covered, ascending.
  std::vector<TokenRange> missing(TokenRange range) const;
  // The highest uncovered stretch of `range`, empty if none.
  std::optional<TokenRange> highest_missing(TokenRange range) const;
  std::optional<TokenRange> lowest_missing(TokenRange range) const;
  TokenPosition total() const;  // number of covered positions
  const std::vector<TokenRange>& ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }
  friend bool operator==(const Coverage&, const Coverage&) = default;

 private:
  std::vector<TokenRange> ranges_;
};

}  // namespace pallas::kv
