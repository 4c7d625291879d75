// Peer links under TLS: who is let in, who is not, and what is said about it.

#include <gmock/gmock.h>

#include "tls_caller.h"

namespace pallas::net {
namespace {

using std::chrono::hours;
using test::TestCertificates;
using ::testing::HasSubstr;

const NodeId kA("a"), kB("b");

kv::Bytes bytes_of(std::string_view text) {
  kv::Bytes bytes;
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

class LinkTlsTest : public LinkTest {
 protected:
  void SetUp() override { certificates_.emplace(); }

  // b alone, with peers a and c.
  void start_b(const std::function<void(PeerLinksConfig&)>& edit = {}) {
    auto config_b = config("b", 20);
    config_b.peers = {peer("a", 0), peer("c", 1)};
    if (edit) edit(config_b);
    b_ = create(std::move(config_b));
    b_->start(events_b_);
  }
  void start_a(const std::function<void(PeerLinksConfig&)>& edit = {}) {
    auto config_a = config("a", 10);
    config_a.peers = {peer("b", b_->port())};
    if (edit) edit(config_a);
    a_ = create(std::move(config_a));
    a_->start(events_a_);
  }
  // The link a - b lives: a message gets through, and it never broke.
  void expect_link_lives() {
    const auto before = events_b_.messages.size();
    a_->send(kB, wire::LeaseRenew{SessionId("s"), attempt(), 1});
    EXPECT_TRUE(run_until([&] { return events_b_.messages.size() > before; }));
    EXPECT_EQ(events_a_.downs + events_b_.downs, 0);
  }

  TlsCaller call(const std::optional<tls::KeyPair>& own, int version = TLS1_3_VERSION) {
    return TlsCaller([this](const std::function<bool()>& done) { return run_until(done, 2s); }, io_,
                     b_->port(), own, version);
  }
  // Who shows `own` is refused while a's link stands: b's log says `why`, the caller sees `alert`.
  void expect_refused(const std::optional<tls::KeyPair>& own, const std::string& why,
                      const std::string& alert, int version = TLS1_3_VERSION) {
    start_b();
    start_a();
    ASSERT_TRUE(run_until([&] { return a_->is_up(kB) && b_->is_up(kA); }));
    const auto before = b_->refused_calls();
    auto caller = call(own, version);
    if (caller.shake_hands()) (void)caller.send(hello("c", wire::Channel::kControl));
    EXPECT_THAT(caller.alert(), HasSubstr(alert));
    EXPECT_TRUE(logged(why)) << ::testing::PrintToString(logged_);
    EXPECT_EQ(b_->refused_calls(), before + 1);
    EXPECT_FALSE(b_->is_up(NodeId("c")));
    expect_link_lives();
  }
  tls::KeyPair issue(const tls::CertificateText& text) const {
    return TestCertificates::issue(certificates_->authority(), text);
  }
};

TEST_F(LinkTlsTest, a_link_under_tls_says_so) {
  connect_a_and_b();
  EXPECT_EQ(times_logged("up, over TLS 1.3"), 2u);
  EXPECT_TRUE(a_->certificate_ends_unix_s());
}

TEST_F(LinkTlsTest, a_caller_without_a_certificate_is_refused) {
  expect_refused(std::nullopt, "the peer shows no certificate", "certificate required");
}

TEST_F(LinkTlsTest, a_certificate_of_another_authority_is_refused) {
  const auto other = TestCertificates::make_authority("first");
  expect_refused(TestCertificates::issue(*other, {{"c"}}), "the peer's certificate is refused",
                 "unknown ca");
}

TEST_F(LinkTlsTest, an_expired_certificate_is_refused) {
  expect_refused(issue({{"c"}, -hours(2), -hours(1)}), "certificate has expired (on ",
                 "certificate expired");
}

TEST_F(LinkTlsTest, a_certificate_that_is_not_valid_yet_is_refused) {
  expect_refused(issue({{"c"}, hours(1), hours(2)}), "certificate is not yet valid",
                 "bad certificate");
}

TEST_F(LinkTlsTest, a_certificate_of_somebody_who_is_no_peer_is_refused) {
  expect_refused(issue({{"z"}}), "made out to 'z', which is no configured peer", "bad certificate");
}

TEST_F(LinkTlsTest, names_are_compared_byte_for_byte) {
  expect_refused(issue({{"C", "*", "c.", "c\n"}}), "which is no configured peer",
                 "bad certificate");
}

TEST_F(LinkTlsTest, tls_1_2_is_refused) {
  expect_refused(issue({{"c"}}), "does not speak TLS 1.3", "protocol version", TLS1_2_VERSION);
}

TEST_F(LinkTlsTest, a_hello_in_anothers_name_is_refused) {
  start_b();
  for (const wire::Channel channel : {wire::Channel::kControl, wire::Channel::kData}) {
    const auto before = b_->refused_calls();
    auto caller = call(issue({{"c"}}));
    ASSERT_TRUE(caller.shake_hands());
    ASSERT_TRUE(caller.send(hello("a", channel)));
    EXPECT_TRUE(run_until([&] { return b_->refused_calls() == before + 1; }));
  }
  EXPECT_EQ(times_logged("the certificate is not that of a"), 2u);
  EXPECT_TRUE(events_b_.ups.empty());
}

TEST_F(LinkTlsTest, a_certificate_may_carry_several_names) {
  start_b();
  auto caller = call(issue({{"a.example.org", "a"}}));
  ASSERT_TRUE(caller.shake_hands());
  ASSERT_TRUE(caller.send(hello("a", wire::Channel::kControl)));
  EXPECT_TRUE(caller.receives_bytes()) << "b's Hello";
  EXPECT_EQ(b_->refused_calls(), 0u);
}

TEST_F(LinkTlsTest, the_dialling_side_refuses_another_node_at_the_address) {
  auto config_c = config("c", 30);
  config_c.peers = {peer("a", 0)};
  const auto c = create(std::move(config_c));
  RecordedEvents events_c;
  c->start(events_c);
  auto config_a = config("a", 10);
  config_a.peers = {peer("b", c->port())};
  a_ = create(std::move(config_a));
  a_->start(events_a_);
  EXPECT_TRUE(run_until([&] { return logged("made out to 'c', expected was 'b'"); }));
  EXPECT_TRUE(run_until([&] { return logged("refused us by the TLS alert 'bad certificate'"); }));
  EXPECT_TRUE(events_a_.ups.empty());
}

TEST_F(LinkTlsTest, the_dialling_side_hears_why_it_is_refused) {
  start_b();
  const auto other = TestCertificates::make_authority("other");
  start_a([&](PeerLinksConfig& c) {
    // a believes b's authority, b does not believe a's.
    certificates_->write("a", TestCertificates::issue(*other, {{"a"}}));
    c.tls->authority.path = certificates_->write(
        "both.crt", certificates_->authority().own().certificate + other->own().certificate);
  });
  EXPECT_TRUE(run_until([&] { return logged("refused us by the TLS alert 'unknown CA'"); }))
      << ::testing::PrintToString(logged_);
  EXPECT_FALSE(a_->is_up(kB));
}

TEST_F(LinkTlsTest, a_plain_node_and_one_with_tls_tell_each_other) {
  start_b();
  start_a([](PeerLinksConfig& c) { c.tls.reset(); });
  EXPECT_TRUE(run_until([&] {
    return logged("refused: the caller speaks no TLS") &&
           logged("peer b: down: the peer says: the caller speaks no TLS");
  })) << ::testing::PrintToString(logged_);
  a_.reset();
  b_.reset();
  logged_.clear();
  start_b([](PeerLinksConfig& c) { c.tls.reset(); });
  start_a();
  EXPECT_TRUE(run_until([&] {
    return logged("refused: the caller speaks TLS, and this node does not") &&
           logged("the peer speaks no TLS: start it with peer_cert");
  })) << ::testing::PrintToString(logged_);
  EXPECT_TRUE(events_a_.ups.empty() && events_b_.ups.empty());
}

TEST_F(LinkTlsTest, garbage_and_records_that_are_too_long_are_refused) {
  start_b();
  start_a();
  ASSERT_TRUE(run_until([&] { return a_->is_up(kB) && b_->is_up(kA); }));
  using std::string_literals::operator""s;
  for (const std::string& begin :
       {"\x16\x03\x01\xff\xff"s, "\x16\x03\x01\x00\x10"s, "\x15\x03\x03\x00\x02\x02\x28"s,
        "\x17\x03\x03\x40\x00"s, "GET / HTTP/1.1\r\n\r\n"s, "\x80\x2e\x01\x03\x01"s}) {
    const auto before = b_->refused_calls();
    RawPeer caller = RawPeer::call(*this, b_->port());
    caller.send(bytes_of(begin + std::string(70'000, '\x5a')));
    EXPECT_TRUE(run_until([&] { return b_->refused_calls() == before + 1; })) << begin;
  }
  // Behind a good handshake, too.
  const auto before = b_->refused_calls();
  auto caller = call(issue({{"c"}}));
  ASSERT_TRUE(caller.shake_hands());
  caller.send_raw(bytes_of("\x17\x03\x03\xff\xff"s + std::string(70'000, 'x')));
  EXPECT_TRUE(run_until([&] { return b_->refused_calls() == before + 1; }));
  EXPECT_TRUE(logged("TLS: packet length too long")) << ::testing::PrintToString(logged_);
  expect_link_lives();
}

TEST_F(LinkTlsTest, a_handshake_that_takes_too_long_is_refused_and_hinders_nobody) {
  start_b();
  std::vector<RawPeer> drips;
  for (int i = 0; i < 80; ++i) {  // more than are waited for at a time
    drips.push_back(RawPeer::call(*this, b_->port()));
    drips.back().send(bytes_of("\x16"));
  }
  ASSERT_TRUE(run_until([&] { return logged("too many calls at once"); }));
  start_a();
  ASSERT_TRUE(run_until([&] { return a_->is_up(kB) && b_->is_up(kA); }, 300ms));
  drips.back().send(bytes_of("\x03"));
  EXPECT_TRUE(run_until([&] { return logged("refused: no TLS handshake in time"); }));
  EXPECT_TRUE(run_until([&] { return b_->refused_calls() == 80; }));
  expect_link_lives();
}

TEST_F(LinkTlsTest, who_does_not_answer_a_handshake_is_dialled_again) {
  tcp::acceptor silent(io_, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
  auto config_a = config("a", 10);
  config_a.peers = {peer("b", silent.local_endpoint().port())};
  a_ = create(std::move(config_a));
  a_->start(events_a_);
  EXPECT_TRUE(run_until([&] { return logged("control connection: no TLS handshake in time"); }));
}

TEST_F(LinkTlsTest, new_files_count_for_new_connections_and_broken_ones_do_not) {
  connect_a_and_b();
  certificates_->write("b.crt", "broken");
  ASSERT_TRUE(run_until([&] { return logged("certificates stay as they were: peer_cert"); }));
  // Both move to another authority; in between b believes both.
  const auto other = TestCertificates::make_authority("other");
  certificates_->write("ca.crt",
                       certificates_->authority().own().certificate + other->own().certificate);
  certificates_->write("b", TestCertificates::issue(*other, {{"b"}}));
  ASSERT_TRUE(run_until([&] { return logged("certificates were read again"); }));
  expect_link_lives();
  a_.reset();
  ASSERT_TRUE(run_until([&] { return events_b_.downs == 1; }));
  start_a([&](PeerLinksConfig& c) {
    certificates_->write("a", TestCertificates::issue(*other, {{"a"}}));
    c.tls->authority.path = certificates_->write("other.crt", other->own().certificate);
  });
  EXPECT_TRUE(run_until([&] { return b_->is_up(kA); })) << ::testing::PrintToString(logged_);
}

TEST_F(LinkTlsTest, certificates_that_would_not_do_are_refused_at_the_start) {
  auto c = config("a");
  c.tls = certificates_->files("b");
  certificates_->make("b");
  auto links = PeerLinks::create(io_, clock_, std::move(c));
  ASSERT_FALSE(links);
  EXPECT_THAT(links.error().message, HasSubstr("made out to 'b'"));
}

TEST_F(LinkTlsTest, links_end_cleanly_in_any_state) {
  start_b();
  start_a();
  for (int turns = 0; turns < 60; ++turns) {
    // So far into the handshake of its connections.
    for (int i = 0; i < turns; ++i) io_.poll_one();
    a_.reset();
    start_a();
    io_.restart();
  }
  ASSERT_TRUE(run_until([&] { return a_->is_up(kB) && b_->is_up(kA); }));
  a_->send_kv(kB, block(0), rows(3'000'000));
  run_for(1ms);
  a_.reset();
  b_.reset();
  run_for(20ms);  // what was in flight touches nothing that is gone
}

}  // namespace
}  // namespace pallas::net
