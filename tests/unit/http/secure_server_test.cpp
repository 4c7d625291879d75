// The server under TLS, with two listeners and keys, and the UE's HTTP client as its client.

#include <gmock/gmock.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include "fakes.h"
#include "http/server.h"
#include "test_certificates.h"
#include "ue/gnb_client.h"
#include "virtual_clock.h"

namespace pallas::http {
namespace {

using ::testing::HasSubstr;

// Of real time, on a machine that does other things, too.
constexpr ue::HttpTimeouts kPatient{std::chrono::seconds(20), std::chrono::seconds(20),
                                    std::chrono::seconds(20)};
const std::string kRedKey = "red-key-0123456789", kOperatorKey = "the-operators-key";

class SecureServerTest : public testing::Test {
 protected:
  void start() {
    ServerOptions options;
    options.api.random = counting_random();
    options.api.unix_time = [] { return std::int64_t{1700000000}; };
    options.api.operator_key = kOperatorKey;
    options.operators = ListenOptions{};
    issue({"127.0.0.1"});
    options.tls = certificates.files("gnb");
    options.tls->authority.path.clear();
    options.keys = tls::File{"api_keys_file", certificates.write("keys", "red " + kRedKey + "\n")};
    options.log = [this](const std::string& line) { logged += line + "\n"; };
    auto created = Server::create(io, clock, codec, options);
    ASSERT_TRUE(created) << created.error().message;
    server = std::move(*created);
    server->set_backend(&backend);
  }
  void issue(const std::vector<std::string>& addresses) {
    tls::CertificateText text{{"gnb"}};
    text.addresses = addresses;
    certificates.write("gnb", test::TestCertificates::issue(certificates.authority(), text));
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
  ue::HttpAccess access(const std::string& key) {
    return {certificates.files("gnb").authority.path, key};
  }
  ue::Address clients() const { return {"127.0.0.1", server->port(), true}; }
  ue::Address operators() const { return {"127.0.0.1", *server->operators_port(), true}; }

  Result<ue::HttpReply> get(const ue::Address& at, const std::string& path,
                            const ue::HttpAccess& how) {
    ue::GnbClient client(io, kPatient, how);
    std::optional<Result<ue::HttpReply>> reply;
    client.fetch(at, {"GET", path, {}, ""}, [&](Result<ue::HttpReply> r) { reply = std::move(r); });
    EXPECT_TRUE(until([&] { return reply.has_value(); }));
    return *reply;
  }
  int status_of(const ue::Address& at, const std::string& path, const ue::HttpAccess& how) {
    const auto reply = get(at, path, how);
    EXPECT_TRUE(reply) << reply.error().message;
    return reply ? reply->status : 0;
  }

  test::TestCertificates certificates;
  boost::asio::io_context io{1};
  test::VirtualClock clock;
  ByteCodec codec;
  FakeBackend backend;
  std::string logged;
  std::unique_ptr<Server> server;
};

TEST_F(SecureServerTest, who_knows_the_authority_and_has_a_key_is_served) {
  start();
  EXPECT_EQ(status_of(clients(), "/v1/models", access(kRedKey)), 200);
  EXPECT_EQ(status_of(clients(), "/v1/models", access("wrong-key-0123456789")), 401);
  EXPECT_EQ(status_of(clients(), "/v1/sessions", access(kOperatorKey)), 404);
  EXPECT_EQ(status_of(operators(), "/v1/sessions", access(kOperatorKey)), 200);
  EXPECT_EQ(status_of(operators(), "/v1/sessions", access(kRedKey)), 401);
  EXPECT_EQ(status_of(operators(), "/v1/models", access(kRedKey)), 404);
}

TEST_F(SecureServerTest, events_stream_under_tls_and_over_a_warm_connection) {
  start();
  ue::GnbClient client(io, kPatient, access(kRedKey));
  client.warm(clients());
  ASSERT_TRUE(until([&] { return client.is_warm(clients()); }));
  std::string came;
  bool ended = false;
  ue::GnbClient::StreamHandlers handlers;
  handlers.on_data = [&](std::string_view part) { came += part; };
  handlers.on_refused = [&](const ue::HttpReply& reply) { came = reply.body; };
  handlers.on_end = [&](const Error&) { ended = true; };
  client.stream(clients(), {"POST", "/v1/chat/completions", {{"Pallas-Resume", "1"}}, kChatBody},
                handlers);
  ASSERT_TRUE(until([&] { return backend.opened.size() == 1; })) << came;
  EXPECT_EQ(client.counters().warm_connections, 1u);
  const std::string large(100'000, 'x');
  server->ue_link().deliver(backend.opened[0].stream, token(0, large));
  EXPECT_TRUE(until([&] { return came.size() > large.size(); }));
  EXPECT_THAT(came, HasSubstr("pallas.session"));
  server->ue_link().finish(backend.opened[0].stream, {wire::FinishReason::kStop, "", 8, 1});
  EXPECT_TRUE(until([&] { return ended; }));
  EXPECT_THAT(came, HasSubstr("[DONE]"));
}

TEST_F(SecureServerTest, a_client_refuses_a_server_that_it_cannot_believe) {
  start();
  const auto other = test::TestCertificates::make_authority("other");
  const auto stranger = certificates.write("other.crt", other->own().certificate);
  auto refused = get(clients(), "/v1/models", {stranger, kRedKey});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kUnauthorized);
  EXPECT_THAT(refused.error().message, HasSubstr("its certificate is refused"));
  // The same server by a name that its certificate lacks.
  refused = get({"localhost", server->port(), true}, "/v1/models", access(kRedKey));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("hostname mismatch"));
  refused = get(clients(), "/v1/models", {"", kRedKey});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kInvalidConfig);
  EXPECT_EQ(server->port(), clients().port);
}

TEST_F(SecureServerTest, who_speaks_no_tls_gets_nothing) {
  start();
  const auto reply = get({"127.0.0.1", server->port(), false}, "/v1/models", access(kRedKey));
  EXPECT_FALSE(reply);
  EXPECT_EQ(status_of(clients(), "/v1/models", access(kRedKey)), 200) << "and the server lives";
}

TEST_F(SecureServerTest, a_handshake_that_stalls_ends_with_the_time_of_a_request) {
  start();
  using boost::asio::ip::tcp;
  tcp::socket silent(io);
  silent.connect({boost::asio::ip::address_v4::loopback(), server->port()});
  boost::asio::write(silent, boost::asio::buffer("\x16", 1));
  io.restart();
  while (io.run_one_for(std::chrono::milliseconds(20)) > 0) {
  }
  std::array<char, 16> bytes{};
  boost::system::error_code end;
  bool ended = false;
  silent.async_read_some(boost::asio::buffer(bytes),
                         [&](const boost::system::error_code& error, std::size_t) {
                           end = error;
                           ended = true;
                         });
  clock.run_for(std::chrono::seconds(21));
  EXPECT_TRUE(until([&] { return ended; }));
  EXPECT_TRUE(end);
}

TEST_F(SecureServerTest, new_keys_and_certificates_count_without_a_restart) {
  start();
  certificates.write("keys", "red new-red-key-0123456789\n");
  issue({"127.0.0.1", "127.0.0.2"});
  clock.run_for(std::chrono::seconds(2));
  EXPECT_THAT(logged, HasSubstr("API keys were read again"));
  EXPECT_THAT(logged, HasSubstr("certificates were read again"));
  EXPECT_EQ(status_of(clients(), "/v1/models", access(kRedKey)), 401);
  EXPECT_EQ(status_of(clients(), "/v1/models", access("new-red-key-0123456789")), 200);
  certificates.write("keys", "red\n");
  clock.run_for(std::chrono::seconds(2));
  EXPECT_THAT(logged, HasSubstr("API keys stay as they were: api_keys_file"));
  EXPECT_EQ(logged.find("new-red-key"), std::string::npos);
  EXPECT_EQ(status_of(clients(), "/v1/models", access("new-red-key-0123456789")), 200);
}

TEST_F(SecureServerTest, files_that_would_not_do_are_refused_at_the_start) {
  ServerOptions options;
  options.keys = tls::File{"api_keys_file", certificates.write("keys", "red " + kRedKey, 0644)};
  auto created = Server::create(io, clock, codec, options);
  ASSERT_FALSE(created);
  EXPECT_THAT(created.error().message, HasSubstr("chmod 600"));
}

}  // namespace
}  // namespace pallas::http
