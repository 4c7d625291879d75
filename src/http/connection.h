#pragma once
// One client connection. Includes Asio and Beast: for server.cpp and connection.cpp only.
//
// Under TLS the handshake comes first, in READING, within the time of a request.
//
//   READING --request whole--> ANSWERING --answer out, keep-alive--> READING
//      |                           | answer out, close
//      | bad request, answered     v
//      +----------------------> DRAINING --end of input or 2 s--> CLOSED
//   CLOSED from everywhere on an error, a time-out or a full queue.
//
// One read is always under way, so that a client that goes is noticed in every state; what it
// sends while it is being answered (a pipelined request) waits, up to the limit of a header.

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <memory>
#include <optional>
#include <string>

#include "http/secure_stream.h"
#include "http/server.h"

namespace pallas::http {

class Connection;

// What a connection needs of its server. Gone (null in the connection) after leave().
class ConnectionHost {
 public:
  virtual ~ConnectionHost() = default;
  virtual Api& api() = 0;
  virtual Clock& clock() = 0;
  virtual const ServerOptions& options() const = 0;
  virtual void post(std::function<void()> task) = 0;
  virtual void on_closed(Connection& connection) = 0;
};

class Connection : public Responder, public std::enable_shared_from_this<Connection> {
 public:
  // `audience` is that of the listener. With `tls` the connection is under TLS; takes it over.
  Connection(boost::asio::ip::tcp::socket socket, ConnectionHost& host, Audience audience,
             SSL* tls);
  ~Connection() override = default;

  void start();
  // Answers 503 whatever comes, and closes.
  void start_refusing();
  // The server goes: closes at once and forgets it.
  void leave();
  // Closes at once; the node is told of a stream, later.
  void cut();

  // Of its answers, what the client has not taken.
  std::size_t unsent_bytes() const { return queue_.size() + writing_.size() - written_; }

  void respond(HttpResponse response) override;
  void begin_events() override;
  void write(std::string_view events) override;
  void end() override;

 private:
  enum class State { kReading, kAnswering, kDraining, kClosed };
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  void shake_hands();
  void refuse();
  void read();
  void on_read(const boost::system::error_code& error, std::size_t bytes);
  void on_end_of_input();
  void reset_parser();
  void parse();
  // False when the request was refused or the client waits for something else.
  bool check_header();
  void refuse_request(const boost::system::error_code& error);
  void dispatch();
  void send(std::string_view bytes);
  void flush();
  void write_some();
  void on_written(const boost::system::error_code& error, std::size_t bytes);
  void finish_answer();
  void drain();
  void watch_reading(bool begun);
  void on_timeout();

  SecureStream stream_;
  ConnectionHost* host_;
  const Audience audience_;
  Timer read_timer_;
  Timer write_timer_;
  State state_ = State::kReading;
  std::array<char, 4u << 10> arriving_;  // where the read under way puts its bytes
  std::string input_;                    // what came and was not parsed yet
  std::optional<Parser> parser_;
  std::string queue_;        // to be written next
  std::string writing_;      // being written
  std::size_t written_ = 0;  // of writing_
  std::optional<node::StreamId> events_;
  std::size_t drained_bytes_ = 0;
  bool reading_ = false;  // a read is under way
  bool header_checked_ = false;
  bool request_begun_ = false;  // the request's timer runs
  bool keep_alive_ = false;     // of the request being answered
  bool chunked_ = false;        // its answer's events are chunks (HTTP/1.1)
  bool head_ = false;           // it was a HEAD: no body goes out
  bool close_when_written_ = false;
  bool refusing_ = false;  // there are too many connections: it only hears so
};

}  // namespace pallas::http
