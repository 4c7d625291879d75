// The source of several handovers to one peer at a time: whose rows go next over the link that they
// share, and what ctHO decides for all who move together.

#include <algorithm>
#include <utility>

#include "kv/link_ahead.h"
#include "node/impl.h"

namespace pallas::node {

// When the UE leaves or has left, as far as known.
TimePoint Node::Impl::handover_time(Session& s) const {
  if (s.leaving && s.leaving->ran_execution.happened()) return s.leaving->ran_execution.at();
  if (s.leaving && s.leaving->claim_received.happened()) return s.leaving->claim_received.at();
  if (s.ue != nullptr && s.ue->forecast) return s.ue->forecast->at;
  return ports.clock->now();
}

plan::LinkUser Node::Impl::link_user(Session& s) const {
  const std::uint64_t row = ports.engine->info().geometry.bytes_per_token();
  plan::LinkUser user;
  user.id = s.outgoing->attempt().counter;
  user.handover = to_seconds(handover_time(s).time_since_epoch());
  user.bytes = s.outgoing->front() * row;
  user.received = s.outgoing->covered() * row;
  user.next = s.outgoing->wanted_bytes();
  user.utility = config.utility;
  return user;
}

std::uint64_t Node::Impl::link_ahead(const NodeId& peer) const {
  const kv::Geometry& geometry = ports.engine->info().geometry;
  return kv::link_ahead(geometry.block_tokens * geometry.bytes_per_token(),
                        ports.peers->goodput(peer));
}

// A block of each in turn, whoever hears of room first: else the session whose rows have just
// arrived would take it again and again. False: no more than one session sends to `peer`.
bool Node::Impl::take_turns(const NodeId& peer) {
  auto& attempts = peers_[peer].attempts;
  const auto sends = [&](const Session* s) {
    return s != nullptr && s->outgoing && s->outgoing->target() == peer;
  };
  if (std::count_if(attempts.begin(), attempts.end(), sends) < 2) return false;
  while (true) {
    std::uint64_t waiting = ports.peers->kv_backlog(peer);
    for (const Session* s : attempts) {
      if (sends(s)) waiting += s->outgoing->exporting_bytes();
    }
    if (waiting >= link_ahead(peer)) return true;
    const auto next = std::find_if(attempts.begin(), attempts.end(), [&](const Session* s) {
      return sends(s) && s->outgoing->send_next();
    });
    if (next == attempts.end()) return true;
    std::rotate(next, next + 1, attempts.end());
  }
}

// False: the link to `peer` is not divided. True: all that may be sent now was asked for.
bool Node::Impl::divide_link(const NodeId& peer) {
  if (config.link_sharing == plan::LinkSharing::kTurns) return take_turns(peer);
  PeerState& state = peers_[peer];
  if (!state.sharer) {
    state.sharer.emplace(config.link_sharing, to_seconds(config.control_period));
  }
  std::optional<BytesPerSecond> link = ports.peers->goodput(peer);
  if (!link) link = config.initial_goodput;
  const Seconds now = to_seconds(ports.clock->now().time_since_epoch());
  while (true) {
    std::uint64_t waiting = ports.peers->kv_backlog(peer);
    std::vector<Session*> senders;
    std::vector<plan::LinkUser> users;
    for (Session* s : state.attempts) {
      if (s == nullptr || !s->outgoing || s->outgoing->target() != peer) continue;
      waiting += s->outgoing->exporting_bytes();
      senders.push_back(s);
      users.push_back(link_user(*s));
    }
    if (waiting >= link_ahead(peer)) return true;
    const auto next = state.sharer->next(users, now, link);
    if (!next || !senders[*next]->outgoing->send_next()) return true;
  }
}

void Node::Impl::divide_links() {
  std::vector<NodeId> peers;
  for (const auto& [peer, state] : peers_) {
    if (state.sharer || state.attempts.size() > 1) peers.push_back(peer);
  }
  std::sort(peers.begin(), peers.end());
  for (const NodeId& peer : peers) divide_link(peer);
}

// The split of all who leave for `target` about now, `s` among them, at `prefill_rate` tokens/s for
// one alone. None where links are not divided by ctHO, or their rate is not known.
std::optional<plan::CommonSplit> Node::Impl::common_split(const Session& s, const NodeId& target,
                                                          double prefill_rate) {
  if (config.link_sharing != plan::LinkSharing::kCtho) return std::nullopt;
  auto link = ports.peers->goodput(target);
  if (!link) link = config.initial_goodput;
  if (!link) return std::nullopt;
  const kv::Geometry& geometry = ports.engine->info().geometry;
  const auto user_of = [&](const Session& who, TimePoint at) {
    const TokenPosition tokens = who.log.size() - 1;
    TokenPosition most = tokens;
    if (prompt_only(who) && who.log.prompt_tokens() - 1 < tokens) {
      most = (who.log.prompt_tokens() - 1) / geometry.block_tokens * geometry.block_tokens;
    }
    return plan::GroupUser{who.id.value, to_seconds(at.time_since_epoch()),
                           static_cast<double>(tokens), static_cast<double>(most), 0};
  };
  std::vector<plan::GroupUser> foreseen;
  for (const auto& [id, other] : sessions_) {
    const Forecast* forecast = forecast_of(*other);
    if (forecast == nullptr || forecast->target != target || other.get() == &s) continue;
    if (other->role != Role::kServing || !other->resumable || other->executing) continue;
    foreseen.push_back(user_of(*other, std::max(forecast->at, ports.clock->now())));
  }
  std::sort(foreseen.begin(), foreseen.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  const plan::GroupRates rates{link->value / static_cast<double>(geometry.bytes_per_token()),
                               prefill_rate};
  auto& group = peers_[target].group;
  if (!group) group.emplace();
  // All users' parts grow by a step of the common split, so it is as fine as rows can be attached.
  const auto& can = ports.engine->info().capabilities;
  const plan::CthoSolution solution =
      group->decide(user_of(s, ports.clock->now()), foreseen, rates,
                    std::max<TokenPosition>(can.attach_granularity, 1));
  return plan::CommonSplit{static_cast<TokenPosition>(solution.split), Seconds(solution.seconds)};
}

}  // namespace pallas::node
