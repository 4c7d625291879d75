#pragma once
// A caller of a peer port that speaks TLS as the test wants: with any certificate or none, any
// version, and raw bytes in between. It believes whoever answers.

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/socket.h>

#include "link_fixture.h"
#include "tls/handles.h"

namespace pallas::net {

class TlsCaller {
 public:
  using Run = std::function<bool(const std::function<bool()>&)>;

  // `run` runs the event loop until its argument says so. Without `own` it shows no certificate.
  TlsCaller(Run run, boost::asio::io_context& io, std::uint16_t port,
            const std::optional<tls::KeyPair>& own, int version = TLS1_3_VERSION)
      : run_(std::move(run)), socket_(io) {
    socket_.connect(tcp::endpoint(boost::asio::ip::address_v4::loopback(), port));
    socket_.native_non_blocking(true);
    context_.reset(SSL_CTX_new(TLS_client_method()));
    SSL_CTX_set_max_proto_version(context_.get(), version);
    if (own) use(*own);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), socket_.native_handle());
  }

  // As far as the caller sees: under TLS 1.3 it is done before the other side has judged it.
  bool shake_hands() {
    return attempt([this] { return SSL_connect(ssl_.get()); });
  }
  bool send(const kv::Bytes& bytes) {
    return attempt(
        [&] { return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())); });
  }
  bool send(const wire::Message& message) { return send(*wire::encode(message)); }
  // Past TLS.
  void send_raw(const kv::Bytes& bytes) {
    EXPECT_EQ(::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // True when bytes came; else the connection has ended, or an alert came.
  bool receives_bytes() {
    char byte = 0;
    return attempt([&] { return SSL_read(ssl_.get(), &byte, 1); });
  }
  // The alert that ended the connection, in OpenSSL's words.
  std::string alert() {
    while (receives_bytes()) {
    }
    return alert_;
  }

 private:
  void use(const tls::KeyPair& own) {
    const tls::Owned<BIO> shown(
        BIO_new_mem_buf(own.certificate.data(), static_cast<int>(own.certificate.size())));
    const tls::Owned<BIO> secret(BIO_new_mem_buf(own.key.data(), static_cast<int>(own.key.size())));
    const tls::Owned<X509> certificate(PEM_read_bio_X509(shown.get(), nullptr, nullptr, nullptr));
    const tls::Owned<EVP_PKEY> key(
        PEM_read_bio_PrivateKey(secret.get(), nullptr, nullptr, nullptr));
    EXPECT_EQ(SSL_CTX_use_certificate(context_.get(), certificate.get()), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey(context_.get(), key.get()), 1);
  }

  template <class Call>
  bool attempt(const Call& call) {
    int done = 0, error = SSL_ERROR_NONE;
    const bool ended = run_([&] {
      ERR_clear_error();
      done = call();
      error = SSL_get_error(ssl_.get(), done);
      return error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE;
    });
    if (error == SSL_ERROR_SSL) alert_ = tls::last_error();
    return ended && done > 0;
  }

  Run run_;
  tcp::socket socket_;
  tls::Owned<SSL_CTX> context_;
  tls::Owned<SSL> ssl_;
  std::string alert_;
};

}  // namespace pallas::net
