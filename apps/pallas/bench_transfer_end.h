#pragma once
// One end of one path of `pallas bench transfer`, in a process of its own.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace pallas::app {

enum class TransferRole : std::uint8_t { kSource, kTarget };

struct TransferOrder {
  std::string path;
  std::uint64_t block_bytes = 0;
  std::string congestion_control;  // empty: the system's
  std::string at;                  // the source is told where its target is
};

class TransferEnd {
 public:
  virtual ~TransferEnd() = default;
  // The target says where it can be reached; the source returns when it is connected.
  virtual Result<std::string> open(const TransferOrder& order) = 0;
  // The target, when its address was told: returns when the source is connected.
  virtual Status meet() { return {}; }
  // Sends, or receives, `bytes` and returns when they are out of its hands, or in their place.
  virtual Status run(std::uint64_t bytes) = 0;
  // Between runs: returns when `fd` is readable.
  virtual void wait_readable(int fd);
  // What a reader of the results should know, such as the cipher; no spaces.
  virtual std::string detail() const { return ""; }
};

// Inside the source; its target does nothing.
std::unique_ptr<TransferEnd> make_copy_end(TransferRole role, std::span<const std::byte> session);
// Over a TCP stream, with TLS 1.3 or without, with the checksum of each block or without. The
// source sends `session` block by block, again and again; the target writes it over `session`.
std::unique_ptr<TransferEnd> make_stream_end(TransferRole role, std::span<std::byte> session,
                                             bool tls, bool checksum);

}  // namespace pallas::app
