#pragma once
// Whom a client of HTTPS believes: the authorities in a file, and nobody else.

#include <memory>
#include <string>

#include "base/result.h"
#include "tls/secrets.h"

struct ssl_ctx_st;
struct ssl_st;

namespace pallas::tls {

class Trust {
 public:
  // kInvalidConfig or kIo, naming setting and file.
  static Result<std::unique_ptr<Trust>> load(const File& authority);
  ~Trust();
  Trust(const Trust&) = delete;
  Trust& operator=(const Trust&) = delete;

  // For a TLS 1.3 connection to a server whose certificate is made out to `host`, a DNS name or an
  // IP address. The caller's to free; null without memory.
  ssl_st* session_for(const std::string& host) const;

 private:
  explicit Trust(ssl_ctx_st* context) : context_(context) {}
  ssl_ctx_st* context_;
};

}  // namespace pallas::tls
