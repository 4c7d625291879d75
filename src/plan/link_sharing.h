#pragma once
// Which of several sessions whose KV goes over one link sends its next block. Nobody is interrupted
// within a block. Pure: time and the link's rate come in.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "plan/utility.h"

namespace pallas::plan {

enum class LinkSharing : std::uint8_t {
  kTurns,         // a block of each in turn: nothing is decided here
  kFirstCome,     // whoever began first, as long as it has something to send
  kEqual,         // the same number of bytes to each that has something to send
  kCtho,          // the earliest handover first, nobody is interrupted (plan/ctho_users.h)
  kWaterFilling,  // what an answer gains most by, anew each slot (plan/allocator.h)
};
inline constexpr std::array<std::string_view, 5> kLinkSharingNames = {
    "turns", "first-come", "equal", "ctho", "water-filling"};
constexpr std::string_view to_string(LinkSharing sharing) {
  return kLinkSharingNames.at(static_cast<std::size_t>(sharing));
}
// False, with `to` untouched, for another name.
constexpr bool parse_link_sharing(std::string_view name, LinkSharing& to) {
  for (std::size_t i = 0; i < kLinkSharingNames.size(); ++i) {
    if (kLinkSharingNames.at(i) != name) continue;
    to = static_cast<LinkSharing>(i);
    return true;
  }
  return false;
}

// One session on the link, as it is now.
struct LinkUser {
  std::uint64_t id = 0;        // of its transfer; one that began later has a higher number
  Seconds handover{0};         // when its UE leaves or has left, on the clock of `now`
  std::uint64_t bytes = 0;     // all of its KV
  std::uint64_t received = 0;  // of these, what the target has or what is on the way to it
  std::uint64_t next = 0;      // what it would send now; 0: nothing
  Utility utility;

  double fraction() const;  // received / bytes, at most 1
  bool starved() const { return fraction() < utility.threshold; }
};

class LinkSharer {
 public:
  // A slot of kWaterFilling lasts `slot`, above 0.
  LinkSharer(LinkSharing sharing, Seconds slot) : sharing_(sharing), slot_(slot) {}

  // The place in `users` (all on this link, with different ids, in any order) of the one that sends
  // its `next` bytes now; they count as sent. None where nobody has anything to send. `now` never
  // decreases. `link`: what all of them have together, above 0; while it is not known water-filling
  // gives to whoever has the least fraction.
  std::optional<std::size_t> next(const std::vector<LinkUser>& users, Seconds now,
                                  std::optional<BytesPerSecond> link);

 private:
  // Start-time fair queueing: whoever joins begins where the others are.
  struct Served {
    double bytes = 0;
    bool active = false;
  };
  using Places = std::vector<std::size_t>;

  void forget_all_but(const std::vector<LinkUser>& users);
  std::size_t share_equally(const std::vector<LinkUser>& users, const Places& senders);
  std::size_t keep_or_earliest(const std::vector<LinkUser>& users, const Places& senders);
  std::size_t fill(const std::vector<LinkUser>& users, const Places& senders, Seconds now,
                   BytesPerSecond link);
  void begin_slot(const std::vector<LinkUser>& users, const Places& senders, Seconds now,
                  BytesPerSecond link);
  std::optional<std::size_t> most_due(const std::vector<LinkUser>& users,
                                      const Places& senders) const;
  std::size_t least_served(const std::vector<LinkUser>& users, const Places& senders) const;

  LinkSharing sharing_;
  Seconds slot_;
  // By id of the transfer.
  std::map<std::uint64_t, Served> served_;
  double served_by_all_ = 0;               // of the one that sent last, before it did
  std::optional<std::uint64_t> holder_;    // kCtho: who has the link
  std::map<std::uint64_t, double> quota_;  // bytes left of the slot's allocation
  std::optional<Seconds> slot_end_;        // none: no slot yet
  bool rescue_ = false;                    // the slot could not lift everybody to its threshold
};

}  // namespace pallas::plan
