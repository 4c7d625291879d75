#include "ue/gnb_client.h"

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <map>
#include <optional>

#include "http/secure_stream.h"
#include "tls/trust.h"

namespace pallas::ue {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using pallas::http::SecureStream;

constexpr std::size_t kMaxReplyBytes = 16u << 20;
constexpr std::size_t kReadBytes = 16u << 10;

tcp::endpoint numeric_endpoint(const Address& address, error_code& ec) {
  return {asio::ip::make_address(address.host, ec), address.port};
}

std::unique_ptr<SecureStream> make_stream(asio::io_context& io) {
  return std::make_unique<SecureStream>(tcp::socket(io));
}

// An idle connection, watched so that one which the gNB closed is not used.
struct Warm {
  explicit Warm(asio::io_context& io) : stream(make_stream(io)), resolver(io) {}
  std::unique_ptr<SecureStream> stream;
  tcp::resolver resolver;
  bool connected = false;
  bool dropped = false;  // taken or no longer wanted: handlers that still run do nothing
};

}  // namespace

class GnbClient::Impl {
 public:
  class Request;

  Impl(asio::io_context& context, HttpTimeouts limits, HttpAccess how)
      : io(context), timeouts(limits), access(std::move(how)) {}
  ~Impl();

  Exchange add(std::shared_ptr<Request> request);
  std::unique_ptr<SecureStream> take_warm(const Address& gnb);
  // Puts a connected stream under TLS, if the gNB has https.
  Status secure(SecureStream& stream, const Address& gnb);
  void drop_warm(const Address& gnb);

  asio::io_context& io;
  HttpTimeouts timeouts;
  HttpAccess access;
  std::unique_ptr<tls::Trust> trust;  // read when it is first needed
  std::map<Exchange, std::shared_ptr<Request>> requests;
  std::map<Address, std::shared_ptr<Warm>> warm;
  Counters counters;
  Exchange last = 0;
};

// One request and its answer. Asio's handlers share its ownership; `owner_` is null once nobody
// wants to hear of it any more.
class GnbClient::Impl::Request : public std::enable_shared_from_this<Request> {
 public:
  Request(Impl& owner, Address gnb, const HttpRequest& request, StreamHandlers handlers,
          std::function<void(Result<HttpReply>)> done)
      : owner_(&owner),
        gnb_(std::move(gnb)),
        handlers_(std::move(handlers)),
        done_(std::move(done)),
        timeouts_(owner.timeouts),
        stream_(make_stream(owner.io)),
        resolver_(owner.io),
        deadline_(owner.io) {
    message_.method(http::string_to_verb(request.method));
    message_.target(request.target);
    message_.version(11);
    message_.set(http::field::host, gnb_.text());
    message_.set(http::field::user_agent, "pallas-ue");
    message_.set(http::field::accept,
                 wants_stream() ? "text/event-stream, application/json" : "application/json");
    if (!request.body.empty()) message_.set(http::field::content_type, "application/json");
    if (!owner.access.key.empty()) {
      message_.set(http::field::authorization, "Bearer " + owner.access.key);
    }
    for (const auto& [name, value] : request.headers) message_.set(name, value);
    message_.body() = request.body;
    message_.prepare_payload();
  }

  void start(Exchange number) {
    number_ = number;
    if (auto ready = owner_->take_warm(gnb_)) {
      over_warm_ = true;
      stream_ = std::move(ready);
      asio::post(stream_->get_executor(), [self = shared_from_this()] { self->write(); });
    } else {
      connect();
    }
  }

  void abandon() {
    owner_ = nullptr;
    handlers_ = {};
    done_ = {};
    shut();
  }

 private:
  bool wants_stream() const { return !done_; }
  bool unwanted() const { return owner_ == nullptr; }

  void connect() {
    ++owner_->counters.connections;
    arm(timeouts_.connect, "connecting took too long");
    error_code ec;
    const tcp::endpoint endpoint = numeric_endpoint(gnb_, ec);
    if (!ec) {
      stream_->socket().async_connect(
          endpoint, [self = shared_from_this()](error_code e) { self->on_connected(e); });
      return;
    }
    resolver_.async_resolve(
        gnb_.host, std::to_string(gnb_.port),
        [self = shared_from_this()](error_code e, const tcp::resolver::results_type& found) {
          if (self->unwanted()) return;
          if (e) return self->give_up(Errc::kUnreachable, "its name is not known: " + e.message());
          asio::async_connect(
              self->stream_->socket(), found,
              [self](error_code failed, const tcp::endpoint&) { self->on_connected(failed); });
        });
  }

  void on_connected(error_code ec) {
    if (unwanted()) return;
    if (ec) return give_up(Errc::kUnreachable, "cannot connect: " + ec.message());
    if (Status ok = owner_->secure(*stream_, gnb_); !ok) {
      return give_up(ok.error().code, ok.error().message);
    }
    if (!stream_->is_secure()) return write();
    stream_->handshake(false, [self = shared_from_this()](error_code failed) {
      if (self->unwanted()) return;
      if (failed) return self->give_up(Errc::kUnauthorized, self->why_insecure(failed));
      self->write();
    });
  }

  std::string why_insecure(error_code ec) const {
    const long verdict = SSL_get_verify_result(stream_->native_tls());
    return "TLS: " + (verdict == X509_V_OK ? ec.message()
                                           : std::string("its certificate is refused: ") +
                                                 X509_verify_cert_error_string(verdict));
  }

  void write() {
    if (unwanted()) return;
    arm(timeouts_.answer, "no answer came in time");
    error_code ignored;
    stream_->socket().set_option(tcp::no_delay(true), ignored);
    parser_.emplace();
    parser_->body_limit(boost::none);
    http::async_write(*stream_, message_, [self = shared_from_this()](error_code ec, std::size_t) {
      if (self->unwanted()) return;
      if (ec) return self->on_no_answer(ec);
      self->read_header();
    });
  }

  void read_header() {
    http::async_read_header(*stream_, buffer_, *parser_,
                            [self = shared_from_this()](error_code ec, std::size_t) {
                              if (self->unwanted()) return;
                              if (ec) return self->on_no_answer(ec);
                              self->on_header();
                            });
  }

  // A warm connection may have been closed under us: that says nothing about the gNB.
  void on_no_answer(error_code ec) {
    if (std::exchange(over_warm_, false)) {
      error_code ignored;
      stream_->socket().close(ignored);
      stream_ = make_stream(owner_->io);
      buffer_.clear();
      connect();
      return;
    }
    give_up(Errc::kUnreachable, "the connection broke before an answer: " + ec.message());
  }

  void on_header() {
    const auto& header = parser_->get();
    reply_.status = static_cast<int>(header.result_int());
    reply_.content_type = std::string(header[http::field::content_type]);
    streaming_ = wants_stream() && reply_.status == 200 &&
                 reply_.content_type.starts_with("text/event-stream");
    if (parser_->is_done()) return on_body_end();
    read_body();
  }

  void read_body() {
    if (streaming_) arm(timeouts_.silence, "the stream fell silent");
    parser_->get().body().data = chunk_.data();
    parser_->get().body().size = chunk_.size();
    parser_->get().body().more = true;
    http::async_read_some(*stream_, buffer_, *parser_,
                          [self = shared_from_this()](error_code ec, std::size_t) {
                            if (!self->unwanted()) self->on_body(ec);
                          });
  }

  void on_body(error_code ec) {
    if (ec == http::error::need_buffer) ec = {};
    const std::size_t bytes = chunk_.size() - parser_->get().body().size;
    const std::string_view part(chunk_.data(), bytes);
    if (!part.empty() && streaming_) {
      handlers_.on_data(part);
      if (unwanted()) return;
    } else if (!part.empty()) {
      if (part.size() > kMaxReplyBytes - reply_.body.size()) {
        return give_up(Errc::kTooLarge, "its answer is longer than 16 MiB");
      }
      reply_.body += part;
    }
    if (ec) return give_up(Errc::kUnreachable, "the connection broke: " + ec.message());
    if (parser_->is_done()) return on_body_end();
    read_body();
  }

  void on_body_end() {
    if (streaming_) return give_up(Errc::kUnreachable, "it ended the stream");
    auto handlers = std::exchange(handlers_, {});
    auto done = std::exchange(done_, {});
    const HttpReply reply = std::exchange(reply_, {});
    leave();
    if (done) {
      done(reply);
    } else {
      handlers.on_refused(reply);
    }
  }

  void give_up(Errc code, const std::string& why) {
    auto handlers = std::exchange(handlers_, {});
    auto done = std::exchange(done_, {});
    const Error error{code, "gNB at " + gnb_.text() + ": " + why};
    leave();
    if (done) {
      done(tl::unexpected(error));
    } else {
      handlers.on_end(error);
    }
  }

  // Before the last callback, which may destroy the client.
  void leave() {
    Impl* owner = std::exchange(owner_, nullptr);
    shut();
    owner->requests.erase(number_);
  }

  void shut() {
    error_code ignored;
    deadline_.cancel();
    resolver_.cancel();
    stream_->socket().close(ignored);
  }

  void arm(Duration limit, const char* complaint) {
    deadline_.expires_after(limit);
    deadline_.async_wait([weak = weak_from_this(), complaint](error_code ec) {
      const auto self = weak.lock();
      if (ec || !self || self->unwanted()) return;
      // Re-armed while this handler was already queued.
      if (self->deadline_.expiry() > asio::steady_timer::clock_type::now()) return;
      self->give_up(Errc::kTimeout, complaint);
    });
  }

  Impl* owner_;
  Exchange number_ = 0;
  Address gnb_;
  StreamHandlers handlers_;
  std::function<void(Result<HttpReply>)> done_;
  HttpTimeouts timeouts_;
  std::unique_ptr<SecureStream> stream_;
  tcp::resolver resolver_;
  asio::steady_timer deadline_;
  http::request<http::string_body> message_;
  boost::beast::flat_buffer buffer_;
  std::optional<http::response_parser<http::buffer_body>> parser_;
  std::array<char, kReadBytes> chunk_;
  HttpReply reply_;
  bool over_warm_ = false;
  bool streaming_ = false;
};

GnbClient::Impl::~Impl() {
  for (const auto& [number, request] : requests) request->abandon();
  while (!warm.empty()) drop_warm(Address(warm.begin()->first));
}

GnbClient::Exchange GnbClient::Impl::add(std::shared_ptr<Request> request) {
  const Exchange number = ++last;
  requests[number] = request;
  request->start(number);
  return number;
}

Status GnbClient::Impl::secure(SecureStream& stream, const Address& gnb) {
  if (!gnb.tls) return {};
  if (!trust) {
    if (access.authority.empty()) {
      return fail(Errc::kInvalidConfig, "https needs the file of an authority to believe");
    }
    auto loaded = tls::Trust::load({"authority", access.authority});
    if (!loaded) return Failure(loaded.error());
    trust = std::move(*loaded);
  }
  SSL* const ssl = trust->session_for(gnb.host);
  if (ssl == nullptr) return fail(Errc::kResourceExhausted, "TLS: no memory");
  stream.secure(ssl);
  return {};
}

std::unique_ptr<SecureStream> GnbClient::Impl::take_warm(const Address& gnb) {
  const auto it = warm.find(gnb);
  if (it == warm.end() || !it->second->connected) return nullptr;
  const std::shared_ptr<Warm> found = it->second;
  warm.erase(it);
  found->dropped = true;
  error_code ignored;
  found->stream->socket().cancel(ignored);
  ++counters.warm_connections;
  return std::move(found->stream);
}

void GnbClient::Impl::drop_warm(const Address& gnb) {
  const auto it = warm.find(gnb);
  if (it == warm.end()) return;
  error_code ignored;
  it->second->dropped = true;
  it->second->resolver.cancel();
  it->second->stream->socket().close(ignored);
  warm.erase(it);
}

GnbClient::GnbClient(asio::io_context& io, HttpTimeouts timeouts, HttpAccess access)
    : impl_(std::make_unique<Impl>(io, timeouts, std::move(access))) {}

GnbClient::~GnbClient() = default;

GnbClient::Exchange GnbClient::stream(const Address& gnb, const HttpRequest& request,
                                      StreamHandlers handlers) {
  return impl_->add(std::make_shared<Impl::Request>(*impl_, gnb, request, std::move(handlers),
                                                    std::function<void(Result<HttpReply>)>()));
}

GnbClient::Exchange GnbClient::fetch(const Address& gnb, const HttpRequest& request,
                                     std::function<void(Result<HttpReply>)> done) {
  return impl_->add(
      std::make_shared<Impl::Request>(*impl_, gnb, request, StreamHandlers{}, std::move(done)));
}

void GnbClient::close(Exchange exchange) {
  const auto it = impl_->requests.find(exchange);
  if (it == impl_->requests.end()) return;
  const std::shared_ptr<Impl::Request> request = it->second;
  impl_->requests.erase(it);
  request->abandon();
}

void GnbClient::warm(const Address& gnb) {
  if (impl_->warm.contains(gnb)) return;
  const auto entry = std::make_shared<Warm>(impl_->io);
  impl_->warm[gnb] = entry;
  ++impl_->counters.connections;
  const auto watch = [impl = impl_.get(), entry, gnb](error_code ec) {
    if (entry->dropped) return;
    if (ec) return impl->drop_warm(gnb);
    entry->connected = true;
    // Readable means closed, or a server that talks unasked: of no use either way.
    entry->stream->socket().async_wait(tcp::socket::wait_read, [impl, entry, gnb](error_code) {
      if (!entry->dropped) impl->drop_warm(gnb);
    });
  };
  const auto secure = [impl = impl_.get(), entry, gnb, watch](error_code ec) {
    if (entry->dropped) return;
    if (ec || !impl->secure(*entry->stream, gnb)) return impl->drop_warm(gnb);
    if (!entry->stream->is_secure()) return watch(ec);
    entry->stream->handshake(false, watch);
  };
  error_code ec;
  const tcp::endpoint endpoint = numeric_endpoint(gnb, ec);
  if (!ec) {
    entry->stream->socket().async_connect(endpoint, secure);
    return;
  }
  entry->resolver.async_resolve(
      gnb.host, std::to_string(gnb.port),
      [entry, secure](error_code failed, const tcp::resolver::results_type& found) {
        if (entry->dropped) return;
        if (failed) return secure(failed);
        asio::async_connect(entry->stream->socket(), found,
                            [secure](error_code e, const tcp::endpoint&) { secure(e); });
      });
}

void GnbClient::cool(const Address& gnb) {
  impl_->drop_warm(gnb);
}

bool GnbClient::is_warm(const Address& gnb) const {
  const auto it = impl_->warm.find(gnb);
  return it != impl_->warm.end() && it->second->connected;
}

const GnbClient::Counters& GnbClient::counters() const {
  return impl_->counters;
}

}  // namespace pallas::ue
