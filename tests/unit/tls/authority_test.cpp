#include "tls/authority.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>

#include "test_certificates.h"
#include "tls/handles.h"

namespace pallas::tls {
namespace {

using test::TestCertificates;

Owned<X509> parse(const std::string& pem) {
  const Owned<BIO> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return Owned<X509>(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
}

TEST(Authority, a_certificate_carries_the_names_as_they_were_given) {
  const auto authority = TestCertificates::make_authority("a");
  const std::vector<std::string> names{"gnb-A_1.x", "DNS:other,URI:evil"};
  const auto pair = TestCertificates::issue(*authority, {names});
  EXPECT_EQ(names_of(parse(pair.certificate).get()), names);
}

TEST(Authority, addresses_stand_beside_names) {
  const auto authority = TestCertificates::make_authority("a");
  CertificateText text{{"x"}};
  text.addresses = {"127.0.0.1", "::1"};
  const auto made = parse(TestCertificates::issue(*authority, text).certificate);
  EXPECT_EQ(names_of(made.get()), std::vector<std::string>{"x"}) << "an address is no gNB's name";
  EXPECT_EQ(X509_check_ip_asc(made.get(), "127.0.0.1", 0), 1);
  EXPECT_EQ(X509_check_ip_asc(made.get(), "::1", 0), 1);
  text.addresses = {"nowhere"};
  EXPECT_FALSE(authority->issue(text));
}

TEST(Authority, certificates_differ_each_time) {
  const auto authority = TestCertificates::make_authority("a");
  const auto one = TestCertificates::issue(*authority, {{"x"}});
  const auto two = TestCertificates::issue(*authority, {{"x"}});
  EXPECT_NE(one.certificate, two.certificate);
  EXPECT_NE(one.key, two.key);
}

TEST(Authority, one_that_was_kept_signs_on) {
  const auto authority = TestCertificates::make_authority("a");
  const auto again = Authority::from(authority->own());
  ASSERT_TRUE(again) << again.error().message;
  const auto issued = parse(TestCertificates::issue(**again, {{"x"}}).certificate);
  const auto own = parse(authority->own().certificate);
  EXPECT_EQ(X509_verify(issued.get(), X509_get0_pubkey(own.get())), 1);
}

TEST(Authority, what_is_none_is_refused) {
  const auto authority = TestCertificates::make_authority("a");
  const auto other = TestCertificates::make_authority("b");
  const auto leaf = TestCertificates::issue(*authority, {{"x"}});
  EXPECT_FALSE(Authority::from(leaf)) << "a certificate that may not sign";
  EXPECT_FALSE(Authority::from({authority->own().certificate, other->own().key}));
  EXPECT_FALSE(Authority::from({"", ""}));
  EXPECT_FALSE(authority->issue({}));
}

TEST(Authority, strangers_names_are_quoted_harmlessly) {
  EXPECT_EQ(quoted({}), "nobody");
  EXPECT_EQ(quoted({"a", "b\n\x1b[31m"}), "'a', 'b??[31m'");
  EXPECT_LT(quoted(std::vector<std::string>(100, std::string(10'000, 'x'))).size(), 400u);
}

}  // namespace
}  // namespace pallas::tls
