#include "kv/rows.h"

#include <rapidcheck.h>

namespace pallas::kv {
namespace {

// Byte b of the K (part 0) or V (part 1) row of a layer and position, distinct enough to tell any
// two rows apart.
std::byte content(unsigned part, std::uint32_t layer, TokenPosition p, std::uint32_t b) {
  return static_cast<std::byte>(((part * 31 + layer) * 37 + p) * 41 + b);
}

Bytes payload(const Geometry& geometry, TokenRange range) {
  Bytes bytes;
  for (const unsigned part : {0u, 1u}) {
    for (std::uint32_t layer = 0; layer < geometry.layers; ++layer) {
      for (TokenPosition p = range.begin; p < range.end; ++p) {
        const std::uint32_t size = part == 0 ? geometry.k_row_bytes : geometry.v_row_bytes;
        for (std::uint32_t b = 0; b < size; ++b) bytes.push_back(content(part, layer, p, b));
      }
    }
  }
  return bytes;
}

TEST(Geometry, bytes_per_token_are_layers_times_one_k_and_one_v_row) {
  // SmolLM2-135M at f16: 30 layers, 3 KV heads of 64.
  const Geometry small{.layers = 30, .k_row_bytes = 384, .v_row_bytes = 384, .block_tokens = 16};
  EXPECT_EQ(small.bytes_per_token(), 23040u);
  // Llama-3-8B: 32 layers, 8 KV heads of 128 (reference equations, s_KV).
  const Geometry large{.layers = 32, .k_row_bytes = 2048, .v_row_bytes = 2048, .block_tokens = 16};
  EXPECT_EQ(large.bytes_per_token(), 131072u);
}

TEST(Geometry, bytes_per_token_do_not_overflow_32_bits) {
  const Geometry huge{.layers = 200, .k_row_bytes = 1u << 28, .v_row_bytes = 1u << 28};
  EXPECT_EQ(huge.bytes_per_token(), 200ull << 29);
}

TEST(Rows, a_slice_is_the_payload_of_the_smaller_range) {
  EXPECT_TRUE(rc::check([] {
    const Geometry geometry{.layers = *rc::gen::inRange(1u, 4u),
                            .k_row_bytes = *rc::gen::inRange(1u, 6u),
                            .v_row_bytes = *rc::gen::inRange(1u, 6u)};
    const auto begin = *rc::gen::inRange<TokenPosition>(0, 50);
    const auto size = *rc::gen::inRange<TokenPosition>(1, 20);
    const auto skip = *rc::gen::inRange<TokenPosition>(0, size);
    const auto take = *rc::gen::inRange<TokenPosition>(0, size - skip + 1);
    const TokenRange held{begin, begin + size};
    const TokenRange wanted{begin + skip, begin + skip + take};
    RC_ASSERT(slice_rows(geometry, payload(geometry, held), held, wanted) ==
              payload(geometry, wanted));
  }));
}

TEST(Rows, scattered_rows_stand_as_those_of_one_range) {
  const Geometry geometry{.layers = 2, .k_row_bytes = 3, .v_row_bytes = 2};
  Coverage wanted;
  wanted.add({11, 12});
  wanted.add({14, 17});
  Bytes expected;
  for (const unsigned part : {0u, 1u}) {
    for (std::uint32_t layer = 0; layer < 2; ++layer) {
      for (const TokenPosition p : {11u, 14u, 15u, 16u}) {
        for (std::uint32_t b = 0; b < (part == 0 ? 3u : 2u); ++b) {
          expected.push_back(content(part, layer, p, b));
        }
      }
    }
  }
  EXPECT_EQ(gather_rows(geometry, payload(geometry, {10, 20}), {10, 20}, wanted), expected);
}

TEST(Rows, parts_join_to_what_they_were_taken_from) {
  const Geometry geometry{.layers = 2, .k_row_bytes = 3, .v_row_bytes = 2};
  std::vector<Bytes> payloads;
  Coverage all;
  for (const TokenRange range : {TokenRange{11, 12}, {14, 17}, {17, 18}}) {
    payloads.push_back(payload(geometry, range));
    all.add(range);
  }
  EXPECT_EQ(join_rows(geometry, {{1, &payloads[0]}, {3, &payloads[1]}, {1, &payloads[2]}}),
            gather_rows(geometry, payload(geometry, {10, 20}), {10, 20}, all));
  EXPECT_TRUE(join_rows(geometry, {}).empty());
}

}  // namespace
}  // namespace pallas::kv
