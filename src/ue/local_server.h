#pragma once
// A small HTTP/1.1 server for the UE's own machine: whole answers and event streams. It knows
// nothing of OpenAI (local_endpoint.h does). Everything runs on the io_context's thread.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ue/gnb_client.h"

namespace pallas::ue {

struct IncomingRequest {
  std::string method;
  std::string target;  // path and query as sent
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // The first of that name, in any case; empty if there is none.
  std::string_view header(std::string_view name) const;
  // The target without its query.
  std::string_view path() const;
};

class LocalServer {
 public:
  using Exchange = std::uint64_t;  // one request and its answer; 0 is never one

  struct Handlers {
    std::function<void(Exchange, const IncomingRequest&)> on_request;
    // The client left before its answer was complete; calls with this exchange have no effect.
    std::function<void(Exchange)> on_gone;
  };
  struct Limits {
    std::size_t body_bytes = 16u << 20;
    std::size_t unsent_bytes = 8u << 20;  // a client that reads too slowly is cut off
    std::size_t connections = 256;
    Duration idle = std::chrono::seconds(60);  // between requests, and for the bytes of one
  };

  // kAlreadyExists if the port is in use, kInvalidArgument for an address that is not numeric (or
  // "localhost"), kIo otherwise. Port 0 takes a free one.
  static Result<std::unique_ptr<LocalServer>> listen(boost::asio::io_context& io,
                                                     const Address& address, Handlers handlers,
                                                     Limits limits);
  ~LocalServer();
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  std::uint16_t port() const;

  // One whole answer, or: begin, any number of writes, end.
  void reply(Exchange exchange, int status, std::string_view content_type, std::string_view body);
  void begin_stream(Exchange exchange, std::string_view content_type);
  void write(Exchange exchange, std::string_view bytes);
  void end(Exchange exchange);
  // Breaks the connection off.
  void cut(Exchange exchange);

 private:
  class Impl;
  explicit LocalServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Is this the machine's own loopback address?
bool is_loopback(const Address& address);

}  // namespace pallas::ue
