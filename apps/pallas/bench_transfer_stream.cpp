// The paths that a KV transfer is compared with: a copy in memory, and blocking TCP streams, each
// as simple as it can be written.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "bench_transfer_end.h"
#include "gnb_config.h"
#include "wire/codec.h"

namespace pallas::app {

void TransferEnd::wait_readable(int fd) {
  pollfd readable{fd, POLLIN, 0};
  while (poll(&readable, 1, -1) < 0 && errno == EINTR) {
  }
}

namespace {

constexpr int kPatienceS = 30;  // of every call on a socket

Failure system_error(const std::string& what) {
  return fail(Errc::kIo, what + ": " + std::strerror(errno));
}

// Calls move(part of the session) for blocks of it, in order and again from the start, until
// `bytes` were moved.
template <class Byte, class Move>
Status for_each_block(std::span<Byte> session, std::uint64_t block, std::uint64_t bytes,
                      const Move& move) {
  std::size_t at = 0;
  for (std::uint64_t done = 0; done < bytes;) {
    const auto size = static_cast<std::size_t>(
        std::min({block, bytes - done, std::uint64_t{session.size() - at}}));
    if (auto status = move(session.subspan(at, size)); !status) return status;
    done += size;
    at = at + size == session.size() ? 0 : at + size;
  }
  return {};
}

class CopyEnd final : public TransferEnd {
 public:
  CopyEnd(TransferRole role, std::span<const std::byte> session) : session_(session) {
    if (role == TransferRole::kSource) copy_.resize(session.size());
  }
  Result<std::string> open(const TransferOrder& order) override {
    block_ = order.block_bytes;
    return std::string();
  }
  Status run(std::uint64_t bytes) override {
    if (copy_.empty()) return {};
    return for_each_block(session_, block_, bytes, [this](std::span<const std::byte> part) {
      std::memcpy(copy_.data() + (part.data() - session_.data()), part.data(), part.size());
      return Status();
    });
  }

 private:
  std::span<const std::byte> session_;
  std::vector<std::byte> copy_;
  std::uint64_t block_ = 0;
};

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

Result<Descriptor> make_socket(const std::string& congestion_control) {
  Descriptor made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (made.get() < 0) return system_error("socket");
  const int fd = made.get();
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  const timeval patience{kPatienceS, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const auto& name = congestion_control;
  if (!name.empty() && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                                  static_cast<socklen_t>(name.size())) != 0) {
    return system_error("congestion_control: " + name);
  }
  return made;
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

struct Free {
  void operator()(SSL_CTX* p) const { SSL_CTX_free(p); }
  void operator()(SSL* p) const { SSL_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(X509* p) const { X509_free(p); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

Failure tls_error(const char* what) {
  std::array<char, 256> words{};
  ERR_error_string_n(ERR_get_error(), words.data(), words.size());
  return fail(Errc::kIo, std::string(what) + ": " + words.data());
}

// A key and a certificate for this run alone; nobody checks whose it is.
Status give_certificate(SSL_CTX* context) {
  const Owned<EVP_PKEY> key(EVP_EC_gen("P-256"));
  const Owned<X509> certificate(X509_new());
  if (!key || !certificate) return tls_error("certificate");
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 86400);
  X509_set_pubkey(certificate.get(), key.get());
  if (X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0 ||
      SSL_CTX_use_certificate(context, certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    return tls_error("certificate");
  }
  return {};
}

class StreamEnd final : public TransferEnd {
 public:
  StreamEnd(TransferRole role, std::span<std::byte> session, bool tls, bool checksum)
      : role_(role), session_(session), tls_(tls), checksum_(checksum) {}

  Result<std::string> open(const TransferOrder& order) override {
    block_ = order.block_bytes;
    auto made = make_socket(order.congestion_control);
    if (!made) return Failure(made.error());
    socket_ = std::move(*made);
    return role_ == TransferRole::kTarget ? listen_here() : connect_to(order.at);
  }

  Status meet() override {
    const int fd = accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return system_error("accept");
    socket_ = Descriptor(fd);
    const timeval patience{kPatienceS, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return tls_ ? shake_hands() : Status();
  }

  Status run(std::uint64_t bytes) override {
    return for_each_block(session_, block_, bytes, [this](std::span<std::byte> part) {
      return role_ == TransferRole::kSource ? send_block(part) : receive_block(part);
    });
  }

  std::string detail() const override { return ssl_ ? SSL_get_cipher_name(ssl_.get()) : ""; }

 private:
  using Sum = std::array<std::byte, sizeof(std::uint64_t)>;

  Result<std::string> listen_here() {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (bind(socket_.get(), any, size) != 0 || listen(socket_.get(), 1) != 0 ||
        getsockname(socket_.get(), any, &size) != 0) {
      return system_error("listen");
    }
    return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }

  Result<std::string> connect_to(const std::string& at) {
    const auto to = parse_host_port(at, "at");
    if (!to) return Failure(to.error());
    const sockaddr_in address = loopback(to->port);
    if (connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      return system_error("connect");
    }
    if (tls_) {
      if (auto status = shake_hands(); !status) return Failure(status.error());
    }
    return std::string();
  }

  Status shake_hands() {
    context_.reset(SSL_CTX_new(TLS_method()));
    if (!context_) return tls_error("TLS");
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_3_VERSION);
    if (role_ == TransferRole::kTarget) {
      if (auto status = give_certificate(context_.get()); !status) return status;
    }
    ssl_.reset(SSL_new(context_.get()));
    if (!ssl_ || SSL_set_fd(ssl_.get(), socket_.get()) != 1) return tls_error("TLS");
    const int done =
        role_ == TransferRole::kTarget ? SSL_accept(ssl_.get()) : SSL_connect(ssl_.get());
    return done == 1 ? Status() : tls_error("TLS handshake");
  }

  Status send_block(std::span<const std::byte> block) {
    Sum sum{};
    if (checksum_) {
      const std::uint64_t hash = wire::checksum(block);
      std::memcpy(sum.data(), &hash, sizeof hash);
    }
    if (tls_) {
      if (checksum_ && SSL_write(ssl_.get(), sum.data(), sum.size()) <= 0) return tls_error("send");
      std::size_t written = 0;
      const int done = SSL_write_ex(ssl_.get(), block.data(), block.size(), &written);
      return done == 1 ? Status() : tls_error("send");
    }
    std::size_t head = checksum_ ? sum.size() : 0;
    while (head + block.size() > 0) {
      std::array<iovec, 2> parts = {
          iovec{sum.data() + (sum.size() - head), head},
          iovec{const_cast<std::byte*>(block.data()), block.size()}};  // sendmsg reads only
      msghdr message{};
      message.msg_iov = parts.data();
      message.msg_iovlen = parts.size();
      const auto n = sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
      if (n < 0 && errno != EINTR) return system_error("send");
      if (n <= 0) continue;
      const std::size_t of_head = std::min(head, static_cast<std::size_t>(n));
      head -= of_head;
      block = block.subspan(static_cast<std::size_t>(n) - of_head);
    }
    return {};
  }

  Status receive_block(std::span<std::byte> block) {
    Sum sum{};
    if (checksum_) {
      if (auto status = fill(sum); !status) return status;
    }
    if (auto status = fill(block); !status) return status;
    std::uint64_t hash = 0;
    std::memcpy(&hash, sum.data(), sizeof hash);
    if (checksum_ && wire::checksum(block) != hash) {
      return fail(Errc::kChecksum, "a block was damaged");
    }
    return {};
  }

  Status fill(std::span<std::byte> into) {
    while (!into.empty()) {
      std::size_t got = 0;
      if (tls_) {
        if (SSL_read_ex(ssl_.get(), into.data(), into.size(), &got) != 1)
          return tls_error("receive");
      } else {
        const auto n = recv(socket_.get(), into.data(), into.size(), MSG_WAITALL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return system_error("receive");
        if (n == 0) return fail(Errc::kUnreachable, "receive: the source has ended");
        got = static_cast<std::size_t>(n);
      }
      into = into.subspan(got);
    }
    return {};
  }

  TransferRole role_;
  std::span<std::byte> session_;
  bool tls_, checksum_;
  std::uint64_t block_ = 0;
  Descriptor socket_;
  Owned<SSL_CTX> context_;
  Owned<SSL> ssl_;
};

}  // namespace

std::unique_ptr<TransferEnd> make_copy_end(TransferRole role, std::span<const std::byte> session) {
  return std::make_unique<CopyEnd>(role, session);
}

std::unique_ptr<TransferEnd> make_stream_end(TransferRole role, std::span<std::byte> session,
                                             bool tls, bool checksum) {
  return std::make_unique<StreamEnd>(role, session, tls, checksum);
}

}  // namespace pallas::app
