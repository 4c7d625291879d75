#pragma once
// Rows that arrived above the front and wait in host memory until the front reaches them. Owned by
// the session at the node, so that they outlive one preparation (protocol rules 7, 12, 13).

#include <cstdint>
#include <map>
#include <optional>

#include "kv/geometry.h"
#include "kv/token_range.h"

namespace pallas::session {

struct Rows {
  kv::TokenRange range;
  kv::Bytes bytes;
};

// Rows of ascending positions, as of one range of as many.
struct Scattered {
  kv::Coverage positions;
  kv::Bytes bytes;
};

class StagedRows {
 public:
  // `total`, if given, is raised and lowered by what is staged here; it outlives this object.
  explicit StagedRows(kv::Geometry geometry, std::uint64_t* total = nullptr)
      : geometry_(geometry), total_(total) {}
  ~StagedRows() { clear(); }
  StagedRows(const StagedRows&) = delete;
  StagedRows& operator=(const StagedRows&) = delete;

  // Keeps the part of `rows` that is not staged yet; returns how many positions that were.
  TokenPosition add(Rows rows);
  // The same for rows of scattered positions, as of one range of as many.
  TokenPosition add(const kv::Coverage& positions, const kv::Bytes& rows);
  // Takes out the stretch that begins at `front`, if any: as it was added, or joined with those
  // that follow it without a hole while it has no more than `at_most` positions.
  std::optional<Rows> take_at(TokenPosition front, TokenPosition at_most = 0);
  // Rows of all stretches at or above `front`, which stay here, as of one range.
  Scattered copy_from(TokenPosition front) const;
  // Forgets what lies below `front`; returns how many positions that were.
  TokenPosition drop_below(TokenPosition front);
  // Forgets what lies at or above `end` (the token log was cut there).
  void drop_from(TokenPosition end);
  void clear();

  // Where the lowest staged stretch at or above `front` begins.
  std::optional<TokenPosition> next_begin(TokenPosition front) const;
  const kv::Coverage& coverage() const { return coverage_; }
  std::uint64_t bytes() const { return bytes_; }
  bool empty() const { return by_begin_.empty(); }

 private:
  void insert(Rows rows);
  Rows extract(std::map<TokenPosition, Rows>::iterator stretch);

  kv::Geometry geometry_;
  std::uint64_t* total_;
  std::map<TokenPosition, Rows> by_begin_;  // disjoint
  kv::Coverage coverage_;                   // of all of them
  std::uint64_t bytes_ = 0;
};

}  // namespace pallas::session
