#include "sim/invariants.h"

#include <algorithm>
#include <utility>

#include "node/session.h"
#include "sim/fault_trace.h"

namespace pallas::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kViolationsKept = 20;
// What happens by a clock may happen this much later: steps end, frames arrive.
constexpr Duration kSlack = 400ms;
// Two gNBs that can talk settle within this time who decodes.
constexpr Duration kTwoAtMost = 2500ms;
// A stop reaches whoever computes the session within this time.
constexpr Duration kStopWithin = 3s;

// The source of the same attempt still counts on it.
bool relies_on(const node::Session* source, const Attempt& attempt) {
  using State = session::SourceHandover::State;
  if (source == nullptr || !source->outgoing || source->outgoing->attempt() != attempt) {
    return false;
  }
  const State state = source->outgoing->state();
  return state == State::kRequested || state == State::kPreparing;
}

// The attempt that a target's frames name, if this is one.
const Attempt* attempt_of(const wire::Message& message) {
  return std::visit(
      [](const auto& m) -> const Attempt* {
        using M = std::decay_t<decltype(m)>;
        if constexpr (std::is_same_v<M, wire::TokenUpdate>) {
          return m.attempt ? &*m.attempt : nullptr;
        } else if constexpr (std::is_same_v<M, wire::HandoverRequest> ||
                             std::is_same_v<M, wire::LeaseRenew> ||
                             std::is_same_v<M, wire::KvBlock>) {
          return &m.attempt;
        } else {
          return nullptr;
        }
      },
      message);
}

}  // namespace

Invariants::Invariants(const FaultScript& script)
    : script_(script),
      ues_(script.ues.size()),
      seen_(static_cast<std::size_t>(script.gnbs) * ues_),
      whole_(ues_),
      clean_since_(static_cast<std::size_t>(script.gnbs) * static_cast<std::size_t>(script.gnbs)),
      disturbed_at_(static_cast<std::size_t>(script.gnbs)),
      misused_(static_cast<std::size_t>(script.gnbs)) {}

void Invariants::fail(int gnb, int ue, std::string what) {
  if (violations_.size() >= kViolationsKept) return;
  violations_.push_back({world_->clock.now(), std::move(what), ue, gnb});
  if (trace) trace(gnb, ue, "VIOLATION: " + violations_.back().what);
}

int Invariants::ue_of(const SessionId& session) const {
  if (session.value.empty()) return -1;
  const Ue* const ue = world_->find(session);
  return ue == nullptr ? -1 : static_cast<int>(ue->place);
}

FaultUe& Invariants::ue(int place) const {
  return static_cast<FaultUe&>(*world_->ues()[static_cast<std::size_t>(place)]);
}

int Invariants::index_of(const NodeId& name) const {
  const auto& names = world_->names();
  const auto found = std::find(names.begin(), names.end(), name.value);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

void Invariants::link_clean(int from, int to, bool clean) {
  auto& since = clean_since_[static_cast<std::size_t>(from * script_.gnbs + to)];
  if (!clean) {
    since = {};
  } else if (since == TimePoint{}) {
    since = world_->clock.now() + Duration(1);  // never {}
  }
}

void Invariants::node_disturbed(int gnb) {
  disturbed_at_[static_cast<std::size_t>(gnb)] = world_->clock.now() + Duration(1);
}

bool Invariants::clean_for(int x, int y, Duration span) const {
  const auto held = [&](int from, int to) {
    const TimePoint since = clean_since_[static_cast<std::size_t>(from * script_.gnbs + to)];
    return since != TimePoint{} && world_->clock.now() - since >= span;
  };
  return held(x, y) && held(y, x);
}

bool Invariants::undisturbed_for(int gnb, Duration span) const {
  const std::string& name = world_->names()[static_cast<std::size_t>(gnb)];
  if (!world_->alive(name) || world_->paused(name)) return false;
  // A chunk, or the load of the model, that began on a slowed machine outlasts the slowing, and no
  // node can end it.
  const auto& engine = static_cast<const engine::FakeEngine&>(world_->engine(name));
  const TimePoint at =
      std::max(disturbed_at_[static_cast<std::size_t>(gnb)], engine.slowed_until());
  return at == TimePoint{} || world_->clock.now() - at >= span;
}

// --- what a node is told, and what it says ---

void Invariants::before(int gnb, const SessionId& session, std::string_view what,
                        const wire::Message* message) {
  const auto note = [&](int place) {
    Seen& r = seen(gnb, place);
    r.touched = pass_;
    const node::Session* s = world_->node(world_->names()[static_cast<std::size_t>(gnb)])
                                 .find_session(ue(place).session);
    r.role_before = s == nullptr ? kNoRole : static_cast<int>(s->role);
    const bool frozen = s != nullptr && s->role == node::Role::kFrozen && s->slot;
    r.frozen_for = frozen ? index_of(s->holder) : -1;
    r.fenced = 0;
    r.stale_attach = what == "attach" && s != nullptr && ue(place).epoch <= s->epoch;
    if (s != nullptr && s->incoming && message != nullptr) {
      const Attempt* const named = attempt_of(*message);
      if (named != nullptr && *named == s->incoming->attempt()) r.named = world_->clock.now();
    }
  };
  const int place = ue_of(session);
  if (place >= 0) {
    note(place);
  } else if (session.value.empty()) {
    for (int i = 0; i < static_cast<int>(world_->ues().size()); ++i) note(i);
  }
  if (trace) trace(gnb, place, "<- " + std::string(what));
}

void Invariants::after(int gnb, const SessionId& session, std::string_view what,
                       const wire::Message* message) {
  const int only = ue_of(session);
  const auto look = [&](int place) {
    Seen& r = seen(gnb, place);
    const node::Session* s = world_->node(world_->names()[static_cast<std::size_t>(gnb)])
                                 .find_session(ue(place).session);
    const int role = s == nullptr ? kNoRole : static_cast<int>(s->role);
    coverage_.role(r.role_before, session_event(what, r.stale_attach), role);
    if (what == "attach" && s != nullptr) r.attached = true;
    if (what == "execution") r.alone_since = world_->clock.now();  // until now it was here
    if (s == nullptr || message == nullptr) return;
    const Attempt* const named = attempt_of(*message);
    if (named != nullptr && s->incoming && *named == s->incoming->attempt()) {
      r.named = world_->clock.now();
    }
    // Rule 4: whoever takes the session from a frozen source takes it from the one before.
    if (std::holds_alternative<wire::RetrieveUeContextRequest>(*message) && r.frozen_for >= 0 &&
        s->role == node::Role::kFrozen && r.frozen_for != gnb) {
      const int holder = index_of(s->holder);
      if (holder != r.frozen_for && (r.fenced >> r.frozen_for & 1) == 0) {
        fail(gnb, place, "a frozen source gave the session away and fenced nobody");
      }
    }
    const auto* const cancel = std::get_if<wire::HandoverCancel>(message);
    const auto preparing = static_cast<int>(node::Role::kPreparing);
    if (cancel != nullptr && role == preparing && s->incoming &&
        s->incoming->attempt() == cancel->attempt) {
      fail(gnb, place, "a cancelled preparation goes on");
    }
  };
  if (only >= 0) {
    look(only);
  } else if (session.value.empty()) {
    for (int i = 0; i < static_cast<int>(world_->ues().size()); ++i) look(i);
  }
}

void Invariants::on_sent(int from, int to, const wire::Message& message) {
  const auto told = [&](const SessionId& session, const Attempt& attempt, std::size_t ids) {
    const int place = ue_of(session);
    if (place < 0) return;
    Seen& r = seen(from, place);
    if (r.told_attempt != attempt) r.told = 0;
    r.told_attempt = attempt;
    r.told = std::max(r.told, static_cast<TokenPosition>(ids));
  };
  if (const auto* m = std::get_if<wire::HandoverRequest>(&message)) {
    told(m->session, m->attempt, m->snapshot.tokens.size());
  } else if (const auto* update = std::get_if<wire::TokenUpdate>(&message)) {
    if (update->attempt)
      told(update->session, *update->attempt, update->first + update->ids.size());
  } else if (const auto* response = std::get_if<wire::RetrieveUeContextResponse>(&message)) {
    told(response->session, response->attempt, response->snapshot.tokens.size());
  } else if (const auto* stale = std::get_if<wire::StaleEpoch>(&message)) {
    if (const int place = ue_of(stale->session); place >= 0) {
      seen(from, place).fenced |= std::uint64_t{1} << to;
    }
  } else if (std::holds_alternative<wire::HandoverSuccess>(message)) {
    ++handovers_;
  }
  if (!trace) return;
  const int place = std::visit(
      [&](const auto& m) {
        if constexpr (requires { m.session; }) {
          return ue_of(m.session);
        } else {
          return -1;
        }
      },
      message);
  trace(from, place,
        "-> " + world_->names()[static_cast<std::size_t>(to)] + " " + summary_of(message));
}

void Invariants::on_emitted(int gnb, const Ue& to, const node::TokenEvent& token) {
  const int place = static_cast<int>(to.place);
  Whole& whole = whole_[to.place];
  const auto [emitter, fresh] = whole.emitters.emplace(token.epoch, gnb);
  if (!fresh && emitter->second != gnb) {
    fail(gnb, place,
         "epoch " + std::to_string(token.epoch.value) + " has two emitters, the other is " +
             world_->names()[static_cast<std::size_t>(emitter->second)]);
  }
  if (trace) {
    trace(gnb, place,
          "writes index " + std::to_string(token.index) + " id " + std::to_string(token.id) +
              " of " + token.by.value + ", epoch " + std::to_string(token.epoch.value));
  }
  const std::string& name = world_->names()[static_cast<std::size_t>(gnb)];
  const node::Session* s = world_->node(name).find_session(to.session);
  if (s == nullptr) return;
  Seen& r = seen(gnb, place);
  const FaultUe& client = ue(place);
  // What was delivered is never contradicted: whoever writes to the UE has its ids.
  if (std::exchange(r.attached, false) && client.at.value == name) {
    const auto all = s->log.ids();
    const TokenPosition prompt = s->log.prompt_tokens();
    for (std::size_t i = 0; i < client.ids.size() && prompt + i < all.size(); ++i) {
      if (all[prompt + i] == client.ids[i]) continue;
      fail(gnb, place, "index " + std::to_string(i) + " was delivered with another id before");
      break;
    }
  }
  // Rule 5: the target is told before the UE.
  using State = session::SourceHandover::State;
  if (s->role == node::Role::kServing && s->outgoing && s->outgoing->attempt() == r.told_attempt &&
      (s->outgoing->state() == State::kRequested || s->outgoing->state() == State::kPreparing ||
       s->outgoing->state() == State::kClaimed) &&
      s->log.prompt_tokens() + token.index >= r.told) {
    fail(gnb, place,
         "index " + std::to_string(token.index) + " was written before the target was told");
  }
}

// --- after every event ---

void Invariants::after_event() {
  ++pass_;
  for (int gnb = 0; gnb < script_.gnbs; ++gnb) {
    const std::string& name = world_->names()[static_cast<std::size_t>(gnb)];
    if (!world_->alive(name)) {
      for (std::size_t i = 0; i < ues_; ++i) seen(gnb, static_cast<int>(i)) = {};
      continue;
    }
    std::size_t slots = 0;
    std::uint64_t staged = 0;
    world_->node(name).for_each_session([&](const node::Session& s) {
      const int place = ue_of(s.id);
      if (place < 0) return fail(gnb, -1, "a session that nobody opened");
      Seen& r = seen(gnb, place);
      r.pass = pass_;
      slots += s.slot ? 1 : 0;
      slots += s.back_fill && s.back_fill->slot && s.back_fill->slot != s.slot ? 1 : 0;
      staged += s.staged.bytes();
      check_session(gnb, place, s, r);
    });
    for (int place = 0; place < static_cast<int>(ues_); ++place) {
      Seen& r = seen(gnb, place);
      if (r.pass == pass_ || r.role == kNoRole) continue;
      check_gone(gnb, place, r, kNoRole);
      note_states(gnb, place, nullptr, r);
    }
    auto& engine = static_cast<engine::FakeEngine&>(world_->engine(name));
    if (engine.live_slots() != slots) {
      fail(gnb, -1,
           std::to_string(engine.live_slots()) + " slots are taken, sessions have " +
               std::to_string(slots));
    }
    if (staged > script_.node.max_staged_bytes) fail(gnb, -1, "more is staged than may be");
    auto& misused = misused_[static_cast<std::size_t>(gnb)];
    if (engine.stats().misused > misused) {
      fail(gnb, -1, "the engine was given a wrong command: " + engine.last_failure());
    }
    misused = engine.stats().misused;
  }
  for (int place = 0; place < static_cast<int>(world_->ues().size()); ++place) {
    check_whole(place);
    check_ue(place);
  }
}

void Invariants::note_states(int gnb, int place, const node::Session* s, Seen& r) {
  const int role = s == nullptr ? kNoRole : static_cast<int>(s->role);
  const int source =
      s != nullptr && s->outgoing ? static_cast<int>(s->outgoing->state()) : kNoState;
  const session::TargetHandover* target = nullptr;
  if (s != nullptr) target = s->back_fill ? s->back_fill->target.get() : s->incoming.get();
  const int reached = target != nullptr ? static_cast<int>(target->state()) : kNoState;
  const auto changed = [&](StateChange::Table table, int state) {
    if (on_change && state != kNoState) on_change({table, state, gnb, place});
  };
  if (role != r.role) {
    if (r.touched + 1 != pass_) coverage_.role(r.role, SessionEvent::kOther, role);
    if (trace) {
      trace(gnb, place, std::string(role_name(r.role)) + " => " + std::string(role_name(role)));
    }
    r.role = role;
    changed(StateChange::Table::kRole, role);
  }
  if (source != r.source) {
    coverage_.source(r.source, source);
    r.source = source;
    changed(StateChange::Table::kSource, source);
  }
  if (reached != r.target) {
    coverage_.target(r.target, reached);
    r.target = reached;
    changed(StateChange::Table::kTarget, reached);
  }
  r.incoming = s != nullptr && s->incoming ? s->incoming->attempt() : Attempt{};
  r.incoming_from = s != nullptr && s->incoming ? s->incoming->source() : NodeId();
}

void Invariants::check_session(int gnb, int place, const node::Session& s, Seen& r) {
  using node::Role;
  if (r.role != kNoRole && s.epoch < r.epoch) fail(gnb, place, "its epoch went back");
  r.epoch = s.epoch;
  const int role = static_cast<int>(s.role);
  if (role != r.role) {
    check_gone(gnb, place, r, role);
    // It decodes on all of [0, n) but where its plan says otherwise.
    if (s.role == Role::kServing && r.role == static_cast<int>(Role::kArriving) && !s.back_fill &&
        s.front + 1 < s.log.size()) {
      fail(gnb, place,
           "it went on with KV of " + std::to_string(s.front) + " positions of " +
               std::to_string(s.log.size() - 1));
    }
  }
  const bool log_only = s.role == Role::kMirror || s.role == Role::kMoved ||
                        s.role == Role::kFinished || s.role == Role::kRelaying;
  if (log_only && s.slot) fail(gnb, place, "a role without KV has a slot");
  if (log_only && !s.staged.empty()) fail(gnb, place, "a role without KV has rows staged");
  if (!world_->paused(world_->names()[static_cast<std::size_t>(gnb)])) check_clocks(gnb, place, s);
  check_alone(gnb, place, s, r);
  note_states(gnb, place, &s, r);
}

// Everything prepared, frozen or retained ends by its own clock.
void Invariants::check_clocks(int gnb, int place, const node::Session& s) {
  using node::Role;
  const TimePoint now = world_->clock.now();
  const node::NodeConfig& n = script_.node;
  const auto runs = [&](const Timer& timer, TimePoint limit, const char* what) {
    if (!timer.armed()) {
      fail(gnb, place, std::string(what) + " has no end");
    } else if (timer.when() > limit) {
      fail(gnb, place, std::string(what) + " lasts too long");
    }
  };
  switch (s.role) {
    case Role::kPreparing:
      runs(s.lease, std::max(now + n.lease, s.expected_at + n.grace), "a preparation");
      break;
    case Role::kFrozen:
      runs(s.loan, now + n.frozen, "frozen KV");
      break;
    case Role::kRetained:
      runs(s.loan, now + std::max(n.retain, n.flap), "retained KV");
      break;
    case Role::kMirror:
    case Role::kMoved:
    case Role::kFinished:
      runs(s.log_life, now + n.resume, "a log");
      break;
    case Role::kArriving:
    case Role::kRelaying:
    case Role::kServing:
      break;
  }
}

// A gNB that the UE has left neither computes nor waits for longer than `grace`.
void Invariants::check_alone(int gnb, int place, const node::Session& s, Seen& r) {
  using node::Role;
  const TimePoint now = world_->clock.now();
  const bool live =
      s.role == Role::kServing || s.role == Role::kArriving || s.role == Role::kRelaying;
  const bool lends = s.relay_to.has_value();
  const Duration limit = script_.node.grace + kSlack;
  if (!live || s.stream || lends || !undisturbed_for(gnb, limit)) {
    r.alone_since = now;
  } else if (now - r.alone_since > limit) {
    fail(gnb, place, std::string(node::to_string(s.role)) + " without a UE for too long");
    r.alone_since = now;
  }
  if (!live || !lends || !undisturbed_for(gnb, limit)) {
    r.lent_since = now;
    return;
  }
  const int relay = index_of(*s.relay_to);
  const std::string& name = world_->names()[static_cast<std::size_t>(relay)];
  const node::Session* there =
      world_->alive(name) ? world_->node(name).find_session(s.id) : nullptr;
  const bool relays = there != nullptr &&
                      (there->role == Role::kRelaying || there->role == Role::kArriving) &&
                      there->stream;
  if (relays) {
    r.lent_since = now;
  } else if (now - r.lent_since > 2 * script_.node.grace + script_.node.peer_answer + 2 * kSlack) {
    fail(gnb, place, "it decodes for a relay that is none any more");
    r.lent_since = now;
  }
}

// A preparation that ended by its clock: nobody may have counted on it.
void Invariants::check_gone(int gnb, int place, Seen& r, int role) {
  const bool dropped = r.role == static_cast<int>(node::Role::kPreparing) &&
                       (role == static_cast<int>(node::Role::kMirror) || role == kNoRole);
  if (!dropped || r.touched + 1 == pass_) return;
  const Duration lease = script_.node.lease;
  if (!undisturbed_for(gnb, lease + kSlack)) return;
  auto& engine = static_cast<engine::FakeEngine&>(
      world_->engine(world_->names()[static_cast<std::size_t>(gnb)]));
  if (engine.stats().failures > 0) return;
  if (world_->clock.now() - r.named < lease) {
    fail(gnb, place, "a preparation ended before its lease");
    return;
  }
  const int source = index_of(r.incoming_from);
  if (source < 0 || !clean_for(gnb, source, lease + kSlack)) return;
  if (!undisturbed_for(source, lease + kSlack)) return;
  const std::string& name = world_->names()[static_cast<std::size_t>(source)];
  if (relies_on(world_->node(name).find_session(ue(place).session), r.incoming)) {
    fail(gnb, place, "a lease ran out that its source counts on");
  }
}

// Over all gNBs: one decodes, and nobody after a stop.
void Invariants::check_whole(int place) {
  using node::Role;
  const TimePoint now = world_->clock.now();
  std::array<int, 2> who{-1, -1};
  int decoding = 0, live = -1;
  for (int gnb = 0; gnb < script_.gnbs; ++gnb) {
    const Seen& r = seen(gnb, place);
    const bool serves = r.role == static_cast<int>(Role::kServing);
    if (serves || r.role == static_cast<int>(Role::kArriving)) live = gnb;
    if (!serves) continue;
    if (decoding < 2) who[static_cast<std::size_t>(decoding)] = gnb;
    ++decoding;
  }
  Whole& whole = whole_[static_cast<std::size_t>(place)];
  const bool quiet = decoding >= 2 && clean_for(who[0], who[1], kTwoAtMost) &&
                     undisturbed_for(who[0], kTwoAtMost) && undisturbed_for(who[1], kTwoAtMost);
  if (!quiet) {
    whole.two_since = now;
  } else if (now - whole.two_since > kTwoAtMost + script_.node.grace) {
    fail(who[0], place,
         "two gNBs decode it, the other is " + world_->names()[static_cast<std::size_t>(who[1])]);
    whole.two_since = now;
  }
  const FaultUe& client = ue(place);
  const bool calm = !script_.faulty || (healed_ && now - *healed_ > kStopWithin);
  if (client.stopped() && calm && now - client.stopped_at > kStopWithin && live >= 0 &&
      (!healed_ || client.stopped_at > *healed_ || !script_.faulty)) {
    fail(live, place, "it was stopped and goes on");
  }
}

void Invariants::check_ue(int place) {
  FaultUe& client = ue(place);
  if (client.failed && !script_.faulty && !client.refused &&
      client.failed->code != Errc::kResourceExhausted) {
    fail(-1, place, "it failed without a fault: " + client.failed->describe());
    client.failed.reset();
  }
  if (client.finished && client.finished->reason == wire::FinishReason::kCancelled &&
      !client.stopped() && client.longest_alone < script_.node.grace) {
    fail(-1, place, "it was ended though its UE had not left it");
    client.finished->reason = wire::FinishReason::kStop;  // said once
  }
}

void Invariants::check_nothing_left() {
  for (int gnb = 0; gnb < script_.gnbs; ++gnb) {
    const std::string& name = world_->names()[static_cast<std::size_t>(gnb)];
    if (!world_->alive(name)) continue;
    auto& engine = static_cast<engine::FakeEngine&>(world_->engine(name));
    if (engine.live_slots() != 0) {
      int whose = -1;
      world_->node(name).for_each_session([&](const node::Session& s) {
        if (s.slot) whose = ue_of(s.id);
      });
      fail(gnb, whose, std::to_string(engine.live_slots()) + " slots were never given back");
    }
    if (world_->node(name).stats().staged_bytes != 0) fail(gnb, -1, "rows are staged for nobody");
    if (!engine.consistent()) fail(gnb, -1, "the engine's books do not agree");
  }
}

}  // namespace pallas::sim
