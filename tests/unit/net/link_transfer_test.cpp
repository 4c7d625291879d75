// What a standing link carries, on loopback with real sockets, under TLS and without.

#include "link_fixture.h"

namespace pallas::net {
namespace {

const NodeId kA("a"), kB("b");

class LinkTransfer : public LinkTest, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) certificates_.emplace();
  }
};
INSTANTIATE_TEST_SUITE_P(Links, LinkTransfer, ::testing::Values(false, true),
                         [](const auto& test) { return test.param ? "under_tls" : "plain"; });

wire::LeaseRenew renewal(std::uint32_t number) {
  return {SessionId("s"), {NodeId("a"), BootId(10), 1}, number};
}

TEST_P(LinkTransfer, both_sides_learn_who_the_other_is) {
  events_a_.held = {{SessionId("s"), attempt(), 7, 99, {{0, 3}}}};
  connect_a_and_b();
  EXPECT_TRUE(a_->is_up(kB));
  EXPECT_TRUE(b_->is_up(kA));
  EXPECT_EQ(events_a_.ups[0].node, kB);
  EXPECT_EQ(events_a_.ups[0].boot, BootId(20));
  EXPECT_EQ(events_a_.ups[0].compatibility.model_hash, "hash of b");
  EXPECT_TRUE(events_a_.ups[0].held.empty());
  EXPECT_EQ(events_b_.ups[0].node, kA);
  EXPECT_EQ(events_b_.ups[0].held, events_a_.held);
}

TEST_P(LinkTransfer, messages_and_rows_arrive_whole_and_in_order_both_ways) {
  connect_a_and_b();
  const kv::Bytes large = rows(700'001);
  for (std::uint32_t i = 0; i < 50; ++i) {
    a_->send(kB, renewal(i));
    b_->send(kA, renewal(1000 + i));
  }
  a_->send_kv(kB, block(0), large);
  a_->send_kv(kB, block(1), rows(1));
  b_->send_kv(kA, block(2), rows(20'000));
  ASSERT_TRUE(run_until([&] {
    return events_b_.messages.size() == 50 && events_a_.messages.size() == 50 &&
           events_b_.blocks.size() == 2 && events_a_.blocks.size() == 1 && a_->kv_backlog(kB) == 0;
  }));
  for (std::uint32_t i = 0; i < 50; ++i) {
    EXPECT_TRUE(events_b_.messages[i] == wire::Message(renewal(i)));
    EXPECT_TRUE(events_a_.messages[i] == wire::Message(renewal(1000 + i)));
  }
  EXPECT_EQ(events_b_.blocks[0].second, large);
  EXPECT_EQ(events_b_.blocks[0].first.payload_bytes, large.size());
  EXPECT_EQ(events_b_.blocks[0].first.checksum, wire::checksum(large));
  EXPECT_EQ(events_b_.blocks[1].second, rows(1));
  EXPECT_EQ(events_a_.blocks[0].second, rows(20'000));
  const PeerStats sent = a_->stats().at(0), received = b_->stats().at(0);
  EXPECT_EQ(sent.kv_bytes_sent, large.size() + 1);
  EXPECT_EQ(received.kv_bytes_received, large.size() + 1);
  EXPECT_EQ(sent.kv_frames_sent, 2u);
}

TEST_P(LinkTransfer, a_frame_larger_than_the_credit_window_travels_alone) {
  auto config_b = config("b", 20);
  config_b.peers = {peer("a", 0)};
  config_b.credit_window = 100'000;
  b_ = create(std::move(config_b));
  auto config_a = config("a", 10);
  config_a.peers = {peer("b", b_->port())};
  a_ = create(std::move(config_a));
  b_->start(events_b_);
  a_->start(events_a_);
  ASSERT_TRUE(run_until([&] { return a_->is_up(kB); }));
  for (TokenPosition i = 0; i < 3; ++i) a_->send_kv(kB, block(i), rows(250'000));
  EXPECT_TRUE(run_until([&] { return events_b_.blocks.size() == 3; }));
}

TEST_P(LinkTransfer, control_overtakes_rows_that_are_under_way) {
  connect_a_and_b([](PeerLinksConfig& c) {
    c.peers[0].pacing = *kv::RateTrace::constant(BytesPerSecond::from_mbps(8));
  });
  a_->send_kv(kB, block(0), rows(500'000));  // half a second
  run_for(50ms);
  ASSERT_TRUE(events_b_.blocks.empty());
  const TimePoint before = clock_.now();
  a_->send(kB, renewal(1));
  ASSERT_TRUE(run_until([&] { return !events_b_.messages.empty(); }));
  EXPECT_LT(to_ms(clock_.now() - before), 100);
  EXPECT_TRUE(events_b_.blocks.empty());
  EXPECT_TRUE(run_until([&] { return events_b_.blocks.size() == 1; }));
}

TEST_P(LinkTransfer, rows_flow_at_the_paced_rate_and_goodput_shows_it) {
  constexpr double kMbps = 40;
  connect_a_and_b([](PeerLinksConfig& c) {
    c.block_bytes = 100'000;
    c.peers[0].pacing = *kv::RateTrace::constant(BytesPerSecond::from_mbps(kMbps));
  });
  EXPECT_FALSE(a_->goodput(kB));
  // As a node does: the next rows are chosen when the backlog falls below a block.
  int left = 50;
  const auto more = [&] {
    while (left > 0 && a_->kv_backlog(kB) < 100'000) {
      --left;
      a_->send_kv(kB, block(0), rows(100'000));
    }
  };
  events_a_.when_drained = more;
  const TimePoint begin = clock_.now();
  more();
  ASSERT_TRUE(run_until([&] { return events_b_.kv_bytes == 5'000'000; }));
  const double seconds = to_seconds(clock_.now() - begin).count();
  EXPECT_NEAR(5e6 * 8 / 1e6 / seconds, kMbps, kMbps / 10);
  ASSERT_TRUE(a_->goodput(kB));
  EXPECT_NEAR(a_->goodput(kB)->mbps(), kMbps, kMbps / 4);
  EXPECT_TRUE(a_->stats().at(0).goodput_age);
}

TEST_P(LinkTransfer, a_configured_goodput_holds_until_one_is_measured) {
  connect_a_and_b(
      [](PeerLinksConfig& c) { c.peers[0].initial_goodput = BytesPerSecond::from_mbps(123); });
  ASSERT_TRUE(a_->goodput(kB));
  EXPECT_DOUBLE_EQ(a_->goodput(kB)->mbps(), 123);
  EXPECT_FALSE(a_->stats().at(0).goodput_age);
}

TEST_P(LinkTransfer, rows_not_yet_begun_can_be_taken_back) {
  connect_a_and_b([](PeerLinksConfig& c) {
    c.block_bytes = 100'000;
    c.peers[0].pacing = *kv::RateTrace::constant(BytesPerSecond::from_mbps(8));
  });
  ASSERT_TRUE(run_until([&] { return a_->stats().at(0).send_credit_bytes > 0; }));
  a_->send_kv(kB, block(0, 1), rows(90'000));
  a_->send_kv(kB, block(1, 1), rows(90'000));
  a_->send_kv(kB, block(2, 2), rows(5'000));
  a_->discard_kv(kB, attempt(1));
  // The first had begun, the second is gone, the other attempt's stays.
  EXPECT_EQ(a_->kv_backlog(kB), 95'000u);
  EXPECT_EQ(events_a_.drained, 0) << "not from inside the call";
  ASSERT_TRUE(run_until([&] { return events_b_.blocks.size() == 2; }));
  EXPECT_GE(events_a_.drained, 1);
  EXPECT_EQ(events_b_.blocks[0].first.first, 0u);
  EXPECT_EQ(events_b_.blocks[1].first.first, 2u);
  EXPECT_EQ(a_->stats().at(0).kv_frames_discarded, 1u);
}

TEST_P(LinkTransfer, keep_alives_measure_the_round_trip) {
  connect_a_and_b();
  EXPECT_TRUE(run_until([&] { return a_->stats().at(0).rtt && b_->stats().at(0).rtt; }));
}

TEST_P(LinkTransfer, an_idle_link_stays_up) {
  connect_a_and_b();
  run_for(1s);
  EXPECT_TRUE(a_->is_up(kB));
  EXPECT_EQ(events_a_.downs + events_b_.downs, 0);
}

TEST_P(LinkTransfer, a_message_beyond_a_limit_is_not_sent_and_the_link_stays) {
  connect_a_and_b();
  wire::LeaseRenew bad = renewal(1);
  bad.session.value.assign(wire::kMaxNameBytes + 1, 'x');
  a_->send(kB, bad);
  a_->send(kB, renewal(2));
  ASSERT_TRUE(run_until([&] { return events_b_.messages.size() == 1; }));
  EXPECT_EQ(a_->stats().at(0).messages_not_sent, 1u);
  EXPECT_TRUE(logged("LeaseRenew.session"));
}

}  // namespace
}  // namespace pallas::net
