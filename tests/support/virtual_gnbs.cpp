#include "virtual_gnbs.h"

#include <stdexcept>
#include <utility>

#include "wire/codec.h"

namespace pallas::test {

struct VirtualGnbs::Link {
  std::string from, to;
  bool up = true;
  std::uint64_t generation = 0;  // frames of an earlier connection are lost
  Duration latency{0};
  BytesPerSecond rate;
  TimePoint last_control{};
  struct Kv {
    wire::KvBlock header;
    kv::Bytes rows;
  };
  std::deque<Kv> queue;
  std::uint64_t backlog = 0;
  bool sending = false;
  std::vector<std::string> log;
};

class VirtualGnbs::Peers : public node::PeerLink {
 public:
  Peers(VirtualGnbs& all, std::string self) : all_(all), self_(std::move(self)) {}

  void send(const NodeId& peer, wire::Message message) override {
    Link& l = all_.link(self_, peer.value);
    l.log.emplace_back(wire::name_of(message));
    if (!l.up) return;
    auto encoded = wire::encode(message);
    if (!encoded) {
      all_.codec_faults_.push_back(encoded.error().describe());
      return;
    }
    Duration extra{0};
    if (auto it = all_.extra_delay_.find(message.index()); it != all_.extra_delay_.end()) {
      extra = it->second;
    }
    const TimePoint when = std::max(all_.clock.now() + l.latency + extra, l.last_control);
    if (extra.count() == 0) l.last_control = when;
    all_.clock.at(when, [this, &l, generation = l.generation, bytes = std::move(*encoded)] {
      if (!l.up || l.generation != generation) return;
      const std::span<const std::byte> all_bytes(bytes);
      auto header = wire::decode_header(all_bytes.first<wire::kHeaderBytes>());
      if (!header) {
        all_.codec_faults_.push_back(header.error().describe());
        return;
      }
      auto decoded = wire::decode(*header, all_bytes.subspan(wire::kHeaderBytes));
      if (!decoded) {
        all_.codec_faults_.push_back(decoded.error().describe());
        return;
      }
      all_.deliver(l.from, l.to, std::move(*decoded));
    });
  }
  void send_kv(const NodeId& peer, wire::KvBlock header, kv::Bytes rows) override {
    Link& l = all_.link(self_, peer.value);
    l.log.emplace_back("KvBlock");
    if (!l.up) return;
    header.payload_bytes = rows.size();
    header.checksum = wire::checksum(rows);
    l.backlog += rows.size();
    l.queue.push_back({std::move(header), std::move(rows)});
    all_.pump(l);
  }
  std::uint64_t kv_backlog(const NodeId& peer) const override {
    return all_.link(self_, peer.value).backlog;
  }
  bool is_up(const NodeId& peer) const override {
    return peer.value != self_ && all_.gnbs_.contains(peer.value) &&
           all_.link(self_, peer.value).up;
  }
  std::optional<BytesPerSecond> goodput(const NodeId& peer) const override {
    if (!all_.gnbs_.contains(peer.value)) return std::nullopt;
    return all_.link(self_, peer.value).rate;
  }
  void discard_kv(const NodeId& peer, const Attempt& attempt) override {
    Link& l = all_.link(self_, peer.value);
    const std::size_t keep = l.sending ? 1 : 0;
    for (std::size_t i = l.queue.size(); i-- > keep;) {
      if (l.queue[i].header.attempt != attempt) continue;
      l.backlog -= l.queue[i].rows.size();
      l.queue.erase(l.queue.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

 private:
  VirtualGnbs& all_;
  std::string self_;
};

class VirtualGnbs::Ues : public node::UeLink {
 public:
  Ues(VirtualGnbs& all, std::string self) : all_(all), self_(std::move(self)) {}

  void deliver(node::StreamId stream, const node::TokenEvent& token) override {
    VirtualUe* ue = find(stream);
    if (ue == nullptr) return;
    const std::size_t before = ue->transcript.entries().size();
    ue->transcript.add(
        {token.index, token.id, token.epoch, token.by, NodeId(self_), all_.clock.now()});
    if (ue->transcript.entries().size() == before) return;
    ue->text += token.text;
    if (ue->sampled_by.empty() || ue->sampled_by.back().first != token.by) {
      ue->sampled_by.emplace_back(token.by, 0);
    }
    ++ue->sampled_by.back().second;
  }
  void finish(node::StreamId stream, const node::FinishEvent& event) override {
    VirtualUe* ue = find(stream);
    if (ue == nullptr) return;
    ue->text += event.text;
    ue->finished = event;
    ++ue->finishes;
    ue->stream = {};
  }
  void fail(node::StreamId stream, const Error& error) override {
    VirtualUe* ue = find(stream);
    if (ue == nullptr) return;
    ue->failed = error;
    ue->stream = {};
  }
  void announce(node::StreamId stream, const NodeId& next) override {
    if (VirtualUe* ue = find(stream)) ue->announced = next;
  }
  void keep_alive(node::StreamId stream) override {
    if (VirtualUe* ue = find(stream)) ++ue->keep_alives;
  }
  void close(node::StreamId stream, const NodeId&) override {
    if (VirtualUe* ue = find(stream)) {
      ue->closed = true;
      ue->stream = {};
    }
  }

 private:
  VirtualUe* find(node::StreamId stream) {
    for (auto& ue : all_.ues_) {
      if (ue->stream == stream) return ue.get();
    }
    return nullptr;  // an old stream: nobody reads it
  }
  VirtualGnbs& all_;
  std::string self_;
};

struct VirtualGnbs::Gnb {
  std::string name;
  bool alive = false;
  BootId boot;
  std::unique_ptr<engine::FakeEngine> engine;
  engine::FakeTextCodec text;
  std::unique_ptr<Peers> peers;
  std::unique_ptr<Ues> ues;
  std::unique_ptr<node::Node> node;
};

VirtualGnbs::VirtualGnbs(Options options) : options_(std::move(options)) {
  for (const std::string& name : options_.names) {
    auto g = std::make_unique<Gnb>();
    g->name = name;
    gnbs_.emplace(name, std::move(g));
    for (const std::string& other : options_.names) {
      if (other == name) continue;
      auto l = std::make_unique<Link>();
      l->from = name;
      l->to = other;
      l->up = false;
      l->latency = options_.link.latency;
      l->rate = options_.link.rate;
      links_.emplace(std::pair(name, other), std::move(l));
    }
  }
  for (auto& [name, g] : gnbs_) boot(*g);
}

VirtualGnbs::~VirtualGnbs() {
  for (auto& [name, g] : gnbs_) g->node.reset();
}

VirtualGnbs::Gnb& VirtualGnbs::gnb(const std::string& name) {
  auto it = gnbs_.find(name);
  if (it == gnbs_.end()) throw std::logic_error("no gNB of this name: " + name);
  return *it->second;
}

VirtualGnbs::Link& VirtualGnbs::link(const std::string& from, const std::string& to) {
  auto it = links_.find({from, to});
  if (it == links_.end()) throw std::logic_error("no link " + from + " to " + to);
  return *it->second;
}

node::Node& VirtualGnbs::node(const std::string& name) {
  return *gnb(name).node;
}
engine::FakeEngine& VirtualGnbs::engine(const std::string& name) {
  return *gnb(name).engine;
}
bool VirtualGnbs::alive(const std::string& name) const {
  return gnbs_.at(name)->alive;
}

void VirtualGnbs::boot(Gnb& g) {
  g.boot = BootId(next_boot_++);
  g.engine = std::make_unique<engine::FakeEngine>(clock, options_.engine);
  g.peers = std::make_unique<Peers>(*this, g.name);
  g.ues = std::make_unique<Ues>(*this, g.name);
  node::NodeConfig config;
  config.name = NodeId(g.name);
  config.scheme = options_.scheme;
  for (const std::string& name : options_.names)
    config.cells[CellId("cell-" + name)] = NodeId(name);
  if (options_.configure) options_.configure(config);
  node::Node::Ports ports{&clock, g.engine.get(), &g.text, g.ues.get(), g.peers.get(), nullptr};
  auto random = [state = g.boot.value * 0x9e3779b97f4a7c15ULL]() mutable {
    state += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    return z ^ (z >> 27);
  };
  g.node = std::make_unique<node::Node>(config, ports, g.boot, random);
  g.alive = true;
  for (const std::string& other : options_.names) {
    if (other != g.name && gnb(other).alive) join(g.name, other);
  }
}

void VirtualGnbs::join(const std::string& x, const std::string& y) {
  Gnb& a = gnb(x);
  Gnb& b = gnb(y);
  if (!a.alive || !b.alive) return;
  for (Link* l : {&link(x, y), &link(y, x)}) {
    l->up = true;
    ++l->generation;
    l->last_control = clock.now();
  }
  const node::PeerHello of_a{NodeId(x), a.boot, a.node->compatibility(),
                             a.node->held_from(NodeId(y))};
  const node::PeerHello of_b{NodeId(y), b.boot, b.node->compatibility(),
                             b.node->held_from(NodeId(x))};
  a.node->on_peer_up(of_b);
  b.node->on_peer_up(of_a);
}

void VirtualGnbs::cut(const std::string& x, const std::string& y) {
  for (Link* l : {&link(x, y), &link(y, x)}) {
    l->up = false;
    ++l->generation;
    l->queue.clear();
    l->backlog = 0;
    l->sending = false;
  }
  for (const auto& [self, other] : {std::pair(x, y), std::pair(y, x)}) {
    Gnb& g = gnb(self);
    if (g.alive) g.node->on_peer_down(NodeId(other));
  }
}

void VirtualGnbs::kill(const std::string& name) {
  Gnb& g = gnb(name);
  g.alive = false;
  for (const std::string& other : options_.names) {
    if (other != name && link(name, other).up) cut(name, other);
  }
  for (auto& ue : ues_) {
    if (ue->at.value == name) ue->stream = {};
  }
  g.node.reset();
  g.engine.reset();
}

void VirtualGnbs::restart(const std::string& name) {
  boot(gnb(name));
}

void VirtualGnbs::set_rate(const std::string& from, const std::string& to, BytesPerSecond rate) {
  link(from, to).rate = rate;
}

void VirtualGnbs::deliver(const std::string& from, const std::string& to, wire::Message message) {
  Gnb& g = gnb(to);
  if (g.alive) g.node->on_message(NodeId(from), std::move(message));
}

void VirtualGnbs::pump(Link& l) {
  if (l.sending || l.queue.empty() || !l.up) return;
  l.sending = true;
  const auto size = l.queue.front().rows.size();
  const Seconds time(static_cast<double>(size) / l.rate.value);
  clock.after(to_duration(time), [this, &l, generation = l.generation, size] {
    if (l.generation != generation) return;
    Link::Kv kv = std::move(l.queue.front());
    l.queue.pop_front();
    l.backlog -= size;
    l.sending = false;
    clock.after(l.latency, [this, &l, generation, kv = std::move(kv)] {
      Gnb& g = gnb(l.to);
      if (l.generation == generation && g.alive) g.node->on_kv(NodeId(l.from), kv.header, kv.rows);
    });
    pump(l);
    Gnb& sender = gnb(l.from);
    const auto block = sender.engine->info().geometry.block_tokens *
                       sender.engine->info().geometry.bytes_per_token();
    if (l.backlog < block) sender.node->on_kv_drained(NodeId(l.to));
  });
}

// --- UEs ---

VirtualUe& VirtualGnbs::open(const std::string& name, TokenPosition prompt_tokens,
                             const std::function<void(wire::SessionParams&)>& adjust) {
  ues_.push_back(std::make_unique<VirtualUe>());
  VirtualUe& ue = *ues_.back();
  const std::string number = std::to_string(ues_.size());
  ue.id = UeId("ue-" + number);
  ue.session = SessionId(std::string(32 - number.size(), '0') + number);
  ue.params.ue = ue.id;
  ue.params.model = "fake";
  ue.params.max_tokens = 400;
  ue.params.ignore_eos = true;
  ue.params.seed = 42;
  ue.params.resume_token = ue.resume_token;
  ue.params.completion_id = "chatcmpl-" + number;
  ue.params.consistency = wire::Consistency::kExact;
  if (adjust) adjust(ue.params);
  for (TokenPosition p = 0; p < prompt_tokens; ++p) {
    ue.prompt.push_back(static_cast<TokenId>(20 + (p * 7 + ues_.size()) % 900));
  }
  ue.stream = node::StreamId(++next_stream_);
  ue.at = NodeId(name);
  ue.epoch = Epoch(1);
  node::OpenRequest request{ue.session, ue.params, ue.prompt, true};
  if (auto opened = node(name).open(std::move(request), ue.stream); !opened) {
    ue.failed = opened.error();
    ue.stream = {};
  }
  return ue;
}

Status VirtualGnbs::attach(VirtualUe& ue, const std::string& name) {
  ue.epoch = Epoch(ue.epoch.value + 1);
  node::AttachRequest request;
  request.session = ue.session;
  request.resume_token = ue.resume_token;
  request.epoch = ue.epoch;
  request.next_index = static_cast<TokenIndex>(ue.transcript.entries().size());
  request.last_node = ue.at;
  if (ue.brings_context) {
    request.context = node::UeContext{ue.params, ue.prompt, ue.transcript.ids(), ue.sampled_by};
  }
  const node::StreamId old = ue.stream;
  const NodeId left = ue.at;
  ue.stream = node::StreamId(++next_stream_);
  ue.at = NodeId(name);
  ue.closed = false;
  auto attached = node(name).attach(std::move(request), ue.stream);
  if (!attached) ue.stream = {};
  // The old connection goes a little later, as a radio does it.
  if (old.value != 0 && left.value != name) {
    clock.after(std::chrono::milliseconds(20), [this, left, old] {
      if (alive(left.value)) node(left.value).on_stream_closed(old);
    });
  }
  return attached;
}

void VirtualGnbs::leave(VirtualUe& ue) {
  if (ue.stream.value == 0) return;
  const node::StreamId old = std::exchange(ue.stream, {});
  if (alive(ue.at.value)) node(ue.at.value).on_stream_closed(old);
}

void VirtualGnbs::predict(VirtualUe& ue, const std::string& serving, const std::string& target,
                          Duration in) {
  mobility::Prediction p;
  p.ue = ue.id;
  p.seq = ++next_seq_;
  p.serving = CellId("cell-" + serving);
  p.target = CellId("cell-" + target);
  p.in = in;
  p.valid = in + std::chrono::seconds(5);
  if (auto taken = node(serving).on_prediction(p); !taken)
    throw std::logic_error(taken.error().message);
}

void VirtualGnbs::withdraw(VirtualUe& ue, const std::string& serving) {
  mobility::Prediction p;
  p.ue = ue.id;
  p.seq = ++next_seq_;
  p.serving = CellId("cell-" + serving);
  if (auto taken = node(serving).on_prediction(p); !taken)
    throw std::logic_error(taken.error().message);
}

void VirtualGnbs::ran(VirtualUe& ue, mobility::HandoverPhase phase, const std::string& source,
                      const std::string& target) {
  mobility::HandoverEvent event{ue.id, ++next_seq_, phase, CellId("cell-" + source),
                                CellId("cell-" + target)};
  for (const std::string& name : {source, target}) {
    if (!alive(name)) continue;
    if (auto taken = node(name).on_handover(event); !taken) {
      throw std::logic_error(taken.error().message);
    }
  }
}

void VirtualGnbs::hand_over(VirtualUe& ue, const std::string& source, const std::string& target,
                            Duration prediction) {
  if (prediction.count() > 0) {
    predict(ue, source, target, prediction);
    clock.run_for(prediction);
  }
  ran(ue, mobility::HandoverPhase::kExecution, source, target);
  if (auto attached = attach(ue, target); !attached) {
    throw std::logic_error(attached.error().describe());
  }
  ran(ue, mobility::HandoverPhase::kCompleted, source, target);
}

std::vector<TokenId> VirtualGnbs::reference(const VirtualUe& ue, std::size_t tokens) {
  Options alone;
  alone.names = {"reference"};
  alone.engine = options_.engine;
  VirtualGnbs one(std::move(alone));
  VirtualUe& real = *one.ues_.emplace_back(std::make_unique<VirtualUe>());
  real.params = ue.params;
  real.params.max_token_rate = 0;
  real.params.max_tokens =
      static_cast<std::uint32_t>(std::min<std::size_t>(tokens, ue.params.max_tokens));
  real.session = SessionId(std::string(32, 'f'));
  real.prompt = ue.prompt;
  real.stream = node::StreamId(++one.next_stream_);
  real.at = NodeId("reference");
  node::OpenRequest request{real.session, real.params, real.prompt, true};
  if (auto opened = one.node("reference").open(std::move(request), real.stream); !opened) {
    throw std::logic_error(opened.error().describe());
  }
  one.clock.run_until([&] { return real.finished.has_value(); }, std::chrono::minutes(10));
  return real.transcript.ids();
}

std::vector<std::string> VirtualGnbs::messages(const std::string& from,
                                               const std::string& to) const {
  return links_.at({from, to})->log;
}

std::size_t VirtualGnbs::count(const std::string& from, const std::string& to,
                               const std::string& name) const {
  std::size_t n = 0;
  for (const std::string& m : messages(from, to)) n += m == name ? 1 : 0;
  return n;
}

}  // namespace pallas::test
