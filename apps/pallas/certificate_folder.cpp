#include "certificate_folder.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>

#include "gnb_config.h"
#include "gzip_file.h"
#include "tls/authority.h"

namespace pallas::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFileBytes = 1u << 20;
// An authority outlives what it signs.
constexpr std::chrono::hours kAuthorityLifetime{24 * 3650};
constexpr const char* kAuthority = "ca";

Failure io_failure(const fs::path& path) {
  return fail(Errc::kIo, "'" + path.string() + "': " + std::strerror(errno));
}

// Whole or not at all: a gNB may be looking.
Status write_file(const fs::path& path, const std::string& text, mode_t mode) {
  const fs::path part = path.string() + ".part";
  ::unlink(part.c_str());
  const int fd = ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0) return io_failure(part);
  const bool written =
      ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(fd) == 0;
  if (::close(fd) != 0 || !written) return io_failure(part);
  if (std::rename(part.c_str(), path.c_str()) != 0) return io_failure(path);
  return {};
}

bool is_ip_address(const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> bytes;
  return inet_pton(AF_INET, text.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1;
}

class Folder {
 public:
  explicit Folder(fs::path path) : path_(std::move(path)) {}

  Status open() {
    std::error_code error;
    if (fs::is_directory(path_, error)) return {};
    fs::create_directories(path_, error);
    if (error) return fail(Errc::kIo, "'" + path_.string() + "': " + error.message());
    return {};
  }

  Result<std::unique_ptr<tls::Authority>> authority() {
    const fs::path shown = path_ / (kAuthority + std::string(".crt"));
    const fs::path secret = path_ / (kAuthority + std::string(".key"));
    std::error_code ignored;
    if (!fs::exists(shown, ignored) && !fs::exists(secret, ignored)) {
      auto made = tls::Authority::make("Pallas test authority", kAuthorityLifetime);
      if (!made) return made;
      if (auto s = write(kAuthority, (*made)->own()); !s) return Failure(s.error());
      return made;
    }
    const auto certificate = read_text_file(shown.string(), kMaxFileBytes);
    if (!certificate) return Failure(certificate.error());
    const auto key = read_text_file(secret.string(), kMaxFileBytes);
    if (!key) return Failure(key.error());
    auto known = tls::Authority::from({*certificate, *key});
    if (known) return known;
    return fail(Errc::kInvalidArgument, "'" + shown.string() + "' " + known.error().message);
  }

  // The key first: in between a gNB sees a pair that does not fit, and keeps the old one.
  Status write(const std::string& name, const tls::KeyPair& pair) {
    if (auto s = write_one(name + ".key", pair.key, 0600); !s) return s;
    return write_one(name + ".crt", pair.certificate, 0644);
  }

  const std::vector<std::string>& written() const { return written_; }

 private:
  Status write_one(const std::string& name, const std::string& text, mode_t mode) {
    const fs::path path = path_ / name;
    if (auto s = write_file(path, text, mode); !s) return s;
    written_.push_back(path.string());
    return {};
  }

  fs::path path_;
  std::vector<std::string> written_;
};

Status check(const CertificateOrder& order) {
  const auto wrong = [](const std::string& why) {
    return fail(Errc::kInvalidArgument, "names: " + why);
  };
  if (order.names.empty()) return wrong("needs a value");
  std::set<std::string> seen;
  for (const auto& name : order.names) {
    if (!is_node_name(name)) return wrong("'" + name + "' is not a name");
    if (name == kAuthority) return wrong("'" + name + "' is the authority's own");
    if (!seen.insert(name).second) return wrong("'" + name + "' is given twice");
  }
  for (const auto& host : order.hosts) {
    if (!is_ip_address(host) && !is_node_name(host)) {
      return fail(Errc::kInvalidArgument, "hosts: '" + host + "' is neither a name nor an address");
    }
  }
  if (order.lifetime < std::chrono::hours(24) || order.lifetime > kAuthorityLifetime) {
    return fail(Errc::kInvalidArgument, "days: must be from 1 to 3650");
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> make_certificates(const CertificateOrder& order) {
  if (auto s = check(order); !s) return Failure(s.error());
  Folder folder(order.folder);
  if (auto s = folder.open(); !s) return Failure(s.error());
  const auto authority = folder.authority();
  if (!authority) return Failure(authority.error());
  for (const auto& name : order.names) {
    tls::CertificateText text;
    text.names = {name};
    for (const auto& host : order.hosts) {
      (is_ip_address(host) ? text.addresses : text.names).push_back(host);
    }
    text.ends = order.lifetime;
    const auto pair = (*authority)->issue(text);
    if (!pair) return Failure(pair.error());
    if (auto s = folder.write(name, *pair); !s) return Failure(s.error());
  }
  return folder.written();
}

}  // namespace pallas::app
