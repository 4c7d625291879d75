#include "session/staged_rows.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <set>

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
