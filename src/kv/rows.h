#pragma once
// Cutting payloads of rows (layout: kv/geometry.h).

#include "kv/geometry.h"
#include "kv/token_range.h"

namespace pallas::kv {

// The rows of `wanted` out of a payload that covers `held`; wanted must lie within held and the
// payload's size must be held.size() * bytes_per_token().
Bytes slice_rows(const Geometry& geometry, const Bytes& payload, TokenRange held,
                 TokenRange wanted);
// The same for scattered positions: as a payload of wanted.total() positions, ascending.
Bytes gather_rows(const Geometry& geometry, const Bytes& payload, TokenRange held,
                  const Coverage& wanted);
// Payloads of ascending positions, one behind the other, as the payload of all of them: what
// gather_rows takes apart. Each size must be its count * bytes_per_token().
struct RowsPart {
  TokenPosition count = 0;
  const Bytes* payload = nullptr;
};
Bytes join_rows(const Geometry& geometry, const std::vector<RowsPart>& parts);

}  // namespace pallas::kv
