// Whatever the sessions, the blocks and the link: nothing idles, shares are kept to a block, and
// nobody stays below its threshold where there is enough for all (Lemma 1 of ImpactHO).

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "generators.h"
#include "plan/allocator.h"
#include "plan/link_sharing.h"

namespace pallas::plan {
namespace {

constexpr std::uint64_t kBlock = 1000;

std::vector<LinkUser> any_users() {
  std::vector<LinkUser> users(whole<std::size_t>(1, 7));
  std::uint64_t id = 0;
  for (LinkUser& u : users) {
    u.id = id += whole<std::uint64_t>(1, 5);
    u.handover = Seconds(even(0, 5));
    u.bytes = whole<std::uint64_t>(1, 300) * kBlock;
    u.received = whole<std::uint64_t>(0, u.bytes / kBlock + 1) * kBlock;
    u.next = u.received < u.bytes ? kBlock : 0;
    u.utility.threshold = even(0.02, 0.6);
    u.utility.steepness = scaled(2, 60);
    u.utility.shape = *rc::gen::element(UtilityShape::kAlgebraic, UtilityShape::kLogistic);
  }
  return users;
}

// The chosen one gets its block.
void give(LinkUser& u) {
  u.received += u.next;
  if (u.received >= u.bytes) u.next = 0;
}

bool has_work(const std::vector<LinkUser>& users) {
  return std::any_of(users.begin(), users.end(), [](const LinkUser& u) { return u.next > 0; });
}

RC_GTEST_PROP(LinkSharingProperty, never_idles_while_somebody_has_something_to_send, ()) {
  const auto rule = *rc::gen::element(LinkSharing::kFirstCome, LinkSharing::kEqual,
                                      LinkSharing::kCtho, LinkSharing::kWaterFilling);
  auto users = any_users();
  LinkSharer sharer(rule, Seconds(scaled(0.001, 1)));
  const BytesPerSecond link(scaled(100, 1e7));
  Seconds now{0};
  while (has_work(users)) {
    // Whole blocks, or less than one at times.
    for (LinkUser& u : users) {
      if (u.next > 0) {
        u.next =
            std::min(u.bytes - u.received, whole<std::uint64_t>(0, 4) == 0 ? kBlock / 7 : kBlock);
      }
    }
    const auto place = sharer.next(users, now, link);
    RC_ASSERT(place.has_value());
    RC_ASSERT(users[*place].next > 0u);
    now += Seconds(static_cast<double>(users[*place].next) / link.value);
    give(users[*place]);
  }
  RC_ASSERT(!sharer.next(users, now, link).has_value());
}

RC_GTEST_PROP(LinkSharingProperty, equal_bytes_are_equal_to_a_block, ()) {
  auto users = any_users();
  for (LinkUser& u : users) {
    u.received = 0;
    u.next = whole<std::uint64_t>(1, kBlock + 1);
  }
  LinkSharer sharer(LinkSharing::kEqual, Seconds(0.1));
  std::vector<std::uint64_t> got(users.size(), 0);
  for (int i = 0; i < 200; ++i) {
    const auto place = sharer.next(users, Seconds(i), std::nullopt);
    RC_ASSERT(place.has_value());
    got[*place] += users[*place].next;  // all go on sending
  }
  const auto [least, most] = std::minmax_element(got.begin(), got.end());
  RC_ASSERT(*most - *least <= kBlock);
}

RC_GTEST_PROP(LinkSharingProperty, a_slot_with_enough_for_all_leaves_nobody_below_its_threshold,
              ()) {
  auto users = any_users();
  // What everybody lacks to its threshold, in whole blocks.
  double least = 0;
  for (const LinkUser& u : users) {
    const double lacks =
        u.utility.threshold * static_cast<double>(u.bytes) - static_cast<double>(u.received);
    least += std::max(0.0, std::ceil(lacks / kBlock - 1e-9)) * kBlock;
  }
  const double budget = std::max(least * even(1, 3), 1.0);
  const Seconds slot(scaled(0.01, 1));
  LinkSharer sharer(LinkSharing::kWaterFilling, slot);
  const BytesPerSecond link(budget / slot.count());
  double sent = 0;
  while (sent + kBlock <= budget + 1e-6 && has_work(users)) {
    const auto place = sharer.next(users, Seconds(sent / link.value), link);
    RC_ASSERT(place.has_value());
    sent += static_cast<double>(users[*place].next);
    give(users[*place]);
  }
  for (const LinkUser& u : users) RC_ASSERT(!u.starved());
}

RC_GTEST_PROP(LinkSharingProperty, over_many_slots_thresholds_come_first, ()) {
  auto users = any_users();
  for (LinkUser& u : users) {
    u.received = 0;
    u.next = kBlock;
  }
  const BytesPerSecond link(scaled(1e4, 1e6));
  const Seconds slot(scaled(0.001, 0.5));
  LinkSharer sharer(LinkSharing::kWaterFilling, slot);
  double to_all = 0;
  for (const LinkUser& u : users) {
    to_all += std::ceil(u.utility.threshold * static_cast<double>(u.bytes) / kBlock) * kBlock;
  }
  double sent = 0;
  while (sent < to_all) {
    const auto place = sharer.next(users, Seconds(sent / link.value), link);
    RC_ASSERT(place.has_value());
    sent += kBlock;
    give(users[*place]);
  }
  // Equal bytes of one slot may take some above their thresholds, and so may each one's last block.
  const double slack = static_cast<double>(users.size()) * kBlock + link.value * slot.count();
  double below = 0;
  for (const LinkUser& u : users) {
    below += std::max(
        0.0, u.utility.threshold * static_cast<double>(u.bytes) - static_cast<double>(u.received));
  }
  RC_ASSERT(below <= slack);
}

RC_GTEST_PROP(LinkSharingProperty, shares_of_a_slot_are_the_allocators_to_a_block, ()) {
  auto users = any_users();
  std::vector<Receiver> receivers;
  double room = 0;
  for (LinkUser& u : users) {
    if (u.received >= u.bytes) u.received = 0;
    u.next = kBlock;
    receivers.push_back({static_cast<double>(u.bytes) * 8e-9, u.fraction(), u.utility});
    room += static_cast<double>(u.bytes - u.received);
  }
  const double budget = room * even(0.05, 0.9);
  const auto fraction = allocate_two_regime(receivers, budget * 8e-9);
  LinkSharer sharer(LinkSharing::kWaterFilling, Seconds(1));
  const auto before = users;
  double sent = 0;
  while (sent + kBlock < budget && has_work(users)) {
    const auto place = sharer.next(users, Seconds(sent / budget), BytesPerSecond(budget));
    RC_ASSERT(place.has_value());
    LinkUser& u = users[*place];
    sent += static_cast<double>(u.next);
    give(u);
  }
  // One may have a block more than its share before the others have theirs: then a new allocation
  // is made only when all are served.
  for (std::size_t i = 0; i < users.size(); ++i) {
    const double share = fraction[i] * static_cast<double>(users[i].bytes);
    RC_ASSERT(static_cast<double>(users[i].received) <= share + kBlock);
    RC_ASSERT(users[i].received >= before[i].received);
  }
}

}  // namespace
}  // namespace pallas::plan
