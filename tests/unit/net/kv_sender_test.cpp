#include "net/kv_sender.h"

#include <gtest/gtest.h>

#include <vector>

#include "virtual_clock.h"

namespace pallas::net {
namespace {

// Takes every segment at once.
class Wire final : public Connection {
 public:
  explicit Wire(Clock& clock) : clock_(clock), written_(clock) {}

  void set_handler(Handler&) override {}
  void set_channel(wire::Channel) override {}
  std::string remote() const override { return "wire"; }
  std::string_view awaited() const override { return ""; }
  bool proves(const NodeId&) const override { return true; }
  void read_frame() override {}
  TimePoint last_received() const override { return clock_.now(); }
  bool has_unread() const override { return false; }
  void send(kv::Bytes) override {}
  std::size_t queued_bytes() const override { return 0; }
  void begin_kv(kv::Bytes, kv::Bytes rows) override { lies_at.push_back(rows.data()); }
  void write_kv(std::size_t bytes, std::function<void()> written) override {
    segments.push_back(bytes);
    written_.arm(Duration::zero(), std::move(written));
  }
  void set_unsent_low(std::size_t bytes) override { unsent_low.push_back(bytes); }
  std::size_t unacknowledged() const override { return 0; }
  void close() override {}
  void refuse(kv::Bytes) override {}
  bool is_open() const override { return true; }

  std::vector<std::size_t> segments, unsent_low;
  std::vector<const std::byte*> lies_at;

 private:
  Clock& clock_;
  Timer written_;
};

struct Sent {
  std::vector<std::size_t> segments, unsent_low;
};

// One frame of `size` bytes over a link whose goodput is configured.
Sent send(std::optional<double> goodput, std::size_t size,
          std::optional<kv::RateTrace> pacing = std::nullopt) {
  test::VirtualClock clock;
  Wire wire(clock);
  std::optional<BytesPerSecond> initial;
  if (goodput) initial = BytesPerSecond(*goodput);
  KvSender sender(clock, Pacer(std::move(pacing), clock.now()), initial, 1, [] {});
  sender.attach(wire);
  sender.grant(64u << 20);
  kv::Bytes rows(size, std::byte{});
  const std::byte* const at = rows.data();
  sender.enqueue({}, kv::Bytes(16, std::byte{}), std::move(rows));
  clock.run_for(std::chrono::seconds(10));
  EXPECT_EQ(wire.lies_at, std::vector{at}) << "rows are handed on, not copied";
  EXPECT_EQ(sender.backlog(), 0u);
  return {wire.segments, wire.unsent_low};
}

constexpr std::size_t kKiB = 1024;

TEST(KvSender, segments_are_short_while_nothing_is_known_of_the_link) {
  const auto sent = send(std::nullopt, 40 * kKiB);
  EXPECT_EQ(sent.segments, (std::vector<std::size_t>{16 * kKiB, 16 * kKiB, 8 * kKiB}));
  EXPECT_TRUE(sent.unsent_low.empty());
}

TEST(KvSender, a_slow_link_gets_short_segments) {
  EXPECT_EQ(send(2.5e6, 32 * kKiB).segments, (std::vector<std::size_t>{16 * kKiB, 16 * kKiB}));
}

TEST(KvSender, a_fast_link_gets_what_it_does_in_a_millisecond) {
  const auto sent = send(100e6, 250'000);
  EXPECT_EQ(sent.segments, (std::vector<std::size_t>{100'000, 100'000, 50'000}));
  EXPECT_EQ(sent.unsent_low, std::vector<std::size_t>{100'000});
}

TEST(KvSender, no_segment_is_longer_than_256_kib) {
  const auto sent = send(5e9, 600 * kKiB);
  EXPECT_EQ(sent.segments, (std::vector<std::size_t>{256 * kKiB, 256 * kKiB, 88 * kKiB}));
}

TEST(KvSender, a_paced_link_gets_short_segments_however_fast) {
  const auto sent = send(5e9, 32 * kKiB, *kv::RateTrace::constant(BytesPerSecond(1e9)));
  EXPECT_EQ(sent.segments, (std::vector<std::size_t>{16 * kKiB, 16 * kKiB}));
}

}  // namespace
}  // namespace pallas::net
