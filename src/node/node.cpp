#include "node/node.h"

#include <algorithm>
#include <utility>

#include "node/impl.h"

namespace pallas::node {

wire::Compatibility to_wire(const engine::CompatibilityRecord& r) {
  wire::Compatibility w;
  w.model_hash = r.model_hash;
  w.tokenizer_hash = r.tokenizer_hash;
  w.context_tokens = r.context_tokens;
  w.rope = r.rope;
  w.kv_types = r.kv_types;
  w.kv_layout = r.kv_layout;
  w.block_tokens = r.block_tokens;
  w.adapter = r.adapter;
  w.instruction_set = r.instruction_set;
  w.engine_build = r.engine_build;
  w.threads = r.threads;
  w.flash_attention = r.flash_attention;
  return w;
}

engine::CompatibilityRecord from_wire(const wire::Compatibility& w) {
  engine::CompatibilityRecord r;
  r.model_hash = w.model_hash;
  r.tokenizer_hash = w.tokenizer_hash;
  r.context_tokens = w.context_tokens;
  r.rope = w.rope;
  r.kv_types = w.kv_types;
  r.kv_layout = w.kv_layout;
  r.block_tokens = w.block_tokens;
  r.adapter = w.adapter;
  r.instruction_set = w.instruction_set;
  r.engine_build = w.engine_build;
  r.threads = w.threads;
  r.flash_attention = w.flash_attention;
  return r;
}

Node::Impl::Impl(NodeConfig node_config, Ports node_ports, BootId boot_id,
                 std::function<std::uint64_t()> random)
    : config(std::move(node_config)),
      ports(node_ports),
      boot(boot_id),
      random_(std::move(random)),
      housekeeping_timer_(*ports.clock),
      drain_timer_(*ports.clock) {
  auto scheme = plan::make_scheme(config.scheme);
  // The program validates the name first; a wrong one here falls back to the default.
  if (!scheme) scheme = plan::make_scheme("two-front");
  scheme_ = std::move(*scheme);
  gnb_of_cell_.insert(config.cells.begin(), config.cells.end());
  compatibility_ = to_wire(ports.engine->info().compatibility);
  ports.engine->set_events(this);
  housekeeping();
}

Node::Impl::~Impl() = default;

Result<wire::SessionSnapshot> Node::Impl::describe(const SessionId& id,
                                                   const std::string& token) const {
  const Session* s = find(id);
  if (s == nullptr || s->params.resume_token != token) {
    return fail(Errc::kNotFound, "session: not known here");
  }
  return snapshot(*s);
}

void Node::Impl::on_message(const NodeId& peer, wire::Message& message) {
  std::visit([&](auto& m) { handle(peer, m); }, message);
}

void Node::Impl::on_truncated(engine::SlotId, TokenPosition) {}

std::vector<SessionInfo> Node::Impl::sessions() const {
  std::vector<SessionInfo> all;
  all.reserve(sessions_.size());
  for (const auto& [id, s] : sessions_) {
    SessionInfo info;
    info.session = id;
    info.tenant = s->params.tenant;
    info.ue = s->params.ue;
    info.role = std::string(to_string(s->role));
    info.epoch = s->epoch;
    info.prompt_tokens = s->log.prompt_tokens();
    info.tokens = s->log.size();
    info.kv_front = s->front;
    info.peer = s->outgoing ? s->outgoing->target().value : s->elsewhere.value;
    if (s->outgoing) {
      info.window_s = s->outgoing->plan().window_s;
      info.target_front = s->outgoing->target_front();
    }
    if (s->incoming) {
      info.window_s = s->incoming->plan().window_s;
      info.rows_received = s->incoming->counts().received + s->staged.coverage().total();
    }
    if (s->back_fill) {
      info.partial = true;
      info.rows_received = s->back_fill->target->counts().received + s->staged.coverage().total();
    }
    if (const Forecast* f = forecast_of(*s); f != nullptr && s->role == Role::kServing) {
      info.handover_in_s = to_seconds(std::max(f->at - ports.clock->now(), Duration{0})).count();
      info.next = f->target.value;
    }
    all.push_back(std::move(info));
  }
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.session < b.session; });
  return all;
}

void Node::Impl::for_each_session(const std::function<void(const Session&)>& look) const {
  for (const auto& [id, s] : sessions_) look(*s);
}

NodeStats Node::Impl::stats() const {
  NodeStats stats = stats_;
  const std::uint64_t row = ports.engine->info().geometry.bytes_per_token();
  for (const auto& [id, s] : sessions_) {
    if (s->back_fill) ++stats.sessions_partial;
    stats.log_bytes += s->log.memory_bytes() + s->texts.memory_bytes();
    const std::uint64_t kv = s->slot ? row * s->front : 0;
    const bool computes = s->role == Role::kServing || s->role == Role::kArriving;
    (computes                      ? stats.kv_live_bytes
     : s->role == Role::kPreparing ? stats.kv_prepared_bytes
                                   : stats.kv_kept_bytes) += kv;
    switch (s->role) {
      case Role::kServing:
      case Role::kArriving:
      case Role::kRelaying:
        ++stats.sessions_live;
        break;
      case Role::kPreparing:
        ++stats.sessions_prepared;
        break;
      case Role::kFrozen:
        ++stats.sessions_frozen;
        break;
      case Role::kRetained:
        ++stats.sessions_retained;
        break;
      case Role::kMirror:
      case Role::kFinished:
      case Role::kMoved:
        break;
    }
  }
  stats.staged_bytes = staged_bytes_;
  stats.free_slots = ports.engine->free_slots();
  return stats;
}

// --- facade ---

Node::Node(NodeConfig config, Ports ports, BootId boot, std::function<std::uint64_t()> random)
    : impl_(std::make_unique<Impl>(std::move(config), ports, boot, std::move(random))) {}
Node::~Node() = default;
const NodeConfig& Node::config() const {
  return impl_->config;
}
const engine::EngineInfo& Node::engine_info() const {
  return impl_->ports.engine->info();
}
wire::Compatibility Node::compatibility() const {
  return to_wire(engine_info().compatibility);
}
Status Node::open(OpenRequest request, StreamId stream) {
  return impl_->open(std::move(request), stream);
}
Status Node::attach(AttachRequest request, StreamId stream) {
  return impl_->attach(std::move(request), stream);
}
Result<wire::SessionSnapshot> Node::describe(const SessionId& session,
                                             const std::string& token) const {
  return impl_->describe(session, token);
}
void Node::on_stream_closed(StreamId stream) {
  impl_->on_stream_closed(stream);
}
Status Node::stop(const SessionId& session, const std::string& token, const NodeId& last_node) {
  return impl_->stop(session, token, last_node);
}
Status Node::on_prediction(const mobility::Prediction& prediction) {
  return impl_->on_prediction(prediction);
}
Status Node::on_handover(const mobility::HandoverEvent& event) {
  return impl_->on_handover(event);
}
Status Node::on_position(const mobility::PositionReport& report) {
  return impl_->on_position(report);
}
void Node::on_peer_up(const PeerHello& hello) {
  impl_->on_peer_up(hello);
}
void Node::on_peer_down(const NodeId& peer) {
  impl_->on_peer_down(peer);
}
void Node::on_message(const NodeId& peer, wire::Message message) {
  impl_->on_message(peer, message);
}
void Node::on_kv(const NodeId& peer, const wire::KvBlock& header, kv::Bytes rows) {
  impl_->on_kv(peer, header, std::move(rows));
}
void Node::on_kv_drained(const NodeId& peer) {
  impl_->on_kv_drained(peer);
}
std::vector<wire::HeldAttempt> Node::held_from(const NodeId& peer) const {
  return impl_->held_from(peer);
}
std::vector<SessionInfo> Node::sessions() const {
  return impl_->sessions();
}
void Node::for_each_session(const std::function<void(const Session&)>& look) const {
  impl_->for_each_session(look);
}
const Session* Node::find_session(const SessionId& session) const {
  return impl_->find(session);
}
const std::vector<HandoverReport>& Node::handovers() const {
  return impl_->reports;
}
const std::vector<DepartureReport>& Node::departures() const {
  return impl_->departures;
}
NodeStats Node::stats() const {
  return impl_->stats();
}
Result<MoveReport> Node::move(const MoveOrder& order) {
  return impl_->move(order);
}
std::optional<MoveReport> Node::moved(const std::string& id) const {
  return impl_->moved(id);
}
Status Node::drain(const NodeId& to) {
  return impl_->drain(to);
}
DrainStatus Node::drain_status() const {
  return impl_->drain_status();
}
std::uint32_t Node::cut_off() {
  return impl_->cut_off();
}
bool Node::ready() const {
  return !impl_->draining();
}

}  // namespace pallas::node
