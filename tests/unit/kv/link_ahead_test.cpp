#include "kv/link_ahead.h"

#include <gtest/gtest.h>

namespace pallas::kv {
namespace {

constexpr std::uint64_t kBlock = 368'640;

TEST(LinkAhead, is_two_blocks_where_the_link_is_slow_or_unknown) {
  EXPECT_EQ(link_ahead(kBlock, std::nullopt), 2 * kBlock);
  EXPECT_EQ(link_ahead(kBlock, BytesPerSecond(6.25e6)), 2 * kBlock);
}

TEST(LinkAhead, is_what_a_fast_link_carries_in_four_milliseconds) {
  EXPECT_EQ(link_ahead(kBlock, BytesPerSecond(1e9)), 4'000'000u);
}

TEST(LinkAhead, has_a_cap_whatever_was_measured) {
  EXPECT_EQ(link_ahead(kBlock, BytesPerSecond(1e300)), 16u << 20);
  EXPECT_EQ(link_ahead(64u << 20, BytesPerSecond(1e300)), 128u << 20) << "two blocks at least";
}

}  // namespace
}  // namespace pallas::kv
