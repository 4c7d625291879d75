#include "tls/session.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "tls/handles.h"

namespace pallas::tls {
namespace {

constexpr std::size_t kRecordBytes = 16u << 10;
// With AES-GCM 2^24.5 full records are the limit; half of 2^24 are 128 GiB.
constexpr std::uint64_t kRecordsAKey = 1u << 23;
// Once the peer is known, many records come with one call of the system. A stranger gets the least.
constexpr std::size_t kReadBuffer = 128u << 10;
constexpr std::byte kAlertRecord{21}, kHandshakeRecord{22};

// The reasons of alerts that came from the peer begin here (openssl/ssl.h).
constexpr int kAlertReasons = SSL_AD_REASON_OFFSET;

// --- the output, as OpenSSL writes to it ---

int output_write(BIO* bio, const char* data, std::size_t size, std::size_t* written) {
  auto& output = *static_cast<std::vector<std::byte>*>(BIO_get_data(bio));
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  output.insert(output.end(), bytes, bytes + size);
  *written = size;
  return 1;
}

long output_control(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

// Made once, kept until the process ends: what it describes is code.
BIO_METHOD* output_method() {
  static const Owned<BIO_METHOD> kMethod = [] {
    Owned<BIO_METHOD> made(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "output"));
    if (made) {
      BIO_meth_set_write_ex(made.get(), output_write);
      BIO_meth_set_ctrl(made.get(), output_control);
    }
    return made;
  }();
  return kMethod.get();
}

class OpenSslSession final : public Session {
 public:
  OpenSslSession(Owned<SSL> ssl, Role role, std::vector<std::string> names)
      : ssl_(std::move(ssl)), role_(role), names_(std::move(names)) {
    SSL_set_app_data(ssl_.get(), this);
    SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, judge);
    if (role_ == Role::kDials) {
      SSL_set_connect_state(ssl_.get());
    } else {
      SSL_set_accept_state(ssl_.get());
    }
  }

  Status attach(int socket) override {
    socket_ = socket;
    Owned<BIO> in(BIO_new_socket(socket, BIO_NOCLOSE));
    Owned<BIO> out(output_method() == nullptr ? nullptr : BIO_new(output_method()));
    if (!in || !out) return openssl_failure("TLS");
    BIO_set_data(out.get(), &output_);
    BIO_set_init(out.get(), 1);
    SSL_set_bio(ssl_.get(), in.release(), out.release());
    return {};
  }

  Result<bool> handshake() override {
    if (!speaks_tls_known_) {
      auto begun = look_at_first_byte();
      if (!begun) return begun;
      // The dialling side begins.
      if (!*begun && role_ == Role::kAccepts) return false;
    }
    if (state_ == State::kEstablished) return true;
    ERR_clear_error();
    const int done = SSL_do_handshake(ssl_.get());
    if (done != 1) {
      const auto failed = failure(SSL_get_error(ssl_.get(), done));
      if (failed) return Failure(*failed);
      return false;
    }
    if (auto ok = accept_peer(); !ok) return Failure(ok.error());
    return true;
  }

  Result<std::size_t> read(std::span<std::byte> into) override {
    ERR_clear_error();
    std::size_t got = 0;
    const int done = SSL_read_ex(ssl_.get(), into.data(), into.size(), &got);
    if (done == 1) return got;
    const auto failed = failure(SSL_get_error(ssl_.get(), done));
    if (failed) return Failure(*failed);
    return std::size_t{0};
  }

  Status write(std::span<const std::byte> bytes) override {
    if (bytes.empty()) return {};
    ERR_clear_error();
    records_ += (bytes.size() + kRecordBytes - 1) / kRecordBytes;
    if (records_ > records_a_key_) {
      // Leaves with the write below.
      if (SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1)
        return broken("key update");
      records_ = 0;
      ++key_changes_;
    }
    std::size_t written = 0;
    const int done = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &written);
    // The output takes everything, so nothing can be left.
    if (done == 1 && written == bytes.size()) return {};
    return broken("TLS");
  }

  bool has_output() const override { return !output_.empty(); }
  void take_output(std::vector<std::byte>& into) override { output_.swap(into); }

  bool established() const override { return state_ == State::kEstablished; }
  bool peer_speaks_tls() const override { return speaks_tls_; }
  const std::vector<std::string>& peer_names() const override { return peer_names_; }
  bool has_unread() const override { return SSL_has_pending(ssl_.get()) == 1; }
  void set_records_a_key(std::uint64_t records) override { records_a_key_ = records; }
  std::uint64_t key_changes() const override { return key_changes_; }

 private:
  enum class State { kShakingHands, kEstablished, kFailed };

  // OpenSSL asks for each certificate of the peer's chain, the authority's first.
  static int judge(int ok, X509_STORE_CTX* store) {
    const auto* ssl =
        static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
    auto& self = *static_cast<OpenSslSession*>(SSL_get_app_data(ssl));
    const X509* one = X509_STORE_CTX_get_current_cert(store);
    if (ok != 1) {
      self.refusal_ = self.why_refused(X509_STORE_CTX_get_error(store), one,
                                       X509_STORE_CTX_get_error_depth(store));
      return 0;
    }
    if (X509_STORE_CTX_get_error_depth(store) > 0) return 1;
    auto names = names_of(one);
    const bool wanted = std::any_of(names.begin(), names.end(), [&self](const std::string& name) {
      return std::find(self.names_.begin(), self.names_.end(), name) != self.names_.end();
    });
    if (wanted) return 1;
    self.refusal_ = "the peer's certificate is made out to " + quoted(names) + ", " +
                    (self.role_ == Role::kDials ? "expected was " + quoted(self.names_)
                                                : "which is no configured peer");
    X509_STORE_CTX_set_error(store, X509_V_ERR_HOSTNAME_MISMATCH);
    return 0;
  }

  static std::string why_refused(int error, const X509* certificate, int depth) {
    const std::string which = depth == 0 || certificate == nullptr
                                  ? "the peer's certificate"
                                  : "certificate " + std::to_string(depth) + " of the peer's chain";
    std::string text = which + " is refused: " + X509_verify_cert_error_string(error);
    if (certificate == nullptr) return text;
    if (error == X509_V_ERR_CERT_HAS_EXPIRED) {
      text += " (on " + date_of(X509_get0_notAfter(certificate)) + ")";
    }
    return depth == 0 ? text + "; it is made out to " + quoted(names_of(certificate)) : text;
  }

  // What comes from somebody without TLS is told apart before OpenSSL sees it. False: nothing came.
  Result<bool> look_at_first_byte() {
    std::byte first{};
    const auto n = recv(socket_, &first, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
    if (n < 0) return gone(std::strerror(errno));
    if (n == 0) return gone("closed by the peer");
    speaks_tls_known_ = true;
    speaks_tls_ = first == kHandshakeRecord || first == kAlertRecord;
    if (speaks_tls_) return true;
    state_ = State::kFailed;
    return fail(Errc::kIncompatible, "the peer speaks no TLS");
  }

  Failure gone(const std::string& why) {
    const bool shaking = state_ == State::kShakingHands;
    state_ = State::kFailed;
    return fail(Errc::kUnreachable, (shaking ? "TLS handshake: " : "") + why);
  }

  Failure broken(const std::string& what) {
    state_ = State::kFailed;
    return openssl_failure(what);
  }

  Status accept_peer() {
    const Owned<X509> certificate(SSL_get1_peer_certificate(ssl_.get()));
    // Both were demanded already: a second look costs nothing.
    if (!certificate || SSL_get_verify_result(ssl_.get()) != X509_V_OK) {
      state_ = State::kFailed;
      return fail(Errc::kUnauthorized, "the peer shows no certificate that was accepted");
    }
    peer_names_ = names_of(certificate.get());
    state_ = State::kEstablished;
    // The buffer of the handshake is small. If it holds something already, it stays.
    if (SSL_free_buffers(ssl_.get()) == 1) {
      SSL_set_default_read_buffer_len(ssl_.get(), kReadBuffer);
      SSL_set_read_ahead(ssl_.get(), 1);
    }
    return {};
  }

  // None: it only has to wait.
  std::optional<Error> failure(int error) {
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return std::nullopt;
    if (error == SSL_ERROR_ZERO_RETURN) return gone("closed by the peer").value();
    const auto code = ERR_peek_last_error();
    const int reason = ERR_GET_REASON(code);
    if (error == SSL_ERROR_SYSCALL || reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
      const int system = errno;
      ERR_clear_error();
      const bool ended = error != SSL_ERROR_SYSCALL || system == 0;
      return gone(ended ? "closed by the peer" : std::strerror(system)).value();
    }
    state_ = State::kFailed;
    if (!refusal_.empty()) {
      ERR_clear_error();
      return Error{Errc::kUnauthorized, refusal_};
    }
    if (ERR_GET_LIB(code) == ERR_LIB_SSL && reason >= kAlertReasons) {
      ERR_clear_error();
      return Error{Errc::kUnauthorized, std::string("the peer refused us by the TLS alert '") +
                                            SSL_alert_desc_string_long(reason - kAlertReasons) +
                                            "'"};
    }
    if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
      ERR_clear_error();
      return Error{Errc::kUnauthorized, "the peer shows no certificate"};
    }
    if (reason == SSL_R_UNSUPPORTED_PROTOCOL || reason == SSL_R_WRONG_SSL_VERSION ||
        reason == SSL_R_VERSION_TOO_LOW) {
      ERR_clear_error();
      return Error{Errc::kIncompatible, "the peer does not speak TLS 1.3"};
    }
    return Error{Errc::kParse, "TLS: " + last_error()};
  }

  Owned<SSL> ssl_;
  const Role role_;
  const std::vector<std::string> names_;
  int socket_ = -1;
  State state_ = State::kShakingHands;
  bool speaks_tls_known_ = false;
  bool speaks_tls_ = true;  // until something else came
  std::string refusal_;     // why judge() refused
  std::vector<std::string> peer_names_;
  std::vector<std::byte> output_;
  std::uint64_t records_a_key_ = kRecordsAKey;
  std::uint64_t records_ = 0;  // sealed with the present key
  std::uint64_t key_changes_ = 0;
};

}  // namespace

Result<std::unique_ptr<Session>> Session::create(const Credentials& credentials, Role role,
                                                 std::vector<std::string> names) {
  Owned<SSL> ssl(SSL_new(credentials.context()));
  if (!ssl) return openssl_failure("TLS");
  return std::unique_ptr<Session>(
      std::make_unique<OpenSslSession>(std::move(ssl), role, std::move(names)));
}

}  // namespace pallas::tls
