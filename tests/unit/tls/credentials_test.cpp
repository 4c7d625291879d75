#include "tls/credentials.h"

#include <gmock/gmock.h>
#include <openssl/pem.h>

#include "test_certificates.h"
#include "tls/handles.h"

namespace pallas::tls {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;

class CredentialsTest : public ::testing::Test {
 protected:
  // What is wrong with the files of "a".
  std::string refusal(const std::string& name = "a") {
    const auto loaded = Credentials::load(certificates_.files("a"), name);
    return loaded ? "" : loaded.error().message;
  }
  void write_a(const CertificateText& text) {
    certificates_.write("a", test::TestCertificates::issue(certificates_.authority(), text));
  }

  test::TestCertificates certificates_;
};

TEST_F(CredentialsTest, good_files_are_taken) {
  const auto loaded = Credentials::load(certificates_.make("a"), "a");
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_NE((*loaded)->context(), nullptr);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto year = std::chrono::duration_cast<std::chrono::seconds>(now + hours(24 * 365)).count();
  EXPECT_NEAR(static_cast<double>((*loaded)->ends_unix_s()), static_cast<double>(year), 60);
}

TEST_F(CredentialsTest, a_missing_file_is_named) {
  certificates_.make("a");
  auto files = certificates_.files("a");
  for (File* file : {&files.certificate, &files.key, &files.authority}) {
    const std::string path = std::exchange(file->path, "/nonexistent.pem");
    const auto loaded = Credentials::load(files, "a");
    ASSERT_FALSE(loaded);
    EXPECT_THAT(loaded.error().message, HasSubstr(file->setting + ": '/nonexistent.pem'"));
    file->path = path;
  }
}

TEST_F(CredentialsTest, a_file_without_what_is_wanted_is_named) {
  certificates_.make("a");
  certificates_.write("a.crt", "no certificate");
  EXPECT_THAT(refusal(), HasSubstr("peer_cert"));
  certificates_.make("a");
  certificates_.write("a.key", "no key");
  EXPECT_THAT(refusal(), HasSubstr("holds no private key"));
  certificates_.make("a");
  certificates_.write("ca.crt", "no authority");
  EXPECT_THAT(refusal(), HasSubstr("peer_ca"));
}

TEST_F(CredentialsTest, a_damaged_certificate_is_refused) {
  const auto pair = certificates_.pair("a");
  certificates_.write("a", pair);
  certificates_.write("a.crt", pair.certificate.substr(0, pair.certificate.size() / 2));
  EXPECT_THAT(refusal(), HasSubstr("peer_cert"));
}

TEST_F(CredentialsTest, a_key_with_a_passphrase_is_refused_without_asking) {
  const auto pair = certificates_.pair("a");
  const Owned<BIO> in(BIO_new_mem_buf(pair.key.data(), static_cast<int>(pair.key.size())));
  const Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(in.get(), nullptr, nullptr, nullptr));
  const Owned<BIO> out(BIO_new(BIO_s_mem()));
  ASSERT_EQ(PEM_write_bio_PKCS8PrivateKey(out.get(), key.get(), EVP_aes_128_cbc(), "word", 4,
                                          nullptr, nullptr),
            1);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(out.get(), &bytes);
  certificates_.write("a", pair);
  certificates_.write("a.key", std::string(bytes, static_cast<std::size_t>(size)));
  EXPECT_THAT(refusal(), HasSubstr("without a passphrase"));
}

TEST_F(CredentialsTest, a_key_that_everybody_can_read_is_refused) {
  const auto pair = certificates_.pair("a");
  certificates_.write("a", pair);
  certificates_.write("a.key", pair.key, 0644);
  EXPECT_THAT(refusal(), HasSubstr("chmod 600"));
  certificates_.write("a.key", pair.key, 0640);
  EXPECT_EQ(refusal(), "");
}

TEST_F(CredentialsTest, the_key_of_another_certificate_is_refused) {
  certificates_.write("a", certificates_.pair("a"));
  certificates_.write("a.key", certificates_.pair("a").key);
  EXPECT_THAT(refusal(), HasSubstr("is not the key of peer_cert"));
}

TEST_F(CredentialsTest, the_own_name_must_stand_in_the_certificate_byte_for_byte) {
  write_a({{"b", "A"}});
  EXPECT_THAT(refusal(), HasSubstr("made out to 'b', 'A' (subjectAltName), not to 'a'"));
  write_a({{"*"}});
  EXPECT_NE(refusal(), "") << "a wildcard is no name";
  write_a({{"b", "a"}});
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(refusal(""), "") << "any name will do";
}

TEST_F(CredentialsTest, a_certificate_that_is_not_valid_now_is_refused) {
  write_a({{"a"}, -hours(2), -hours(1)});
  EXPECT_THAT(refusal(), HasSubstr("expired on "));
  write_a({{"a"}, hours(1), hours(2)});
  EXPECT_THAT(refusal(), HasSubstr("valid only from "));
}

TEST_F(CredentialsTest, a_certificate_of_another_authority_is_refused) {
  const auto other = test::TestCertificates::make_authority("other");
  certificates_.write("a", test::TestCertificates::issue(*other, {{"a"}}));
  EXPECT_THAT(refusal(), HasSubstr("is not signed by an authority in peer_ca"));
}

TEST_F(CredentialsTest, several_authorities_can_be_believed) {
  const auto other = test::TestCertificates::make_authority("other");
  certificates_.write("a", test::TestCertificates::issue(*other, {{"a"}}));
  certificates_.write("ca.crt",
                      certificates_.authority().own().certificate + other->own().certificate);
  EXPECT_EQ(refusal(), "");
}

TEST_F(CredentialsTest, changed_files_are_read_again_and_broken_ones_are_not_taken) {
  const auto loaded = Credentials::load(certificates_.make("a"), "a");
  ASSERT_TRUE(loaded);
  Credentials& credentials = **loaded;
  const auto first = credentials.context();
  EXPECT_EQ(credentials.refresh().value(), false) << "nothing has changed";
  EXPECT_EQ(credentials.context(), first);

  certificates_.write("a.crt", "broken");
  const auto broken = credentials.refresh();
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message, HasSubstr("peer_cert"));
  EXPECT_EQ(credentials.context(), first);
  EXPECT_EQ(credentials.refresh().value(), false) << "said once";

  write_a({{"a"}, -hours(1), hours(5)});
  const auto before = credentials.ends_unix_s();
  EXPECT_EQ(credentials.refresh().value(), true);
  EXPECT_NE(credentials.context(), first);
  EXPECT_LT(credentials.ends_unix_s(), before);
}

}  // namespace
}  // namespace pallas::tls
