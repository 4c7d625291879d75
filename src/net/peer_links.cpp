#include "net/peer_links.h"

#include <set>

#include "net/peer.h"

namespace pallas::net {
namespace {

// Callers that have not yet said who they are.
constexpr std::size_t kMaxCallers = 64;

Status check(const PeerLinksConfig& config) {
  if (config.name.value.empty()) return fail(Errc::kInvalidConfig, "name: is empty");
  std::set<NodeId> names{config.name};
  for (const PeerConfig& peer : config.peers) {
    if (peer.name.value.empty()) return fail(Errc::kInvalidConfig, "peers.name: is empty");
    if (!names.insert(peer.name).second) {
      return fail(Errc::kInvalidConfig, "peers.name: " + peer.name.value + " is there twice");
    }
    if (config.name < peer.name && (peer.host.empty() || peer.port == 0)) {
      return fail(Errc::kInvalidConfig,
                  "peers.address: " + peer.name.value + " needs a host and a port");
    }
  }
  if (config.credit_window == 0) return fail(Errc::kInvalidConfig, "credit_window: is 0");
  if (config.keep_alive <= Duration::zero() || config.dead_after <= config.keep_alive) {
    return fail(Errc::kInvalidConfig, "dead_after: must be longer than keep_alive");
  }
  return {};
}

}  // namespace

class PeerLinks::Impl final : private Connection::Handler {
 public:
  Impl(boost::asio::io_context& io, Clock& clock, PeerLinksConfig config,
       std::unique_ptr<Listener> listener)
      : clock_(clock), config_(std::move(config)), listener_(std::move(listener)) {
    for (const PeerConfig& peer : config_.peers) {
      peers_.emplace(peer.name, std::make_unique<Peer>(io, clock_, config_, peer));
    }
  }

  ~Impl() override {
    for (auto& [key, caller] : callers_) caller.connection->close();
  }

  void start(node::PeerEvents& events) {
    listener_->start([this](std::shared_ptr<Connection> call) { on_call(std::move(call)); });
    for (auto& [name, peer] : peers_) peer->start(events);
  }

  Peer* find(const NodeId& name) const {
    const auto found = peers_.find(name);
    return found == peers_.end() ? nullptr : found->second.get();
  }
  const std::map<NodeId, std::unique_ptr<Peer>>& peers() const { return peers_; }
  std::uint16_t port() const { return listener_->port(); }
  std::uint64_t refused_calls() const { return refused_calls_; }

 private:
  struct Caller {
    std::shared_ptr<Connection> connection;
    std::unique_ptr<Timer> patience;
  };

  void on_call(std::shared_ptr<Connection> connection) {
    Connection* key = connection.get();
    if (callers_.size() >= kMaxCallers) {
      ++refused_calls_;
      return;
    }
    auto patience = std::make_unique<Timer>(clock_);
    patience->arm(config_.handshake, [this, key] {
      refuse(*key, {Errc::kTimeout, "no Hello in time"});
    });
    connection->set_handler(*this);
    callers_.emplace(key, Caller{std::move(connection), std::move(patience)});
    key->read_frame();
  }

  void refuse(Connection& connection, const Error& error) {
    const auto found = callers_.find(&connection);
    if (found == callers_.end()) return;
    ++refused_calls_;
    const std::shared_ptr<Connection> call = std::move(found->second.connection);
    callers_.erase(found);
    if (config_.log) config_.log("call from " + call->remote() + " refused: " + error.message);
    call->refuse(error_frame(error));
  }

  void on_connected(Connection&) override {}

  Status on_payload(Connection&, const wire::KvBlock&) override {
    return fail(Errc::kOutOfOrder, "the first frame must be a Hello");
  }

  void on_frame(Connection& connection, wire::Message message, kv::Bytes) override {
    auto* hello = std::get_if<wire::Hello>(&message);
    if (hello == nullptr) {
      return refuse(connection, {Errc::kOutOfOrder, "the first frame must be a Hello"});
    }
    if (Status ok = check_hello(*hello); !ok) return refuse(connection, ok.error());
    Peer* peer = find(hello->node);
    if (peer == nullptr) {
      return refuse(connection,
                    {Errc::kNotFound, "Hello.node: " + hello->node.value +
                                          " is not a configured peer of " + config_.name.value});
    }
    if (Status ok = peer->may_call(*hello); !ok) return refuse(connection, ok.error());
    const auto found = callers_.find(&connection);
    std::shared_ptr<Connection> call = std::move(found->second.connection);
    callers_.erase(found);
    peer->accept(std::move(call), std::move(*hello));
  }

  void on_bad_frame(Connection& connection, const Error& error) override {
    refuse(connection, error);
  }

  void on_closed(Connection& connection, const Error&) override { callers_.erase(&connection); }

  Clock& clock_;
  const PeerLinksConfig config_;
  std::map<NodeId, std::unique_ptr<Peer>> peers_;
  std::map<Connection*, Caller> callers_;
  std::uint64_t refused_calls_ = 0;
  std::unique_ptr<Listener> listener_;  // goes first: no call comes while the rest goes
};

Result<std::unique_ptr<PeerLinks>> PeerLinks::create(boost::asio::io_context& io, Clock& clock,
                                                     PeerLinksConfig config) {
  if (Status ok = check(config); !ok) return Failure(ok.error());
  auto listener =
      Listener::open(io, clock, config.listen_address, config.listen_port, config.sockets);
  if (!listener) return Failure(listener.error());
  return std::unique_ptr<PeerLinks>(
      new PeerLinks(std::make_unique<Impl>(io, clock, std::move(config), std::move(*listener))));
}

PeerLinks::PeerLinks(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PeerLinks::~PeerLinks() = default;

void PeerLinks::start(node::PeerEvents& events) {
  impl_->start(events);
}

std::uint16_t PeerLinks::port() const {
  return impl_->port();
}

std::vector<PeerStats> PeerLinks::stats() const {
  std::vector<PeerStats> all;
  for (const auto& [name, peer] : impl_->peers()) all.push_back(peer->stats());
  return all;
}

std::uint64_t PeerLinks::refused_calls() const {
  return impl_->refused_calls();
}

void PeerLinks::send(const NodeId& peer, wire::Message message) {
  if (Peer* found = impl_->find(peer)) found->send(message);
}

void PeerLinks::send_kv(const NodeId& peer, wire::KvBlock header, kv::Bytes rows) {
  if (Peer* found = impl_->find(peer)) found->send_kv(std::move(header), std::move(rows));
}

std::uint64_t PeerLinks::kv_backlog(const NodeId& peer) const {
  const Peer* found = impl_->find(peer);
  return found == nullptr ? 0 : found->kv_backlog();
}

bool PeerLinks::is_up(const NodeId& peer) const {
  const Peer* found = impl_->find(peer);
  return found != nullptr && found->is_up();
}

std::optional<BytesPerSecond> PeerLinks::goodput(const NodeId& peer) const {
  const Peer* found = impl_->find(peer);
  return found == nullptr ? std::nullopt : found->goodput();
}

void PeerLinks::discard_kv(const NodeId& peer, const Attempt& attempt) {
  if (Peer* found = impl_->find(peer)) found->discard_kv(attempt);
}

}  // namespace pallas::net
