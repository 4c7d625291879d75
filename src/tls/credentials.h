#pragma once
// Who this process is towards others, and whom it believes: a certificate, its key and the
// authorities that sign the others'. Read from PEM files, and again when these change.

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "tls/secrets.h"

struct ssl_ctx_st;

namespace pallas::tls {

struct Files {
  File certificate;  // this process's own, followed by those between it and its authority
  File key;          // without a passphrase; only owner and group may read it
  File authority;    // one or more; whom they sign is believed. Without a path: nobody is asked
};

class Credentials {
 public:
  // Reads and checks everything, so that a mistake is known at the start and not when a peer calls:
  // the key belongs to the certificate, the certificate is valid now, carries `name` (unless that
  // is empty) and, where there are authorities, is signed by one of them. Errors (kInvalidConfig,
  // kIo) name the setting, the file and what is wrong with it.
  static Result<std::unique_ptr<Credentials>> load(Files files, std::string name);
  ~Credentials();
  Credentials(const Credentials&) = delete;
  Credentials& operator=(const Credentials&) = delete;

  // Reads the files again if one of them has changed since they were last read; true if so.
  // Sessions made from then on use what was read. An error, once for each change: what is new is
  // broken, and what was read before stays in use.
  Result<bool> refresh();

  // TLS 1.3 and nothing older: no tickets, no early data. Owned by this object.
  ssl_ctx_st* context() const { return context_.get(); }
  // When the own certificate ends, in seconds since 1970.
  std::int64_t ends_unix_s() const { return ends_unix_s_; }

 private:
  struct FreeContext {
    void operator()(ssl_ctx_st* context) const;
  };

  Credentials(Files files, std::string name);
  Status read();

  Files files_;
  std::string name_;
  FileWatch watch_;
  std::unique_ptr<ssl_ctx_st, FreeContext> context_;
  std::int64_t ends_unix_s_ = 0;
};

}  // namespace pallas::tls
