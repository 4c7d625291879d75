#include "tls/handles.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <cstdio>
#include <ctime>

namespace pallas::tls {
namespace {

constexpr std::size_t kMaxCertificates = 1'000;  // in one file
constexpr std::size_t kMaxQuotedNames = 4;
constexpr std::size_t kMaxQuotedBytes = 64;

}  // namespace

std::string last_error() {
  const auto code = ERR_peek_last_error();
  ERR_clear_error();
  if (code == 0) return "no reason given";
  if (const char* words = ERR_reason_error_string(code)) return words;
  return "error " + std::to_string(ERR_GET_REASON(code));
}

Failure openssl_failure(const std::string& what) {
  return fail(Errc::kInternal, what + ": " + last_error());
}

Result<std::vector<Owned<X509>>> read_certificates(const File& file) {
  const auto text = read_file(file, false);
  if (!text) return Failure(text.error());
  const Owned<BIO> bio(BIO_new_mem_buf(text->data(), static_cast<int>(text->size())));
  if (!bio) return openssl_failure(file.setting);
  std::vector<Owned<X509>> all;
  ERR_clear_error();
  // Without a function for passphrases OpenSSL would ask on the terminal.
  const auto never = [](char*, int, int, void*) { return -1; };
  while (X509* one = PEM_read_bio_X509(bio.get(), nullptr, never, nullptr)) {
    all.emplace_back(one);
    if (all.size() > kMaxCertificates) return wrong_file(file, "has more than 1,000 certificates");
  }
  const auto error = ERR_peek_last_error();
  const bool at_end =
      ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  const std::string words = last_error();
  if (!at_end) return wrong_file(file, "is damaged: " + words);
  if (all.empty()) return wrong_file(file, "holds no certificate in PEM");
  return all;
}

std::vector<std::string> names_of(const X509* certificate) {
  std::vector<std::string> names;
  const Owned<GENERAL_NAMES> all(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  if (!all) return names;
  for (int i = 0; i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(all.get(), i);
    if (name->type != GEN_DNS) continue;
    const auto* bytes = reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName));
    std::string text(bytes, static_cast<std::size_t>(ASN1_STRING_length(name->d.dNSName)));
    // "gnb-a\0.example.org" is nobody's name.
    if (text.find('\0') == std::string::npos) names.push_back(std::move(text));
  }
  return names;
}

std::string quoted(const std::vector<std::string>& names) {
  if (names.empty()) return "nobody";
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMaxQuotedNames; ++i) {
    text += i == 0 ? "'" : ", '";
    for (const char c : names[i].substr(0, kMaxQuotedBytes)) text += c > 0x20 && c < 0x7f ? c : '?';
    text += names[i].size() > kMaxQuotedBytes ? "...'" : "'";
  }
  return text + (names.size() > kMaxQuotedNames ? ", ..." : "");
}

std::string date_of(const ASN1_TIME* time) {
  std::tm at{};
  if (ASN1_TIME_to_tm(time, &at) != 1) return "an unknown date";
  char text[32];
  const auto size = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &at);
  return std::string(text, size);
}

}  // namespace pallas::tls
