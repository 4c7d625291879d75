#include "kv/rows.h"

#include <cstring>

namespace pallas::kv {

Bytes slice_rows(const Geometry& geometry, const Bytes& payload, TokenRange held,
                 TokenRange wanted) {
  Coverage one;
  one.add(wanted);
  return gather_rows(geometry, payload, held, one);
}

Bytes gather_rows(const Geometry& geometry, const Bytes& payload, TokenRange held,
                  const Coverage& wanted) {
  Bytes out(wanted.total() * geometry.bytes_per_token());
  const std::byte* from = payload.data();
  std::byte* to = out.data();
  for (const std::size_t row :
       {std::size_t{geometry.k_row_bytes}, std::size_t{geometry.v_row_bytes}}) {
    for (std::uint32_t layer = 0; layer < geometry.layers; ++layer) {
      for (const TokenRange& range : wanted.ranges()) {
        std::memcpy(to, from + (range.begin - held.begin) * row, range.size() * row);
        to += range.size() * row;
      }
      from += held.size() * row;
    }
  }
  return out;
}

Bytes join_rows(const Geometry& geometry, const std::vector<RowsPart>& parts) {
  std::size_t count = 0;
  for (const RowsPart& part : parts) count += part.count;
  Bytes out(count * geometry.bytes_per_token());
  std::vector<const std::byte*> from;
  from.reserve(parts.size());
  for (const RowsPart& part : parts) from.push_back(part.payload->data());
  std::byte* to = out.data();
  for (const std::size_t row :
       {std::size_t{geometry.k_row_bytes}, std::size_t{geometry.v_row_bytes}}) {
    for (std::uint32_t layer = 0; layer < geometry.layers; ++layer) {
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::size_t bytes = parts[i].count * row;
        std::memcpy(to, from[i], bytes);
        to += bytes;
        from[i] += bytes;
      }
    }
  }
  return out;
}

}  // namespace pallas::kv
