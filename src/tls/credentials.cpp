#include "tls/credentials.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <utility>

#include "tls/handles.h"

namespace pallas::tls {
namespace {

constexpr int kMaxChain = 4;                // certificates between one and its authority
constexpr long kMaxChainBytes = 32L << 10;  // of what a peer shows

// AES with 128 bits first: it is the fastest on CPUs that also run a model.
constexpr const char* kCiphers =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

// Never asks: a program without a terminal would wait for ever.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

Result<Owned<EVP_PKEY>> read_key(const File& file) {
  auto read = read_file(file, true);
  if (!read) return Failure(read.error());
  std::string& text = *read;
  const Owned<BIO> bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  if (!bio) return openssl_failure(file.setting);
  Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  OPENSSL_cleanse(text.data(), text.size());
  if (key) return key;
  return wrong_file(file,
                    "holds no private key in PEM without a passphrase (" + last_error() + ")");
}

// What a peer would find wrong with the own certificate; for both roles, since who dials whom
// follows from the names.
Status check_chain(const Files& files, SSL_CTX* context, X509* certificate,
                   STACK_OF(X509) * between) {
  for (const int purpose : {X509_PURPOSE_SSL_SERVER, X509_PURPOSE_SSL_CLIENT}) {
    const Owned<X509_STORE_CTX> check(X509_STORE_CTX_new());
    if (!check || X509_STORE_CTX_init(check.get(), SSL_CTX_get_cert_store(context), certificate,
                                      between) != 1) {
      return openssl_failure(files.certificate.setting);
    }
    X509_STORE_CTX_set_purpose(check.get(), purpose);
    if (X509_verify_cert(check.get()) == 1) continue;
    const int error = X509_STORE_CTX_get_error(check.get());
    const std::string words = X509_verify_cert_error_string(error);
    ERR_clear_error();
    if (error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
        error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT ||
        error == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
        error == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
        error == X509_V_ERR_CERT_SIGNATURE_FAILURE) {
      return wrong_file(files.certificate, "is not signed by an authority in " +
                                               files.authority.setting + " '" +
                                               files.authority.path + "' (" + words + ")");
    }
    return wrong_file(files.certificate, "would be refused by a peer: " + words);
  }
  return {};
}

Status check_dates(const File& file, const X509* certificate) {
  const auto* begin = X509_get0_notBefore(certificate);
  const auto* end = X509_get0_notAfter(certificate);
  if (X509_cmp_current_time(begin) > 0)
    return wrong_file(file, "is valid only from " + date_of(begin));
  if (X509_cmp_current_time(end) < 0) return wrong_file(file, "expired on " + date_of(end));
  return {};
}

Status set_up(SSL_CTX* context) {
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
  // Authorities are known to whom they concern: what the certificate's file holds is enough to
  // show.
  SSL_CTX_set_mode(context, SSL_MODE_NO_AUTO_CHAIN);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify_depth(context, kMaxChain);
  SSL_CTX_set_max_cert_list(context, kMaxChainBytes);
  const bool done = SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
                    SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 &&
                    SSL_CTX_set_num_tickets(context, 0) == 1 &&
                    SSL_CTX_set_max_early_data(context, 0) == 1 &&
                    SSL_CTX_set_ciphersuites(context, kCiphers) == 1;
  return done ? Status() : openssl_failure("TLS");
}

std::int64_t to_unix_s(const ASN1_TIME* time) {
  const Owned<ASN1_TIME> origin(ASN1_TIME_set(nullptr, 0));
  int days = 0, seconds = 0;
  if (!origin || ASN1_TIME_diff(&days, &seconds, origin.get(), time) != 1) return 0;
  return std::int64_t{days} * 86'400 + seconds;
}

}  // namespace

void Credentials::FreeContext::operator()(ssl_ctx_st* context) const {
  SSL_CTX_free(context);
}

Credentials::Credentials(Files files, std::string name)
    : files_(std::move(files)),
      name_(std::move(name)),
      watch_({files_.certificate.path, files_.key.path, files_.authority.path}) {}
Credentials::~Credentials() = default;

Result<std::unique_ptr<Credentials>> Credentials::load(Files files, std::string name) {
  std::unique_ptr<Credentials> made(new Credentials(std::move(files), std::move(name)));
  if (Status ok = made->read(); !ok) return Failure(ok.error());
  return made;
}

Result<bool> Credentials::refresh() {
  // Asked before the files are read: what changes meanwhile is seen the next time.
  if (!watch_.changed()) return false;
  if (Status ok = read(); !ok) return Failure(ok.error());
  return true;
}

Status Credentials::read() {
  std::unique_ptr<ssl_ctx_st, FreeContext> context(SSL_CTX_new(TLS_method()));
  if (!context) return openssl_failure("TLS");
  if (Status ok = set_up(context.get()); !ok) return ok;

  auto chain = read_certificates(files_.certificate);
  if (!chain) return Failure(chain.error());
  X509* const own = chain->front().get();
  const Owned<STACK_OF(X509)> between(sk_X509_new_null());
  if (!between || SSL_CTX_use_certificate(context.get(), own) != 1) {
    return wrong_file(files_.certificate, "cannot be used: " + last_error());
  }
  for (std::size_t i = 1; i < chain->size(); ++i) {
    X509* const one = (*chain)[i].get();
    // Each list holds it on its own.
    if (SSL_CTX_add1_chain_cert(context.get(), one) != 1 || X509_up_ref(one) != 1 ||
        sk_X509_push(between.get(), one) == 0) {
      return wrong_file(files_.certificate, "cannot be used: " + last_error());
    }
  }
  const auto key = read_key(files_.key);
  if (!key) return Failure(key.error());
  if (X509_check_private_key(own, key->get()) != 1 ||
      SSL_CTX_use_PrivateKey(context.get(), key->get()) != 1) {
    ERR_clear_error();
    return wrong_file(files_.key, "is not the key of " + files_.certificate.setting + " '" +
                                      files_.certificate.path + "'");
  }
  if (Status ok = check_dates(files_.certificate, own); !ok) return ok;
  const auto names = names_of(own);
  if (!name_.empty() && std::find(names.begin(), names.end(), name_) == names.end()) {
    return wrong_file(files_.certificate, "is made out to " + quoted(names) +
                                              " (subjectAltName), not to '" + name_ + "'");
  }
  if (!files_.authority.path.empty()) {
    const auto authorities = read_certificates(files_.authority);
    if (!authorities) return Failure(authorities.error());
    for (const auto& one : *authorities) {
      if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), one.get()) != 1) {
        return wrong_file(files_.authority, "cannot be used: " + last_error());
      }
    }
    if (Status ok = check_chain(files_, context.get(), own, between.get()); !ok) return ok;
  }
  ends_unix_s_ = to_unix_s(X509_get0_notAfter(own));
  context_ = std::move(context);
  return {};
}

}  // namespace pallas::tls
