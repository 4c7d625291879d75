#include "session/staged_rows.h"

#include <utility>

#include "kv/rows.h"

namespace pallas::session {

void StagedRows::insert(Rows rows) {
  bytes_ += rows.bytes.size();
  if (total_ != nullptr) *total_ += rows.bytes.size();
  coverage_.add(rows.range);
  const TokenPosition begin = rows.range.begin;
  by_begin_.emplace(begin, std::move(rows));
}

Rows StagedRows::extract(std::map<TokenPosition, Rows>::iterator stretch) {
  Rows rows = std::move(stretch->second);
  by_begin_.erase(stretch);
  coverage_.remove(rows.range);
  bytes_ -= rows.bytes.size();
  if (total_ != nullptr) *total_ -= rows.bytes.size();
  return rows;
}

TokenPosition StagedRows::add(Rows rows) {
  const auto holes = coverage_.missing(rows.range);
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

TokenPosition StagedRows::add(const kv::Coverage& positions, const kv::Bytes& rows) {
  const kv::TokenRange all{0, positions.total()};
  TokenPosition kept = 0, before = 0;
  for (const kv::TokenRange& range : positions.ranges()) {
    const kv::TokenRange part{before, before + range.size()};
    kept += add({range, kv::slice_rows(geometry_, rows, all, part)});
    before = part.end;
  }
  return kept;
}

std::optional<Rows> StagedRows::take_at(TokenPosition front, TokenPosition at_most) {
  drop_below(front);
  const auto first = by_begin_.find(front);
  if (first == by_begin_.end()) return std::nullopt;
  kv::TokenRange joined = first->second.range;
  std::vector<kv::RowsPart> parts;
  for (auto it = first; it != by_begin_.end(); ++it) {
    const kv::TokenRange& range = it->second.range;
    const bool follows = range.begin == joined.end && range.end - front <= at_most;
    if (it != first && !follows) break;
    joined.end = range.end;
    parts.push_back({range.size(), &it->second.bytes});
  }
  if (parts.size() == 1) return extract(first);
  Rows rows{joined, kv::join_rows(geometry_, parts)};
  for (std::size_t i = 0; i < parts.size(); ++i) extract(by_begin_.lower_bound(front));
  return rows;
}

Scattered StagedRows::copy_from(TokenPosition front) const {
  Scattered copy;
  std::vector<kv::RowsPart> parts;
  for (auto it = by_begin_.lower_bound(front); it != by_begin_.end(); ++it) {
    copy.positions.add(it->second.range);
    parts.push_back({it->second.range.size(), &it->second.bytes});
  }
  copy.bytes = kv::join_rows(geometry_, parts);
  return copy;
}

TokenPosition StagedRows::drop_below(TokenPosition front) {
  TokenPosition dropped = 0;
  while (!by_begin_.empty() && by_begin_.begin()->first < front) {
    const Rows rows = extract(by_begin_.begin());
    const kv::TokenRange above{std::max(front, rows.range.begin), rows.range.end};
    dropped += rows.range.size() - above.size();
    if (!above.empty()) insert({above, kv::slice_rows(geometry_, rows.bytes, rows.range, above)});
  }
  return dropped;
}

void StagedRows::drop_from(TokenPosition end) {
  while (!by_begin_.empty()) {
    const auto last = std::prev(by_begin_.end());
    if (last->second.range.end <= end) return;
    const Rows rows = extract(last);
    const kv::TokenRange below{rows.range.begin, std::min(end, rows.range.end)};
    if (!below.empty()) {
      insert({below, kv::slice_rows(geometry_, rows.bytes, rows.range, below)});
      return;
    }
  }
}

void StagedRows::clear() {
  by_begin_.clear();
  coverage_.clear();
  if (total_ != nullptr) *total_ -= bytes_;
  bytes_ = 0;
}

std::optional<TokenPosition> StagedRows::next_begin(TokenPosition front) const {
  auto it = by_begin_.lower_bound(front);
  if (it == by_begin_.end()) return std::nullopt;
  return it->first;
}

}  // namespace pallas::session
