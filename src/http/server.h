#pragma once
// The HTTP/1.1 server of a gNB, on the node's own thread. A client that is slow, silent or gone
// costs a bounded amount of memory and never delays another.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/units.h"
#include "http/api.h"
#include "tls/credentials.h"

namespace boost::asio {
class io_context;
}

namespace pallas::http {

struct ListenOptions {
  std::string address = "127.0.0.1";  // an IP address or "localhost"
  std::uint16_t port = 0;             // 0: the system chooses
};

struct ServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;
  // A listener of the operators' own; then the first is for clients only.
  std::optional<ListenOptions> operators;
  // Certificate and key of all listeners, which are then under TLS 1.3; no certificate is asked of
  // clients.
  std::optional<tls::Files> tls;
  std::optional<tls::File> keys;                // of clients, as ApiKeys has them; sets api.keys
  Duration refresh{std::chrono::seconds(1)};    // how often these files are looked at
  std::function<void(const std::string&)> log;  // a line for an operator; may be empty
  ApiOptions api;                               // random and unix_time: the system's where unset

  std::size_t max_connections = 1024;
  std::size_t max_header_bytes = 16u << 10;
  std::size_t max_body_bytes = 8u << 20;
  std::size_t max_stream_queue_bytes = 1u << 20;       // a stream with more unsent is closed
  Duration request_timeout{std::chrono::seconds(20)};  // from a request's first byte to its last
  Duration idle_timeout{std::chrono::seconds(75)};     // between requests
  Duration write_timeout{std::chrono::seconds(30)};    // without a byte taken by the client
};

class Server {
 public:
  // Listens at once. kAlreadyExists when the port is in use, kInvalidConfig for the address or a
  // file; all name it. `clock` must run its timers on the thread of `io`. The server must go before
  // `io`.
  static Result<std::unique_ptr<Server>> create(boost::asio::io_context& io, Clock& clock,
                                                const engine::TextCodec& text,
                                                ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const;
  std::optional<std::uint16_t> operators_port() const;
  // For the node's ports; valid as long as the server.
  node::UeLink& ue_link();
  // The node is made after the server, since it needs ue_link(). Null takes it away again.
  void set_node(node::Node* node);
  void set_backend(Backend* backend);
  // Further figures for /metrics.
  void set_metrics(MetricSource source);
  // What draining means to the program; without one its routes answer 501.
  void set_drain(DrainHandler drain);
  // No answer is under way and none waits to be taken: nobody loses anything by close().
  bool idle() const;

  // Takes no new connections; those that are open go on.
  void stop_accepting();
  // Closes every connection; the node hears of each stream.
  void close();

 private:
  class Impl;
  explicit Server(std::shared_ptr<Impl> impl);

  std::shared_ptr<Impl> impl_;
  std::unique_ptr<Backend> node_backend_;
};

}  // namespace pallas::http
