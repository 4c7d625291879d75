#pragma once
// Rows of llama.cpp's KV cache, out and in. kv_rows.cpp is the only file that knows llama.cpp's
// internals; its version is pinned (docs/engine-guide.md).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "kv/geometry.h"
#include "kv/token_range.h"

struct llama_context;

namespace pallas::engine {

// A view of one context's cache with a stream (llama.cpp's sequence) per session. A stream's cells
// stand in the order of their positions and without a gap, whether positions are missing or not:
// every append goes to the end. Without holes the cell's index is the position, and attention adds
// up in one order only. Engine thread only; lives no longer than the context.
class KvRows {
 public:
  // Before anything was decoded. kUnsupported, naming why, for a memory that cannot be moved:
  // sliding window, recurrent, hybrid, compressed (MLA), or unequal layers.
  static Result<KvRows> open(llama_context* context, std::uint32_t block_tokens);
  ~KvRows();
  KvRows(KvRows&&) noexcept;
  KvRows& operator=(KvRows&&) noexcept;

  const kv::Geometry& geometry() const { return geometry_; }
  std::string types() const;   // "k=f16,v=f16"
  std::string layout() const;  // "rows-v1,layers=30,k=384,v=384"

  // Are `rows` the rows of `count` positions that may be appended? kInvalidArgument for a wrong
  // size, or for NaN and infinity, which would outlive their session in the cells of its stream.
  Status check(std::span<const std::byte> rows, TokenPosition count) const;

  // Every position of `range` is there.
  bool holds(std::uint32_t stream, kv::TokenRange range) const;
  // Heads of a layer's K row.
  std::uint32_t key_heads() const { return key_heads_; }
  // The keys of positions [0, count) in one head as numbers, a row each. They must be there.
  void read_keys(std::uint32_t stream, std::uint32_t layer, std::uint32_t head, TokenPosition count,
                 std::vector<float>& keys) const;

  // A payload is moved in parts, so that no step takes long: `part` lies in `whole`, whose rows the
  // payload holds (kv/geometry.h). kOutOfOrder when the stream does not hold `part`.
  Status copy_out(std::uint32_t stream, kv::TokenRange part, kv::TokenRange whole,
                  std::span<std::byte> rows) const;
  // `part.begin` must be the stream's end, or above it, which leaves a hole; `rows` has passed
  // check(). Nothing is changed on failure.
  Status append(std::uint32_t stream, kv::TokenRange part, kv::TokenRange whole,
                std::span<const std::byte> rows);

 private:
  struct Inside;
  explicit KvRows(std::unique_ptr<Inside> inside);

  std::unique_ptr<Inside> inside_;
  kv::Geometry geometry_;
  std::uint32_t key_heads_ = 1;
};

}  // namespace pallas::engine
