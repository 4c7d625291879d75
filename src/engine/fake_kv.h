#pragma once
// The KV cache of one FakeEngine slot, with content: a row depends on the token, its position, the
// class it was computed in and every row before it, as in a transformer. Rows are stored as given,
// so a wrong, missing or stale row, or a hole, changes all that is computed after it.

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "engine/importance.h"
#include "kv/geometry.h"
#include "kv/token_range.h"

namespace pallas::engine {

// XXH3-64 over values appended in a fixed little-endian form.
class HashInput {
 public:
  HashInput& add(std::uint64_t value);
  HashInput& add(double value);
  HashInput& add(const std::string& text);
  HashInput& add(const std::byte* bytes, std::size_t size);
  std::uint64_t digest() const;

 private:
  std::vector<std::byte> bytes_;
};

class FakeKv {
 public:
  FakeKv(kv::Geometry geometry, std::uint64_t weights);

  TokenPosition front() const { return static_cast<TokenPosition>(digests_.size() - 1); }
  // Of the content of all rows [0, front).
  std::uint64_t digest() const { return digests_.back(); }

  // Computes the row of `id` at the front. Rows of different `compute_class` differ.
  void compute(TokenId id, std::uint64_t compute_class);
  // Rows of `count` positions in wire order (kv/geometry.h); the size must be right.
  void append(TokenPosition count, const kv::Bytes& rows);
  // Rows of these positions, at or above the front, as of one range of as many; holes between.
  void append_scattered(const kv::Coverage& positions, const kv::Bytes& rows);
  bool holds(kv::TokenRange range) const;      // all below the front, and no hole
  kv::Bytes read(kv::TokenRange range) const;  // holds() it
  void truncate(TokenPosition front);

  // Scores of all positions, as of a model with one head a layer whose keys are the rows' bytes.
  std::vector<double> rank(const RankRequest& request) const;

  // The digests are those of the rows.
  bool consistent() const;

 private:
  std::size_t bytes_per_token() const {
    return static_cast<std::size_t>(geometry_.bytes_per_token());
  }
  void push_digest();
  void push_hole();
  // Calls copy(offset in wire order, offset in rows_, size) for each contiguous stretch of a
  // payload of these positions.
  template <class Copy>
  void for_each_stretch(const kv::Coverage& positions, Copy copy) const;

  kv::Geometry geometry_;
  std::uint64_t weights_;
  kv::Bytes rows_;                      // by position; within: K by layer, then V by layer
  std::vector<std::uint64_t> digests_;  // digests_[p] of rows [0, p) and the holes there
  kv::Coverage holes_;                  // their rows are zero
};

}  // namespace pallas::engine
