#include "net/peer_links.h"

#include <algorithm>
#include <set>

#include "net/peer.h"

namespace pallas::net {
namespace {

// Callers that have not yet said who they are. One more takes the place of the oldest: an honest
// peer needs milliseconds.
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
       std::unique_ptr<tls::Credentials> credentials)
      : io_(io),
        clock_(clock),
        config_(std::move(config)),
        credentials_(std::move(credentials)),
        refresh_timer_(clock) {
    for (const PeerConfig& peer : config_.peers) {
      names_.push_back(peer.name.value);
      peers_.emplace(peer.name,
                     std::make_unique<Peer>(io, clock_, config_, credentials_.get(), peer));
    }
  }

  Status listen() {
    Listener::Secure secure;
    if (credentials_) {
      secure = [this] { return tls::Session::create(*credentials_, tls::Role::kAccepts, names_); };
    }
    auto listener = Listener::open(io_, clock_, config_.listen_address, config_.listen_port,
                                   config_.sockets, std::move(secure));
    if (!listener) return Failure(listener.error());
    listener_ = std::move(*listener);
    return {};
  }

  ~Impl() override {
    for (auto& [key, caller] : callers_) caller.connection->close();
  }

  void start(node::PeerEvents& events) {
    listener_->start([this](std::shared_ptr<Connection> call) { on_call(std::move(call)); });
    for (auto& [name, peer] : peers_) peer->start(events);
    if (credentials_) refresh();
  }

  Peer* find(const NodeId& name) const {
    const auto found = peers_.find(name);
    return found == peers_.end() ? nullptr : found->second.get();
  }
  const std::map<NodeId, std::unique_ptr<Peer>>& peers() const { return peers_; }
  std::uint16_t port() const { return listener_->port(); }
  std::uint64_t refused_calls() const { return refused_calls_; }
  const tls::Credentials* credentials() const { return credentials_.get(); }

 private:
  struct Caller {
    std::shared_ptr<Connection> connection;
    std::unique_ptr<Timer> patience;
    std::uint64_t number = 0;
  };

  void log(const std::string& line) const {
    if (config_.log) config_.log(line);
  }

  void refresh() {
    const auto changed = credentials_->refresh();
    if (!changed) {
      log("certificates stay as they were: " + changed.error().message);
    } else if (*changed) {
      log("certificates were read again; new connections use them");
    }
    refresh_timer_.arm(config_.refresh, [this] { refresh(); });
  }

  void on_call(std::shared_ptr<Connection> connection) {
    if (callers_.size() >= kMaxCallers) {
      const auto oldest = std::min_element(
          callers_.begin(), callers_.end(),
          [](const auto& a, const auto& b) { return a.second.number < b.second.number; });
      refuse(*oldest->first, {Errc::kResourceExhausted, "too many calls at once"});
    }
    Connection* key = connection.get();
    auto patience = std::make_unique<Timer>(clock_);
    patience->arm(config_.handshake, [this, key] {
      refuse(*key, {Errc::kTimeout, "no " + std::string(key->awaited()) + " in time"});
    });
    connection->set_handler(*this);
    callers_.emplace(key, Caller{std::move(connection), std::move(patience), ++calls_});
    key->read_frame();
  }

  void refuse(Connection& connection, const Error& error) {
    const auto found = callers_.find(&connection);
    if (found == callers_.end()) return;
    ++refused_calls_;
    const std::shared_ptr<Connection> call = std::move(found->second.connection);
    callers_.erase(found);
    log("call from " + call->remote() + " refused: " + error.message);
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
    if (!connection.proves(hello->node)) {
      return refuse(
          connection,
          {Errc::kUnauthorized, "Hello.node: the certificate is not that of " + hello->node.value});
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

  boost::asio::io_context& io_;
  Clock& clock_;
  const PeerLinksConfig config_;
  const std::unique_ptr<tls::Credentials> credentials_;  // null: links are plain
  std::vector<std::string> names_;                       // of all peers
  Timer refresh_timer_;
  std::map<NodeId, std::unique_ptr<Peer>> peers_;
  std::map<Connection*, Caller> callers_;
  std::uint64_t calls_ = 0;
  std::uint64_t refused_calls_ = 0;
  std::unique_ptr<Listener> listener_;  // goes first: no call comes while the rest goes
};

Result<std::unique_ptr<PeerLinks>> PeerLinks::create(boost::asio::io_context& io, Clock& clock,
                                                     PeerLinksConfig config) {
  if (Status ok = check(config); !ok) return Failure(ok.error());
  std::unique_ptr<tls::Credentials> credentials;
  if (config.tls) {
    auto loaded = tls::Credentials::load(*config.tls, config.name.value);
    if (!loaded) return Failure(loaded.error());
    credentials = std::move(*loaded);
  }
  auto impl = std::make_unique<Impl>(io, clock, std::move(config), std::move(credentials));
  if (Status ok = impl->listen(); !ok) return Failure(ok.error());
  return std::unique_ptr<PeerLinks>(new PeerLinks(std::move(impl)));
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

std::optional<std::int64_t> PeerLinks::certificate_ends_unix_s() const {
  const tls::Credentials* credentials = impl_->credentials();
  if (credentials == nullptr) return std::nullopt;
  return credentials->ends_unix_s();
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
