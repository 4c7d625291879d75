// The server over real sockets of the loopback, in one thread: the test runs the io_context until
// what it waits for is there. Time-outs are on virtual time.

#include "http/server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <vector>

#include "fakes.h"
#include "virtual_clock.h"

namespace pallas::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// A client that keeps whatever comes.
class Client {
 public:
  Client(asio::io_context& io, std::uint16_t port, int receive_buffer = 0) : socket_(io) {
    socket_.open(tcp::v4());
    if (receive_buffer > 0) {
      socket_.set_option(asio::socket_base::receive_buffer_size(receive_buffer));
    }
    socket_.connect({asio::ip::address_v4::loopback(), port});
    socket_.set_option(tcp::no_delay(true));
  }
  void send(const std::string& bytes) {
    error_code ignored;
    asio::write(socket_, asio::buffer(bytes), ignored);
  }
  void listen() {
    socket_.async_read_some(asio::buffer(buffer_), [this](const error_code& error, std::size_t n) {
      text_.append(buffer_.data(), n);
      if (error) {
        ended_ = true;
        reset_ = error != asio::error::eof;
      } else {
        listen();
      }
    });
  }
  std::size_t available() const { return socket_.available(); }
  void hang_up() { socket_.close(); }
  const std::string& text() const { return text_; }
  bool has(const std::string& part) const { return text_.find(part) != std::string::npos; }
  bool ended() const { return ended_; }
  // Ended by a reset, which may take the answer away from a client.
  bool reset() const { return reset_; }
  void forget() { text_.clear(); }

 private:
  tcp::socket socket_;
  std::array<char, 4096> buffer_{};
  std::string text_;
  bool ended_ = false;
  bool reset_ = false;
};

std::string post(const std::string& path, const std::string& body, const std::string& more = "") {
  return "POST " + path + " HTTP/1.1\r\nHost: x\r\n" + more +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}
std::string get(const std::string& path, const std::string& more = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: x\r\n" + more + "\r\n";
}

class ServerTest : public testing::Test {
 protected:
  void start(std::function<void(ServerOptions&)> change = {}) {
    ServerOptions options;
    options.api.random = counting_random();
    options.api.unix_time = [] { return std::int64_t{1700000000}; };
    if (change) change(options);
    auto created = Server::create(io, clock, codec, options);
    ASSERT_TRUE(created) << created.error().message;
    server = std::move(*created);
    server->set_backend(&backend);
  }
  // False when it does not come true within 20 s.
  bool until(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
      if (std::chrono::steady_clock::now() > end) return false;
      io.restart();
      io.run_one_for(std::chrono::milliseconds(50));
    }
    return true;
  }
  // Runs everything that is ready now.
  void settle() {
    do {
      io.restart();
    } while (io.poll() > 0);
  }
  std::unique_ptr<Client> connect(int receive_buffer = 0) {
    auto client = std::make_unique<Client>(io, server->port(), receive_buffer);
    client->listen();
    return client;
  }
  bool ask(Client& client, const std::string& request, const std::string& awaited) {
    client.send(request);
    return until([&] { return client.has(awaited) || client.ended(); }) && client.has(awaited);
  }
  HttpStats stats() {
    auto client = connect();
    EXPECT_TRUE(ask(*client, get("/metrics"), "pallas_ran_messages_refused_total "));
    HttpStats s;
    const auto value = [&](const std::string& name) {
      const auto at = client->text().find("\n" + name + " ");
      return std::stoull(client->text().substr(at + name.size() + 2));
    };
    s.slow_readers_closed = value("pallas_http_slow_readers_closed_total");
    s.streams_open = value("pallas_http_streams_open");
    return s;
  }

  ByteCodec codec;
  test::VirtualClock clock;
  FakeBackend backend;
  asio::io_context io{1};
  std::unique_ptr<Server> server;
};

TEST_F(ServerTest, a_stream_comes_in_chunks_and_the_connection_is_kept) {
  start();
  auto client = connect();
  ASSERT_TRUE(
      ask(*client, post("/v1/chat/completions", kChatBody, "Pallas-Resume: 1\r\n"), "\"role\""));
  EXPECT_TRUE(client->text().starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"));
  EXPECT_TRUE(client->has("Transfer-Encoding: chunked\r\n"));
  const auto stream = backend.opened.at(0).stream;
  server->ue_link().deliver(stream, token(0, "hello"));
  ASSERT_TRUE(until([&] { return client->has("hello"); }));
  server->ue_link().finish(stream, {wire::FinishReason::kStop, "", 8, 1});
  ASSERT_TRUE(until([&] { return client->has("0\r\n\r\n"); }));
  EXPECT_TRUE(client->has("data: [DONE]\n\n\r\n0\r\n\r\n"));
  client->forget();
  ASSERT_TRUE(ask(*client, get("/v1/models"), "\"tiny\""));
  EXPECT_TRUE(client->has("Connection: keep-alive"));
}

TEST_F(ServerTest, a_token_leaves_within_the_nodes_call) {
  start();
  Client client(io, server->port());
  client.send(post("/v1/chat/completions", kChatBody));
  ASSERT_TRUE(until([&] { return backend.opened.size() == 1; }));
  settle();
  const auto before = client.available();
  server->ue_link().deliver(backend.opened[0].stream, token(0, "now"));
  EXPECT_GT(client.available(), before);  // and nothing of the io_context ran
}

TEST_F(ServerTest, http_1_0_gets_a_stream_that_ends_with_the_connection) {
  start();
  auto client = connect();
  client->send("POST /v1/chat/completions HTTP/1.0\r\nContent-Length: " +
               std::to_string(kChatBody.size()) + "\r\n\r\n" + kChatBody);
  ASSERT_TRUE(until([&] { return client->has("\"role\""); }));
  EXPECT_FALSE(client->has("chunked"));
  server->ue_link().finish(backend.opened[0].stream, {wire::FinishReason::kStop, "", 8, 1});
  ASSERT_TRUE(until([&] { return client->ended(); }));
  EXPECT_TRUE(client->text().ends_with("data: [DONE]\n\n"));
}

TEST_F(ServerTest, a_request_may_be_split_anywhere) {
  start();
  const auto request = post("/v1/completions", R"({"model":"tiny","prompt":"abc"})");
  auto client = connect();
  for (std::size_t cut = 1; cut < request.size(); ++cut) {
    client->forget();
    backend.opened.clear();
    client->send(request.substr(0, cut));
    settle();
    client->send(request.substr(cut));
    ASSERT_TRUE(until([&] { return backend.opened.size() == 1; })) << cut;
    server->ue_link().finish(backend.opened[0].stream, {wire::FinishReason::kStop, "text", 3, 1});
    ASSERT_TRUE(until([&] { return client->has("\"text\":\"text\""); })) << cut;
  }
}

TEST_F(ServerTest, bytes_may_come_one_at_a_time) {
  start();
  auto client = connect();
  for (const char c : get("/v1/models")) {
    client->send(std::string(1, c));
    io.restart();
    io.poll();
  }
  EXPECT_TRUE(until([&] { return client->has("\"tiny\""); }));
}

TEST_F(ServerTest, pipelined_requests_are_answered_in_order) {
  start();
  auto client = connect();
  client->send(post("/v1/chat/completions", kChatBody) + get("/v1/models") + get("/nothing"));
  ASSERT_TRUE(until([&] { return client->has("\"role\""); }));
  settle();
  EXPECT_FALSE(client->has("\"object\":\"list\""));
  server->ue_link().finish(backend.opened[0].stream, {wire::FinishReason::kStop, "", 8, 1});
  ASSERT_TRUE(until([&] { return client->has("unknown_path"); }));
  EXPECT_LT(client->text().find("[DONE]"), client->text().find("\"object\":\"list\""));
  EXPECT_LT(client->text().find("\"object\":\"list\""), client->text().find("unknown_path"));
}

TEST_F(ServerTest, a_client_that_hangs_up_is_noticed_in_mid_stream) {
  start();
  auto client = connect();
  ASSERT_TRUE(ask(*client, post("/v1/chat/completions", kChatBody), "\"role\""));
  client->hang_up();
  ASSERT_TRUE(until([&] { return !backend.closed.empty(); }));
  EXPECT_EQ(backend.closed[0], backend.opened[0].stream);
  server->ue_link().deliver(backend.opened[0].stream, token(0, "late"));
  EXPECT_EQ(stats().streams_open, 0u);
}

TEST_F(ServerTest, a_client_that_hangs_up_while_it_waits_for_a_whole_answer_is_noticed) {
  start();
  auto client = connect();
  client->send(post("/v1/completions", R"({"model":"tiny","prompt":"abc"})"));
  ASSERT_TRUE(until([&] { return backend.opened.size() == 1; }));
  client->hang_up();
  EXPECT_TRUE(until([&] { return backend.closed.size() == 1; }));
}

TEST_F(ServerTest, a_client_that_does_not_read_is_cut_and_others_go_on) {
  start([](ServerOptions& options) { options.max_stream_queue_bytes = 64 << 10; });
  Client silent(io, server->port(), 4096);  // never listens
  silent.send(post("/v1/chat/completions", kChatBody));
  ASSERT_TRUE(until([&] { return backend.opened.size() == 1; }));
  auto reader = connect();
  ASSERT_TRUE(ask(*reader, post("/v1/chat/completions", kChatBody), "\"role\""));
  const std::string text(8 << 10, 'x');
  std::uint32_t sent = 0;
  ASSERT_TRUE(until([&] {
    server->ue_link().deliver(backend.opened[0].stream, token(sent, text));
    server->ue_link().deliver(backend.opened[1].stream, token(sent, "y"));
    ++sent;
    return !backend.closed.empty();
  }));
  EXPECT_EQ(backend.closed, std::vector<node::StreamId>{backend.opened[0].stream});
  EXPECT_LT(sent * text.size(), 8u << 20);
  server->ue_link().finish(backend.opened[1].stream, {wire::FinishReason::kStop, "", 8, sent});
  EXPECT_TRUE(until([&] { return reader->has("[DONE]"); }));
  EXPECT_EQ(stats().slow_readers_closed, 1u);
}

TEST_F(ServerTest, a_client_that_takes_no_byte_for_the_write_timeout_is_cut) {
  start();
  Client silent(io, server->port(), 4096);
  silent.send(post("/v1/chat/completions", kChatBody));
  ASSERT_TRUE(until([&] { return backend.opened.size() == 1; }));
  const std::string text(900 << 10, 'x');  // more than the kernel takes, less than the queue
  server->ue_link().deliver(backend.opened[0].stream, token(0, text));
  settle();
  EXPECT_TRUE(backend.closed.empty());
  clock.run_for(std::chrono::seconds(31));
  EXPECT_TRUE(until([&] { return backend.closed.size() == 1; }));
}

TEST_F(ServerTest, a_hundred_streams_run_at_once) {
  start();
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 100; ++i) {
    clients.push_back(connect());
    clients.back()->send(post("/v1/chat/completions", kChatBody, "Pallas-Resume: 1\r\n"));
  }
  ASSERT_TRUE(until([&] { return backend.opened.size() == 100; }));
  for (std::uint32_t index = 0; index < 20; ++index) {
    for (const auto& opened : backend.opened) {
      server->ue_link().deliver(opened.stream,
                                token(index, std::to_string(opened.stream.value) + "."));
    }
  }
  for (const auto& opened : backend.opened) {
    server->ue_link().finish(opened.stream, {wire::FinishReason::kStop, "", 8, 20});
  }
  for (const auto& client : clients) {
    ASSERT_TRUE(until([&] { return client->has("[DONE]"); }));
    std::size_t at = 0;
    for (int index = 0; index < 20; ++index) {
      at = client->text().find("id: 1." + std::to_string(index) + "\n", at);
      ASSERT_NE(at, std::string::npos);
    }
  }
}

TEST_F(ServerTest, bad_requests_are_answered_and_the_connection_closed) {
  start();
  struct Case {
    std::string request, status;
  };
  for (const auto& [request, status] :
       {Case{"nonsense\r\n\r\n", "400 "}, Case{"GET / HTTP/3.0\r\n\r\n", "400 "},
        Case{get("/", "X: " + std::string(17 << 10, 'x') + "\r\n"), "431 "},
        Case{"POST /v1/completions HTTP/1.1\r\nContent-Length: 8388609\r\n\r\n", "413 "},
        Case{"POST /v1/completions HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
             "400 "},
        Case{"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n" + get("/health"),
             "501 "},
        Case{"GET / HTTP/1.1\r\nExpect: miracles\r\n\r\n", "417 "}}) {
    auto client = connect();
    client->send(request);
    ASSERT_TRUE(until([&] { return client->ended(); })) << request.substr(0, 60);
    EXPECT_TRUE(client->text().starts_with("HTTP/1.1 " + status)) << client->text();
    EXPECT_TRUE(client->has("{\"error\":{"));
    EXPECT_TRUE(client->has("Connection: close"));
  }
}

TEST_F(ServerTest, a_body_above_the_limit_is_refused_while_the_client_still_sends) {
  start([](ServerOptions& options) { options.max_body_bytes = 1000; });
  auto client = connect();
  client->send("POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n19000\r\n" +
               std::string(0x19000, 'x'));
  ASSERT_TRUE(until([&] { return client->ended(); }));
  EXPECT_TRUE(client->text().starts_with("HTTP/1.1 413 ")) << client->text();
  EXPECT_FALSE(client->reset());
}

TEST_F(ServerTest, bad_json_is_an_error_and_the_connection_is_kept) {
  start();
  auto client = connect();
  ASSERT_TRUE(ask(*client, post("/v1/chat/completions", "{\"model\":"), "invalid_json"));
  client->forget();
  ASSERT_TRUE(ask(*client, get("/v1/nothing"), "unknown_path"));
  client->forget();
  ASSERT_TRUE(ask(*client, "HEAD /v1/models HTTP/1.1\r\n\r\n", "\r\n\r\n"));
  EXPECT_TRUE(client->text().ends_with("\r\n\r\n"));
  client->forget();
  EXPECT_TRUE(ask(*client, get("/v1/models"), "\"tiny\""));
}

TEST_F(ServerTest, a_client_may_ask_before_it_sends_its_body) {
  start();
  auto client = connect();
  const std::string body = R"({"model":"tiny","prompt":"abc"})";
  ASSERT_TRUE(ask(*client,
                  "POST /v1/completions HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: " +
                      std::to_string(body.size()) + "\r\n\r\n",
                  "HTTP/1.1 100 Continue\r\n\r\n"));
  client->send(body);
  EXPECT_TRUE(until([&] { return backend.opened.size() == 1; }));
}

TEST_F(ServerTest, a_request_that_does_not_come_whole_times_out) {
  start();
  auto client = connect();
  client->send("POST /v1/completions HTTP/1.1\r\nContent-Le");
  settle();
  clock.run_for(std::chrono::seconds(21));
  ASSERT_TRUE(until([&] { return client->ended(); }));
  EXPECT_TRUE(client->text().starts_with("HTTP/1.1 408 "));
}

TEST_F(ServerTest, a_connection_without_a_request_is_closed_quietly_after_a_while) {
  start();
  auto client = connect();
  ASSERT_TRUE(ask(*client, get("/v1/models"), "\"tiny\""));
  client->forget();
  clock.run_for(std::chrono::seconds(60));
  EXPECT_TRUE(ask(*client, get("/v1/models"), "\"tiny\""));
  client->forget();
  clock.run_for(std::chrono::seconds(76));
  ASSERT_TRUE(until([&] { return client->ended(); }));
  EXPECT_EQ(client->text(), "");
}

TEST_F(ServerTest, connections_above_the_limit_are_told_so) {
  start([](ServerOptions& options) { options.max_connections = 2; });
  auto first = connect(), second = connect();
  ASSERT_TRUE(ask(*first, get("/v1/models"), "\"tiny\""));
  ASSERT_TRUE(ask(*second, get("/v1/models"), "\"tiny\""));
  auto third = connect();
  ASSERT_TRUE(until([&] { return third->ended(); }));
  EXPECT_TRUE(third->text().starts_with("HTTP/1.1 503 "));
  EXPECT_TRUE(third->has("too_many_connections"));
  first->hang_up();
  third->hang_up();
  settle();
  auto fourth = connect();
  EXPECT_TRUE(ask(*fourth, get("/v1/models"), "\"tiny\""));
}

TEST_F(ServerTest, each_of_many_connections_above_the_limit_gets_its_503_and_no_reset) {
  start([](ServerOptions& options) { options.max_connections = 1; });
  auto first = connect();
  ASSERT_TRUE(ask(*first, get("/v1/models"), "\"tiny\""));
  std::vector<std::unique_ptr<Client>> crowd;
  for (int i = 0; i < 400; ++i) {
    crowd.push_back(connect());
    crowd.back()->send(get("/v1/models"));
  }
  const auto told = [&] {
    clock.run_for(std::chrono::milliseconds(20));
    return std::all_of(crowd.begin(), crowd.end(), [](const auto& c) { return c->ended(); });
  };
  ASSERT_TRUE(until(told));
  for (const auto& client : crowd) {
    EXPECT_TRUE(client->text().starts_with("HTTP/1.1 503 "));
    EXPECT_TRUE(client->has("Retry-After: "));
  }
  EXPECT_TRUE(ask(*first, get("/v1/models"), "\"tiny\""));
}

TEST_F(ServerTest, a_port_in_use_is_named) {
  start();
  ServerOptions options;
  options.port = server->port();
  const auto second = Server::create(io, clock, codec, options);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::kAlreadyExists);
  EXPECT_NE(second.error().message.find(std::to_string(server->port())), std::string::npos);
  options.address = "not an address";
  const auto third = Server::create(io, clock, codec, options);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, Errc::kInvalidConfig);
}

TEST_F(ServerTest, the_server_may_go_with_streams_open) {
  start();
  auto client = connect();
  ASSERT_TRUE(ask(*client, post("/v1/chat/completions", kChatBody), "\"role\""));
  server.reset();
  EXPECT_TRUE(until([&] { return client->ended(); }));
}

TEST_F(ServerTest, close_tells_the_node_of_every_stream) {
  start();
  auto client = connect();
  ASSERT_TRUE(ask(*client, post("/v1/chat/completions", kChatBody), "\"role\""));
  server->close();
  EXPECT_TRUE(until([&] { return client->ended() && backend.closed.size() == 1; }));
}

}  // namespace
}  // namespace pallas::http
