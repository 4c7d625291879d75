// Coverage against a plain set of positions.
#include "kv/token_range.h"

#include <rapidcheck.h>

#include <set>

namespace pallas::kv {
namespace {

constexpr TokenPosition kEnd = 40;  // small, so that ranges touch and overlap often

TokenRange any_range() {
  const auto begin = *rc::gen::inRange<TokenPosition>(0, kEnd);
  const auto end = *rc::gen::inRange<TokenPosition>(0, kEnd);
  return {begin, end};  // empty in half of the cases
}

struct Pair {
  Coverage coverage;
  std::set<TokenPosition> model;

  void add(TokenRange r) {
    coverage.add(r);
    for (TokenPosition p = r.begin; p < r.end; ++p) model.insert(p);
  }
  void remove(TokenRange r) {
    coverage.remove(r);
    for (TokenPosition p = r.begin; p < r.end; ++p) model.erase(p);
  }
};

Pair any_pair() {
  Pair pair;
  const auto steps = *rc::gen::inRange(0, 12);
  for (int i = 0; i < steps; ++i) {
    if (*rc::gen::weightedElement<bool>({{3, true}, {1, false}})) {
      pair.add(any_range());
    } else {
      pair.remove(any_range());
    }
  }
  return pair;
}

std::vector<TokenRange> runs_of(const std::set<TokenPosition>& positions) {
  std::vector<TokenRange> runs;
  for (const TokenPosition p : positions) {
    if (!runs.empty() && runs.back().end == p) {
      runs.back().end = p + 1;
    } else {
      runs.push_back({p, p + 1});
    }
  }
  return runs;
}

TEST(Coverage, holds_ascending_disjoint_non_adjacent_ranges_of_what_was_added) {
  EXPECT_TRUE(rc::check([] {
    const Pair pair = any_pair();
    RC_ASSERT(pair.coverage.ranges() == runs_of(pair.model));
    RC_ASSERT(pair.coverage.total() == pair.model.size());
    RC_ASSERT(pair.coverage.empty() == pair.model.empty());
  }));
}

TEST(Coverage, does_not_depend_on_the_order_of_adding) {
  EXPECT_TRUE(rc::check([] {
    Coverage forward, backward;
    std::vector<TokenRange> ranges(*rc::gen::inRange<std::size_t>(0, 10));
    for (TokenRange& r : ranges) r = any_range();
    for (auto it = ranges.begin(); it != ranges.end(); ++it) forward.add(*it);
    for (auto it = ranges.rbegin(); it != ranges.rend(); ++it) backward.add(*it);
    RC_ASSERT(forward == backward);
  }));
}

TEST(Coverage, covers_a_range_exactly_when_it_contains_every_position) {
  EXPECT_TRUE(rc::check([] {
    const Pair pair = any_pair();
    const TokenRange asked = any_range();
    bool all = true;
    for (TokenPosition p = asked.begin; p < asked.end; ++p) {
      const bool in = pair.model.contains(p);
      RC_ASSERT(pair.coverage.contains(p) == in);
      all = all && in;
    }
    RC_ASSERT(pair.coverage.covers(asked) == all);
  }));
}

TEST(Coverage, missing_is_the_rest_of_the_range) {
  EXPECT_TRUE(rc::check([] {
    const Pair pair = any_pair();
    const TokenRange asked = any_range();
    std::set<TokenPosition> rest;
    for (TokenPosition p = asked.begin; p < asked.end; ++p) {
      if (!pair.model.contains(p)) rest.insert(p);
    }
    const auto holes = runs_of(rest);
    RC_ASSERT(pair.coverage.missing(asked) == holes);
    const auto lowest = pair.coverage.lowest_missing(asked);
    const auto highest = pair.coverage.highest_missing(asked);
    RC_ASSERT(lowest.has_value() == !holes.empty());
    RC_ASSERT(highest.has_value() == !holes.empty());
    if (!holes.empty()) {
      RC_ASSERT(*lowest == holes.front());
      RC_ASSERT(*highest == holes.back());
    }
  }));
}

TEST(Coverage, adding_what_is_missing_completes_and_removing_it_restores) {
  EXPECT_TRUE(rc::check([] {
    const Pair pair = any_pair();
    const TokenRange asked = any_range();
    Coverage coverage = pair.coverage;
    const auto holes = coverage.missing(asked);
    for (const TokenRange& hole : holes) coverage.add(hole);
    RC_ASSERT(coverage.covers(asked));
    for (const TokenRange& hole : holes) coverage.remove(hole);
    RC_ASSERT(coverage == pair.coverage);
  }));
}

TEST(Coverage, joins_neighbours_and_splits_at_a_removed_middle) {
  Coverage coverage;
  coverage.add({0, 16});
  coverage.add({32, 48});
  EXPECT_EQ(coverage.ranges().size(), 2u);
  coverage.add({16, 32});
  EXPECT_EQ(coverage.ranges(), (std::vector<TokenRange>{{0, 48}}));
  coverage.remove({20, 21});
  EXPECT_EQ(coverage.ranges(), (std::vector<TokenRange>{{0, 20}, {21, 48}}));
}

TEST(Coverage, handles_the_highest_positions) {
  constexpr TokenPosition kTop = 0xFFFFFFFF;
  Coverage coverage;
  coverage.add({kTop - 1, kTop});
  EXPECT_TRUE(coverage.contains(kTop - 1));
  EXPECT_EQ(coverage.total(), 1u);
  EXPECT_EQ(coverage.missing({kTop - 3, kTop}), (std::vector<TokenRange>{{kTop - 3, kTop - 1}}));
}

TEST(TokenRange, an_inverted_range_is_empty) {
  EXPECT_TRUE((TokenRange{5, 5}).empty());
  EXPECT_TRUE((TokenRange{6, 5}).empty());
  EXPECT_EQ((TokenRange{6, 5}).size(), 0u);
  EXPECT_EQ((TokenRange{5, 9}).size(), 4u);
  EXPECT_FALSE((TokenRange{5, 9}).contains(9));
}

}  // namespace
}  // namespace pallas::kv
