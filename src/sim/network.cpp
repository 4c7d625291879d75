#include "sim/network.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "kv/goodput_meter.h"
#include "sim/callback.h"
#include "wire/codec.h"

namespace pallas::sim {
namespace {

struct Kv {
  wire::KvBlock header;
  kv::Bytes rows;
};

struct Domain;

// One direction of a pair of gNBs.
struct Link {
  int from = 0, to = 0;
  std::uint64_t generation = 0;  // frames of an earlier connection are lost
  Duration control_latency{0};
  TimePoint last_control{}, last_relay{};
  RateProcess rate;
  kv::GoodputMeter meter;
  Domain* domain = nullptr;
  std::deque<Kv> queue;      // the head is on the wire
  std::deque<Kv> in_flight;  // left, not yet arrived
  std::uint64_t backlog = 0;
  std::uint64_t delivered = 0;  // real bytes
  double remaining = 0;         // real bytes of the head
  double speed = 0;             // real bytes/s
  bool stalled = false;
  std::vector<std::pair<std::uint64_t, Callback>> held;  // while stalled, with their generation
  Network::Copies copies;

  Link(RateProcess process, std::optional<BytesPerSecond> first)
      : rate(std::move(process)), meter(first) {}
};

// Links whose transfers share one capacity; or one link alone, without one.
struct Domain {
  std::optional<RateProcess> capacity;
  std::vector<Link*> active;  // in order of their start
  TimePoint settled{};
  TimerId timer = 0;
};

// Max-min fair: nobody gets more than its own rate, and what that leaves goes to the others.
void share(double capacity, std::vector<std::pair<double, Link*>>& by_cap) {
  std::stable_sort(by_cap.begin(), by_cap.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::size_t left = by_cap.size();
  for (const auto& [cap, link] : by_cap) {
    link->speed = std::min(cap, capacity / static_cast<double>(left--));
    capacity -= link->speed;
  }
}

Status check_rate(const char* what, const RateSettings& rate) {
  if (auto ok = check(rate); !ok) {
    return fail(ok.error().code, std::string(what) + "." + ok.error().message);
  }
  return {};
}

}  // namespace

Status check(const NetworkSettings& settings) {
  const auto bad = [](const char* what) { return fail(Errc::kInvalidArgument, what); };
  if (settings.control_latency < Duration{0}) {
    return bad("control_latency_ms: must be at least 0");
  }
  if (settings.data_latency < Duration{0}) return bad("data_latency_ms: must be at least 0");
  if (settings.relay_hop_latency && *settings.relay_hop_latency < Duration{0}) {
    return bad("relay_hop_ms: must be at least 0");
  }
  if (settings.first_estimate && !(settings.first_estimate->value > 0)) {
    return bad("first_estimate_mbps: must be above 0");
  }
  if (settings.sight == GoodputSight::kFirst && !settings.first_estimate) {
    return bad("first_estimate_mbps: missing, and nodes are to see nothing else");
  }
  if (auto ok = check_rate("network", settings.rate); !ok) return ok;
  if (settings.sharing != Sharing::kNone) return check_rate("network.shared", settings.shared);
  return {};
}

class Network::Impl {
 public:
  Impl(VirtualClock& clock, NetworkSettings settings, int gnbs, double byte_scale,
       std::uint64_t block_bytes, std::uint64_t seed, NetworkListener& listener)
      : clock_(clock),
        settings_(std::move(settings)),
        gnbs_(static_cast<std::size_t>(gnbs)),
        scale_(byte_scale),
        block_bytes_(block_bytes),
        seed_(seed),
        listener_(listener),
        links_(gnbs_ * gnbs_),
        up_(gnbs_ * gnbs_, false) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    for (auto& domain : domains_) clock_.cancel(domain->timer);
  }

  void send(int from, int to, wire::Message&& message);
  void send_kv(int from, int to, wire::KvBlock header, kv::Bytes rows);
  std::optional<BytesPerSecond> goodput(int from, int to);
  void discard_kv(int from, int to, const Attempt& attempt);
  void set_up(int x, int y, bool up);
  void set_rate(int from, int to, BytesPerSecond rate);
  void draw(int from, int to, std::uint64_t name);
  void set_stalled(int from, int to, bool stalled);
  Link& link(int from, int to);
  bool is_up(int from, int to) const { return up_[place(from, to)]; }
  std::uint64_t backlog(int from, int to) const {
    const auto& found = links_[place(from, to)];
    return found ? found->backlog : 0;
  }
  BytesPerSecond rate(int from, int to) { return link(from, to).rate.at(clock_.now()); }

  std::map<std::size_t, Duration> extra_delay;
  bool codec = false;
  std::vector<std::string> codec_faults;
  Stats stats;

 private:
  std::size_t place(int from, int to) const {
    return static_cast<std::size_t>(from) * gnbs_ + static_cast<std::size_t>(to);
  }
  Domain& domain_of(int from, int to);
  Domain& new_domain(std::optional<std::uint64_t> shared_key);
  void transmit(Link& l, TimePoint when, wire::Message&& message);
  void transmit_encoded(Link& l, TimePoint when, const wire::Message& message);
  void pass(Link& l, std::uint64_t generation, Callback arrival);
  void copy(Link& l, const wire::Message& message);
  void copy(Link& l, wire::KvBlock header, kv::Bytes rows);
  void begin_head(Link& l);
  void settle(Domain& domain);
  void plan(Domain& domain);
  void finish_head(Link& l);
  void arrive(Link& l);
  void stop(Link& l);

  VirtualClock& clock_;
  NetworkSettings settings_;
  std::size_t gnbs_;
  double scale_;
  std::uint64_t block_bytes_;
  std::uint64_t seed_;
  NetworkListener& listener_;
  std::vector<std::unique_ptr<Link>> links_;  // made when first used
  std::vector<bool> up_;
  std::vector<std::unique_ptr<Domain>> domains_;
  std::map<int, Domain*> shared_;  // by gNB, or -1 for all
};

Link& Network::Impl::link(int from, int to) {
  auto& found = links_[place(from, to)];
  if (!found) {
    found = std::make_unique<Link>(RateProcess(settings_.rate, seed_, place(from, to)),
                                   settings_.first_estimate);
    found->from = from;
    found->to = to;
    found->control_latency = settings_.control_latency;
    found->domain = &domain_of(from, to);
  }
  return *found;
}

Domain& Network::Impl::new_domain(std::optional<std::uint64_t> shared_key) {
  domains_.push_back(std::make_unique<Domain>());
  Domain& domain = *domains_.back();
  if (shared_key) domain.capacity.emplace(settings_.shared, mix(seed_, "shared"), *shared_key);
  return domain;
}

Domain& Network::Impl::domain_of(int from, int to) {
  int key = -1;
  switch (settings_.sharing) {
    case Sharing::kNone:
      return new_domain(std::nullopt);
    case Sharing::kEgress:
      key = from;
      break;
    case Sharing::kIngress:
      key = to;
      break;
    case Sharing::kTotal:
      break;
  }
  Domain*& shared = shared_[key];
  if (shared == nullptr) shared = &new_domain(static_cast<std::uint64_t>(key + 1));
  return *shared;
}

// --- control ---

void Network::Impl::send(int from, int to, wire::Message&& message) {
  listener_.on_sent(from, to, message);
  if (!is_up(from, to)) return;
  ++stats.messages;
  Link& l = link(from, to);
  if (l.copies.count > 0) copy(l, message);
  Duration latency = l.control_latency;
  TimePoint* last = &l.last_control;
  if (settings_.relay_hop_latency) {
    const auto* const update = std::get_if<wire::TokenUpdate>(&message);
    if (update != nullptr && !update->attempt) {
      const int hops = listener_.relay_hops(from, to, *update);
      // Relayed tokens keep their own order: what else this link carries does not wait for them.
      if (hops > 0) {
        latency = hops * *settings_.relay_hop_latency;
        last = &l.last_relay;
      }
    }
  }
  Duration extra{0};
  if (!extra_delay.empty()) {
    if (auto it = extra_delay.find(message.index()); it != extra_delay.end()) extra = it->second;
  }
  const TimePoint when = std::max(clock_.now() + latency + extra, *last);
  if (extra.count() == 0) *last = when;
  if (codec) {
    transmit_encoded(l, when, message);
  } else {
    transmit(l, when, std::move(message));
  }
}

void Network::Impl::transmit(Link& l, TimePoint when, wire::Message&& message) {
  clock_.schedule(when, [this, &l, generation = l.generation,
                         boxed = std::make_unique<wire::Message>(std::move(message))]() mutable {
    pass(l, generation, [this, &l, boxed = std::move(boxed)] {
      listener_.on_message(l.from, l.to, std::move(*boxed));
    });
  });
}

void Network::Impl::pass(Link& l, std::uint64_t generation, Callback arrival) {
  if (l.generation != generation) return;
  if (l.stalled) {
    l.held.emplace_back(generation, std::move(arrival));
  } else {
    arrival();
  }
}

void Network::Impl::set_stalled(int from, int to, bool stalled) {
  Link& l = link(from, to);
  l.stalled = stalled;
  if (stalled) return;
  for (auto& [generation, arrival] : std::exchange(l.held, {})) {
    pass(l, generation, std::move(arrival));
  }
}

void Network::Impl::copy(Link& l, const wire::Message& message) {
  --l.copies.count;
  clock_.schedule_after(l.control_latency + l.copies.delay,
                        [this, &l, boxed = std::make_unique<wire::Message>(message)] {
                          if (is_up(l.from, l.to))
                            listener_.on_message(l.from, l.to, std::move(*boxed));
                        });
}

void Network::Impl::copy(Link& l, wire::KvBlock header, kv::Bytes rows) {
  --l.copies.count;
  if (l.copies.foreign) {
    header.token_hash = ~header.token_hash;
    for (std::byte& b : rows) b = ~b;
  }
  header.payload_bytes = rows.size();
  auto boxed = std::make_unique<Kv>(Kv{std::move(header), std::move(rows)});
  clock_.schedule_after(settings_.data_latency + l.copies.delay,
                        [this, &l, boxed = std::move(boxed)] {
                          if (!is_up(l.from, l.to)) return;
                          listener_.on_kv(l.from, l.to, boxed->header, std::move(boxed->rows));
                        });
}

void Network::Impl::transmit_encoded(Link& l, TimePoint when, const wire::Message& message) {
  auto encoded = wire::encode(message);
  if (!encoded) {
    codec_faults.push_back(encoded.error().describe());
    return;
  }
  const std::span<const std::byte> all(*encoded);
  const auto header = wire::decode_header(all.first<wire::kHeaderBytes>());
  if (!header) {
    codec_faults.push_back(header.error().describe());
    return;
  }
  auto decoded = wire::decode(*header, all.subspan(wire::kHeaderBytes));
  if (!decoded) {
    codec_faults.push_back(decoded.error().describe());
    return;
  }
  transmit(l, when, std::move(*decoded));
}

// --- KV ---

void Network::Impl::send_kv(int from, int to, wire::KvBlock header, kv::Bytes rows) {
  listener_.on_kv_sent(from, to, header);
  if (!is_up(from, to)) return;
  Link& l = link(from, to);
  if (l.copies.count > 0) copy(l, header, rows);
  header.payload_bytes = rows.size();
  if (codec) header.checksum = wire::checksum(rows);
  l.backlog += rows.size();
  l.queue.push_back({std::move(header), std::move(rows)});
  if (l.queue.size() > 1) return;
  l.meter.busy(clock_.now(), l.delivered);
  settle(*l.domain);
  begin_head(l);
  l.domain->active.push_back(&l);
  plan(*l.domain);
}

void Network::Impl::begin_head(Link& l) {
  l.remaining = static_cast<double>(l.queue.front().rows.size()) * scale_;
  l.speed = 0;
}

// Counts what flowed since the last time at the speeds that were set then.
void Network::Impl::settle(Domain& domain) {
  const double passed = to_seconds(clock_.now() - domain.settled).count();
  domain.settled = clock_.now();
  if (passed <= 0) return;
  for (Link* const l : domain.active) l->remaining -= l->speed * passed;
}

// Sets the speeds from now on and the time to look again: the next transfer's end or change of a
// rate.
void Network::Impl::plan(Domain& domain) {
  clock_.cancel(std::exchange(domain.timer, 0));
  if (domain.active.empty()) return;
  const TimePoint now = clock_.now();
  std::optional<TimePoint> next;
  const auto at = [&next](std::optional<TimePoint> when) {
    if (when && (!next || *when < *next)) next = when;
  };
  if (domain.capacity) {
    std::vector<std::pair<double, Link*>> by_cap;
    by_cap.reserve(domain.active.size());
    for (Link* const l : domain.active) by_cap.emplace_back(l->rate.at(now).value, l);
    share(domain.capacity->at(now).value, by_cap);
    at(domain.capacity->next_change(now));
  } else {
    for (Link* const l : domain.active) l->speed = l->rate.at(now).value;
  }
  for (Link* const l : domain.active) {
    at(l->rate.next_change(now));
    if (l->speed <= 0) continue;
    const double ns = std::max(0.0, l->remaining) / l->speed * 1e9;
    if (ns < 9e18) at(now + Duration(static_cast<std::int64_t>(ns) + 1));
  }
  if (!next) return;
  domain.timer = clock_.schedule(*next, [this, &domain] {
    domain.timer = 0;
    settle(domain);
    std::vector<Link*> done;
    for (Link* const l : domain.active) {
      if (l->remaining <= 0) done.push_back(l);
    }
    for (Link* const l : done) finish_head(*l);
    plan(domain);
    // Only now: what the nodes answer finds the link as it is. With one block left, the first of
    // its bytes to leave takes the backlog below a block: that is at once.
    for (Link* const l : done) {
      if (l->backlog <= block_bytes_ && is_up(l->from, l->to)) {
        listener_.on_kv_drained(l->from, l->to);
      }
    }
  });
}

void Network::Impl::finish_head(Link& l) {
  const std::uint64_t size = l.queue.front().rows.size();
  const double real = static_cast<double>(size) * scale_;
  ++stats.kv_blocks;
  stats.kv_bytes += real;
  l.delivered += static_cast<std::uint64_t>(real);
  l.backlog -= size;
  l.in_flight.push_back(std::move(l.queue.front()));
  l.queue.pop_front();
  clock_.schedule_after(settings_.data_latency, [this, &l, generation = l.generation] {
    if (l.generation == generation) arrive(l);
  });
  const TimePoint now = clock_.now();
  if (l.queue.empty()) {
    l.meter.idle(now, l.delivered);
    stop(l);
  } else {
    l.meter.progress(now, l.delivered);
    const double carried = l.remaining;  // at most what a nanosecond moves, below 0
    begin_head(l);
    l.remaining += carried;
  }
}

void Network::Impl::arrive(Link& l) {
  auto boxed = std::make_unique<Kv>(std::move(l.in_flight.front()));
  l.in_flight.pop_front();
  pass(l, l.generation, [this, &l, boxed = std::move(boxed)] {
    listener_.on_kv(l.from, l.to, boxed->header, std::move(boxed->rows));
  });
}

void Network::Impl::stop(Link& l) {
  std::erase(l.domain->active, &l);
  l.speed = 0;
}

void Network::Impl::discard_kv(int from, int to, const Attempt& attempt) {
  Link& l = link(from, to);
  for (std::size_t i = l.queue.size(); i-- > 1;) {  // the head is on the wire
    if (l.queue[i].header.attempt != attempt) continue;
    l.backlog -= l.queue[i].rows.size();
    l.queue.erase(l.queue.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

std::optional<BytesPerSecond> Network::Impl::goodput(int from, int to) {
  std::optional<BytesPerSecond> seen = settings_.first_estimate;
  switch (settings_.sight) {
    case GoodputSight::kMeter:
      if (const auto& l = links_[place(from, to)]) seen = l->meter.estimate();
      break;
    case GoodputSight::kCurrent:
      seen = rate(from, to);
      break;
    case GoodputSight::kFirst:
      break;
  }
  if (!seen || seen->value <= 0) return std::nullopt;
  return BytesPerSecond(seen->value / scale_);
}

void Network::Impl::set_up(int x, int y, bool up) {
  const std::array<std::pair<int, int>, 2> both{{{x, y}, {y, x}}};
  for (const auto& ends : both) {
    up_[place(ends.first, ends.second)] = up;
    const auto& l = links_[place(ends.first, ends.second)];
    if (!l) continue;
    ++l->generation;
    l->held.clear();
    l->last_control = l->last_relay = clock_.now();
    if (l->queue.empty() && l->in_flight.empty()) continue;
    settle(*l->domain);
    l->queue.clear();
    l->in_flight.clear();
    l->backlog = 0;
    l->meter.abandon();
    stop(*l);
    plan(*l->domain);
  }
}

void Network::Impl::set_rate(int from, int to, BytesPerSecond rate) {
  Link& l = link(from, to);
  settle(*l.domain);
  l.rate.set(rate);
  plan(*l.domain);
}

void Network::Impl::draw(int from, int to, std::uint64_t name) {
  Link& l = link(from, to);
  settle(*l.domain);
  l.rate.draw(name);
  plan(*l.domain);
}

// --- facade ---

Network::Network(VirtualClock& clock, NetworkSettings settings, int gnbs, double byte_scale,
                 std::uint64_t block_bytes, std::uint64_t seed, NetworkListener& listener)
    : impl_(std::make_unique<Impl>(clock, std::move(settings), gnbs, byte_scale, block_bytes, seed,
                                   listener)) {}
Network::~Network() = default;
void Network::send(int from, int to, wire::Message&& message) {
  impl_->send(from, to, std::move(message));
}
void Network::send_kv(int from, int to, wire::KvBlock header, kv::Bytes rows) {
  impl_->send_kv(from, to, std::move(header), std::move(rows));
}
std::uint64_t Network::kv_backlog(int from, int to) const {
  return impl_->backlog(from, to);
}
bool Network::is_up(int from, int to) const {
  return impl_->is_up(from, to);
}
std::optional<BytesPerSecond> Network::goodput(int from, int to) const {
  return impl_->goodput(from, to);
}
void Network::discard_kv(int from, int to, const Attempt& attempt) {
  impl_->discard_kv(from, to, attempt);
}
void Network::set_up(int x, int y, bool up) {
  impl_->set_up(x, y, up);
}
void Network::set_rate(int from, int to, BytesPerSecond rate) {
  impl_->set_rate(from, to, rate);
}
void Network::set_control_latency(int from, int to, Duration latency) {
  impl_->link(from, to).control_latency = latency;
}
void Network::delay_messages(std::size_t type, Duration extra) {
  impl_->extra_delay[type] = extra;
}
void Network::draw(int from, int to, std::uint64_t name) {
  impl_->draw(from, to, name);
}
void Network::set_stalled(int from, int to, bool stalled) {
  impl_->set_stalled(from, to, stalled);
}
void Network::copy_next(int from, int to, const Copies& copies) {
  impl_->link(from, to).copies = copies;
}
void Network::check_codec(bool on) {
  impl_->codec = on;
}
BytesPerSecond Network::rate(int from, int to) const {
  return impl_->rate(from, to);
}
const std::vector<std::string>& Network::codec_faults() const {
  return impl_->codec_faults;
}
const Network::Stats& Network::stats() const {
  return impl_->stats;
}

}  // namespace pallas::sim
