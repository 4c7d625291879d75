#pragma once
// Certificates in files of a folder that goes with the object.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tls/authority.h"
#include "tls/credentials.h"

namespace pallas::test {

class TestCertificates {
 public:
  TestCertificates() {
    std::string path = (std::filesystem::temp_directory_path() / "pallas-test-XXXXXX").string();
    EXPECT_NE(::mkdtemp(path.data()), nullptr);
    folder_ = path;
    authority_ = make_authority("first");
    write("ca.crt", authority_->own().certificate);
  }
  ~TestCertificates() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  TestCertificates(const TestCertificates&) = delete;
  TestCertificates& operator=(const TestCertificates&) = delete;

  static std::unique_ptr<tls::Authority> make_authority(const std::string& name) {
    auto made = tls::Authority::make(name, std::chrono::hours(24));
    EXPECT_TRUE(made) << made.error().describe();
    return made ? std::move(*made) : nullptr;
  }
  static tls::KeyPair issue(const tls::Authority& authority, const tls::CertificateText& text) {
    auto pair = authority.issue(text);
    EXPECT_TRUE(pair) << pair.error().describe();
    return pair ? *pair : tls::KeyPair{};
  }

  const tls::Authority& authority() const { return *authority_; }
  tls::KeyPair pair(const std::string& name) const { return issue(*authority_, {{name}}); }

  // The file's path.
  std::string write(const std::string& name, const std::string& text, mode_t mode = 0600) const {
    const auto path = (std::filesystem::path(folder_) / name).string();
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  void write(const std::string& name, const tls::KeyPair& pair) const {
    write(name + ".key", pair.key);
    write(name + ".crt", pair.certificate);
  }
  // Where those of `name` lie.
  tls::Files files(const std::string& name) const {
    const auto at = [this](const std::string& file) { return folder_ + "/" + file; };
    return {{"peer_cert", at(name + ".crt")},
            {"peer_key", at(name + ".key")},
            {"peer_ca", at("ca.crt")}};
  }
  // Issued, written, and where.
  tls::Files make(const std::string& name) const {
    write(name, pair(name));
    return files(name);
  }

 private:
  std::string folder_;
  std::unique_ptr<tls::Authority> authority_;
};

}  // namespace pallas::test
