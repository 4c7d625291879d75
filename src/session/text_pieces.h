#pragma once
// The visible text of each generated token: many, mostly short, often empty pieces in one string.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pallas::session {

class TextPieces {
 public:
  void push_back(std::string_view piece) {
    all_.append(piece);
    if (ends_.size() == ends_.capacity()) ends_.reserve(ends_.size() + ends_.size() / 8 + 64);
    ends_.push_back(static_cast<std::uint32_t>(all_.size()));
  }
  std::size_t size() const { return ends_.size(); }
  std::string operator[](std::size_t index) const {
    const std::uint32_t begin = index == 0 ? 0 : ends_[index - 1];
    return all_.substr(begin, ends_[index] - begin);
  }
  std::uint64_t memory_bytes() const {
    return all_.capacity() + ends_.capacity() * sizeof(std::uint32_t);
  }

 private:
  std::string all_;
  std::vector<std::uint32_t> ends_;
};

}  // namespace pallas::session
