// Who of several sessions sends next over the link that they share.

#include "plan/link_sharing.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace pallas::plan {
namespace {

constexpr std::uint64_t kBlock = 1000;

LinkUser user(std::uint64_t id, double handover, std::uint64_t bytes) {
  LinkUser u;
  u.id = id;
  u.handover = Seconds(handover);
  u.bytes = bytes;
  u.next = kBlock;
  return u;
}

// Sends `blocks` over a link of that many bytes a second, one after the other; the ids in order.
std::vector<std::uint64_t> send(LinkSharer& sharer, std::vector<LinkUser>& users, int blocks,
                                double rate = 10'000, double* now = nullptr) {
  double own_now = 0;
  double& at = now != nullptr ? *now : own_now;
  std::vector<std::uint64_t> order;
  for (int i = 0; i < blocks; ++i) {
    const auto place = sharer.next(users, Seconds(at), BytesPerSecond(rate));
    if (!place) break;
    LinkUser& u = users[*place];
    order.push_back(u.id);
    u.received += u.next;
    at += static_cast<double>(u.next) / rate;
    if (u.received >= u.bytes) u.next = 0;
  }
  return order;
}

using Order = std::vector<std::uint64_t>;

TEST(LinkSharing, has_a_name_for_each_rule) {
  for (const std::string_view name : kLinkSharingNames) {
    LinkSharing sharing{};
    ASSERT_TRUE(parse_link_sharing(name, sharing));
    EXPECT_EQ(to_string(sharing), name);
  }
  LinkSharing sharing = LinkSharing::kEqual;
  EXPECT_FALSE(parse_link_sharing("fair", sharing));
  EXPECT_EQ(sharing, LinkSharing::kEqual);
}

TEST(LinkSharing, by_first_come_serves_whoever_began_first_to_its_end) {
  LinkSharer sharer(LinkSharing::kFirstCome, Seconds(0.1));
  std::vector<LinkUser> users{user(7, 1, 2 * kBlock), user(3, 5, 3 * kBlock)};
  EXPECT_EQ(send(sharer, users, 9), (Order{3, 3, 3, 7, 7}));
}

TEST(LinkSharing, by_equal_bytes_gives_smaller_blocks_more_often) {
  LinkSharer sharer(LinkSharing::kEqual, Seconds(0.1));
  std::vector<LinkUser> users{user(1, 0, 100 * kBlock), user(2, 0, 100 * kBlock)};
  users[1].next = kBlock / 2;
  send(sharer, users, 30);
  EXPECT_EQ(users[0].received, users[1].received);
}

TEST(LinkSharing, by_equal_bytes_does_not_make_up_for_the_time_before_somebody_came) {
  LinkSharer sharer(LinkSharing::kEqual, Seconds(0.1));
  std::vector<LinkUser> users{user(1, 0, 100 * kBlock)};
  send(sharer, users, 10);
  users.push_back(user(2, 0, 100 * kBlock));
  EXPECT_EQ(send(sharer, users, 4), (Order{2, 1, 2, 1}));
  // Nor for a time in which it had nothing to send.
  users[1].next = 0;
  send(sharer, users, 10);
  users[1].next = kBlock;
  EXPECT_EQ(send(sharer, users, 4), (Order{2, 1, 2, 1}));
}

TEST(LinkSharing, by_ctho_goes_to_the_earliest_handover_and_interrupts_nobody) {
  LinkSharer sharer(LinkSharing::kCtho, Seconds(0.1));
  std::vector<LinkUser> users{user(1, 3, 3 * kBlock), user(2, 2, 2 * kBlock)};
  EXPECT_EQ(send(sharer, users, 1), (Order{2}));
  users.push_back(user(3, 1, 2 * kBlock));  // earlier than the one that has the link
  EXPECT_EQ(send(sharer, users, 9), (Order{2, 3, 3, 1, 1, 1}));
}

TEST(LinkSharing, by_water_filling_first_lifts_everybody_to_the_threshold) {
  LinkSharer sharer(LinkSharing::kWaterFilling, Seconds(0.1));
  std::vector<LinkUser> users{user(1, 0, 20 * kBlock), user(2, 0, 20 * kBlock)};
  for (auto& u : users) u.utility.threshold = 0.1;
  users[0].received = 19 * kBlock;  // accurate already
  // A slot carries one block: too few for the starved one's two.
  EXPECT_EQ(send(sharer, users, 2), (Order{2, 2}));
}

TEST(LinkSharing, by_water_filling_then_serves_whom_a_bit_helps_most) {
  LinkSharer sharer(LinkSharing::kWaterFilling, Seconds(0.1));
  std::vector<LinkUser> users{user(1, 0, 100 * kBlock), user(2, 0, 10 * kBlock)};
  users[0].received = 20 * kBlock;
  users[1].received = 2 * kBlock;  // equal fractions; a block is ten times as much of the second
  // At four tenths, where its curve is flatter, the other's smaller step is worth more.
  EXPECT_EQ(send(sharer, users, 3), (Order{2, 2, 1}));
}

TEST(LinkSharing, by_water_filling_shares_bytes_equally_while_there_is_too_little_for_all) {
  // Eight slots for one block each: nobody can be at its threshold before they are over.
  LinkSharer sharer(LinkSharing::kWaterFilling, Seconds(0.025));
  std::vector<LinkUser> users{user(1, 0, 100 * kBlock), user(2, 0, 200 * kBlock),
                              user(3, 0, 400 * kBlock)};
  for (auto& u : users) u.utility.threshold = 0.5;
  const Order order = send(sharer, users, 60);
  EXPECT_EQ(order.size(), 60u);
  for (const auto& u : users) EXPECT_EQ(u.received, 20 * kBlock) << u.id;
}

TEST(LinkSharing, by_water_filling_counts_a_newcomer_among_those_that_had_least) {
  LinkSharer sharer(LinkSharing::kWaterFilling, Seconds(0.025));
  std::vector<LinkUser> users{user(1, 0, 1000 * kBlock), user(2, 0, 1000 * kBlock)};
  for (auto& u : users) u.utility.threshold = 0.5;
  double now = 0;
  send(sharer, users, 20, 10'000, &now);
  users.push_back(user(3, 0, 1000 * kBlock));
  users.back().utility.threshold = 0.5;
  send(sharer, users, 30, 10'000, &now);
  EXPECT_NEAR(static_cast<double>(users[2].received), 10.0 * kBlock, 1.0 * kBlock);
  EXPECT_NEAR(static_cast<double>(users[0].received), 20.0 * kBlock, 1.0 * kBlock);
}

TEST(LinkSharing, by_water_filling_without_a_known_link_goes_by_fractions) {
  LinkSharer sharer(LinkSharing::kWaterFilling, Seconds(0.1));
  std::vector<LinkUser> users{user(1, 0, 10 * kBlock), user(2, 0, 10 * kBlock)};
  users[0].received = 5 * kBlock;
  EXPECT_EQ(sharer.next(users, Seconds(0), std::nullopt), std::optional<std::size_t>(1));
}

}  // namespace
}  // namespace pallas::plan
