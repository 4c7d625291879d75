#include "sim/world.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/random.h"
#include "plan/scheme.h"
#include "sim/world_ports.h"

namespace pallas::sim {
namespace {

constexpr std::size_t kSessionDigits = 32;
constexpr unsigned kUeBits = 24;  // of a stream's number
constexpr std::uint64_t kMaxUes = (1u << kUeBits) - 1;

SessionId session_of(std::size_t number) {
  std::string digits = std::to_string(number);
  return SessionId(std::string(kSessionDigits - digits.size(), '0') + digits);
}

}  // namespace

WorldGnb::WorldGnb() = default;
WorldGnb::~WorldGnb() = default;
WorldGnb::WorldGnb(WorldGnb&&) noexcept = default;

node::NodeConfig patient_node() {
  node::NodeConfig config;
  config.frozen = std::chrono::hours(1);
  config.keep_alive = std::chrono::hours(1);
  config.max_sessions = std::numeric_limits<std::uint32_t>::max();
  config.max_handover_reports = std::numeric_limits<std::uint32_t>::max();
  config.report_phases = false;
  config.window_margin_share = 0;
  config.preparation_spacing = 1;
  config.shadow = node::Shadow::kOff;
  return config;
}

Status check(const WorldSettings& settings) {
  const auto bad = [](std::string what) { return fail(Errc::kInvalidArgument, std::move(what)); };
  if (settings.gnbs.empty()) return bad("gnbs: there is none");
  if (auto scheme = plan::make_scheme(settings.scheme); !scheme) return Failure(scheme.error());
  if (!settings.make_engine) {
    if (settings.scheme == "partial") {
      return bad("scheme: partial needs KV with content, and the simulated engine has none");
    }
    if (auto ok = check(settings.engine); !ok) return ok;
  }
  if (auto ok = check(settings.network); !ok) return ok;
  std::map<CellId, std::string> cells;
  std::map<std::string, bool> names;
  for (const GnbSettings& g : settings.gnbs) {
    if (g.name.empty()) return bad("gnbs: one has no name");
    if (!names.emplace(g.name, true).second) return bad("gnbs: " + g.name + " is named twice");
    for (const CellId& cell : g.cells) {
      if (const auto [it, fresh] = cells.emplace(cell, g.name); !fresh) {
        return bad("cells: " + cell.value + " belongs to " + it->second + " and to " + g.name);
      }
    }
    if (!g.engine) continue;
    if (auto ok = check(*g.engine); !ok) return ok;
    if (g.engine->kv_bytes_per_token != settings.engine.kv_bytes_per_token) {
      return bad("gnbs: " + g.name + " has another kv_bytes_per_token; links charge one size");
    }
  }
  const node::NodeConfig& n = settings.node;
  if (!(n.alpha >= 0 && n.alpha <= 1)) return bad("alpha: must be in [0, 1]");
  if (!(n.ewma > 0 && n.ewma <= 1)) return bad("ewma: must be in (0, 1]");
  if (!(n.unmeasured_rate > 0 && n.unmeasured_rate <= 1)) {
    return bad("unmeasured_rate: must be in (0, 1]");
  }
  if (n.control_period <= Duration{0}) return bad("control_period_ms: must be above 0");
  if (n.t_max <= Duration{0}) return bad("t_max_s: must be above 0");
  if (n.window_margin < Duration{0}) return bad("window_margin_ms: must be at least 0");
  if (n.preparation_spacing < 1) return bad("preparation_spacing: must be at least 1");
  if (!(n.window_margin_share >= 0)) return bad("window_margin_share: must be at least 0");
  if (n.lease <= Duration{0}) return bad("lease_s: must be above 0");
  if (settings.radio_latency < Duration{0}) return bad("radio_latency_ms: must be at least 0");
  if (settings.interruption < Duration{0}) return bad("interruption_ms: must be at least 0");
  return {};
}

// --- Impl ---

World::Impl::Impl(World& world, WorldSettings settings)
    : world_(world), settings_(std::move(settings)) {
  for (const GnbSettings& g : settings_.gnbs) {
    const int index = static_cast<int>(gnbs_.size());
    WorldGnb& made = gnbs_.emplace_back();
    made.id = NodeId(g.name);
    made.cells = g.cells;
    if (made.cells.empty()) made.cells.emplace_back("cell-" + g.name);
    names_.push_back(g.name);
    by_name_.emplace(made.id, index);
    for (const CellId& cell : made.cells) by_cell_.emplace(cell, index);
  }
  text_ = settings_.make_text ? settings_.make_text() : std::make_unique<SilentTextCodec>();
  std::uint64_t block_bytes = std::uint64_t{settings_.engine.block_tokens} * kStandInBytes;
  if (settings_.make_engine) {
    const auto geometry = settings_.make_engine(world_.clock)->info().geometry;
    block_bytes = geometry.block_tokens * geometry.bytes_per_token();
  } else {
    scale_ = static_cast<double>(settings_.engine.kv_bytes_per_token) / kStandInBytes;
  }
  network_ =
      std::make_unique<Network>(world_.clock, settings_.network, static_cast<int>(gnbs_.size()),
                                scale_, block_bytes, settings_.seed, *this);
  network_->check_codec(settings_.check_codec);
  for (std::size_t i = 0; i < gnbs_.size(); ++i) boot(static_cast<int>(i));
}

World::Impl::~Impl() {
  for (WorldGnb& g : gnbs_) g.node.reset();
}

int World::Impl::index_of(const NodeId& id) const {
  const auto found = by_name_.find(id);
  return found == by_name_.end() ? -1 : found->second;
}

int World::Impl::index_of(const std::string& name) const {
  const int found = index_of(NodeId(name));
  if (found < 0) throw std::logic_error("no gNB of this name: " + name);
  return found;
}

int World::Impl::gnb_of(const CellId& cell) const {
  const auto found = by_cell_.find(cell);
  return found == by_cell_.end() ? -1 : found->second;
}

void World::Impl::boot(int index) {
  WorldGnb& g = gnbs_[static_cast<std::size_t>(index)];
  g.boot = BootId(next_boot_++);
  Clock* own_clock = &world_.clock;
  if (settings_.faulty) {
    g.clock = std::make_unique<GnbClock>(world_.clock);
    own_clock = g.clock.get();
  }
  if (settings_.make_engine) {
    g.engine = settings_.make_engine(*own_clock);
  } else {
    const auto& own = settings_.gnbs[static_cast<std::size_t>(index)].engine;
    g.engine = std::make_unique<Engine>(world_.clock, own ? *own : settings_.engine,
                                        [this](std::uint64_t seed) -> SampleObserver* {
                                          const auto found = by_seed_.find(seed);
                                          return found == by_seed_.end() ? nullptr : found->second;
                                        });
  }
  // Tokens on the air outlive the node that sent them.
  if (!g.peers) g.peers = std::make_unique<WorldPeers>(*this, index);
  if (!g.ues) g.ues = std::make_unique<WorldUes>(*this, index);
  node::NodeConfig config = settings_.node;
  config.name = g.id;
  config.scheme = settings_.scheme;
  for (const WorldGnb& serving : gnbs_) {
    for (const CellId& cell : serving.cells) config.cells[cell] = serving.id;
  }
  if (settings_.configure) settings_.configure(config);
  const node::Node::Ports ports{own_clock,   g.engine.get(), text_.get(),
                                g.ues.get(), g.peers.get(),  settings_.layout};
  auto random = [draws = Random(mix(settings_.seed, g.boot.value))]() mutable {
    return draws.bits();
  };
  g.node = std::make_unique<node::Node>(config, ports, g.boot, random);
  g.hello = {g.id,
             g.boot,
             g.node->compatibility(),
             {},
             g.engine->info().capabilities.holes,
             wire::kMinorVersion};
  g.alive = true;
  if (settings_.faulty) return;
  for (std::size_t other = 0; other < gnbs_.size(); ++other) {
    if (static_cast<int>(other) != index && gnbs_[other].alive) {
      join(index, static_cast<int>(other));
    }
  }
}

void World::Impl::join(int x, int y) {
  WorldGnb& a = gnbs_[static_cast<std::size_t>(x)];
  WorldGnb& b = gnbs_[static_cast<std::size_t>(y)];
  if (!a.alive || !b.alive || a.paused || b.paused) return;
  network_->set_up(x, y, true);
  a.hello.held = a.node->held_from(b.id);
  b.hello.held = b.node->held_from(a.id);
  tell(x, {}, "link up", nullptr, [&](node::Node& node) { node.on_peer_up(b.hello); });
  tell(y, {}, "link up", nullptr, [&](node::Node& node) { node.on_peer_up(a.hello); });
}

void World::Impl::tell(int index, const SessionId& session, std::string_view what,
                       const wire::Message* message, const std::function<void(node::Node&)>& call) {
  WorldGnb& g = gnbs_[static_cast<std::size_t>(index)];
  if (!g.alive) return;
  WorldObserver* const observer = settings_.observer;
  if (observer != nullptr) observer->before(index, session, what, message);
  call(*g.node);
  if (observer != nullptr) observer->after(index, session, what, message);
}

void World::Impl::peer_down(int at, int other) {
  when_awake(at, [this, at, other] {
    const NodeId& name = gnbs_[static_cast<std::size_t>(other)].id;
    tell(at, {}, "link lost", nullptr, [&](node::Node& node) { node.on_peer_down(name); });
  });
}

void World::Impl::cut(int x, int y) {
  network_->set_up(x, y, false);
  peer_down(x, y);
  peer_down(y, x);
}

void World::Impl::cut(int x, int y, Duration later) {
  network_->set_up(x, y, false);
  peer_down(x, y);
  const BootId boot = gnbs_[static_cast<std::size_t>(y)].boot;
  world_.clock.schedule_after(later, [this, x, y, boot] {
    const WorldGnb& g = gnbs_[static_cast<std::size_t>(y)];
    if (g.alive && g.boot == boot && !network_->is_up(x, y)) peer_down(y, x);
  });
}

void World::Impl::wake(int index, bool timers_first) {
  WorldGnb& g = gnbs_[static_cast<std::size_t>(index)];
  if (!g.paused) return;
  g.paused = false;
  if (timers_first) g.clock->go_on();
  std::vector<Callback> waiting = std::exchange(g.waiting, {});
  for (Callback& told : waiting) told();
  if (!timers_first) g.clock->go_on();
}

void World::Impl::kill(int index) {
  WorldGnb& g = gnbs_[static_cast<std::size_t>(index)];
  take_reports(g);
  g.alive = false;
  g.paused = false;
  g.waiting.clear();
  for (int other = 0; other < static_cast<int>(gnbs_.size()); ++other) {
    if (other != index && network_->is_up(index, other)) cut(index, other);
  }
  for (auto& ue : ues_) {
    if (ue->at == g.id) ue->stream = {};
  }
  g.node.reset();
  g.engine.reset();
  g.clock.reset();
}

Ue* World::Impl::ue_of_stream(node::StreamId stream) {
  const std::size_t place = stream.value & kMaxUes;
  if (place >= ues_.size() || ues_[place]->stream != stream) return nullptr;
  return ues_[place].get();
}

// Sessions are numbered from 1, in decimal.
Ue* World::Impl::ue_of_session(const SessionId& session) {
  std::size_t number = 0;
  for (const char c : session.value) {
    if (c < '0' || c > '9') return nullptr;
    number = number * 10 + static_cast<std::size_t>(c - '0');
  }
  return number == 0 || number > ues_.size() ? nullptr : ues_[number - 1].get();
}

const Ue& World::Impl::owner_of(node::StreamId stream) const {
  return *ues_[stream.value & kMaxUes];
}

void World::Impl::close_stream(int at, node::StreamId stream) {
  when_awake(at, [this, at, stream] {
    const Ue& ue = owner_of(stream);
    tell(at, ue.session, "stream closed", nullptr,
         [&](node::Node& node) { node.on_stream_closed(stream); });
  });
}

void World::Impl::foretell(int at, const Ue& ue, const mobility::Prediction& prediction) {
  when_awake(at, [this, at, &ue, prediction] {
    const std::string_view what = prediction.target ? "prediction" : "prediction withdrawn";
    tell(at, ue.session, what, nullptr, [&](node::Node& node) {
      if (auto taken = node.on_prediction(prediction); !taken) {
        throw std::logic_error(taken.error().message);
      }
    });
  });
}

node::StreamId World::Impl::new_stream(const Ue& ue) {
  return node::StreamId((++next_stream_ << kUeBits) | ue.place);
}

// The same handover of the same UE sees the same goodput under every scheme.
void World::Impl::draw_rate(const Ue& ue, int from, int to) {
  const std::uint64_t name = mix(mix(settings_.seed, std::string_view(ue.id.value)),
                                 static_cast<std::uint64_t>(ue.path.size()));
  network_->draw(from, to, name);
}

void World::Impl::on_message(int from, int to, wire::Message&& message) {
  const auto deliver = [this, from, to](wire::Message& received) {
    const SessionId session = std::visit(
        [](const auto& m) {
          if constexpr (requires { m.session; }) {
            return m.session;
          } else {
            return SessionId();
          }
        },
        received);
    // The observer sees it whole; the node takes it apart.
    const bool observed = settings_.observer != nullptr;
    wire::Message kept;
    if (observed) kept = received;
    tell(to, session, wire::name_of(received), observed ? &kept : nullptr, [&](node::Node& node) {
      node.on_message(gnbs_[static_cast<std::size_t>(from)].id, std::move(received));
    });
  };
  WorldGnb& g = gnbs_[static_cast<std::size_t>(to)];
  if (!g.paused) {
    deliver(message);
  } else {
    g.waiting.emplace_back([deliver, boxed = std::make_unique<wire::Message>(std::move(message))] {
      deliver(*boxed);
    });
  }
}

void World::Impl::on_kv(int from, int to, const wire::KvBlock& header, kv::Bytes rows) {
  const auto deliver = [this, from, to](const wire::KvBlock& block, kv::Bytes& payload) {
    const wire::Message kept(settings_.observer != nullptr ? block : wire::KvBlock{});
    tell(to, block.session, "KvBlock", &kept, [&](node::Node& node) {
      node.on_kv(gnbs_[static_cast<std::size_t>(from)].id, block, std::move(payload));
    });
  };
  WorldGnb& g = gnbs_[static_cast<std::size_t>(to)];
  if (!g.paused) {
    deliver(header, rows);
  } else {
    g.waiting.emplace_back([deliver, block = header, payload = std::move(rows)]() mutable {
      deliver(block, payload);
    });
  }
}

void World::Impl::on_kv_drained(int from, int to) {
  when_awake(from, [this, from, to] {
    WorldGnb& g = gnbs_[static_cast<std::size_t>(from)];
    if (g.alive) g.node->on_kv_drained(gnbs_[static_cast<std::size_t>(to)].id);
  });
}

int World::Impl::relay_hops(int from, int to, const wire::TokenUpdate& update) {
  const Ue* const ue = ue_of_session(update.session);
  if (ue == nullptr || ue->path.empty() || ue->path.back() != to) return 0;
  if (!settings_.relay_hops_follow_path) return 1;
  int hops = 1;
  for (std::size_t i = ue->path.size() - 1; i-- > 0; ++hops) {
    if (ue->path[i] == from) return hops;
  }
  return 1;
}

// --- World ---

World::World(WorldSettings settings) : impl_(std::make_unique<Impl>(*this, std::move(settings))) {}
World::~World() = default;

const WorldSettings& World::settings() const {
  return impl_->settings_;
}
Network& World::network() {
  return *impl_->network_;
}
node::Node& World::node(const std::string& gnb) {
  return *impl_->gnbs_[static_cast<std::size_t>(index(gnb))].node;
}
engine::Engine& World::engine(const std::string& gnb) {
  return *impl_->gnbs_[static_cast<std::size_t>(index(gnb))].engine;
}
bool World::alive(const std::string& gnb) const {
  return impl_->gnbs_[static_cast<std::size_t>(index(gnb))].alive;
}
int World::index(const std::string& gnb) const {
  return impl_->index_of(gnb);
}
const std::vector<std::string>& World::names() const {
  return impl_->names_;
}
std::string World::gnb_of(const CellId& cell) const {
  const int found = impl_->gnb_of(cell);
  return found < 0 ? std::string() : impl_->names_[static_cast<std::size_t>(found)];
}
const std::vector<std::unique_ptr<Ue>>& World::ues() const {
  return impl_->ues_;
}
Ue* World::find(const SessionId& session) {
  return impl_->ue_of_session(session);
}

Ue& World::open(const std::string& gnb, const UeSettings& settings) {
  WorldGnb& g = impl_->gnbs_[static_cast<std::size_t>(index(gnb))];
  if (impl_->ues_.size() >= kMaxUes) throw std::logic_error("too many UEs");
  const std::size_t number = impl_->ues_.size() + 1;
  auto& made = impl_->settings_.make_ue;
  Ue& ue = *impl_->ues_.emplace_back(made ? made() : std::make_unique<Ue>());
  impl_->books_.emplace_back();
  ue.place = number - 1;
  ue.id = UeId(settings.name.empty() ? "ue-" + std::to_string(number) : settings.name);
  ue.session = session_of(number);
  ue.prompt_tokens = settings.prompt_tokens;
  wire::SessionParams& p = ue.params;
  p.ue = ue.id;
  p.model = g.engine->info().model_name;
  p.max_tokens = settings.max_tokens;
  if (p.max_tokens == 0) {
    const TokenPosition context = g.engine->info().context_tokens;
    p.max_tokens = context - std::min(context, settings.prompt_tokens);
  }
  p.max_token_rate = settings.max_token_rate;
  p.consistency = settings.consistency;
  p.ignore_eos = true;
  p.seed = mix(impl_->settings_.seed, std::string_view(ue.id.value));
  p.resume_token = ue.resume_token;
  p.completion_id = "chatcmpl-" + std::to_string(number);
  if (settings.adjust) settings.adjust(p);
  ue.keep_arrivals = impl_->settings_.keep_arrivals;
  ue.ids_are_known = !impl_->settings_.make_engine;
  if (ue.ids_are_known) impl_->by_seed_[p.seed] = &ue;
  ue.stream = impl_->new_stream(ue);
  ue.at = ue.served_by = g.id;
  ue.path.push_back(index(gnb));
  ue.epoch = Epoch(1);
  node::OpenRequest request{ue.session, ue.params, ue.prompt(), true};
  if (auto opened = g.node->open(std::move(request), ue.stream); !opened) {
    ue.failed = opened.error();
    ue.stream = {};
  }
  return ue;
}

Status World::attach(Ue& ue, const std::string& gnb) {
  const int to = index(gnb);
  WorldGnb& g = impl_->gnbs_[static_cast<std::size_t>(to)];
  ue.epoch = Epoch(ue.epoch.value + 1);
  node::AttachRequest request;
  request.session = ue.session;
  request.resume_token = ue.resume_token;
  request.epoch = ue.epoch;
  request.next_index = ue.received();
  request.last_node = ue.served_by;
  if (ue.brings_context) request.context = ue.context(impl_->names_);
  const node::StreamId old = ue.stream;
  const NodeId left = ue.at;
  ue.stream = impl_->new_stream(ue);
  ue.at = g.id;
  ue.path.push_back(to);
  ue.closed = false;
  Status attached;
  if (!g.alive) {
    attached = fail(Errc::kUnreachable, "gNB " + gnb + " is down");
    ue.stream = {};
  } else {
    // Where the gNB stands still, the answer comes later.
    impl_->when_awake(to, [this, to, &ue, &attached, waits = g.paused, stream = ue.stream,
                           request = std::move(request)]() mutable {
      Status answer;
      impl_->tell(to, ue.session, "attach", nullptr,
                  [&](node::Node& node) { answer = node.attach(std::move(request), stream); });
      if (!answer && ue.stream == stream) ue.stream = {};
      if (answer && ue.stream == stream)
        ue.served_by = NodeId(impl_->names_[static_cast<std::size_t>(to)]);
      if (!waits) attached = answer;
    });
  }
  // The old connection goes a little later, as a radio does it.
  if (old.value != 0 && left != g.id) {
    const int from = impl_->index_of(left);
    clock.schedule_after(impl_->settings_.stream_close,
                         [this, from, old] { impl_->close_stream(from, old); });
  }
  return attached;
}

void World::leave(Ue& ue) {
  if (ue.stream.value == 0) return;
  impl_->close_stream(index(ue.at.value), std::exchange(ue.stream, {}));
}

Status World::stop(Ue& ue, const std::string& gnb) {
  const int to = index(gnb);
  if (!impl_->gnbs_[static_cast<std::size_t>(to)].alive) {
    return fail(Errc::kUnreachable, "gNB " + gnb + " is down");
  }
  Status stopped;
  impl_->when_awake(to, [this, to, &ue, &stopped, last = ue.served_by,
                         waits = impl_->gnbs_[static_cast<std::size_t>(to)].paused] {
    Status answer;
    impl_->tell(to, ue.session, "stop", nullptr,
                [&](node::Node& node) { answer = node.stop(ue.session, ue.resume_token, last); });
    if (!waits) stopped = answer;
  });
  return stopped;
}

void World::predict(Ue& ue, const Forecast& forecast, const std::string& at) {
  const auto& target = impl_->gnbs_[static_cast<std::size_t>(index(forecast.target))];
  WorldGnb& g = impl_->gnbs_[static_cast<std::size_t>(index(at.empty() ? ue.at.value : at))];
  mobility::Prediction p;
  p.ue = ue.id;
  p.seq = ++impl_->next_seq_;
  p.serving = g.cells.front();
  p.target = target.cells.front();
  p.in = std::max(forecast.in, Duration{0});
  p.sigma = forecast.sigma;
  p.confidence = forecast.confidence;
  p.valid = forecast.valid.value_or(p.in + std::chrono::seconds(5));
  p.oracle = forecast.oracle;
  note_forecast(ue, forecast.target, p.valid);
  impl_->foretell(impl_->index_of(g.id), ue, p);
}

void World::withdraw(Ue& ue, const std::string& at) {
  WorldGnb& g = impl_->gnbs_[static_cast<std::size_t>(index(at.empty() ? ue.at.value : at))];
  mobility::Prediction p;
  p.ue = ue.id;
  p.seq = ++impl_->next_seq_;
  p.serving = g.cells.front();
  note_forecast(ue, std::nullopt, Duration{0});
  impl_->foretell(impl_->index_of(g.id), ue, p);
}

void World::report_position(Ue& ue, mobility::PositionReport report) {
  WorldGnb& g = impl_->gnbs_[static_cast<std::size_t>(index(ue.at.value))];
  if (!g.alive) return;
  report.ue = ue.id;
  report.seq = ++impl_->next_seq_;
  if (auto taken = g.node->on_position(report); !taken) {
    throw std::logic_error(taken.error().message);
  }
}

void World::ran(Ue& ue, mobility::HandoverPhase phase, const std::string& source,
                const std::string& target) {
  mobility::HandoverEvent event;
  event.ue = ue.id;
  event.seq = ++impl_->next_seq_;
  event.phase = phase;
  event.source = impl_->gnbs_[static_cast<std::size_t>(index(source))].cells.front();
  event.target = impl_->gnbs_[static_cast<std::size_t>(index(target))].cells.front();
  std::vector<std::string> told = {source};
  if (target != source) told.push_back(target);
  for (const std::string& name : told) {
    impl_->when_awake(index(name), [this, to = index(name), &ue, event] {
      impl_->tell(to, ue.session, mobility::to_string(event.phase), nullptr, [&](node::Node& node) {
        if (auto taken = node.on_handover(event); !taken) {
          throw std::logic_error(taken.error().message);
        }
      });
    });
  }
}

bool World::hand_over(Ue& ue, const std::string& target) {
  const std::string source = ue.at.value;
  impl_->draw_rate(ue, index(source), index(target));
  ue.begin_handover(impl_->new_record(ue, index(target)), clock.now(), index(target));
  ran(ue, mobility::HandoverPhase::kExecution, source, target);
  const auto arrive = [this, &ue, source, target] {
    const Status attached = attach(ue, target);
    HandoverRecord& record = ue.last_handover();
    record.epoch = ue.epoch.value;
    if (!attached) record.error = attached.error().describe();
    ran(ue, mobility::HandoverPhase::kCompleted, source, target);
    return attached.has_value();
  };
  if (impl_->settings_.interruption.count() == 0) return arrive();
  clock.schedule_after(impl_->settings_.interruption, [arrive] { arrive(); });
  return true;
}

void World::cut(const std::string& x, const std::string& y) {
  impl_->cut(index(x), index(y));
}
void World::cut(const std::string& x, const std::string& y, Duration later) {
  impl_->cut(index(x), index(y), later);
}
void World::join(const std::string& x, const std::string& y) {
  impl_->join(index(x), index(y));
}
void World::kill(const std::string& gnb) {
  impl_->kill(index(gnb));
}
void World::restart(const std::string& gnb) {
  impl_->boot(index(gnb));
}
void World::pause(const std::string& gnb) {
  WorldGnb& g = impl_->gnbs_[static_cast<std::size_t>(index(gnb))];
  if (!g.alive || !g.clock) return;
  g.paused = true;
  g.clock->stop();
}
void World::wake(const std::string& gnb, bool timers_first) {
  impl_->wake(index(gnb), timers_first);
}
bool World::paused(const std::string& gnb) const {
  return impl_->gnbs_[static_cast<std::size_t>(index(gnb))].paused;
}

}  // namespace pallas::sim
