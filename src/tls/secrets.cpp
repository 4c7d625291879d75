#include "tls/secrets.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace pallas::tls {
namespace {

constexpr std::size_t kMaxFileBytes = 1u << 20;

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

Failure wrong_file(const File& file, const std::string& why, Errc code) {
  return fail(code, file.setting + ": '" + file.path + "' " + why);
}

Result<std::string> read_file(const File& file, bool secret) {
  const auto unreadable = [&file] {
    return wrong_file(file, std::string("cannot be read: ") + std::strerror(errno), Errc::kIo);
  };
  const Descriptor descriptor(file.path);
  struct stat status {};
  if (descriptor.get() < 0 || fstat(descriptor.get(), &status) != 0) return unreadable();
  if (!S_ISREG(status.st_mode)) return wrong_file(file, "is no file");
  if (secret && (status.st_mode & S_IRWXO) != 0) {
    return wrong_file(file, "is open to everybody; chmod 600 ends that");
  }
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const auto n = ::read(descriptor.get(), part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return unreadable();
    if (n == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(n));
    if (text.size() > kMaxFileBytes) return wrong_file(file, "is larger than 1 MiB");
  }
}

FileWatch::FileWatch(std::vector<std::string> paths) : paths_(std::move(paths)), seen_(look()) {}

bool FileWatch::changed() {
  auto now = look();
  if (now == seen_) return false;
  seen_ = std::move(now);
  return true;
}

std::vector<FileWatch::Stamp> FileWatch::look() const {
  std::vector<Stamp> all(paths_.size());
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    struct stat status {};
    if (paths_[i].empty() || ::stat(paths_[i].c_str(), &status) != 0) continue;
    all[i] = {static_cast<std::int64_t>(status.st_dev), static_cast<std::int64_t>(status.st_ino),
              static_cast<std::int64_t>(status.st_size), status.st_mtim.tv_sec,
              status.st_mtim.tv_nsec};
  }
  return all;
}

std::string sha256(std::string_view text) {
  std::array<unsigned char, 32> digest{};
  unsigned size = 0;
  // Fails only without memory.
  if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
    std::abort();
  }
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string to_hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

}  // namespace pallas::tls
