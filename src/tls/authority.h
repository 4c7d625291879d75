#pragma once
// An authority of one's own and certificates that it signs: for tests, and for sites that have no
// public key infrastructure. Keys are elliptic (P-256).

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace pallas::tls {

// A certificate and its key, both in PEM.
struct KeyPair {
  std::string certificate, key;
};

// What a certificate says. Valid from `begins` from now on until `ends` from now; both may be
// negative.
struct CertificateText {
  std::vector<std::string> names;                        // subjectAltName, DNS
  std::chrono::seconds begins = -std::chrono::hours(1);  // clocks differ
  std::chrono::seconds ends = std::chrono::hours(24 * 365);
  std::vector<std::string> addresses = {};  // subjectAltName, IP
};

class Authority {
 public:
  static Result<std::unique_ptr<Authority>> make(const std::string& name,
                                                 std::chrono::seconds lifetime);
  // One that was made before. kInvalidArgument when it is none.
  static Result<std::unique_ptr<Authority>> from(const KeyPair& own);
  virtual ~Authority() = default;

  virtual const KeyPair& own() const = 0;
  // For both ends of a connection.
  virtual Result<KeyPair> issue(const CertificateText& text) const = 0;
};

}  // namespace pallas::tls
