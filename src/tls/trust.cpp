#include "tls/trust.h"

#include <arpa/inet.h>

#include <array>

#include "tls/handles.h"

namespace pallas::tls {
namespace {

bool is_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes;
  return inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

}  // namespace

Trust::~Trust() {
  SSL_CTX_free(context_);
}

Result<std::unique_ptr<Trust>> Trust::load(const File& authority) {
  const auto certificates = read_certificates(authority);
  if (!certificates) return Failure(certificates.error());
  Owned<SSL_CTX> context(SSL_CTX_new(TLS_client_method()));
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) != 1) {
    return openssl_failure("TLS");
  }
  for (const auto& one : *certificates) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), one.get()) != 1) {
      return wrong_file(authority, "cannot be used: " + last_error());
    }
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  return std::unique_ptr<Trust>(new Trust(context.release()));
}

ssl_st* Trust::session_for(const std::string& host) const {
  Owned<SSL> ssl(SSL_new(context_));
  if (!ssl) return nullptr;
  X509_VERIFY_PARAM* const wanted = SSL_get0_param(ssl.get());
  X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  const bool set = is_address(host)
                       ? X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str()) == 1
                       : X509_VERIFY_PARAM_set1_host(wanted, host.data(), host.size()) == 1 &&
                             SSL_set_tlsext_host_name(ssl.get(), host.c_str()) == 1;
  return set ? ssl.release() : nullptr;
}

}  // namespace pallas::tls
