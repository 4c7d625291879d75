#pragma once
// HTTP to gNBs, on one io_context. Everything runs on its thread.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace boost::asio {
class io_context;
}

namespace pallas::ue {

struct Address {
  std::string host;
  std::uint16_t port = 0;
  bool tls = false;  // "https://"
  // "host:port"; IPv6 in brackets
  std::string text() const;
  friend auto operator<=>(const Address&, const Address&) = default;
};
// "host:port", "[::1]:port", optionally after "http://" or "https://". kInvalidArgument says what
// is wrong.
Result<Address> parse_address(std::string_view text);

struct HttpRequest {
  std::string method;  // "GET", "POST", "DELETE"
  std::string target;  // path and query
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;  // JSON
};
struct HttpReply {
  int status = 0;
  std::string content_type;
  std::string body;
};

struct HttpTimeouts {
  Duration connect = std::chrono::seconds(1);
  Duration answer = std::chrono::seconds(5);   // from the request to the answer's header
  Duration silence = std::chrono::seconds(5);  // without a byte of a stream
};

// How to get in where that takes something.
struct HttpAccess {
  std::string authority;  // PEM file: who signs the certificates of gNBs with https
  std::string key;        // shown with every request ("Authorization: Bearer"); empty: none
};

class GnbClient {
 public:
  using Exchange = std::uint64_t;  // 0 is never one

  // on_refused or on_end is the last call, once; none follows close(). None is made from inside a
  // call to the client.
  struct StreamHandlers {
    std::function<void(std::string_view)> on_data;
    std::function<void(const HttpReply&)> on_refused;  // any answer but a 200 event stream
    std::function<void(const Error&)> on_end;          // ended, cut, timed out, never opened
  };

  GnbClient(boost::asio::io_context& io, HttpTimeouts timeouts, HttpAccess access = {});
  ~GnbClient();
  GnbClient(const GnbClient&) = delete;
  GnbClient& operator=(const GnbClient&) = delete;

  Exchange stream(const Address& gnb, const HttpRequest& request, StreamHandlers handlers);
  // A whole answer; kUnreachable, kTimeout, kTooLarge or kIo otherwise.
  Exchange fetch(const Address& gnb, const HttpRequest& request,
                 std::function<void(Result<HttpReply>)> done);
  void close(Exchange exchange);

  // Opens a connection to this gNB that the next request there uses, so that it waits for no
  // handshake. At most one a gNB; one that the gNB closes is forgotten.
  void warm(const Address& gnb);
  void cool(const Address& gnb);
  bool is_warm(const Address& gnb) const;  // connected and unused

  struct Counters {
    std::uint64_t connections = 0;       // opened for a request or to be warm
    std::uint64_t warm_connections = 0;  // requests that went over a warm one
  };
  const Counters& counters() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pallas::ue
