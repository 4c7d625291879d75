#pragma once
// Settings of one gNB's logic. The program reads them from gnb.toml and flags (apps/pallas); every
// field is a setting there by the same name.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "engine/importance.h"
#include "plan/link_sharing.h"
#include "plan/utility.h"
#include "wire/messages.h"

namespace pallas::node {

// When a prepared target goes with its source, a step for each token (docs/protocol.md, "Target").
enum class Shadow : std::uint8_t {
  kOff,
  kIdle,    // while nobody else's work waits for the engine
  kAlways,  // beside others, too
};
inline constexpr std::array<std::string_view, 3> kShadowNames = {"off", "idle", "always"};
constexpr std::string_view to_string(Shadow shadow) {
  return kShadowNames.at(static_cast<std::size_t>(shadow));
}
// False, with `to` untouched, for another name.
constexpr bool parse_shadow(std::string_view name, Shadow& to) {
  for (std::size_t i = 0; i < kShadowNames.size(); ++i) {
    if (kShadowNames.at(i) != name) continue;
    to = static_cast<Shadow>(i);
    return true;
  }
  return false;
}

struct NodeConfig {
  NodeId name;
  std::map<CellId, NodeId> cells;  // rule 18: which gNB serves a cell
  std::string scheme = "two-front";
  wire::Consistency default_consistency = wire::Consistency::kPreferExact;

  // Planning.
  double alpha = 0.8;
  Duration control_period{std::chrono::milliseconds(100)};
  Duration t_max{std::chrono::seconds(5)};                 // largest window, T_max
  Duration window_margin{std::chrono::milliseconds(300)};  // two-front starts this much earlier
  // And by this share of its window: computing speeds of a second ago are not those of the next.
  double window_margin_share = 0.15;
  // While sessions decode here, a preparation of two-front computes a chunk in at most one of so
  // many of their intervals; 1: in each.
  std::uint32_t preparation_spacing = 12;
  Shadow shadow = Shadow::kIdle;
  // How sessions whose KV goes to the same peer share the link (docs/schemes.md).
  plan::LinkSharing link_sharing = plan::LinkSharing::kTurns;
  plan::Utility utility;  // what water-filling takes a fraction of a session's KV to be worth
  // Scheme `partial`: positions are sent in this order, and the target decodes as soon as it has
  // this fraction of them, (0, 1], or this long after the UE came (0: no deadline).
  engine::Ordering partial_ordering = engine::Ordering::kKeyDiff;
  double partial_fraction = 0.4;
  Duration partial_deadline{0};
  // Other schemes: a UE that comes to an unprepared cell is moved in this way, too, where ctHO
  // would interrupt it for longer than this, and a partial handover would not. 0: never.
  Duration partial_fallback{0};
  // Windows take a prediction's sigma and confidence into account, where it has them.
  bool use_uncertainty = true;
  // Prepared in place of a target that refuses, and decodes for it then; empty: nobody is.
  NodeId fallback;
  // A rate that nobody measured at that peer is taken at this share of the profile's: contention is
  // part of it, and too late costs a pause where too early costs only exposure. (0, 1]
  double unmeasured_rate = 0.85;
  double ewma = 0.3;                                           // weight of a new rate sample
  std::optional<BytesPerSecond> initial_goodput;               // until one is measured (rule 17)
  Duration prefer_exact_wait{std::chrono::milliseconds(500)};  // what `prefer-exact` waits at most

  // Clocks of the protocol rules.
  Duration lease{std::chrono::seconds(5)};
  Duration frozen{std::chrono::seconds(30)};
  Duration resume{std::chrono::seconds(300)};
  Duration retain{std::chrono::seconds(10)};
  Duration flap{std::chrono::seconds(2)};
  Duration grace{std::chrono::seconds(10)};  // a resumable session without a UE goes on this long
  Duration move{
      std::chrono::seconds(10)};  // an operator's move: the UE is told to go at the latest
  Duration repeat{std::chrono::milliseconds(200)};  // HandoverSuccess, UeContextRelease again after
  Duration peer_answer{std::chrono::seconds(1)};  // a claim without an answer: rebuild from tokens
  Duration keep_alive{std::chrono::milliseconds(500)};  // comment to a waiting UE

  // Limits.
  std::uint32_t max_sessions = 1024;      // logs and tombstones included
  std::uint32_t max_sessions_tenant = 0;  // live ones of one tenant; 0: no limit of its own
  std::uint64_t max_staged_bytes = 1ull << 30;
  std::uint64_t max_staged_bytes_session = 512ull << 20;
  std::uint32_t max_handover_reports = 1000;
  bool report_phases = true;    // reports tell every phase, and the source makes one, too
  std::vector<NodeId> mirrors;  // rule 16: always mirrored to these
  bool mirror_on_prediction = true;
  // Reports tell what fraction of the KV was there this long after the UE.
  Duration fraction_deadline{std::chrono::milliseconds(500)};
  double slo_ms = 100;
};

}  // namespace pallas::node
