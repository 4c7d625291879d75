#include "kv/rows.h"

#include <cstring>

namespace pallas::kv {

Bytes slice_rows(const Geometry& geometry, const Bytes& payload, TokenRange held,
                 TokenRange wanted) {
  Bytes out(wanted.size() * geometry.bytes_per_token());
  if (wanted.empty()) return out;
  const std::byte* from = payload.data();
  std::byte* to = out.data();
  const std::size_t skip = wanted.begin - held.begin;
  for (const std::size_t row :
       {std::size_t{geometry.k_row_bytes}, std::size_t{geometry.v_row_bytes}}) {
    for (std::uint32_t layer = 0; layer < geometry.layers; ++layer) {
      std::memcpy(to, from + skip * row, wanted.size() * row);
      from += held.size() * row;
      to += wanted.size() * row;
    }
  }
  return out;
}

}  // namespace pallas::kv
