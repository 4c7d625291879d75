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

}  // namespace pallas::kv
