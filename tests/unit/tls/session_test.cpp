// Two sessions over a pair of sockets, driven by hand.

#include "tls/session.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test_certificates.h"

namespace pallas::tls {
namespace {

class SessionTest : public ::testing::Test {
 protected:
  struct End {
    std::unique_ptr<Credentials> credentials;
    std::unique_ptr<Session> session;
    int socket = -1;
    std::vector<std::byte> received;
    std::optional<Error> error;
  };

  void SetUp() override {
    int sockets[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets), 0);
    a_.socket = sockets[0];
    b_.socket = sockets[1];
    begin(a_, "a", Role::kDials, "b");
    begin(b_, "b", Role::kAccepts, "a");
  }
  void TearDown() override {
    for (End* end : {&a_, &b_}) {
      if (end->socket >= 0) ::close(end->socket);
    }
  }

  void begin(End& end, const std::string& name, Role role, const std::string& peer) {
    auto credentials = Credentials::load(certificates_.make(name), name);
    ASSERT_TRUE(credentials) << credentials.error().message;
    end.credentials = std::move(*credentials);
    auto session = Session::create(*end.credentials, role, {peer});
    ASSERT_TRUE(session);
    end.session = std::move(*session);
    ASSERT_TRUE(end.session->attach(end.socket));
  }

  // Everything that can be done now; what does not fit into the socket waits.
  static void turn(End& end) {
    if (end.error) return;
    if (!end.session->established()) {
      const auto done = end.session->handshake();
      if (!done) end.error = done.error();
    }
    while (end.session->established()) {
      std::byte part[1000];
      const auto got = end.session->read(part);
      if (!got) end.error = got.error();
      if (!got || *got == 0) break;
      end.received.insert(end.received.end(), part, part + *got);
    }
    if (!end.session->has_output()) return;
    std::vector<std::byte> output;
    end.session->take_output(output);
    const auto sent = ::send(end.socket, output.data(), output.size(), MSG_NOSIGNAL);
    EXPECT_TRUE(sent == static_cast<ssize_t>(output.size()) || end.error) << "the other has gone";
  }
  void turn_both(int times = 6) {
    for (int i = 0; i < times; ++i) {
      turn(a_);
      turn(b_);
    }
  }
  static std::vector<std::byte> bytes(std::size_t size) {
    std::vector<std::byte> all(size);
    for (std::size_t i = 0; i < size; ++i) all[i] = static_cast<std::byte>(i * 31 >> 3);
    return all;
  }

  test::TestCertificates certificates_;
  End a_, b_;
};

TEST_F(SessionTest, both_ends_learn_the_others_names_and_bytes_arrive) {
  turn_both();
  ASSERT_TRUE(a_.session->established() && b_.session->established());
  EXPECT_EQ(a_.session->peer_names(), std::vector<std::string>{"b"});
  EXPECT_EQ(b_.session->peer_names(), std::vector<std::string>{"a"});
  const auto sent = bytes(50'000);
  ASSERT_TRUE(a_.session->write(sent));
  turn_both();
  EXPECT_EQ(b_.received, sent);
}

TEST_F(SessionTest, nothing_is_sealed_before_the_peer_is_known) {
  EXPECT_FALSE(a_.session->write(bytes(10)));
}

TEST_F(SessionTest, keys_change_before_they_are_worn_out) {
  turn_both();
  a_.session->set_records_a_key(3);
  std::vector<std::byte> sent;
  for (std::size_t i = 1; i <= 20; ++i) {
    const auto part = bytes(i * 1000);
    ASSERT_TRUE(a_.session->write(part));
    sent.insert(sent.end(), part.begin(), part.end());
    turn_both(1);
  }
  EXPECT_EQ(b_.received, sent);
  EXPECT_GE(a_.session->key_changes(), 5u);
  EXPECT_EQ(b_.session->key_changes(), 0u);
  ASSERT_TRUE(b_.session->write(bytes(100)));
  turn_both();
  EXPECT_EQ(a_.received, bytes(100));
}

TEST_F(SessionTest, a_record_that_was_tampered_with_ends_the_session) {
  turn_both();
  ASSERT_TRUE(a_.session->write(bytes(100)));
  std::vector<std::byte> output;
  a_.session->take_output(output);
  output.back() ^= std::byte{1};
  ASSERT_EQ(::send(a_.socket, output.data(), output.size(), 0),
            static_cast<ssize_t>(output.size()));
  turn(b_);
  ASSERT_TRUE(b_.error);
  EXPECT_EQ(b_.error->code, Errc::kParse);
  EXPECT_TRUE(b_.received.empty());
  EXPECT_FALSE(b_.session->established());
  EXPECT_FALSE(b_.session->write(bytes(1)));
}

TEST_F(SessionTest, a_record_that_is_sent_twice_ends_the_session) {
  turn_both();
  ASSERT_TRUE(a_.session->write(bytes(100)));
  std::vector<std::byte> output;
  a_.session->take_output(output);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(::send(a_.socket, output.data(), output.size(), 0),
              static_cast<ssize_t>(output.size()));
  }
  turn(b_);
  EXPECT_EQ(b_.received, bytes(100));
  EXPECT_TRUE(b_.error);
}

TEST_F(SessionTest, a_peer_that_goes_is_unreachable_and_not_hostile) {
  turn_both();
  ::close(std::exchange(a_.socket, -1));
  turn(b_);
  ASSERT_TRUE(b_.error);
  EXPECT_EQ(b_.error->code, Errc::kUnreachable);
}

}  // namespace
}  // namespace pallas::tls
