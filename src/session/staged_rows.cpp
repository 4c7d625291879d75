#include "session/staged_rows.h"

#include <utility>

#include "kv/rows.h"

namespace pallas::session {

void StagedRows::insert(Rows rows) {
  bytes_ += rows.bytes.size();
  if (total_ != nullptr) *total_ += rows.bytes.size();
  const TokenPosition begin = rows.range.begin;
  by_begin_.emplace(begin, std::move(rows));
}

TokenPosition StagedRows::add(Rows rows) {
  const auto holes = coverage().missing(rows.range);
  if (holes.size() == 1 && holes.front() == rows.range) {
    const TokenPosition count = rows.range.size();
    insert(std::move(rows));
    return count;
  }
  TokenPosition kept = 0;
  for (const kv::TokenRange& hole : holes) {
    insert({hole, kv::slice_rows(geometry_, rows.bytes, rows.range, hole)});
    kept += hole.size();
  }
  return kept;
}

std::optional<Rows> StagedRows::take_at(TokenPosition front) {
  drop_below(front);
  auto it = by_begin_.find(front);
  if (it == by_begin_.end()) return std::nullopt;
  Rows rows = std::move(it->second);
  by_begin_.erase(it);
  forget(rows.bytes.size());
  return rows;
}

TokenPosition StagedRows::drop_below(TokenPosition front) {
  TokenPosition dropped = 0;
  while (!by_begin_.empty() && by_begin_.begin()->first < front) {
    Rows rows = std::move(by_begin_.begin()->second);
    by_begin_.erase(by_begin_.begin());
    forget(rows.bytes.size());
    const kv::TokenRange above{std::max(front, rows.range.begin), rows.range.end};
    dropped += rows.range.size() - above.size();
    if (!above.empty()) insert({above, kv::slice_rows(geometry_, rows.bytes, rows.range, above)});
  }
  return dropped;
}

void StagedRows::drop_from(TokenPosition end) {
  while (!by_begin_.empty()) {
    auto last = std::prev(by_begin_.end());
    if (last->second.range.end <= end) return;
    Rows rows = std::move(last->second);
    by_begin_.erase(last);
    forget(rows.bytes.size());
    const kv::TokenRange below{rows.range.begin, std::min(end, rows.range.end)};
    if (!below.empty()) {
      insert({below, kv::slice_rows(geometry_, rows.bytes, rows.range, below)});
      return;
    }
  }
}

void StagedRows::clear() {
  by_begin_.clear();
  forget(bytes_);
}

std::optional<TokenPosition> StagedRows::next_begin(TokenPosition front) const {
  auto it = by_begin_.lower_bound(front);
  if (it == by_begin_.end()) return std::nullopt;
  return it->first;
}

kv::Coverage StagedRows::coverage() const {
  kv::Coverage all;
  for (const auto& [begin, rows] : by_begin_) all.add(rows.range);
  return all;
}

}  // namespace pallas::session
