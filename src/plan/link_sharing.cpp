#include "plan/link_sharing.h"

#include <algorithm>
#include <utility>

#include "plan/allocator.h"

namespace pallas::plan {
namespace {

constexpr double kBytesPerGigabit = 1e9 / 8;

Receiver receiver_of(const LinkUser& user) {
  return {static_cast<double>(user.bytes) / kBytesPerGigabit, user.fraction(), user.utility};
}

// The first of `places` for which `less` holds against all others; ids decide between equals.
template <class Less>
std::size_t least(const std::vector<LinkUser>& users, const std::vector<std::size_t>& places,
                  Less less) {
  return *std::min_element(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
    if (less(users[a], users[b])) return true;
    if (less(users[b], users[a])) return false;
    return users[a].id < users[b].id;
  });
}

bool has_less(const LinkUser& a, const LinkUser& b) {
  return a.fraction() < b.fraction();
}

}  // namespace

double LinkUser::fraction() const {
  if (received >= bytes) return 1;
  return static_cast<double>(received) / static_cast<double>(bytes);
}

void LinkSharer::forget_all_but(const std::vector<LinkUser>& users) {
  const auto gone = [&users](const auto& entry) {
    return std::none_of(users.begin(), users.end(),
                        [&entry](const LinkUser& user) { return user.id == entry.first; });
  };
  std::erase_if(served_, gone);
  std::erase_if(quota_, gone);
}

std::optional<std::size_t> LinkSharer::next(const std::vector<LinkUser>& users, Seconds now,
                                            std::optional<BytesPerSecond> link) {
  forget_all_but(users);
  Places senders;
  for (std::size_t i = 0; i < users.size(); ++i) {
    if (users[i].next > 0) senders.push_back(i);
  }
  if (senders.empty()) {
    for (auto& [id, served] : served_) served.active = false;
    return std::nullopt;
  }
  switch (sharing_) {
    case LinkSharing::kTurns:
    case LinkSharing::kFirstCome:
      return least(users, senders, [](const LinkUser&, const LinkUser&) { return false; });
    case LinkSharing::kEqual:
      return share_equally(users, senders);
    case LinkSharing::kCtho:
      return keep_or_earliest(users, senders);
    case LinkSharing::kWaterFilling:
      return link ? fill(users, senders, now, *link) : least(users, senders, has_less);
  }
  return std::nullopt;
}

std::size_t LinkSharer::share_equally(const std::vector<LinkUser>& users, const Places& senders) {
  for (const LinkUser& user : users) {
    Served& served = served_[user.id];
    if (user.next > 0 && !served.active) served.bytes = std::max(served.bytes, served_by_all_);
    served.active = user.next > 0;
  }
  const std::size_t sends = least(users, senders, [this](const LinkUser& a, const LinkUser& b) {
    return served_.at(a.id).bytes < served_.at(b.id).bytes;
  });
  double& bytes = served_.at(users[sends].id).bytes;
  served_by_all_ = bytes;
  bytes += static_cast<double>(users[sends].next);
  return sends;
}

std::size_t LinkSharer::keep_or_earliest(const std::vector<LinkUser>& users,
                                         const Places& senders) {
  for (const std::size_t i : senders) {
    if (users[i].id == holder_) return i;
  }
  const std::size_t sends = least(
      users, senders, [](const LinkUser& a, const LinkUser& b) { return a.handover < b.handover; });
  holder_ = users[sends].id;
  return sends;
}

std::size_t LinkSharer::fill(const std::vector<LinkUser>& users, const Places& senders, Seconds now,
                             BytesPerSecond link) {
  std::optional<std::size_t> sends;
  if (slot_end_ && now < *slot_end_) sends = most_due(users, senders);
  if (!sends) {
    // The slot is over; or everybody has had its share of it, and the link does not wait.
    begin_slot(users, senders, now, link);
    sends = most_due(users, senders);
  }
  if (!sends) sends = least_served(users, senders);
  quota_[users[*sends].id] -= static_cast<double>(users[*sends].next);
  return *sends;
}

void LinkSharer::begin_slot(const std::vector<LinkUser>& users, const Places& senders, Seconds now,
                            BytesPerSecond link) {
  std::vector<Receiver> receivers;
  for (const std::size_t i : senders) receivers.push_back(receiver_of(users[i]));
  const double budget = link.value * slot_.count() / kBytesPerGigabit;
  const bool rescued = rescue_;
  rescue_ = budget < least_budget(receivers);
  const std::vector<double> fraction = allocate_two_regime(receivers, budget);
  // Shares of equal bytes do not know who had more than its share of the last slot, since a block
  // was not cut; a water level does. Whoever is new has had as much as the one that had least.
  std::map<std::uint64_t, double> owed;
  if (rescue_ && rescued) owed = std::exchange(quota_, {});
  double most_owed = owed.empty() ? 0 : owed.begin()->second;
  for (const auto& [id, bytes] : owed) most_owed = std::max(most_owed, bytes);
  quota_.clear();
  for (std::size_t k = 0; k < senders.size(); ++k) {
    const std::uint64_t id = users[senders[k]].id;
    double& bytes = quota_[id];
    bytes = (fraction[k] - receivers[k].received) * receivers[k].gigabits * kBytesPerGigabit;
    const auto before = owed.find(id);
    if (before != owed.end() && receivers[k].starved()) bytes += before->second - most_owed;
  }
  slot_end_ = now + slot_;
}

std::optional<std::size_t> LinkSharer::most_due(const std::vector<LinkUser>& users,
                                                const Places& senders) const {
  Places due, starved;
  for (const std::size_t i : senders) {
    const auto found = quota_.find(users[i].id);
    // Below a byte there is only rounding.
    if (found == quota_.end() || found->second < 1) continue;
    due.push_back(i);
    if (users[i].starved()) starved.push_back(i);
  }
  if (due.empty()) return std::nullopt;
  // Blocks are not cut, so the last of a slot may be served late: that must not be one that is
  // below its threshold although there was enough for everybody.
  if (!rescue_ && !starved.empty()) return least(users, starved, has_less);
  return least(users, due, [this](const LinkUser& a, const LinkUser& b) {
    return quota_.at(a.id) > quota_.at(b.id);
  });
}

// A slot in which nobody has a share left: it is smaller than the blocks of the last ones.
std::size_t LinkSharer::least_served(const std::vector<LinkUser>& users,
                                     const Places& senders) const {
  if (!rescue_) return least(users, senders, has_less);
  Places starved;
  for (const std::size_t i : senders) {
    if (users[i].starved()) starved.push_back(i);
  }
  return least(users, starved, [this](const LinkUser& a, const LinkUser& b) {
    return quota_.at(a.id) > quota_.at(b.id);
  });
}

}  // namespace pallas::plan
