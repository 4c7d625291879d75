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

// A hole leaves a trace of its own, so that nobody takes it for rows of zeros.
void FakeKv::push_hole() {
  holes_.add({front(), front() + 1});
  digests_.push_back(HashInput().add(digests_.back()).add(std::string("hole")).digest());
}

template <class Copy>
void FakeKv::for_each_stretch(const kv::Coverage& positions, Copy copy) const {
  std::size_t wire = 0;
  std::size_t in_row = 0;
  for (const std::size_t row_bytes : {geometry_.k_row_bytes, geometry_.v_row_bytes}) {
    for (std::uint32_t layer = 0; layer < geometry_.layers; ++layer) {
      for (const kv::TokenRange& range : positions.ranges()) {
        for (TokenPosition p = range.begin; p < range.end; ++p) {
          copy(wire, p * bytes_per_token() + in_row, row_bytes);
          wire += row_bytes;
        }
      }
      in_row += row_bytes;
    }
  }
}

void FakeKv::append(TokenPosition count, const kv::Bytes& rows) {
  kv::Coverage positions;
  positions.add({front(), front() + count});
  append_scattered(positions, rows);
}

void FakeKv::append_scattered(const kv::Coverage& positions, const kv::Bytes& rows) {
  if (positions.empty()) return;
  rows_.resize(positions.ranges().back().end * bytes_per_token(), std::byte{});
  for_each_stretch(positions, [&](std::size_t wire, std::size_t own, std::size_t size) {
    std::memcpy(rows_.data() + own, rows.data() + wire, size);
  });
  for (const kv::TokenRange& range : positions.ranges()) {
    while (front() < range.begin) push_hole();
    while (front() < range.end) push_digest();
  }
}

bool FakeKv::holds(kv::TokenRange range) const {
  if (range.empty()) return true;
  return range.end <= front() && holes_.missing(range) == std::vector<kv::TokenRange>{range};
}

kv::Bytes FakeKv::read(kv::TokenRange range) const {
  kv::Bytes rows(range.size() * bytes_per_token());
  kv::Coverage positions;
  positions.add(range);
  for_each_stretch(positions, [&](std::size_t wire, std::size_t own, std::size_t size) {
    std::memcpy(rows.data() + wire, rows_.data() + own, size);
  });
  return rows;
}

void FakeKv::truncate(TokenPosition front) {
  holes_.remove({front, this->front()});
  rows_.resize(front * bytes_per_token());
  digests_.resize(front + std::size_t{1});
}

std::vector<double> FakeKv::rank(const RankRequest& request) const {
  const TokenPosition count = front();
  const std::size_t dimension = geometry_.k_row_bytes;
  RankMean ranks(count);
  std::vector<float> keys(count * dimension);
  std::vector<double> attention(count);
  switch (request.ordering) {
    case Ordering::kSinksRecency:
      return sinks_recency_scores(count);
    case Ordering::kRandom:
      return random_scores(count, request.seed);
    case Ordering::kKeyNorm:
    case Ordering::kKeyDiff:
      for (std::uint32_t layer = 0; layer < geometry_.layers; ++layer) {
        for (std::size_t i = 0; i < keys.size(); ++i) {
          const std::size_t at =
              i / dimension * bytes_per_token() + layer * dimension + i % dimension;
          keys[i] = static_cast<float>(std::to_integer<int>(rows_[at]) - 128);
        }
        ranks.add(request.ordering == Ordering::kKeyNorm ? key_norm_scores(keys, dimension)
                                                         : key_diff_scores(keys, dimension));
      }
      return ranks.mean();
    case Ordering::kObservationWindow: {
      HashInput window;
      for (const TokenId id : request.window) window.add(static_cast<std::uint64_t>(id));
      const std::uint64_t seed = window.digest();
      for (TokenPosition p = 0; p < count; ++p) {
        const std::byte* const row = rows_.data() + p * bytes_per_token();
        const std::uint64_t draw = XXH3_64bits_withSeed(row, bytes_per_token(), seed);
        attention[p] = static_cast<double>(draw >> 11) * 0x1.0p-53;
      }
      return attention;
    }
  }
  return {};
}

bool FakeKv::consistent() const {
  if (rows_.size() != front() * bytes_per_token()) return false;
  FakeKv again(geometry_, weights_);
  for (TokenPosition p = 0; p < front(); ++p) {
    if (holes_.contains(p)) {
      again.rows_.resize(again.rows_.size() + bytes_per_token(), std::byte{});
      again.push_hole();
    } else {
      again.append(1, read({p, p + 1}));
    }
  }
  return again.digests_ == digests_;
}

}  // namespace pallas::engine
