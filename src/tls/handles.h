#pragma once
// OpenSSL's objects with an owner, and its errors in words. For sources that see OpenSSL; the other
// headers of this folder do not.

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "tls/secrets.h"

namespace pallas::tls {

struct Free {
  void operator()(ASN1_TIME* p) const { ASN1_TIME_free(p); }
  void operator()(BIO* p) const { BIO_free(p); }
  void operator()(BIO_METHOD* p) const { BIO_meth_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(GENERAL_NAMES* p) const { GENERAL_NAMES_free(p); }
  void operator()(SSL* p) const { SSL_free(p); }
  void operator()(SSL_CTX* p) const { SSL_CTX_free(p); }
  void operator()(STACK_OF(X509) * p) const { sk_X509_pop_free(p, X509_free); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(X509_EXTENSION* p) const { X509_EXTENSION_free(p); }
  void operator()(X509_STORE_CTX* p) const { X509_STORE_CTX_free(p); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

// What OpenSSL's queue says last, in its words; empties the queue.
std::string last_error();
// kInternal: "<what>: <last_error()>".
Failure openssl_failure(const std::string& what);

// All certificates of a file in PEM, at least one; errors name it.
Result<std::vector<Owned<X509>>> read_certificates(const File& file);

// The names that a certificate carries (subjectAltName, DNS), as they stand there. Wildcards are
// names like any other, the subject's common name is none.
std::vector<std::string> names_of(const X509* certificate);
// A stranger's words for a log: printable, and not long.
std::string quoted(const std::vector<std::string>& names);
// "2026-11-30 10:22:45 UTC"
std::string date_of(const ASN1_TIME* time);

}  // namespace pallas::tls
