#pragma once
// The path that is measured: rows out of one engine's KV cache, over a peer link, into another's,
// with the product's own engine, link, frames and checksum (engine/engine.h, net/peer_links.h).

#include <memory>
#include <string>
#include <vector>

#include "bench_transfer_end.h"
#include "engine/engine.h"
#include "engine_setup.h"

namespace pallas::app {

struct TransferEngineConfig {
  std::string engine;  // "llama" or "fake"
  std::string model;   // a GGUF file
  TokenPosition context = 0;
  std::string certificates;  // a folder with those of "source" and "target" (certificate_folder.h)
};

// An engine with one session: the source's is prefilled with `context` tokens, the target's empty.
// It stays for all runs of its process.
class TransferEngine {
 public:
  static Result<std::unique_ptr<TransferEngine>> start(TransferRole role,
                                                       const TransferEngineConfig& config);
  virtual ~TransferEngine() = default;

  virtual std::uint64_t session_bytes() const = 0;
  virtual std::uint64_t bytes_per_token() const = 0;
  // Of all rows in the cache, in hex, from their XXH3. The session must be complete.
  virtual Result<std::string> rows_hash() = 0;
  // Lives no longer than this. `tls`: the peer link is under TLS.
  virtual std::unique_ptr<TransferEnd> make_end(bool tls) = 0;
};

}  // namespace pallas::app
