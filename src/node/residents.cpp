// The target spares the sessions that decode at it: how often a preparation's chunk may lengthen
// their intervals, and what the others are told of it.

#include <algorithm>
#include <cmath>
#include <limits>

#include "node/impl.h"

namespace pallas::node {

namespace {

// One chunk of an engine that has others to serve; shorter ones cost more a position.
constexpr TokenPosition kSparingChunk = 8;
// Told again when it differs by this share: plans are no more precise.
constexpr double kChange = 0.1;
// Who decodes here is looked at so often.
constexpr Duration kSeen = std::chrono::milliseconds(5);

}  // namespace

// Between two tokens of the sessions that decode here; 0: there are none. Where thousands decode
// and hundreds are prepared this is asked all the time; start_serving() has it looked at anew.
Seconds Node::Impl::residents_interval() {
  const TimePoint now = ports.clock->now();
  if (now < residents_until_) return residents_interval_;
  residents_until_ = now + kSeen;
  residents_interval_ = Seconds(0);
  std::uint32_t count = 0;
  TokenPosition deepest = 0;
  double fastest = 0;  // tokens/s that one wants
  for (const auto& [slot, s] : by_slot_) {
    if (s->role != Role::kServing || !s->decoding) continue;
    ++count;
    deepest = std::max(deepest, s->front);
    const double rate = s->params.max_token_rate;
    fastest = std::max(fastest, rate > 0 ? rate : std::numeric_limits<double>::infinity());
  }
  if (count > 0) {
    residents_interval_ =
        std::max(ports.engine->info().profile.decode_step(count, deepest), Seconds(1 / fastest));
  }
  return residents_interval_;
}

TokenPosition Node::Impl::prefill_budget(Session& s) {
  constexpr TokenPosition kAll = std::numeric_limits<TokenPosition>::max();
  if (config.preparation_spacing <= 1 || !s.incoming || !s.incoming->plan().meet) return kAll;
  const Seconds interval = residents_interval();
  if (interval <= Seconds(0)) return kAll;
  const TimePoint now = ports.clock->now();
  if (now < chunk_after_) {
    arm(s.chunk, chunk_after_ - now, s, [this](Session& live) {
      if (live.role != Role::kPreparing || !live.incoming) return;
      live.incoming->advance();
      after_target(live);
    });
    return 0;
  }
  chunk_after_ = now + to_duration(interval * static_cast<double>(config.preparation_spacing));
  return kSparingChunk;
}

double Node::Impl::prefill_share() {
  const Seconds interval = residents_interval();
  if (config.preparation_spacing <= 1 || interval <= Seconds(0)) return 1;
  const auto& profile = ports.engine->info().profile;
  const Seconds chunk = profile.prefill_time(0, kSparingChunk);
  return std::min(1.0, chunk / (interval * static_cast<double>(config.preparation_spacing)));
}

void Node::Impl::tell_resources() {
  const double share = prefill_share();
  if (std::abs(share - told_share_) <= kChange * told_share_) return;
  told_share_ = share;
  std::vector<NodeId> up;
  for (const auto& [id, peer] : peers_) {
    if (peer.up) up.push_back(id);
  }
  std::sort(up.begin(), up.end());
  for (const NodeId& peer : up) tell_resources(peer);
}

void Node::Impl::tell_resources(const NodeId& peer) {
  if (told_share_ == 1 && peers_[peer].told_share == 1) return;
  if (peers_[peer].minor == 0) return;
  peers_[peer].told_share = told_share_;
  ports.peers->send(peer, wire::ResourceStatus{told_share_});
}

void Node::Impl::handle(const NodeId& peer, wire::ResourceStatus& m) {
  peers_[peer].spared_share = m.prefill_share;
}

}  // namespace pallas::node
