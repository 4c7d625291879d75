// What happens when a peer is gone, silent, wrong or hostile.

#include <gmock/gmock.h>

#include "link_fixture.h"
#include "wire/version.h"

namespace pallas::net {
namespace {

using ::testing::HasSubstr;

const NodeId kA("a"), kB("b");

class LinkFaultTest : public LinkTest {
 protected:
  // b alone, waiting for a.
  void start_b(const std::function<void(PeerLinksConfig&)>& edit = {}) {
    auto config_b = config("b", 20);
    config_b.peers = {peer("a", 0)};
    if (edit) edit(config_b);
    b_ = create(std::move(config_b));
    b_->start(events_b_);
  }
  // Plays a towards b until the link is up.
  void raw_connect() {
    control_.emplace(RawPeer::call(*this, b_->port()));
    control_->send(hello("a", wire::Channel::kControl));
    ASSERT_TRUE(control_->receive_a<wire::Hello>());
    data_.emplace(RawPeer::call(*this, b_->port()));
    data_->send(hello("a", wire::Channel::kData));
    ASSERT_TRUE(data_->receive_a<wire::Hello>());
    ASSERT_TRUE(b_->is_up(kA));
  }
  kv::Bytes kv_frame(TokenPosition first, const kv::Bytes& payload, std::uint64_t checksum) {
    wire::KvBlock header = block(first);
    header.payload_bytes = payload.size();
    header.checksum = checksum;
    kv::Bytes frame = *wire::encode(header);
    frame.insert(frame.end(), payload.begin(), payload.end());
    return frame;
  }
  // b refused a call that began with these bytes, and said this.
  void expect_refused(const kv::Bytes& bytes, const std::string& why) {
    const std::uint64_t before = b_->refused_calls();
    RawPeer caller = RawPeer::call(*this, b_->port());
    caller.send(bytes);
    const auto error = caller.receive_a<wire::ErrorMessage>();
    ASSERT_TRUE(error) << why;
    EXPECT_THAT(error->message, HasSubstr(why));
    EXPECT_TRUE(caller.ended());
    EXPECT_EQ(b_->refused_calls(), before + 1);
  }

  std::optional<RawPeer> control_, data_;
};

TEST_F(LinkFaultTest, a_broken_link_comes_back_with_what_is_held) {
  connect_a_and_b();
  events_a_.held = {{SessionId("s"), attempt(), 7, 99, {{0, 3}}}};
  events_b_.held = {{SessionId("t"), attempt(), 5, 98, {{2, 4}}}};
  // A third party that claims to be a displaces a's connections.
  {
    RawPeer impostor = RawPeer::call(*this, b_->port());
    impostor.send(hello("a", wire::Channel::kControl));
    ASSERT_TRUE(impostor.receive_a<wire::Hello>());
  }
  ASSERT_TRUE(run_until([&] { return events_a_.ups.size() == 2 && events_b_.ups.size() == 2; }));
  EXPECT_EQ(events_a_.downs, 1);
  EXPECT_EQ(events_b_.downs, 1);
  EXPECT_EQ(events_a_.ups[1].held, events_b_.held);
  EXPECT_EQ(events_b_.ups[1].held, events_a_.held);
  EXPECT_EQ(events_b_.ups[1].boot, BootId(10));
  EXPECT_EQ(a_->stats().at(0).connects, 2u);
}

TEST_F(LinkFaultTest, a_restarted_peer_shows_its_new_boot_id) {
  connect_a_and_b();
  a_.reset();
  ASSERT_TRUE(run_until([&] { return events_b_.downs == 1; }));
  auto config_a = config("a", 11);
  config_a.peers = {peer("b", b_->port())};
  a_ = create(std::move(config_a));
  a_->start(events_a_);
  ASSERT_TRUE(run_until([&] { return events_b_.ups.size() == 2; }));
  EXPECT_EQ(events_b_.ups[1].boot, BootId(11));
}

TEST_F(LinkFaultTest, the_dialling_side_finds_a_peer_that_starts_later) {
  start_b();
  const std::uint16_t port = b_->port();
  b_.reset();
  auto config_a = config("a", 10);
  config_a.peers = {peer("b", port)};
  a_ = create(std::move(config_a));
  a_->start(events_a_);
  run_for(60ms);
  EXPECT_FALSE(a_->is_up(kB));
  start_b([&](PeerLinksConfig& c) { c.listen_port = port; });
  EXPECT_TRUE(run_until([&] { return a_->is_up(kB) && b_->is_up(kA); }));
}

TEST_F(LinkFaultTest, sending_on_a_link_that_is_down_does_nothing) {
  start_b();
  b_->send(kA, wire::KeepAlive{});
  b_->send_kv(kA, block(0), rows(10));
  b_->discard_kv(kA, attempt());
  b_->send(NodeId("nobody"), wire::KeepAlive{});
  EXPECT_EQ(b_->kv_backlog(kA), 0u);
  EXPECT_EQ(b_->stats().at(0).messages_not_sent, 2u);
}

TEST_F(LinkFaultTest, a_silent_peer_is_down_within_dead_after) {
  start_b();
  raw_connect();
  const TimePoint before = clock_.now();
  ASSERT_TRUE(run_until([&] { return events_b_.downs == 1; }));
  EXPECT_NEAR(to_ms(clock_.now() - before), 400, 100);
  EXPECT_TRUE(logged("silent for 400 ms"));
}

TEST_F(LinkFaultTest, the_default_notices_a_silent_peer_within_a_second) {
  EXPECT_LE(PeerLinksConfig{}.dead_after, 1s);
  EXPECT_LE(PeerLinksConfig{}.keep_alive, PeerLinksConfig{}.dead_after / 3);
}

TEST_F(LinkFaultTest, either_connection_that_breaks_takes_the_link_down) {
  start_b();
  raw_connect();
  data_.reset();
  ASSERT_TRUE(run_until([&] { return events_b_.downs == 1; }));
  while (control_->receive()) {
  }
  EXPECT_TRUE(control_->ended());
}

TEST_F(LinkFaultTest, a_call_without_a_valid_hello_is_refused_with_the_reason) {
  start_b();
  expect_refused(*wire::encode(wire::KeepAlive{}), "first frame must be a Hello");
  expect_refused(*wire::encode(hello("nobody", wire::Channel::kControl)), "not a configured peer");
  expect_refused(*wire::encode(hello("a", wire::Channel::kData)), "without its control connection");
  wire::Hello newer = hello("a", wire::Channel::kControl);
  newer.major = wire::kMajorVersion + 1;
  expect_refused(*wire::encode(newer), "Hello.major");
  const std::string http = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  kv::Bytes bytes;
  for (char c : http) bytes.push_back(static_cast<std::byte>(c));
  expect_refused(bytes, "header.magic");
  kv::Bytes huge = *wire::encode(hello("a", wire::Channel::kControl));
  huge[11] = std::byte{0xff};
  expect_refused(huge, "header.body");
}

TEST_F(LinkFaultTest, a_caller_that_says_nothing_is_refused) {
  start_b();
  RawPeer caller = RawPeer::call(*this, b_->port());
  const auto error = caller.receive_a<wire::ErrorMessage>();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, Errc::kTimeout);
}

TEST_F(LinkFaultTest, a_peer_that_we_dial_may_not_dial_us) {
  auto config_a = config("a", 10);
  config_a.peers = {peer("b", 1)};
  a_ = create(std::move(config_a));
  a_->start(events_a_);
  RawPeer caller = RawPeer::call(*this, a_->port());
  caller.send(hello("b", wire::Channel::kControl));
  const auto error = caller.receive_a<wire::ErrorMessage>();
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr("a dials b"));
}

TEST_F(LinkFaultTest, another_node_at_a_configured_address_is_refused_by_name) {
  tcp::acceptor acceptor(io_, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
  auto config_a = config("a", 10);
  config_a.peers = {peer("b", acceptor.local_endpoint().port())};
  a_ = create(std::move(config_a));
  a_->start(events_a_);
  std::optional<RawPeer> answerer;
  acceptor.async_accept([&](boost::system::error_code error, tcp::socket socket) {
    if (!error) answerer.emplace(RawPeer(*this, std::move(socket)));
  });
  ASSERT_TRUE(run_until([&] { return answerer.has_value(); }));
  ASSERT_TRUE(answerer->receive_a<wire::Hello>());
  answerer->send(hello("c", wire::Channel::kControl));
  const auto error = answerer->receive_a<wire::ErrorMessage>();
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr("expected b"));
  EXPECT_TRUE(logged("expected b"));
  EXPECT_FALSE(a_->is_up(kB));
}

TEST_F(LinkFaultTest, a_corrupt_frame_ends_the_connection_with_a_reason_and_not_the_process) {
  start_b();
  for (int round = 0; round < 2; ++round) {
    raw_connect();
    if (round == 0) {
      kv::Bytes frame = *wire::encode(wire::KeepAlive{1, false});
      frame[5] = std::byte{1};
      control_->send(frame);
    } else {
      kv::Bytes frame = kv_frame(0, rows(100), 0);
      frame[15] = std::byte{0xff};  // a payload near 2^32
      data_->send(frame);
    }
    const auto error = control_->receive_a<wire::ErrorMessage>();
    ASSERT_TRUE(error);
    EXPECT_THAT(error->message, HasSubstr(round == 0 ? "header.flags" : "header.payload"));
    EXPECT_TRUE(run_until([&] { return events_b_.downs == round + 1; }));
  }
  raw_connect();  // and b serves on
}

TEST_F(LinkFaultTest, an_older_peer_is_told_apart_and_spoken_to_as_of_its_version) {
  const auto as_before = [](PeerLinksConfig& config) {
    config.holes = true;
    config.minor = wire::kOldestMinorVersion;
  };
  connect_a_and_b(as_before);
  EXPECT_EQ(events_b_.ups.at(0).minor, wire::kOldestMinorVersion);
  EXPECT_EQ(events_a_.ups.at(0).minor, wire::kOldestMinorVersion);
  EXPECT_FALSE(events_b_.ups.at(0).holes);
  // What it does not know it refuses, as the program of that version would.
  b_->send(kA, wire::ResourceStatus{0.5});
  EXPECT_TRUE(run_until([&] { return events_a_.downs == 1; }));
  EXPECT_TRUE(logged("ResourceStatus: is of minor version 1, this node speaks 0"));
  EXPECT_TRUE(events_a_.messages.empty());
}

TEST_F(LinkFaultTest, damaged_rows_are_reported_and_the_link_stays) {
  start_b();
  raw_connect();
  const kv::Bytes good = rows(1000);
  data_->send(kv_frame(3, good, wire::checksum(good) + 1));
  data_->send(kv_frame(4, good, wire::checksum(good)));
  const auto error = control_->receive_a<wire::ErrorMessage>();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, Errc::kChecksum);
  EXPECT_EQ(error->session, SessionId("s"));
  ASSERT_TRUE(run_until([&] { return events_b_.blocks.size() == 1; }));
  EXPECT_EQ(events_b_.blocks[0].first.first, 4u);
  EXPECT_EQ(b_->stats().at(0).checksum_errors, 1u);
  EXPECT_TRUE(b_->is_up(kA));
}

TEST_F(LinkFaultTest, a_byte_changed_anywhere_in_the_rows_is_found) {
  start_b();
  raw_connect();
  const kv::Bytes whole = rows(1000);
  for (const std::size_t at : {0u, 100u, 500u, 900u, 999u}) {
    kv::Bytes damaged = whole;
    damaged[at] ^= std::byte{1};
    data_->send(kv_frame(static_cast<TokenPosition>(at), damaged, wire::checksum(whole)));
    const auto error = control_->receive_a<wire::ErrorMessage>();
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, Errc::kChecksum);
  }
  EXPECT_TRUE(events_b_.blocks.empty());
  EXPECT_EQ(events_b_.downs, 0);
  data_->send(kv_frame(0, whole, wire::checksum(whole)));
  EXPECT_TRUE(run_until([&] { return events_b_.blocks.size() == 1; }));
}

TEST_F(LinkFaultTest, credit_is_granted_anew_for_what_was_taken) {
  start_b([](PeerLinksConfig& c) { c.credit_window = 1000; });
  raw_connect();
  EXPECT_EQ(control_->receive_a<wire::Credit>()->bytes, 1000u);
  data_->send(kv_frame(0, rows(900), wire::checksum(rows(900))));
  EXPECT_EQ(control_->receive_a<wire::Credit>()->bytes, 900u);
  data_->send(kv_frame(1, rows(5000), wire::checksum(rows(5000))));
  EXPECT_EQ(control_->receive_a<wire::Credit>()->bytes, 1000u) << "larger than the window";
  data_->send(kv_frame(2, rows(10), 0));
  EXPECT_EQ(control_->receive_a<wire::Credit>()->bytes, 10u) << "damaged rows count too";
  EXPECT_EQ(events_b_.blocks.size(), 2u);
}

TEST_F(LinkFaultTest, rows_wait_for_credit) {
  tcp::acceptor acceptor(io_, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
  auto config_a = config("a", 10);
  config_a.peers = {peer("b", acceptor.local_endpoint().port())};
  a_ = create(std::move(config_a));
  a_->start(events_a_);
  std::vector<RawPeer> sides;
  for (wire::Channel channel : {wire::Channel::kControl, wire::Channel::kData}) {
    acceptor.async_accept([&](boost::system::error_code error, tcp::socket socket) {
      if (!error) sides.emplace_back(RawPeer(*this, std::move(socket)));
    });
    const std::size_t wanted = sides.size() + 1;
    ASSERT_TRUE(run_until([&] { return sides.size() == wanted; }));
    ASSERT_TRUE(sides.back().receive_a<wire::Hello>());
    sides.back().send(hello("b", channel));
  }
  ASSERT_TRUE(run_until([&] { return a_->is_up(kB); }));
  for (TokenPosition i = 0; i < 3; ++i) a_->send_kv(kB, block(i), rows(60'000));
  run_for(50ms);
  EXPECT_EQ(a_->kv_backlog(kB), 180'000u) << "nothing was granted";
  sides[0].send(wire::Credit{100'000});
  run_for(50ms);
  EXPECT_EQ(a_->kv_backlog(kB), 120'000u) << "a second frame needs 20,000 more";
  sides[0].send(wire::Credit{19'999});
  run_for(50ms);
  EXPECT_EQ(a_->kv_backlog(kB), 120'000u);
  sides[0].send(wire::Credit{1});
  EXPECT_TRUE(run_until([&] { return a_->kv_backlog(kB) == 60'000; }, 1s));
}

TEST_F(LinkFaultTest, rows_on_the_control_connection_are_refused) {
  start_b();
  raw_connect();
  control_->send(kv_frame(0, rows(10), 0));
  const auto error = control_->receive_a<wire::ErrorMessage>();
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr("control connection"));
}

TEST_F(LinkFaultTest, control_on_the_data_connection_is_refused) {
  start_b();
  raw_connect();
  data_->send(*wire::encode(wire::KeepAlive{1, false}));
  const auto error = control_->receive_a<wire::ErrorMessage>();
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr("KeepAlive: came on the data connection"));
}

TEST_F(LinkFaultTest, a_port_in_use_is_an_error_that_names_it) {
  start_b();
  auto second = config("c");
  second.listen_port = b_->port();
  auto links = PeerLinks::create(io_, clock_, std::move(second));
  ASSERT_FALSE(links);
  EXPECT_EQ(links.error().code, Errc::kAlreadyExists);
  EXPECT_THAT(links.error().message, HasSubstr(std::to_string(b_->port())));
}

TEST_F(LinkFaultTest, a_configuration_that_contradicts_itself_is_refused) {
  const auto refused = [&](const std::function<void(PeerLinksConfig&)>& edit) {
    auto c = config("b");
    edit(c);
    auto links = PeerLinks::create(io_, clock_, std::move(c));
    return links ? std::string("accepted") : links.error().message;
  };
  EXPECT_THAT(refused([](auto& c) { c.peers = {peer("a", 0), peer("a", 0)}; }), HasSubstr("twice"));
  EXPECT_THAT(refused([](auto& c) { c.peers = {peer("b", 1)}; }), HasSubstr("twice"));
  EXPECT_THAT(refused([](auto& c) { c.peers = {peer("c", 0)}; }), HasSubstr("peers.address"));
  EXPECT_THAT(refused([](auto& c) { c.listen_address = "nowhere"; }), HasSubstr("nowhere"));
  EXPECT_THAT(refused([](auto& c) { c.dead_after = c.keep_alive; }), HasSubstr("dead_after"));
}

TEST_F(LinkFaultTest, links_end_cleanly_in_any_state) {
  connect_a_and_b();
  a_->send_kv(kB, block(0), rows(3'000'000));
  run_for(1ms);
  a_.reset();
  b_.reset();
  run_for(20ms);  // what was in flight touches nothing that is gone
}

}  // namespace
}  // namespace pallas::net
