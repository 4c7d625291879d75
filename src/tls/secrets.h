#pragma once
// Small things that secrets need: files that are read whole and watched, digests, comparison.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pallas::tls {

struct File {
  std::string setting;  // what errors call it, "peer_cert"
  std::string path;
};
// "<setting>: '<path>' <why>"
Failure wrong_file(const File& file, const std::string& why, Errc code = Errc::kInvalidConfig);

// The whole file, at most 1 MiB. A secret one must not be open to everybody.
Result<std::string> read_file(const File& file, bool secret);

// Files that may be replaced while the program runs. Paths may be empty.
class FileWatch {
 public:
  explicit FileWatch(std::vector<std::string> paths);
  // Whether one of them is another than when this was last asked, or the object made.
  bool changed();

 private:
  // What tells a file from what it was: device, inode, size, time of change.
  using Stamp = std::array<std::int64_t, 5>;
  std::vector<Stamp> look() const;

  std::vector<std::string> paths_;
  std::vector<Stamp> seen_;
};

// 32 bytes.
std::string sha256(std::string_view text);
std::string to_hex(std::string_view bytes);

}  // namespace pallas::tls
