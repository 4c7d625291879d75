#pragma once
// Turns the bytes of one fuzzer input into choices. After the end of the input all choices are 0.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

namespace pallas::fuzz {

// What does not hold ends the process; the fuzzer keeps the input.
inline void require(bool holds, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (holds) return;
  std::fprintf(stderr, "%s:%d: does not hold\n", file, line);
  std::abort();
}

class InputReader {
 public:
  InputReader(const std::uint8_t* data, std::size_t size) : left_(data, size) {}

  bool empty() const { return left_.empty(); }
  std::uint8_t byte() {
    if (left_.empty()) return 0;
    const std::uint8_t value = left_.front();
    left_ = left_.subspan(1);
    return value;
  }
  // 0 to `most`.
  std::uint32_t up_to(std::uint32_t most) {
    if (most == 0) return 0;
    std::uint32_t value = byte();
    if (most > 0xff) value = value << 8 | byte();
    return value % (most + 1);
  }
  // True for one byte in `of`.
  bool one_in(std::uint32_t of) { return byte() % of == 1; }
  std::string_view rest() {
    const std::string_view text(reinterpret_cast<const char*>(left_.data()), left_.size());
    left_ = {};
    return text;
  }

 private:
  std::span<const std::uint8_t> left_;
};

}  // namespace pallas::fuzz
