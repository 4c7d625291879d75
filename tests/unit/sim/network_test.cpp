// Links: latency, rates over time, fair sharing, what a node sees.
#include "sim/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace pallas::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kBlock = 128;  // stand-in bytes
constexpr double kScale = 1000;        // a block is 128,000 real bytes

struct Arrived {
  int from, to;
  std::size_t bytes;
  double at_s;
};

struct Ends : NetworkListener {
  explicit Ends(VirtualClock& c) : clock(c) {}
  VirtualClock& clock;
  std::vector<Arrived> kv;
  std::vector<std::pair<std::string, double>> messages;
  int drained = 0;
  int hops = 0;
  std::function<void(int from, int to)> refill;

  double now() const { return to_seconds(clock.now().time_since_epoch()).count(); }
  void on_message(int, int, wire::Message&& m) override {
    messages.emplace_back(wire::name_of(m), now());
  }
  void on_kv(int from, int to, const wire::KvBlock&, kv::Bytes rows) override {
    kv.push_back({from, to, rows.size(), now()});
  }
  void on_kv_drained(int from, int to) override {
    ++drained;
    if (refill) refill(from, to);
  }
  void on_sent(int, int, const wire::Message&) override {}
  void on_kv_sent(int, int, const wire::KvBlock&) override {}
  int relay_hops(int, int, const wire::TokenUpdate&) override { return hops; }
};

struct Net {
  explicit Net(NetworkSettings settings, int gnbs = 4)
      : ends(clock), network(clock, std::move(settings), gnbs, kScale, kBlock, 1, ends) {
    for (int x = 0; x < gnbs; ++x) {
      for (int y = x + 1; y < gnbs; ++y) network.set_up(x, y, true);
    }
  }
  VirtualClock clock;
  Ends ends;
  Network network;

  void send(int from, int to, std::size_t blocks = 1) {
    for (std::size_t i = 0; i < blocks; ++i) {
      network.send_kv(from, to, wire::KvBlock{}, kv::Bytes(kBlock, std::byte{}));
    }
  }
};

NetworkSettings at_rate(double bytes_per_s) {
  NetworkSettings s;
  s.control_latency = 2ms;
  s.data_latency = 5ms;
  s.rate = FixedRate{BytesPerSecond(bytes_per_s)};
  return s;
}

TEST(Network, a_block_takes_its_real_bytes_over_the_rate_and_the_latency) {
  Net net(at_rate(1.28e6));  // ten blocks a second
  net.send(0, 1, 3);
  EXPECT_EQ(net.network.kv_backlog(0, 1), 3 * kBlock);
  net.clock.run_until_idle(10s);
  ASSERT_EQ(net.ends.kv.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(net.ends.kv[i].at_s, 0.1 * (i + 1) + 0.005, 1e-6);
  EXPECT_EQ(net.ends.drained, 2);  // as the last block begins, and when the queue is empty
  EXPECT_DOUBLE_EQ(net.network.stats().kv_bytes, 3 * 128'000.0);
}

TEST(Network, control_overtakes_kv_and_keeps_its_own_order) {
  Net net(at_rate(1.28e6));
  net.send(0, 1, 3);
  net.network.delay_messages(wire::Message(wire::LeaseRenew{}).index(), 50ms);
  net.network.send(0, 1, wire::KeepAlive{});
  net.network.send(0, 1, wire::LeaseRenew{});
  net.network.send(0, 1, wire::Credit{});
  net.clock.run_until_idle(10s);
  ASSERT_EQ(net.ends.messages.size(), 3u);
  EXPECT_NEAR(net.ends.messages[0].second, 0.002, 1e-9);
  EXPECT_EQ(net.ends.messages[1].first, "Credit");
  EXPECT_NEAR(net.ends.messages[2].second, 0.052, 1e-9);
}

TEST(Network, a_rate_that_changes_counts_for_what_is_on_the_wire) {
  NetworkSettings s = at_rate(1);
  // 128,000 bytes/s is 1.024 Mbit/s: a block a second, then none, then two a second.
  s.rate = TracedRate{*kv::RateTrace::parse("0,1.024\n500,0\n1500,2.048\n2500,2.048\n"), false};
  Net net(s);
  net.send(0, 1, 2);
  net.clock.run_until_idle(20s);
  ASSERT_EQ(net.ends.kv.size(), 2u);
  EXPECT_NEAR(net.ends.kv[0].at_s, 1.5 + 0.25 + 0.005, 1e-6);
  EXPECT_NEAR(net.ends.kv[1].at_s, 1.75 + 0.5 + 0.005, 1e-6);

  Net set(at_rate(128'000));
  set.send(0, 1);
  set.clock.run_until(TimePoint(500ms));
  set.network.set_rate(0, 1, BytesPerSecond(256'000));
  set.clock.run_until_idle(20s);
  EXPECT_NEAR(set.ends.kv[0].at_s, 0.75 + 0.005, 1e-6);
}

TEST(Network, simultaneous_transfers_share_a_capacity_equally) {
  NetworkSettings s = at_rate(1e9);
  s.sharing = Sharing::kIngress;
  s.shared = FixedRate{BytesPerSecond(1.28e6)};
  Net net(s);
  net.send(0, 3, 10);
  net.send(1, 3, 5);
  net.send(2, 0, 10);  // into another gNB: not shared
  net.clock.run_until_idle(60s);
  double last_long = 0, last_short = 0, last_other = 0;
  for (const Arrived& a : net.ends.kv) {
    (a.from == 0 ? last_long : a.from == 1 ? last_short : last_other) = a.at_s;
  }
  EXPECT_NEAR(last_short, 1.0 + 0.005, 1e-5);  // 5 blocks at half the rate
  EXPECT_NEAR(last_long, 1.5 + 0.005, 1e-5);   // the rest alone
  EXPECT_NEAR(last_other, 1.0 + 0.005, 1e-5);
}

TEST(Network, a_slow_link_leaves_its_share_to_the_others) {
  NetworkSettings s = at_rate(1.28e6);
  s.sharing = Sharing::kEgress;
  s.shared = FixedRate{BytesPerSecond(1.28e6)};
  Net net(s);
  net.network.set_rate(0, 1, BytesPerSecond(128'000));  // a block a second
  net.send(0, 1, 1);
  net.send(0, 2, 9);  // nine tenths of the capacity are left for it
  net.clock.run_until_idle(60s);
  for (const Arrived& a : net.ends.kv) {
    if (a.to == 1) {
      EXPECT_NEAR(a.at_s, 1.005, 1e-5);
    }
  }
  EXPECT_NEAR(net.ends.kv.back().at_s, 1.005, 1e-5);
}

// Whatever comes and goes: no more than the capacity flows, and all of it while anybody has
// something to send.
TEST(Network, fair_sharing_conserves_bytes) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    NetworkSettings s = at_rate(1e9);
    s.sharing = Sharing::kTotal;
    const double capacity = 2e6;
    s.shared = FixedRate{BytesPerSecond(capacity)};
    s.data_latency = 0ms;
    Net net(s, 6);
    double offered = 0, busy_until = 0, when = 0;
    for (int burst = 0; burst < 30; ++burst) {
      when += random.exponential(0.4);
      const int from = static_cast<int>(random.below(6));
      const int to = (from + 1 + static_cast<int>(random.below(5))) % 6;
      const auto blocks = 1 + random.below(8);
      net.clock.schedule(TimePoint(to_duration(Seconds(when))),
                         [&net, from, to, blocks] { net.send(from, to, blocks); });
      const double bytes = static_cast<double>(blocks) * kBlock * kScale;
      offered += bytes;
      busy_until = std::max(busy_until, when) + bytes / capacity;
    }
    net.clock.run_until_idle(1h);
    double got = 0;
    for (const Arrived& a : net.ends.kv) got += static_cast<double>(a.bytes) * kScale;
    EXPECT_DOUBLE_EQ(got, offered) << "seed " << seed;
    EXPECT_NEAR(net.ends.kv.back().at_s, busy_until, 1e-5) << "seed " << seed;
  }
}

TEST(Network, what_is_under_way_when_a_link_breaks_is_lost) {
  Net net(at_rate(1.28e6));
  net.send(0, 1, 3);
  net.network.send(0, 1, wire::KeepAlive{});
  net.clock.run_until(TimePoint(1ms));
  net.network.set_up(0, 1, false);
  EXPECT_FALSE(net.network.is_up(1, 0));
  EXPECT_EQ(net.network.kv_backlog(0, 1), 0u);
  net.send(0, 1);  // dropped
  net.network.set_up(0, 1, true);
  net.send(0, 1);
  net.clock.run_until_idle(10s);
  EXPECT_EQ(net.ends.kv.size(), 1u);
  EXPECT_TRUE(net.ends.messages.empty());
}

TEST(Network, takes_back_what_is_queued_of_an_attempt_but_not_what_is_on_the_wire) {
  Net net(at_rate(1.28e6));
  const Attempt attempt{NodeId("a"), BootId(1), 7};
  wire::KvBlock ours;
  ours.attempt = attempt;
  net.network.send_kv(0, 1, ours, kv::Bytes(kBlock, std::byte{}));
  net.network.send_kv(0, 1, ours, kv::Bytes(kBlock, std::byte{}));
  net.send(0, 1);
  net.network.discard_kv(0, 1, attempt);
  EXPECT_EQ(net.network.kv_backlog(0, 1), 2 * kBlock);
  net.clock.run_until_idle(10s);
  EXPECT_EQ(net.ends.kv.size(), 2u);
}

TEST(Network, a_draw_of_one_name_is_the_same_on_every_link_and_within_its_distribution) {
  NetworkSettings s;
  s.rate = DrawnRate{};
  s.sight = GoodputSight::kCurrent;
  Net net(s);
  double sum = 0;
  constexpr int kDraws = 4000;
  for (std::uint64_t name = 0; name < kDraws; ++name) {
    net.network.draw(0, 1, name);
    net.network.draw(2, 3, name);
    EXPECT_EQ(net.network.rate(0, 1), net.network.rate(2, 3));
    EXPECT_GE(net.network.rate(0, 1).mbps(), 150);
    sum += 300 / net.network.rate(0, 1).mbps();
  }
  EXPECT_NEAR(sum / kDraws, 1.03, 0.01);  // E[300 / B]
}

TEST(Network, a_node_sees_goodput_in_stand_in_bytes) {
  NetworkSettings s = at_rate(1.28e6);
  s.sight = GoodputSight::kCurrent;
  Net current(s);
  EXPECT_DOUBLE_EQ(current.network.goodput(0, 1)->value, 1280);

  s.sight = GoodputSight::kMeter;
  Net unknown(s);
  EXPECT_FALSE(unknown.network.goodput(0, 1));
  s.first_estimate = BytesPerSecond(5e6);
  Net metered(s);
  EXPECT_DOUBLE_EQ(metered.network.goodput(0, 1)->value, 5000);
  metered.send(0, 1, 40);
  metered.clock.run_until_idle(10s);
  EXPECT_NEAR(metered.network.goodput(0, 1)->value, 1280, 40);
}

TEST(Network, relayed_tokens_take_their_hops_and_hold_up_nothing_else) {
  NetworkSettings s = at_rate(1e6);
  s.relay_hop_latency = 65ms;
  Net net(s);
  net.ends.hops = 3;
  net.network.send(0, 1, wire::TokenUpdate{});
  net.network.send(0, 1, wire::KeepAlive{});
  net.clock.run_until_idle(10s);
  ASSERT_EQ(net.ends.messages.size(), 2u);
  EXPECT_NEAR(net.ends.messages[0].second, 0.002, 1e-9);
  EXPECT_NEAR(net.ends.messages[1].second, 0.195, 1e-9);
}

TEST(Network, settings_that_carry_nothing_are_refused_by_their_field) {
  const auto refused = [](const char* field, const NetworkSettings& s) {
    const Status ok = check(s);
    ASSERT_FALSE(ok) << field;
    EXPECT_THAT(ok.error().message, testing::HasSubstr(field));
  };
  NetworkSettings s = at_rate(0);
  refused("mbps", s);
  s = at_rate(NAN);
  refused("mbps", s);
  s = at_rate(1);
  s.control_latency = -1ms;
  refused("control_latency_ms", s);
  s = at_rate(1);
  s.sharing = Sharing::kTotal;
  s.shared = FixedRate{BytesPerSecond(-1)};
  refused("shared", s);
  s = at_rate(1);
  s.rate = DrawnRate{.sd = BytesPerSecond(-1)};
  refused("sd_mbps", s);
  s = at_rate(1);
  s.sight = GoodputSight::kFirst;
  refused("first_estimate_mbps", s);
}

}  // namespace
}  // namespace pallas::sim
