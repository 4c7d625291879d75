#include "tls/authority.h"

#include <openssl/bn.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include <algorithm>
#include <utility>

#include "tls/handles.h"

namespace pallas::tls {
namespace {

constexpr int kSerialBytes = 16;
constexpr long kVersion3 = 2;

template <class Write>
Result<std::string> to_pem(const Write& write) {
  const Owned<BIO> bio(BIO_new(BIO_s_mem()));
  if (!bio || write(bio.get()) != 1) return openssl_failure("PEM");
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &bytes);
  return std::string(bytes, static_cast<std::size_t>(size));
}

Result<KeyPair> pair_of(X509* certificate, EVP_PKEY* key) {
  const auto shown = to_pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
  const auto secret = to_pem([&](BIO* bio) {
    return PEM_write_bio_PKCS8PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
  if (!shown) return Failure(shown.error());
  if (!secret) return Failure(secret.error());
  return KeyPair{*shown, *secret};
}

bool give_serial(X509* certificate) {
  unsigned char bytes[kSerialBytes];
  if (RAND_bytes(bytes, sizeof bytes) != 1) return false;
  bytes[0] &= 0x7f;  // a positive number
  BIGNUM* number = BN_bin2bn(bytes, sizeof bytes, nullptr);
  const bool given = number != nullptr &&
                     BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr;
  BN_free(number);
  return given;
}

bool give_dates(X509* certificate, std::chrono::seconds begins, std::chrono::seconds ends) {
  return X509_gmtime_adj(X509_getm_notBefore(certificate), begins.count()) != nullptr &&
         X509_gmtime_adj(X509_getm_notAfter(certificate), ends.count()) != nullptr;
}

bool give_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Owned<X509_EXTENSION> made(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return made && X509_add_ext(certificate, made.get(), -1) == 1;
}

// Takes `value` over, whatever becomes of it.
bool push_name(GENERAL_NAMES* all, int kind, ASN1_STRING* value) {
  GENERAL_NAME* one = value == nullptr ? nullptr : GENERAL_NAME_new();
  if (one == nullptr) {
    ASN1_STRING_free(value);
    return false;
  }
  GENERAL_NAME_set0_value(one, kind, value);
  if (sk_GENERAL_NAME_push(all, one) != 0) return true;
  GENERAL_NAME_free(one);
  return false;
}

// Not by text, as other extensions: a name may contain what has a meaning there.
bool give_names(X509* certificate, const CertificateText& said) {
  const Owned<GENERAL_NAMES> all(sk_GENERAL_NAME_new_null());
  if (!all) return false;
  for (const auto& name : said.names) {
    ASN1_IA5STRING* text = ASN1_IA5STRING_new();
    if (text == nullptr) return false;
    const bool set = ASN1_STRING_set(text, name.data(), static_cast<int>(name.size())) == 1;
    if (!push_name(all.get(), GEN_DNS, text) || !set) return false;
  }
  for (const auto& address : said.addresses) {
    if (!push_name(all.get(), GEN_IPADD, a2i_IPADDRESS(address.c_str()))) return false;
  }
  return X509_add1_ext_i2d(certificate, NID_subject_alt_name, all.get(), 0, 0) == 1;
}

bool give_subject(X509* certificate, const std::string& name) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(name.data());
  // A common name has at most 64 characters; names that count stand in subjectAltName.
  const int size = static_cast<int>(std::min<std::size_t>(name.size(), 64));
  return X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8, bytes,
                                    size, -1, 0) == 1;
}

// What an authority's certificate and any other share.
struct Draft {
  Owned<EVP_PKEY> key;
  Owned<X509> certificate;
};
Result<Draft> draft(const std::string& name, std::chrono::seconds begins,
                    std::chrono::seconds ends) {
  Draft made{Owned<EVP_PKEY>(EVP_EC_gen("P-256")), Owned<X509>(X509_new())};
  X509* const certificate = made.certificate.get();
  if (!made.key || certificate == nullptr || X509_set_version(certificate, kVersion3) != 1 ||
      !give_serial(certificate) || !give_dates(certificate, begins, ends) ||
      X509_set_pubkey(certificate, made.key.get()) != 1 || !give_subject(certificate, name)) {
    return openssl_failure("certificate");
  }
  return made;
}

class OwnAuthority final : public Authority {
 public:
  OwnAuthority(Owned<X509> certificate, Owned<EVP_PKEY> key, KeyPair own)
      : certificate_(std::move(certificate)), key_(std::move(key)), own_(std::move(own)) {}

  const KeyPair& own() const override { return own_; }

  Result<KeyPair> issue(const CertificateText& text) const override {
    if (text.names.empty()) return fail(Errc::kInvalidArgument, "names: there is none");
    const auto made = draft(text.names.front(), text.begins, text.ends);
    if (!made) return Failure(made.error());
    X509* const issued = made->certificate.get();
    X509* const issuer = certificate_.get();
    if (X509_set_issuer_name(issued, X509_get_subject_name(issuer)) != 1 ||
        !give_extension(issued, issuer, NID_basic_constraints, "critical,CA:FALSE") ||
        !give_extension(issued, issuer, NID_key_usage, "critical,digitalSignature") ||
        !give_extension(issued, issuer, NID_ext_key_usage, "serverAuth,clientAuth") ||
        !give_extension(issued, issuer, NID_subject_key_identifier, "hash") ||
        !give_extension(issued, issuer, NID_authority_key_identifier, "keyid:always") ||
        !give_names(issued, text) || X509_sign(issued, key_.get(), EVP_sha256()) == 0) {
      return openssl_failure("certificate");
    }
    return pair_of(issued, made->key.get());
  }

 private:
  const Owned<X509> certificate_;
  const Owned<EVP_PKEY> key_;
  const KeyPair own_;
};

int no_passphrase(char*, int, int, void*) {
  return -1;
}

}  // namespace

Result<std::unique_ptr<Authority>> Authority::make(const std::string& name,
                                                   std::chrono::seconds lifetime) {
  auto made = draft(name, -std::chrono::hours(1), lifetime);
  if (!made) return Failure(made.error());
  X509* const own = made->certificate.get();
  if (X509_set_issuer_name(own, X509_get_subject_name(own)) != 1 ||
      !give_extension(own, own, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !give_extension(own, own, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !give_extension(own, own, NID_subject_key_identifier, "hash") ||
      X509_sign(own, made->key.get(), EVP_sha256()) == 0) {
    return openssl_failure("authority");
  }
  auto pair = pair_of(own, made->key.get());
  if (!pair) return Failure(pair.error());
  return std::unique_ptr<Authority>(std::make_unique<OwnAuthority>(
      std::move(made->certificate), std::move(made->key), std::move(*pair)));
}

Result<std::unique_ptr<Authority>> Authority::from(const KeyPair& own) {
  const Owned<BIO> shown(
      BIO_new_mem_buf(own.certificate.data(), static_cast<int>(own.certificate.size())));
  const Owned<BIO> secret(BIO_new_mem_buf(own.key.data(), static_cast<int>(own.key.size())));
  if (!shown || !secret) return openssl_failure("authority");
  Owned<X509> certificate(PEM_read_bio_X509(shown.get(), nullptr, no_passphrase, nullptr));
  Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(secret.get(), nullptr, no_passphrase, nullptr));
  if (!certificate || !key || X509_check_private_key(certificate.get(), key.get()) != 1 ||
      X509_check_ca(certificate.get()) == 0) {
    return fail(Errc::kInvalidArgument,
                "is no authority's certificate with its key: " + last_error());
  }
  return std::unique_ptr<Authority>(
      std::make_unique<OwnAuthority>(std::move(certificate), std::move(key), own));
}

}  // namespace pallas::tls
