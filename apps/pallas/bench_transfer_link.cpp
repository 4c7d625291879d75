#include "bench_transfer_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <optional>

#include "gnb_config.h"
#include "kv/link_ahead.h"
#include "net/asio_clock.h"
#include "net/peer_links.h"
#include "wire/codec.h"

namespace pallas::app {
namespace {

constexpr Duration kPatience = std::chrono::seconds(10);
constexpr TokenPosition kHashTokens = 64;  // exported at once for a hash
constexpr std::uint64_t kHashFactor = 0x9e3779b97f4a7c15;

class Engine;

// The link of one pair of ends; both nodes know each other by these names.
class LinkEnd final : public TransferEnd, private node::PeerEvents {
 public:
  // Without a folder of certificates the link is plain.
  LinkEnd(Engine& engine, TransferRole role, std::string certificates)
      : engine_(engine), role_(role), certificates_(std::move(certificates)) {}
  ~LinkEnd() override;

  Result<std::string> open(const TransferOrder& order) override;
  Status meet() override;
  Status run(std::uint64_t bytes) override;
  void wait_readable(int fd) override;

  // What the engine tells.
  void on_exported(kv::TokenRange range, kv::Bytes rows);
  void on_attached(TokenPosition front);
  void on_failed(const Error& error) { give_up(error); }

 private:
  void on_peer_up(const node::PeerHello&) override;
  void on_peer_down(const NodeId& peer) override;
  void on_message(const NodeId&, wire::Message) override {}
  void on_kv(const NodeId& peer, const wire::KvBlock& header, kv::Bytes rows) override;
  void on_kv_drained(const NodeId& peer) override;
  std::vector<wire::HeldAttempt> held_from(const NodeId&) const override { return {}; }

  const NodeId& self() const { return role_ == TransferRole::kSource ? source_ : target_; }
  const NodeId& peer() const { return role_ == TransferRole::kSource ? target_ : source_; }
  // Runs the event loop until finish() or give_up().
  Status loop();
  void finish();
  void give_up(const Error& error);
  void pump();

  Engine& engine_;
  TransferRole role_;
  std::string certificates_;
  NodeId source_{"source"}, target_{"target"};  // the smaller name dials
  std::unique_ptr<net::PeerLinks> links_;
  std::optional<Error> error_;
  bool waiting_ = false;  // for finish()

  TokenPosition block_tokens_ = 0;
  TokenPosition next_ = 0;       // to export, or expected
  std::uint64_t exporting_ = 0;  // bytes
  std::uint64_t to_export_ = 0;  // bytes of this run that were not asked for yet
  std::uint64_t to_attach_ = 0;  // bytes of this run that are not in the cache yet
  TokenPosition front_ = 0;      // of the target's cache
};

class Engine final : public TransferEngine, private engine::EngineEvents {
 public:
  Engine(TokenPosition context, std::string certificates)
      : io_(1),
        work_(io_.get_executor()),
        clock_(io_),
        context_(context),
        certificates_(std::move(certificates)) {}
  ~Engine() override { kit_ = {}; }

  Status start(TransferRole role, const TransferEngineConfig& config) {
    role_ = role;
    GnbConfig settings;
    settings.engine = config.engine;
    settings.model = config.model;
    settings.context_tokens = config.context;
    settings.slots = 1;
    auto kit = make_engine(settings, io_, clock_, EngineCosts::kUnknown);
    if (!kit) return Failure(kit.error());
    kit_ = std::move(*kit);
    kit_.engine->set_events(this);
    const auto slot = kit_.engine->reserve(context_);
    if (!slot) return Failure(slot.error());
    slot_ = *slot;
    if (role == TransferRole::kTarget) return {};
    std::vector<TokenId> ids(context_);
    const auto words = static_cast<std::uint64_t>(kit_.text->vocabulary_size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ids[i] = static_cast<TokenId>((i * 7919 + 11) % words);
    }
    kit_.engine->prefill(slot_, 0, std::move(ids));
    return loop();
  }

  std::uint64_t bytes_per_token() const override { return geometry().bytes_per_token(); }
  std::uint64_t session_bytes() const override { return context_ * bytes_per_token(); }

  Result<std::string> rows_hash() override {
    hash_.emplace();
    hash_next();
    const auto status = loop();
    const auto sum = hash_->sum;
    hash_.reset();
    if (!status) return Failure(status.error());
    return fmt::format("{:016x}", sum);
  }

  std::unique_ptr<TransferEnd> make_end(bool tls) override {
    auto end = std::make_unique<LinkEnd>(*this, role_, tls ? certificates_ : "");
    end_ = end.get();
    return end;
  }
  void forget_end() { end_ = nullptr; }

  boost::asio::io_context& io() { return io_; }
  net::AsioClock& clock() { return clock_; }
  engine::Engine& port() { return *kit_.engine; }
  engine::SlotId slot() const { return slot_; }
  TokenPosition context() const { return context_; }
  const kv::Geometry& geometry() const { return kit_.engine->info().geometry; }

 private:
  struct Hash {
    std::uint64_t sum = 0;
    TokenPosition next = 0;
  };

  Status loop() {
    io_.restart();
    io_.run();
    if (error_) return Failure(*error_);
    return {};
  }
  void hash_next() {
    const TokenPosition end = std::min(context_, hash_->next + kHashTokens);
    port().export_kv(slot_, {hash_->next, end});
    hash_->next = end;
  }

  void on_prefilled(engine::SlotId, TokenPosition front, Duration) override {
    if (front == context_) io_.stop();
  }
  void on_exported(engine::SlotId, kv::TokenRange range, kv::Bytes rows) override {
    if (hash_) {
      hash_->sum = hash_->sum * kHashFactor + wire::checksum(rows);
      if (hash_->next < context_) return hash_next();
      return io_.stop();
    }
    if (end_ != nullptr) end_->on_exported(range, std::move(rows));
  }
  void on_attached(engine::SlotId, TokenPosition front) override {
    if (end_ != nullptr) end_->on_attached(front);
  }
  void on_failed(engine::SlotId, const Error& error) override {
    error_ = error;
    if (end_ != nullptr) end_->on_failed(error);
    io_.stop();
  }
  void on_truncated(engine::SlotId, TokenPosition) override {}
  void on_ranked(engine::SlotId, std::vector<double>) override {}
  void on_replayed(engine::SlotId, TokenPosition, Duration) override {}
  void on_sampled(engine::SlotId, const engine::Sampled&) override {}
  void on_paused(engine::SlotId, TokenPosition) override {}

  boost::asio::io_context io_;
  // The engine's thread posts to a loop that has nothing else to do.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  net::AsioClock clock_;
  TokenPosition context_;
  std::string certificates_;
  TransferRole role_ = TransferRole::kSource;
  EngineKit kit_;
  engine::SlotId slot_;
  LinkEnd* end_ = nullptr;
  std::optional<Hash> hash_;
  std::optional<Error> error_;
};

LinkEnd::~LinkEnd() {
  engine_.forget_end();
}

Result<std::string> LinkEnd::open(const TransferOrder& order) {
  block_tokens_ = static_cast<TokenPosition>(order.block_bytes / engine_.bytes_per_token());
  net::PeerLinksConfig config;
  config.name = self();
  config.boot = BootId(1);
  config.block_bytes = order.block_bytes;
  config.sockets.congestion_control = order.congestion_control;
  net::PeerConfig other{peer(), "", 0, std::nullopt, std::nullopt};
  if (role_ == TransferRole::kSource) {
    const auto to = parse_host_port(order.at, "at");
    if (!to) return Failure(to.error());
    other.host = to->host;
    other.port = to->port;
  }
  config.peers.push_back(std::move(other));
  if (!certificates_.empty()) {
    const auto file = [this](const std::string& name) {
      return tls::File{"certificates", certificates_ + "/" + name};
    };
    config.tls =
        tls::Files{file(self().value + ".crt"), file(self().value + ".key"), file("ca.crt")};
  }
  auto links = net::PeerLinks::create(engine_.io(), engine_.clock(), std::move(config));
  if (!links) return Failure(links.error());
  links_ = std::move(*links);
  links_->start(*this);
  if (role_ == TransferRole::kTarget) return fmt::format("127.0.0.1:{}", links_->port());
  if (auto status = meet(); !status) return Failure(status.error());
  return std::string();
}

Status LinkEnd::meet() {
  waiting_ = !links_->is_up(peer());
  Timer patience(engine_.clock());
  patience.arm(kPatience, [this] {
    give_up({Errc::kTimeout, "the link to the " + peer().value + " did not come up"});
  });
  return loop();
}

Status LinkEnd::run(std::uint64_t bytes) {
  waiting_ = true;
  if (role_ == TransferRole::kTarget) {
    to_attach_ = bytes;
  } else {
    to_export_ = bytes;
    pump();
  }
  return loop();
}

void LinkEnd::wait_readable(int fd) {
  boost::asio::posix::stream_descriptor watched(engine_.io(), fd);
  bool readable = false;
  watched.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     [this, &readable](const boost::system::error_code&) {
                       readable = true;
                       engine_.io().stop();
                     });
  while (!readable) {
    engine_.io().restart();
    engine_.io().run();
  }
  watched.release();
}

Status LinkEnd::loop() {
  while (waiting_ && !error_) {
    engine_.io().restart();
    engine_.io().run();
  }
  if (error_) return Failure(*error_);
  return {};
}

void LinkEnd::finish() {
  waiting_ = false;
  engine_.io().stop();
}

void LinkEnd::give_up(const Error& error) {
  error_ = error;
  engine_.io().stop();
}

void LinkEnd::on_peer_up(const node::PeerHello&) {
  finish();
}

void LinkEnd::on_peer_down(const NodeId& peer) {
  give_up({Errc::kUnreachable, "the link to the " + peer.value + " broke"});
}

void LinkEnd::pump() {
  const std::uint64_t per_token = engine_.bytes_per_token();
  const std::uint64_t block_bytes = block_tokens_ * per_token;
  const std::uint64_t ahead = kv::link_ahead(block_bytes, links_->goodput(peer()));
  while (to_export_ > 0 && links_->kv_backlog(peer()) + exporting_ < ahead) {
    const TokenPosition end = std::min(engine_.context(), next_ + block_tokens_);
    const std::uint64_t bytes = (end - next_) * per_token;
    engine_.port().export_kv(engine_.slot(), {next_, end});
    exporting_ += bytes;
    to_export_ -= std::min(to_export_, bytes);
    next_ = end == engine_.context() ? 0 : end;
  }
  if (to_export_ == 0 && exporting_ == 0 && links_->kv_backlog(peer()) == 0) finish();
}

void LinkEnd::on_exported(kv::TokenRange range, kv::Bytes rows) {
  exporting_ -= std::min<std::uint64_t>(exporting_, rows.size());
  wire::KvBlock header;
  header.session = SessionId("bench");
  header.attempt = {self(), BootId(1), 1};
  header.first = range.begin;
  header.count = range.size();
  links_->send_kv(peer(), std::move(header), std::move(rows));
  pump();
}

void LinkEnd::on_kv_drained(const NodeId&) {
  pump();
}

void LinkEnd::on_kv(const NodeId&, const wire::KvBlock& header, kv::Bytes rows) {
  auto& port = engine_.port();
  if (header.first != next_) {
    return give_up({Errc::kOutOfOrder, fmt::format("rows from {} came, expected were those from {}",
                                                   header.first, next_)});
  }
  if (next_ == 0) port.truncate(engine_.slot(), 0);
  port.attach_kv(engine_.slot(), header.first, header.count, std::move(rows));
  next_ += header.count;
  if (next_ == engine_.context()) next_ = 0;
}

void LinkEnd::on_attached(TokenPosition front) {
  const TokenPosition before = front_ == engine_.context() ? 0 : front_;
  front_ = front;
  to_attach_ -= std::min(to_attach_, (front - before) * engine_.bytes_per_token());
  if (to_attach_ == 0) finish();
}

}  // namespace

Result<std::unique_ptr<TransferEngine>> TransferEngine::start(TransferRole role,
                                                              const TransferEngineConfig& config) {
  auto engine = std::make_unique<Engine>(config.context, config.certificates);
  if (auto status = engine->start(role, config); !status) return Failure(status.error());
  return std::unique_ptr<TransferEngine>(std::move(engine));
}

}  // namespace pallas::app
