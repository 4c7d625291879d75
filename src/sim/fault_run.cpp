#include "sim/fault_run.h"

#include <algorithm>
#include <utility>

#include "base/random.h"
#include "engine/fake_text.h"
#include "node/session.h"

namespace pallas::sim {
namespace {

using namespace std::chrono_literals;
using mobility::HandoverPhase;

// How often links are tried again and UEs look at their streams.
constexpr Duration kTick = 100ms;
// A UE that was not attached tries again after this time and up to so much more.
constexpr Duration kRetryAfter = 150ms;
constexpr Duration kRetrySpread = 400ms;
// Without a frame for so long an end of a link gives it up.
constexpr Duration kLinkPatience = 2s;
// A UE that hears neither token nor comment for so long asks elsewhere.
constexpr Duration kUePatience = 1600ms;
// A UE that stopped its session waits for its end for so long.
constexpr Duration kStopPatience = 5s;

class Run {
 public:
  Run(const FaultScript& script, const FaultOptions& options)
      : script_(script),
        options_(options),
        rules_(script),
        world_(settings()),
        links_(static_cast<std::size_t>(script.gnbs * script.gnbs)) {
    rules_.watch(world_);
    if (options.trace) {
      rules_.trace = [this](int gnb, int ue, std::string what) { note(gnb, ue, std::move(what)); };
    }
    if (options.trigger) {
      rules_.on_change = [this](const StateChange& change) { look_at(change); };
    }
  }

  FaultOutcome play();

 private:
  struct LinkState {
    TimePoint broken_until{};
    TimePoint told_until{};     // one end has not seen the break
    TimePoint stalled_since{};  // {}: frames flow
    int slowed = 0;
  };

  WorldSettings settings();
  VirtualClock& clock() { return world_.clock; }
  const std::string& name(int gnb) const { return world_.names()[static_cast<std::size_t>(gnb)]; }
  LinkState& link(int x, int y) { return links_[static_cast<std::size_t>(x * script_.gnbs + y)]; }
  bool is_up(int x, int y) { return world_.network().is_up(x, y); }
  engine::FakeEngine& engine(int gnb) {
    return static_cast<engine::FakeEngine&>(world_.engine(name(gnb)));
  }
  void note(int gnb, int ue, std::string what) {
    if (options_.trace) outcome_.trace.push_back({clock().now(), gnb, ue, std::move(what)});
  }
  // Runs `action` later; faults that end when everything was healed already end without effect.
  template <class Action>
  void later(Duration after, Action action) {
    clock().schedule_after(after, std::move(action));
  }

  void run_until(TimePoint when);
  void open(std::size_t place);
  void apply(const FaultEvent& event);
  bool apply_to_ue(const FaultEvent& event, FaultUe& ue);
  bool apply_to_link(const FaultEvent& event);
  bool apply_to_gnb(const FaultEvent& event);
  bool cut(int x, int y, Duration span, Duration seen_later);
  bool kill(int gnb, Duration span);
  bool pause(int gnb, Duration span, bool timers_first);
  bool stall(int from, int to, Duration span);
  void judge_link(int from, int to);
  void join_links();
  void tick();
  void follow(FaultUe& ue);
  void attach(FaultUe& ue, int gnb);
  int some_alive(int wanted) const;
  FaultUe& ue(std::size_t place) { return static_cast<FaultUe&>(*world_.ues()[place]); }
  void heal();
  void check_progress();
  void end_sessions();
  void check_waste();
  void look_at(const StateChange& change);
  void strike(const StateChange& change);

  const FaultScript& script_;
  const FaultOptions& options_;
  FaultOutcome outcome_;
  Invariants rules_;
  World world_;
  std::vector<LinkState> links_;
  bool healed_ = false;
};

WorldSettings Run::settings() {
  WorldSettings s;
  for (int i = 0; i < script_.gnbs; ++i) s.gnbs.push_back({"gnb-" + std::to_string(i), {}, {}});
  s.scheme = script_.scheme;
  s.network = script_.network;
  s.node = script_.node;
  s.radio_latency = script_.radio_latency;
  s.check_codec = script_.check_codec;
  s.keep_arrivals = false;
  s.seed = script_.seed;
  s.faulty = true;
  s.observer = &rules_;
  s.make_engine = [this](Clock& clock) {
    return std::make_unique<engine::FakeEngine>(clock, script_.engine);
  };
  s.make_text = [] { return std::make_unique<engine::FakeTextCodec>(); };
  s.make_ue = [] { return std::make_unique<FaultUe>(); };
  return s;
}

FaultOutcome Run::play() {
  join_links();
  for (std::size_t i = 0; i < script_.ues.size(); ++i) {
    // In order of their places, whatever their times: a UE that opens later has a later place.
    clock().schedule(TimePoint(script_.ues[i].opens_at), [this, i] { open(i); });
  }
  for (const FaultEvent& event : script_.events) {
    clock().schedule(TimePoint(event.at), [this, &event] { apply(event); });
  }
  clock().schedule_after(kTick, [this] { tick(); });
  run_until(TimePoint(script_.faults_end));
  heal();
  run_until(TimePoint(script_.faults_end + script_.settle));
  check_progress();
  end_sessions();
  run_until(clock().now() + script_.drain);
  rules_.check_nothing_left();
  if (!script_.faulty) check_waste();
  for (const std::string& fault : world_.network().codec_faults()) rules_.fail(-1, -1, fault);
  outcome_.violations = rules_.violations();
  outcome_.coverage = rules_.coverage();
  outcome_.handovers = rules_.handovers();
  for (const auto& ue : world_.ues()) outcome_.tokens += ue->received();
  outcome_.events = clock().events_run();
  outcome_.span = clock().now().time_since_epoch();
  return std::move(outcome_);
}

void Run::run_until(TimePoint when) {
  bool over = false;
  clock().schedule(when, [&over] { over = true; });
  while (!over && rules_.violations().empty()) {
    clock().run_next();
    rules_.after_event();
  }
}

// --- UEs ---

void Run::open(std::size_t place) {
  // Places follow the order of opening; the settings are those of this one.
  const FaultUeSettings& settings = script_.ues[place];
  const int gnb = some_alive(settings.gnb);
  if (gnb < 0) return;
  UeSettings request;
  request.name = "ue-" + std::to_string(world_.ues().size() + 1);
  request.prompt_tokens = settings.prompt;
  request.max_tokens = settings.max_tokens;
  request.max_token_rate = settings.rate;
  request.consistency = settings.consistency;
  FaultUe* made = nullptr;
  request.adjust = [&](wire::SessionParams& p) {
    made = &ue(world_.ues().size() - 1);
    made->settings = &settings;
    made->breach = [this, place = static_cast<int>(made->place)](const std::string& what) {
      rules_.fail(-1, place, what);
    };
    for (TokenPosition i = 0; i < settings.prompt; ++i) {
      made->prompt_ids.push_back(static_cast<TokenId>(
          engine::fake_id::kFirstWord + mix(mix(script_.seed, made->place), i) % 900));
    }
    p.ignore_eos = script_.engine.end_probability == 0;
    if (settings.greedy) p.temperature = 0;
    if (settings.consistency == wire::Consistency::kExact || script_.one_text()) {
      made->params = p;
      find_reference(*made, script_.engine);
    }
    made->brings_context = settings.brings_context;
    made->cell = gnb;
    made->opened = true;
    made->opened_at = made->last_sign = made->alone_since = clock().now();
  };
  world_.open(name(gnb), request);
  if (made->failed && made->received() == 0) {
    made->refused = true;  // the gNB has no room
    made->failed.reset();
  }
}

int Run::some_alive(int wanted) const {
  for (int i = 0; i < script_.gnbs; ++i) {
    const int gnb = (wanted + i) % script_.gnbs;
    if (world_.alive(name(gnb)) && !world_.paused(name(gnb))) return gnb;
  }
  return -1;
}

void Run::attach(FaultUe& ue, int gnb) {
  ue.executing = false;
  const auto attached = world_.attach(ue, name(gnb));
  const std::uint64_t more = mix(mix(script_.seed, "retry"), ue.epoch.value);
  ue.retry_at =
      clock().now() + kRetryAfter + std::chrono::milliseconds(more % (kRetrySpread / 1ms));
  ue.last_sign = clock().now();
  if (attached) {
    note(gnb, static_cast<int>(ue.place), "UE attached, epoch " + std::to_string(ue.epoch.value));
    return;
  }
  note(gnb, static_cast<int>(ue.place), "UE not attached: " + attached.error().describe());
  const Errc code = attached.error().code;
  if (code == Errc::kResourceExhausted) ++ue.turned_away;
  if (code == Errc::kNotFound || code == Errc::kInvalidArgument) ue.brings_context = true;
}

// What a client does by itself: it comes back when its stream is gone or silent.
void Run::follow(FaultUe& ue) {
  if (!ue.opened || ue.over()) return;
  const TimePoint now = clock().now();
  if (ue.failed) {
    note(-1, static_cast<int>(ue.place), "the session failed: " + ue.failed->describe());
    if (ue.failed->code == Errc::kResourceExhausted) ++ue.turned_away;
    if (ue.failed->code == Errc::kInvalidArgument) ue.brings_context = true;
    ue.failed.reset();
  }
  if (ue.keep_alives != ue.comments) {
    ue.comments = ue.keep_alives;
    ue.last_sign = now;
  }
  const int at = world_.index(ue.at.value);
  const bool served = ue.stream.value != 0 && !ue.executing && world_.alive(ue.at.value) &&
                      !world_.paused(name(at));
  if (served) ue.alone_since = now;
  ue.longest_alone = std::max(ue.longest_alone, now - ue.alone_since);
  // Whoever stopped it does not stay for long.
  if (ue.stopped() && ue.stream.value != 0 && now - ue.stopped_at > kStopPatience) {
    world_.leave(ue);
  }
  if (ue.away || ue.stopped()) return;
  if (ue.stream.value != 0 && now - ue.last_sign > kUePatience) {
    note(at, static_cast<int>(ue.place), "UE gives up waiting");
    world_.leave(ue);
  }
  if (ue.stream.value != 0 || now < ue.retry_at) return;
  // Where its cell's gNB is down or has no room, another one may answer.
  const int gnb = some_alive((ue.cell + ue.turned_away) % script_.gnbs);
  if (gnb >= 0) attach(ue, gnb);
}

void Run::tick() {
  if (script_.faulty) join_links();
  for (std::size_t i = 0; i < world_.ues().size(); ++i) follow(ue(i));
  clock().schedule_after(kTick, [this] { tick(); });
}

bool Run::apply_to_ue(const FaultEvent& e, FaultUe& ue) {
  const int at = world_.index(ue.at.value);
  const std::string target = name(e.b);
  const auto ran = [&](HandoverPhase phase, int source) {
    if (phase != HandoverPhase::kExecution) ue.executing = false;
    if (source == e.b && phase != HandoverPhase::kReestablished) return false;
    world_.ran(ue, phase, name(source), target);
    return true;
  };
  switch (e.kind) {
    case FaultKind::kPredict:
      world_.predict(ue, {.target = target, .in = e.span, .valid = e.delay});
      return true;
    case FaultKind::kWithdraw:
      world_.withdraw(ue);
      return true;
    case FaultKind::kExecute:
      ue.left_from = at;
      ue.executing = e.b != at;
      return ran(HandoverPhase::kExecution, at);
    case FaultKind::kComplete:
      return ran(HandoverPhase::kCompleted, ue.left_from);
    case FaultKind::kReject:
      return ran(HandoverPhase::kRejected, ue.left_from);
    case FaultKind::kCallOff:
      return ran(HandoverPhase::kCancelled, ue.left_from);
    case FaultKind::kReestablish:
      return ran(HandoverPhase::kReestablished, at);
    case FaultKind::kArrive:
      ue.cell = e.b;
      ue.away = false;
      if (ue.stopped()) return false;
      if (world_.alive(target)) {
        attach(ue, e.b);
      } else {
        world_.leave(ue);
      }
      return true;
    case FaultKind::kLeave:
      ue.away = true;
      world_.leave(ue);
      return true;
    default:
      break;
  }
  if (world_.stop(ue, target)) ue.stopped_at = clock().now();
  return true;
}

// --- faults ---

void Run::apply(const FaultEvent& e) {
  bool done = false;
  if (!is_fault(e.kind)) {
    const auto place = static_cast<std::size_t>(e.ue);
    if (place < world_.ues().size() && ue(place).opened && !ue(place).over()) {
      note(-1, e.ue, describe(e));
      done = apply_to_ue(e, ue(place));
    }
  } else if (e.kind >= FaultKind::kKill) {
    note(e.a, -1, describe(e));
    done = apply_to_gnb(e);
  } else {
    note(e.a, -1, describe(e));
    done = apply_to_link(e);
  }
  if (done) ++outcome_.injected[static_cast<std::size_t>(e.kind)];
}

void Run::judge_link(int from, int to) {
  const LinkState& state = link(from, to);
  rules_.link_clean(from, to,
                    is_up(from, to) && state.stalled_since == TimePoint{} && state.slowed == 0);
}

bool Run::cut(int x, int y, Duration span, Duration seen_later) {
  const TimePoint until = clock().now() + span;
  for (LinkState* state : {&link(x, y), &link(y, x)}) {
    state->broken_until = std::max(state->broken_until, until);
  }
  if (!is_up(x, y)) return false;
  link(x, y).told_until = link(y, x).told_until = clock().now() + seen_later;
  world_.cut(name(x), name(y), seen_later);
  judge_link(x, y);
  judge_link(y, x);
  return true;
}

bool Run::stall(int from, int to, Duration span) {
  if (!is_up(from, to) || link(from, to).stalled_since != TimePoint{}) return false;
  link(from, to).stalled_since = clock().now();
  world_.network().set_stalled(from, to, true);
  judge_link(from, to);
  later(span, [this, from, to] {
    link(from, to).stalled_since = {};
    world_.network().set_stalled(from, to, false);
    judge_link(from, to);
  });
  return true;
}

bool Run::apply_to_link(const FaultEvent& e) {
  switch (e.kind) {
    case FaultKind::kCut:
      return cut(e.a, e.b, e.span, e.delay);
    case FaultKind::kStall:
      return stall(e.a, e.b, e.span);
    case FaultKind::kSlow: {
      const auto normal = std::get<FixedRate>(script_.network.rate).rate;
      const int a = e.a, b = e.b;
      ++link(a, b).slowed;
      world_.network().set_control_latency(a, b, script_.network.control_latency + e.delay);
      world_.network().set_rate(a, b, BytesPerSecond(normal.value * e.factor));
      judge_link(a, b);
      later(e.span, [this, a, b, normal] {
        if (--link(a, b).slowed > 0) return;
        world_.network().set_control_latency(a, b, script_.network.control_latency);
        world_.network().set_rate(a, b, normal);
        judge_link(a, b);
      });
      return true;
    }
    default:
      break;
  }
  world_.network().copy_next(e.a, e.b, {e.count, e.delay, e.kind == FaultKind::kForeign});
  return true;
}

bool Run::kill(int gnb, Duration span) {
  if (!world_.alive(name(gnb))) return false;
  world_.kill(name(gnb));
  rules_.node_disturbed(gnb);
  for (int other = 0; other < script_.gnbs; ++other) {
    if (other == gnb) continue;
    judge_link(gnb, other);
    judge_link(other, gnb);
  }
  later(span, [this, gnb] {
    if (world_.alive(name(gnb))) return;
    note(gnb, -1, "begins anew");
    world_.restart(name(gnb));
    rules_.node_disturbed(gnb);
  });
  return true;
}

bool Run::pause(int gnb, Duration span, bool timers_first) {
  if (!world_.alive(name(gnb)) || world_.paused(name(gnb))) return false;
  world_.pause(name(gnb));
  rules_.node_disturbed(gnb);
  // The others notice after a while; it sees that when it goes on.
  if (span > kLinkPatience) {
    later(kLinkPatience, [this, gnb] {
      if (!world_.paused(name(gnb))) return;
      for (int other = 0; other < script_.gnbs; ++other) {
        if (other != gnb) cut(gnb, other, 0s, 0s);
      }
    });
  }
  later(span, [this, gnb, timers_first] {
    if (!world_.paused(name(gnb))) return;
    note(gnb, -1, "goes on");
    rules_.node_disturbed(gnb);
    world_.wake(name(gnb), timers_first);
  });
  return true;
}

bool Run::apply_to_gnb(const FaultEvent& e) {
  if (!world_.alive(name(e.a))) return false;
  const int gnb = e.a;
  switch (e.kind) {
    case FaultKind::kKill:
      return kill(gnb, e.span);
    case FaultKind::kPause:
      return pause(gnb, e.span, e.count != 0);
    case FaultKind::kRefuse:
      engine(gnb).refuse_reservations(true);
      later(e.span, [this, gnb] {
        if (world_.alive(name(gnb))) engine(gnb).refuse_reservations(false);
      });
      return true;
    case FaultKind::kDrag:
      engine(gnb).set_slow_factor(e.factor);
      rules_.node_disturbed(gnb);
      later(e.span, [this, gnb] {
        if (!world_.alive(name(gnb))) return;
        rules_.node_disturbed(gnb);
        engine(gnb).set_slow_factor(1);
      });
      return true;
    case FaultKind::kBreak:
      engine(gnb).fail_next(static_cast<engine::FakeEngine::CommandKind>(e.count),
                            Error{Errc::kInternal, "a planned failure"});
      return true;
    default:
      break;
  }
  engine(gnb).stop_answering();
  rules_.node_disturbed(gnb);
  later(e.span, [this, gnb] {
    if (!world_.alive(name(gnb))) return;
    rules_.node_disturbed(gnb);
    engine(gnb).resume_answering();
  });
  return true;
}

void Run::join_links() {
  const TimePoint now = clock().now();
  for (int x = 0; x < script_.gnbs; ++x) {
    for (int y = x + 1; y < script_.gnbs; ++y) {
      const bool stalled =
          link(x, y).stalled_since != TimePoint{} || link(y, x).stalled_since != TimePoint{};
      if (is_up(x, y)) {
        for (const auto& [from, to] : {std::pair(x, y), std::pair(y, x)}) {
          const TimePoint since = link(from, to).stalled_since;
          if (since != TimePoint{} && now - since > kLinkPatience && is_up(from, to)) {
            cut(to, from, 0s, 50ms);
          }
        }
        continue;
      }
      const bool ready = world_.alive(name(x)) && world_.alive(name(y)) &&
                         !world_.paused(name(x)) && !world_.paused(name(y));
      if (!ready || stalled || now < link(x, y).broken_until || now < link(x, y).told_until) {
        continue;
      }
      note(x, -1, "link to " + name(y) + " is up");
      world_.join(name(x), name(y));
      judge_link(x, y);
      judge_link(y, x);
    }
  }
}

void Run::heal() {
  if (!rules_.violations().empty()) return;
  note(-1, -1, "the faults are over");
  for (int gnb = 0; gnb < script_.gnbs; ++gnb) {
    if (!world_.alive(name(gnb))) {
      world_.restart(name(gnb));
      rules_.node_disturbed(gnb);
    }
    if (world_.paused(name(gnb))) {
      rules_.node_disturbed(gnb);
      world_.wake(name(gnb), false);
    }
    engine(gnb).refuse_reservations(false);
    engine(gnb).set_slow_factor(1);
    engine(gnb).resume_answering();
  }
  const auto rate = std::get<FixedRate>(script_.network.rate).rate;
  for (int x = 0; x < script_.gnbs; ++x) {
    for (int y = 0; y < script_.gnbs; ++y) {
      if (x == y) continue;
      LinkState& state = link(x, y);
      state.broken_until = {};
      state.stalled_since = {};
      state.slowed = 0;
      world_.network().set_stalled(x, y, false);
      world_.network().set_control_latency(x, y, script_.network.control_latency);
      world_.network().set_rate(x, y, rate);
      world_.network().copy_next(x, y, {});
      judge_link(x, y);
    }
  }
  for (std::size_t i = 0; i < world_.ues().size(); ++i) ue(i).away = false;
  healed_ = true;
  rules_.set_healed(clock().now());
}

// --- the end ---

void Run::check_progress() {
  for (std::size_t i = 0; i < world_.ues().size(); ++i) {
    FaultUe& client = ue(i);
    if (!client.opened || client.over() || client.stopped()) continue;
    if (client.last_token > TimePoint(script_.faults_end)) continue;
    if (client.turned_away > script_.gnbs) continue;  // all are full
    rules_.fail(world_.index(client.at.value), static_cast<int>(i),
                "no token came since the faults ended");
  }
}

// Half of the UEs stop their sessions, at any gNB; the others go without a word.
void Run::end_sessions() {
  if (!rules_.violations().empty()) return;
  for (std::size_t i = 0; i < world_.ues().size(); ++i) {
    FaultUe& client = ue(i);
    if (!client.opened || client.over() || client.stopped()) continue;
    client.away = true;
    const std::uint64_t draw = mix(mix(script_.seed, "end"), i);
    if (draw % 2 == 0) {
      const int gnb = static_cast<int>((draw >> 1) % static_cast<std::uint64_t>(script_.gnbs));
      note(gnb, static_cast<int>(i), "stop");
      if (world_.stop(client, name(gnb))) {
        client.stopped_at = clock().now();
        continue;
      }
    }
    note(-1, static_cast<int>(i), "leaves for good");
    world_.leave(client);
  }
}

// Eq. 10: a preparation in vain lasts no longer than T_max and what the prediction was off, which
// counts until it is withdrawn, replaced or out of date; a control period and a round trip later
// its cancel has arrived.
void Run::check_waste() {
  world_.finish();
  for (const PreparationRecord& p : world_.preparations()) {
    if (p.end != PreparationRecord::End::kCancelled || p.moved) continue;
    const double slack =
        to_seconds(script_.node.control_period + 2 * script_.network.control_latency + kTick)
            .count();
    const double ended = p.freed_s.value_or(p.ended_s);
    // The UE's last prediction before the end that its source was told. Where it renewed an earlier
    // one for that target, the preparation goes on for it.
    // A handover under way is no prediction: it waits for its UE until the radio takes it back.
    // A UE that has arrived elsewhere may have to ask twice before its source hears of it.
    double good = 0, under_way = 0, arriving = 0;
    for (const FaultEvent& e : script_.events) {
      const double at = to_seconds(e.at).count();
      if (at > ended) break;
      if (is_fault(e.kind) || "ue-" + std::to_string(e.ue + 1) != p.ue) continue;
      const auto place = static_cast<std::size_t>(e.ue);
      if (place >= world_.ues().size() || TimePoint(e.at) < ue(place).opened_at) continue;
      const bool there = name(e.b) == p.target;
      switch (e.kind) {
        case FaultKind::kPredict:
        case FaultKind::kWithdraw:
          if (arriving > 0) break;
          good = at;
          if (e.kind == FaultKind::kPredict && there) good += to_seconds(e.delay).count();
          break;
        case FaultKind::kArrive:
          arriving =
              name(e.b) == p.source ? 0 : at + to_seconds(kRetryAfter + kRetrySpread).count();
          break;
        case FaultKind::kExecute:
        case FaultKind::kReject:
        case FaultKind::kCallOff:
        case FaultKind::kReestablish:
          under_way = at;
          if (e.kind == FaultKind::kExecute && there) {
            under_way += to_seconds(script_.node.grace).count();
          }
          break;
        default:
          break;
      }
    }
    const double latest = p.requested_s + to_seconds(script_.node.t_max).count();
    if (ended > std::max({latest, good, under_way, arriving}) + slack) {
      rules_.fail(-1, -1,
                  "a preparation in vain lasted " + std::to_string(ended - p.requested_s) + " s");
    }
  }
}

// --- a fault at a state ---

void Run::look_at(const StateChange& change) {
  const FaultTrigger& wanted = *options_.trigger;
  if (outcome_.triggered || healed_ || change.table != wanted.table || change.state != wanted.state)
    return;
  outcome_.triggered = true;
  // At the same instant, when nothing of it is running.
  clock().schedule(clock().now(), [this, change] { strike(change); });
}

void Run::strike(const StateChange& change) {
  const FaultTrigger& t = *options_.trigger;
  const int self = change.gnb;
  int other = (self + 1) % script_.gnbs;
  bool is_target = t.table == StateChange::Table::kTarget;
  if (!world_.alive(name(self))) return;
  if (const auto* s =
          world_.node(name(self)).find_session(ue(static_cast<std::size_t>(change.ue)).session)) {
    NodeId peer = s->elsewhere;
    if (s->outgoing) peer = s->outgoing->target();
    if (s->back_fill) peer = s->back_fill->target->source();
    if (s->incoming) peer = s->incoming->source();
    if (s->relay_to) peer = *s->relay_to;
    is_target = is_target || s->incoming || s->role == node::Role::kRelaying;
    if (!peer.value.empty() && peer.value != name(self)) other = world_.index(peer.value);
  }
  const int source = is_target ? other : self;
  const int target = is_target ? self : other;
  const int victim = t.victim == FaultTrigger::Victim::kSource ? source : target;
  const bool link_only = t.victim == FaultTrigger::Victim::kLink;
  note(victim, change.ue, "strike: " + std::string(to_string(t.kind)));
  if (t.kind == FaultKind::kKill && !link_only) {
    kill(victim, t.span);
  } else if (t.kind == FaultKind::kPause && !link_only) {
    pause(victim, t.span, false);
  } else if (t.kind == FaultKind::kPause) {
    stall(source, target, t.span);
    stall(target, source, t.span);
  } else if (link_only) {
    cut(source, target, t.span, t.kind == FaultKind::kKill ? t.span / 2 : 0s);
  } else {
    for (int x = 0; x < script_.gnbs; ++x) {
      if (x != victim) cut(victim, x, t.span, 0s);
    }
  }
}

}  // namespace

FaultOutcome run(const FaultScript& script, const FaultOptions& options) {
  return Run(script, options).play();
}

FaultScript shrink(const FaultScript& script, int most) {
  FaultScript small = script;
  const auto first = run(script).violations;
  if (first.empty()) return small;
  // Numbers aside, the same sentence.
  const auto kind = [](const std::string& what) {
    std::string letters;
    for (const char c : what) {
      if (c < '0' || c > '9') letters += c;
    }
    return letters;
  };
  const std::string wanted = kind(first.front().what);
  const auto still = [&](const FaultScript& candidate) {
    if (most-- <= 0) return false;
    const auto found = run(candidate).violations;
    return !found.empty() && kind(found.front().what) == wanted;
  };
  // Halves first, then quarters, down to single events.
  for (std::size_t part = std::max<std::size_t>(small.events.size() / 2, 1); part > 0; part /= 2) {
    for (std::size_t at = 0; at < small.events.size() && most > 0;) {
      FaultScript candidate = small;
      const auto begin = candidate.events.begin() + static_cast<std::ptrdiff_t>(at);
      const auto left = static_cast<std::size_t>(candidate.events.end() - begin);
      candidate.events.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min(part, left)));
      if (still(candidate)) {
        small = std::move(candidate);
      } else {
        at += part;
      }
    }
  }
  return small;
}

}  // namespace pallas::sim
