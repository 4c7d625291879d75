// libFuzzer target over KvBlock headers and their payloads: a block that the codec lets through is
// cut, staged, joined and taken out as a target does, beside a model that keeps each position's row
// by itself. Rows must come out as they went in, and the bytes that are counted be those that are
// held.

#include <cstdint>
#include <cstring>
#include <map>

#include "input_reader.h"
#include "kv/rows.h"
#include "session/staged_rows.h"
#include "wire/codec.h"

namespace {

using namespace pallas;
using fuzz::InputReader;
using fuzz::require;

// What is told of a position by the bytes of its row.
std::byte tag(std::uint8_t block, TokenPosition position, std::uint32_t offset) {
  return static_cast<std::byte>(block * 31 + position * 7 + offset);
}

class Staging {
 public:
  explicit Staging(kv::Geometry geometry) : geometry_(geometry), staged_(geometry, &total_) {}

  void receive(InputReader& input) {
    wire::KvBlock block;
    block.session = SessionId("s");
    block.attempt = Attempt{NodeId("a"), BootId(1), 1};
    block.first = input.up_to(400);
    if (input.one_in(2)) {
      TokenPosition at = block.first;
      for (std::uint32_t n = input.up_to(12); n > 0; --n) {
        const TokenPosition end = at + input.up_to(9);  // may be empty, which is refused
        block.positions.push_back({at, end});
        block.count += end - at;
        at = end + input.up_to(5);
      }
      if (input.one_in(16)) block.count += input.byte();
    } else {
      block.count = input.up_to(300);
    }
    const std::uint64_t row = input.one_in(16) ? input.byte() : geometry_.bytes_per_token();
    block.payload_bytes = block.count * row;
    const auto frame = wire::encode(block);
    if (!frame) return;
    const auto header = wire::decode_header(
        std::span<const std::byte, wire::kHeaderBytes>(frame->data(), wire::kHeaderBytes));
    require(header && header->payload_bytes == block.payload_bytes);
    const auto read = wire::decode(*header, std::span(*frame).subspan(wire::kHeaderBytes));
    require(read && *read == wire::Message(block));
    // As the node does before rows go anywhere.
    if (block.payload_bytes != block.count * geometry_.bytes_per_token()) return;
    stage(block);
  }

  void take(InputReader& input) {
    const TokenPosition front = input.up_to(700);
    const auto rows = staged_.take_at(front, input.up_to(64));
    model_.erase(model_.begin(), model_.lower_bound(front));
    if (!rows) {
      require(!model_.contains(front));
      return;
    }
    require(rows->range.begin == front && !rows->range.empty());
    kv::Coverage held;
    held.add(rows->range);
    compare(held, rows->bytes);
    for (TokenPosition p = rows->range.begin; p < rows->range.end; ++p) model_.erase(p);
  }

  void copy(InputReader& input) {
    const TokenPosition front = input.up_to(700);
    staged_.drop_below(front);
    model_.erase(model_.begin(), model_.lower_bound(front));
    const auto all = staged_.copy_from(front);
    require(all.positions.total() == model_.size());
    compare(all.positions, all.bytes);
  }

  void cut(InputReader& input) {
    const TokenPosition end = input.up_to(700);
    staged_.drop_from(end);
    model_.erase(model_.lower_bound(end), model_.end());
  }

  void check() const {
    require(staged_.coverage().total() == model_.size());
    for (const auto& [position, block] : model_) require(staged_.coverage().contains(position));
    require(staged_.bytes() == model_.size() * geometry_.bytes_per_token());
    require(total_ == staged_.bytes());
    require(staged_.empty() == model_.empty());
  }

 private:
  void stage(const wire::KvBlock& block) {
    ++blocks_;
    const kv::Coverage held = block.covered();
    require(held.total() == block.count);
    const kv::Bytes rows = payload(held, [this](TokenPosition) { return blocks_; });
    TokenPosition kept = 0;
    for (const auto& range : held.ranges()) {
      for (TokenPosition p = range.begin; p < range.end; ++p)
        kept += model_.emplace(p, blocks_).second;
    }
    const TokenPosition added = block.positions.empty()
                                    ? staged_.add({{block.first, block.first + block.count}, rows})
                                    : staged_.add(held, rows);
    require(added == kept);
  }

  // Rows of ascending positions in the layout of kv/geometry.h.
  template <class BlockOf>
  kv::Bytes payload(const kv::Coverage& held, BlockOf block_of) const {
    kv::Bytes bytes;
    std::uint32_t offset = 0;
    for (const std::uint32_t width : {geometry_.k_row_bytes, geometry_.v_row_bytes}) {
      for (std::uint32_t layer = 0; layer < geometry_.layers; ++layer, offset += width) {
        for (const auto& range : held.ranges()) {
          for (TokenPosition p = range.begin; p < range.end; ++p) {
            for (std::uint32_t i = 0; i < width; ++i)
              bytes.push_back(tag(block_of(p), p, offset + i));
          }
        }
      }
    }
    return bytes;
  }

  void compare(const kv::Coverage& held, const kv::Bytes& bytes) const {
    for (const auto& range : held.ranges()) {
      for (TokenPosition p = range.begin; p < range.end; ++p) require(model_.contains(p));
    }
    require(bytes == payload(held, [this](TokenPosition p) { return model_.at(p); }));
  }

  kv::Geometry geometry_;
  std::uint64_t total_ = 0;
  session::StagedRows staged_;
  std::map<TokenPosition, std::uint8_t> model_;  // the block whose row is kept
  std::uint8_t blocks_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  InputReader input(data, size);
  kv::Geometry geometry;
  geometry.layers = 1 + input.up_to(2);
  geometry.k_row_bytes = 1 + input.up_to(3);
  geometry.v_row_bytes = 1 + input.up_to(3);
  Staging staging(geometry);
  for (int step = 0; step < 64 && !input.empty(); ++step) {
    switch (input.byte() % 5) {
      case 0:
      case 1:
        staging.receive(input);
        break;
      case 2:
        staging.take(input);
        break;
      case 3:
        staging.copy(input);
        break;
      default:
        staging.cut(input);
    }
    staging.check();
  }
  return 0;
}
