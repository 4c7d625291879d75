#include "engine/fake_kv.h"

#include <xxhash.h>

#include <bit>
#include <cstring>
#include <string>

namespace pallas::engine {

HashInput& HashInput::add(std::uint64_t value) {
  for (unsigned i = 0; i < 8; ++i) bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
  return *this;
}
HashInput& HashInput::add(double value) {
  return add(std::bit_cast<std::uint64_t>(value));
}
HashInput& HashInput::add(const std::string& text) {
  add(std::uint64_t{text.size()});
  return add(reinterpret_cast<const std::byte*>(text.data()), text.size());
}
HashInput& HashInput::add(const std::byte* bytes, std::size_t size) {
  bytes_.insert(bytes_.end(), bytes, bytes + size);
  return *this;
}
std::uint64_t HashInput::digest() const {
  return XXH3_64bits(bytes_.data(), bytes_.size());
}

FakeKv::FakeKv(kv::Geometry geometry, std::uint64_t weights)
    : geometry_(geometry), weights_(weights), digests_{weights} {}

void FakeKv::compute(TokenId id, std::uint64_t compute_class) {
  const std::uint64_t seed = HashInput()
                                 .add(weights_)
                                 .add(digest())
                                 .add(std::uint64_t{front()})
                                 .add(static_cast<std::uint64_t>(id))
                                 .add(compute_class)
                                 .digest();
  for (std::size_t i = 0; i < bytes_per_token(); i += sizeof(std::uint64_t)) {
    const std::uint64_t word = XXH3_64bits_withSeed(&i, sizeof i, seed);
    for (std::size_t b = 0; b < sizeof word && i + b < bytes_per_token(); ++b) {
      rows_.push_back(static_cast<std::byte>(word >> (8 * b)));
    }
  }
  push_digest();
}

void FakeKv::push_digest() {
  const std::size_t position = digests_.size() - 1;
  digests_.push_back(HashInput()
                         .add(digests_.back())
                         .add(rows_.data() + position * bytes_per_token(), bytes_per_token())
                         .digest());
}

template <class Copy>
void FakeKv::for_each_stretch(kv::TokenRange range, Copy copy) const {
  std::size_t wire = 0;
  std::size_t in_row = 0;
  for (const std::size_t row_bytes : {geometry_.k_row_bytes, geometry_.v_row_bytes}) {
    for (std::uint32_t layer = 0; layer < geometry_.layers; ++layer) {
      for (TokenPosition p = range.begin; p < range.end; ++p) {
        copy(wire, p * bytes_per_token() + in_row, row_bytes);
        wire += row_bytes;
      }
      in_row += row_bytes;
    }
  }
}

void FakeKv::append(TokenPosition count, const kv::Bytes& rows) {
  const kv::TokenRange range{front(), front() + count};
  rows_.resize(rows_.size() + count * bytes_per_token());
  for_each_stretch(range, [&](std::size_t wire, std::size_t own, std::size_t size) {
    std::memcpy(rows_.data() + own, rows.data() + wire, size);
  });
  for (TokenPosition i = 0; i < count; ++i) push_digest();
}

kv::Bytes FakeKv::read(kv::TokenRange range) const {
  kv::Bytes rows(range.size() * bytes_per_token());
  for_each_stretch(range, [&](std::size_t wire, std::size_t own, std::size_t size) {
    std::memcpy(rows.data() + wire, rows_.data() + own, size);
  });
  return rows;
}

void FakeKv::truncate(TokenPosition front) {
  rows_.resize(front * bytes_per_token());
  digests_.resize(front + std::size_t{1});
}

bool FakeKv::consistent() const {
  if (rows_.size() != front() * bytes_per_token()) return false;
  FakeKv again(geometry_, weights_);
  again.append(front(), read({0, front()}));
  return again.digests_ == digests_;
}

}  // namespace pallas::engine
