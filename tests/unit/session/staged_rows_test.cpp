#include "session/staged_rows.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "kv/rows.h"

namespace pallas::session {
namespace {

const kv::Geometry kSmall{.layers = 2, .k_row_bytes = 2, .v_row_bytes = 1, .block_tokens = 4};

// A row's content tells its position, in each layer's K and V.
kv::Bytes rows_of(kv::TokenRange range) {
  kv::Bytes bytes;
  for (int part = 0; part < 2; ++part) {
    const int width = part == 0 ? 2 : 1;
    for (int layer = 0; layer < 2; ++layer) {
      for (TokenPosition p = range.begin; p < range.end; ++p) {
        for (int i = 0; i < width; ++i) {
          bytes.push_back(static_cast<std::byte>(p * 7 + static_cast<unsigned>(layer + part * 2)));
        }
      }
    }
  }
  return bytes;
}

RC_GTEST_PROP(StagedRowsProperty, holds_what_was_added_and_gives_it_back_in_order, ()) {
  StagedRows staged(kSmall);
  std::set<TokenPosition> model;
  const auto count = *rc::gen::inRange(1, 12);
  for (int i = 0; i < count; ++i) {
    const auto begin = *rc::gen::inRange<TokenPosition>(0, 40);
    const auto size = *rc::gen::inRange<TokenPosition>(1, 9);
    const kv::TokenRange range{begin, begin + size};
    std::size_t fresh = 0;
    for (TokenPosition p = range.begin; p < range.end; ++p) fresh += model.insert(p).second ? 1 : 0;
    RC_ASSERT(staged.add({range, rows_of(range)}) == fresh);
    RC_ASSERT(staged.bytes() == model.size() * kSmall.bytes_per_token());
  }
  const auto end = *rc::gen::inRange<TokenPosition>(10, 60);
  staged.drop_from(end);
  model.erase(model.lower_bound(end), model.end());
  TokenPosition front = *rc::gen::inRange<TokenPosition>(0, 20);
  while (true) {
    auto rows = staged.take_at(front);
    model.erase(model.begin(), model.lower_bound(front));
    if (!rows) {
      const auto next = staged.next_begin(front);
      if (!next) break;
      RC_ASSERT(!model.empty());
      RC_ASSERT(*next == *model.begin());
      front = *next;
      continue;
    }
    RC_ASSERT(rows->range.begin == front);
    RC_ASSERT(rows->bytes == rows_of(rows->range));
    for (TokenPosition p = rows->range.begin; p < rows->range.end; ++p) {
      RC_ASSERT(model.erase(p) == 1u);
    }
    front = rows->range.end;
  }
  RC_ASSERT(model.empty());
  RC_ASSERT(staged.bytes() == 0u);
}

RC_GTEST_PROP(StagedRowsProperty, scattered_rows_come_out_as_they_went_in, ()) {
  StagedRows staged(kSmall);
  kv::Coverage all;
  for (int i = *rc::gen::inRange(1, 5); i > 0; --i) {
    kv::Coverage positions;
    TokenPosition p = *rc::gen::inRange<TokenPosition>(0, 10);
    for (int k = *rc::gen::inRange(1, 6); k > 0; --k) {
      const auto size = *rc::gen::inRange<TokenPosition>(1, 4);
      positions.add({p, p + size});
      p += size + *rc::gen::inRange<TokenPosition>(1, 4);
    }
    kv::Bytes rows(positions.total() * kSmall.bytes_per_token(), std::byte{});
    std::vector<kv::Bytes> payloads;
    std::vector<kv::RowsPart> parts;
    for (const auto& range : positions.ranges()) payloads.push_back(rows_of(range));
    for (std::size_t k = 0; k < payloads.size(); ++k) {
      parts.push_back({positions.ranges()[k].size(), &payloads[k]});
    }
    const TokenPosition before = all.total();
    for (const auto& range : positions.ranges()) all.add(range);
    RC_ASSERT(staged.add(positions, kv::join_rows(kSmall, parts)) == all.total() - before);
  }
  RC_ASSERT(staged.coverage() == all);
  const auto copy = staged.copy_from(0);
  RC_ASSERT(copy.positions == all);
  const kv::TokenRange whole{0, all.ranges().back().end};
  RC_ASSERT(copy.bytes == kv::gather_rows(kSmall, rows_of(whole), whole, all));
  // Joined as far as they are wanted.
  const auto at_most = *rc::gen::inRange<TokenPosition>(0, 12);
  const auto first = all.ranges().front();
  const auto taken = staged.take_at(first.begin, at_most);
  RC_ASSERT(taken.has_value());
  RC_ASSERT(taken->bytes == rows_of(taken->range));
  RC_ASSERT(taken->range.end <= first.end);
  if (at_most >= first.size()) RC_ASSERT(taken->range == first);
  all.remove(taken->range);
  RC_ASSERT(staged.coverage() == all);
  RC_ASSERT(staged.bytes() == all.total() * kSmall.bytes_per_token());
}

TEST(StagedRows, drop_below_cuts_a_range_and_counts_what_went) {
  StagedRows staged(kSmall);
  staged.add({{10, 20}, rows_of({10, 20})});
  EXPECT_EQ(staged.drop_below(13), 3u);
  const auto rows = staged.take_at(13);
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->range, (kv::TokenRange{13, 20}));
  EXPECT_EQ(rows->bytes, rows_of({13, 20}));
}

}  // namespace
}  // namespace pallas::session
