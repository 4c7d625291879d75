#include "net/peer.h"

#include <algorithm>
#include <utility>

#include "wire/version.h"

namespace pallas::net {

Status check_hello(const wire::Hello& hello) {
  if (hello.major == wire::kMajorVersion) return {};
  return fail(Errc::kIncompatible, "Hello.major: " + hello.node.value +
                                       " speaks protocol version " + std::to_string(hello.major) +
                                       ", this node version " +
                                       std::to_string(wire::kMajorVersion));
}

kv::Bytes error_frame(const Error& error) {
  Result<kv::Bytes> frame = wire::encode(wire::ErrorMessage{error.code, error.message, {}});
  // A message that quotes bytes of the peer may not be UTF-8; the code alone says enough then.
  if (!frame) frame = wire::encode(wire::ErrorMessage{error.code, {}, {}});
  return frame ? std::move(*frame) : kv::Bytes{};
}

Peer::Peer(boost::asio::io_context& io, Clock& clock, const PeerLinksConfig& config,
           const tls::Credentials* credentials, PeerConfig peer)
    : io_(io),
      clock_(clock),
      links_(config),
      credentials_(credentials),
      config_(std::move(peer)),
      backoff_(config.backoff_min),
      kv_(clock, Pacer(config_.pacing, clock.now()), config_.initial_goodput, config.block_bytes,
          [this] { events_->on_kv_drained(config_.name); }),
      redial_timer_(clock),
      handshake_timer_(clock),
      keep_alive_timer_(clock),
      watch_timer_(clock),
      overflow_timer_(clock) {
  stats_.peer = config_.name;
}

Peer::~Peer() {
  kv_.detach();
  if (control_) control_->close();
  if (data_) data_->close();
}

void Peer::log(const std::string& line) const {
  if (links_.log) links_.log("peer " + config_.name.value + ": " + line);
}

// --- making the link ---

void Peer::start(node::PeerEvents& events) {
  events_ = &events;
  if (we_dial()) dial(wire::Channel::kControl);
}

void Peer::dial(wire::Channel channel) {
  const bool control = channel == wire::Channel::kControl;
  state_ = control ? State::kDialing : State::kJoining;
  await_handshake(channel);
  std::unique_ptr<tls::Session> session;
  if (credentials_ != nullptr) {
    auto made = tls::Session::create(*credentials_, tls::Role::kDials, {config_.name.value});
    if (!made) return go_down(made.error());
    session = std::move(*made);
  }
  (control ? control_ : data_) = Connection::dial(io_, clock_, config_.host, config_.port, channel,
                                                  links_.sockets, std::move(session), *this);
}

void Peer::await_handshake(wire::Channel channel) {
  handshake_timer_.arm(links_.handshake, [this, channel] {
    const bool control = channel == wire::Channel::kControl;
    const auto& connection = control ? control_ : data_;
    go_down({Errc::kTimeout, std::string(control ? "control" : "data") + " connection: no " +
                                 std::string(connection ? connection->awaited() : "connection") +
                                 " in time"});
  });
}

void Peer::on_connected(Connection& connection) {
  const bool control = &connection == control_.get();
  say_hello(connection, control ? wire::Channel::kControl : wire::Channel::kData);
  connection.read_frame();
}

void Peer::say_hello(Connection& connection, wire::Channel channel) {
  wire::Hello hello;
  hello.node = links_.name;
  hello.boot = links_.boot;
  hello.channel = channel;
  hello.compatibility = links_.compatibility;
  hello.minor = links_.minor;
  hello.holes = links_.holes && links_.minor > 0;
  if (channel == wire::Channel::kControl) hello.held = events_->held_from(config_.name);
  Result<kv::Bytes> frame = wire::encode(hello);
  // Attempts that do not fit are merely prepared again.
  while (!frame && !hello.held.empty()) {
    hello.held.resize(hello.held.size() / 2);
    frame = wire::encode(hello);
  }
  if (frame) {
    connection.send(std::move(*frame));
  } else {
    log("our own Hello is not valid: " + frame.error().message);
  }
}

Status Peer::may_call(const wire::Hello& hello) const {
  if (we_dial()) {
    return fail(Errc::kOutOfOrder, "Hello.node: " + links_.name.value + " dials " +
                                       config_.name.value + ", not the other way round");
  }
  if (hello.channel == wire::Channel::kControl) return {};
  if (state_ == State::kJoining && !data_ && hello.boot == hello_.boot) return {};
  return fail(Errc::kOutOfOrder, "Hello.channel: data connection without its control connection");
}

void Peer::accept(std::shared_ptr<Connection> connection, wire::Hello hello) {
  connection->set_channel(hello.channel);
  if (hello.channel == wire::Channel::kControl) {
    // The peer knows that the old link is gone before we do.
    if (state_ != State::kDown) go_down({Errc::kUnreachable, "the peer connected anew"});
    connection->set_handler(*this);
    control_ = std::move(connection);
    hello_ = std::move(hello);
    state_ = State::kJoining;
    await_handshake(wire::Channel::kData);
    say_hello(*control_, wire::Channel::kControl);
    return;
  }
  connection->set_handler(*this);
  data_ = std::move(connection);
  say_hello(*data_, wire::Channel::kData);
  go_up();
}

// The answer to a Hello of ours, on a connection that we dialled.
void Peer::on_hello(Connection& connection, wire::Hello hello) {
  const bool control = &connection == control_.get();
  if (Status ok = check_hello(hello); !ok) return go_down(ok.error(), true);
  if (hello.node != config_.name) {
    return go_down({Errc::kInvalidConfig, "Hello.node: expected " + config_.name.value + " at " +
                                              connection.remote() + ", found " + hello.node.value},
                   true);
  }
  if (hello.channel != (control ? wire::Channel::kControl : wire::Channel::kData)) {
    return go_down({Errc::kOutOfOrder, "Hello.channel: not the one that was dialled"}, true);
  }
  if (control) {
    hello_ = std::move(hello);
    // Control is read again when the link is up: what the peer sends as soon as it is up waits.
    return dial(wire::Channel::kData);
  }
  if (hello.boot != hello_.boot) {
    return go_down({Errc::kOutOfOrder, "Hello.boot: differs from the control connection's"}, true);
  }
  go_up();
}

void Peer::go_up() {
  state_ = State::kUp;
  ++stats_.connects;
  handshake_timer_.cancel();
  backoff_ = links_.backoff_min;
  last_failure_.clear();
  kv_.attach(*data_);
  receive_credit_ = links_.credit_window;
  transmit(wire::Credit{links_.credit_window});
  keep_alive();
  watch();
  control_->read_frame();
  data_->read_frame();
  log(credentials_ == nullptr ? "up" : "up, over TLS 1.3");
  const std::uint32_t minor = std::min(hello_.minor, links_.minor);
  events_->on_peer_up({config_.name, hello_.boot, hello_.compatibility, std::move(hello_.held),
                       hello_.holes && minor > 0, minor});
}

void Peer::go_down(const Error& reason, bool tell) {
  const bool was_up = state_ == State::kUp;
  state_ = State::kDown;
  for (Timer* timer : {&handshake_timer_, &keep_alive_timer_, &watch_timer_, &overflow_timer_}) {
    timer->cancel();
  }
  stats_.kv_frames_discarded += kv_.detach();
  if (auto control = std::exchange(control_, nullptr)) {
    if (tell) {
      control->refuse(error_frame(reason));
    } else {
      control->close();
    }
  }
  if (auto data = std::exchange(data_, nullptr)) data->close();
  if (was_up || reason.message != last_failure_) log("down: " + reason.message);
  last_failure_ = reason.message;
  if (we_dial()) {
    redial_timer_.arm(backoff_, [this] { dial(wire::Channel::kControl); });
    backoff_ = std::min(2 * backoff_, links_.backoff_max);
  }
  if (was_up) events_->on_peer_down(config_.name);
}

// --- while it stands ---

void Peer::keep_alive() {
  ping_sent_ = clock_.now();
  transmit(wire::KeepAlive{++ping_, false});
  keep_alive_timer_.arm(links_.keep_alive, [this] { keep_alive(); });
}

TimePoint Peer::last_received() const {
  return std::max(control_->last_received(), data_->last_received());
}

void Peer::watch() {
  watch_timer_.arm_at(last_received() + links_.dead_after, [this] {
    if (clock_.now() < last_received() + links_.dead_after) return watch();
    if (control_->has_unread() || data_->has_unread()) {
      // This thread was kept from reading: the peer is not the silent one.
      watch_timer_.arm(links_.keep_alive, [this] { watch(); });
      return;
    }
    go_down({Errc::kTimeout,
             "silent for " + std::to_string(static_cast<int>(to_ms(links_.dead_after))) + " ms"});
  });
}

Status Peer::on_payload(Connection& connection, const wire::KvBlock& block) {
  if (&connection != data_.get()) {
    return fail(Errc::kOutOfOrder, "KvBlock: came on the control connection");
  }
  if (state_ != State::kUp) return fail(Errc::kOutOfOrder, "KvBlock: came before a Hello");
  const std::uint64_t cost = credit_cost(block.payload_bytes, links_.credit_window);
  if (cost > receive_credit_) {
    return fail(Errc::kOutOfOrder, "KvBlock.payload_bytes: " + std::to_string(block.payload_bytes) +
                                       " bytes exceed the credit of " +
                                       std::to_string(receive_credit_));
  }
  receive_credit_ -= cost;
  return {};
}

void Peer::on_frame(Connection& connection, wire::Message message, kv::Bytes payload) {
  if (auto* error = std::get_if<wire::ErrorMessage>(&message);
      error != nullptr && error->session.value.empty()) {
    // About the connection: the peer closes it, or says so for our log only.
    ++stats_.protocol_errors;
    const Error said{error->code, "the peer says: " + error->message};
    if (state_ != State::kUp) return go_down(said);
    log(said.message);
  } else if (state_ != State::kUp) {
    auto* hello = std::get_if<wire::Hello>(&message);
    if (hello == nullptr) return go_down({Errc::kOutOfOrder, "no Hello"}, true);
    return on_hello(connection, std::move(*hello));
  } else if (std::holds_alternative<wire::Hello>(message)) {
    return on_bad_frame(connection, {Errc::kOutOfOrder, "Hello: came a second time"});
  } else if (const auto minor = wire::minor_of(message); minor > links_.minor) {
    return on_bad_frame(
        connection, {Errc::kUnsupported, std::string(wire::name_of(message)) +
                                             ": is of minor version " + std::to_string(minor) +
                                             ", this node speaks " + std::to_string(links_.minor)});
  } else if (&connection == control_.get()) {
    stats_.control_frames_received += 1;
    on_control(std::move(message));
  } else if (auto* block = std::get_if<wire::KvBlock>(&message)) {
    on_kv(*block, std::move(payload));
  } else {
    return on_bad_frame(connection, {Errc::kOutOfOrder, std::string(wire::name_of(message)) +
                                                            ": came on the data connection"});
  }
  if (&connection == control_.get() || &connection == data_.get()) connection.read_frame();
}

void Peer::on_control(wire::Message message) {
  if (const auto* credit = std::get_if<wire::Credit>(&message)) return kv_.grant(credit->bytes);
  if (const auto* alive = std::get_if<wire::KeepAlive>(&message)) return on_keep_alive(*alive);
  events_->on_message(config_.name, std::move(message));
}

void Peer::on_keep_alive(const wire::KeepAlive& message) {
  if (!message.reply) return transmit(wire::KeepAlive{message.sequence, true});
  if (message.sequence == ping_) stats_.rtt = clock_.now() - ping_sent_;
}

void Peer::on_kv(const wire::KvBlock& block, kv::Bytes rows) {
  const std::uint64_t bytes = rows.size();
  ++stats_.kv_frames_received;
  stats_.kv_bytes_received += bytes;
  if (wire::checksum(rows) == block.checksum) {
    events_->on_kv(config_.name, block, std::move(rows));
  } else {
    // Where the next frame begins is known, so the link stays; the source sends these rows again.
    ++stats_.checksum_errors;
    transmit(wire::ErrorMessage{Errc::kChecksum,
                                "KvBlock.checksum: rows [" + std::to_string(block.first) + ", " +
                                    std::to_string(block.first + block.count) +
                                    ") were damaged on their way",
                                block.session});
  }
  const std::uint64_t cost = credit_cost(bytes, links_.credit_window);
  receive_credit_ += cost;
  transmit(wire::Credit{cost});
}

void Peer::on_bad_frame(Connection& connection, const Error& error) {
  ++stats_.protocol_errors;
  go_down({error.code, connection.remote() + ": " + error.message}, true);
}

void Peer::on_closed(Connection&, const Error& error) {
  go_down(error);
}

// --- sending ---

void Peer::send(const wire::Message& message) {
  if (!is_up()) {
    ++stats_.messages_not_sent;
    return;
  }
  transmit(message);
}

void Peer::transmit(const wire::Message& message) {
  Result<kv::Bytes> frame = wire::encode(message);
  if (!frame) {
    ++stats_.messages_not_sent;
    return log("not sent: " + frame.error().message);
  }
  ++stats_.control_frames_sent;
  stats_.control_bytes_sent += frame->size();
  control_->send(std::move(*frame));
  if (control_->queued_bytes() <= links_.max_control_backlog || overflow_timer_.armed()) return;
  // Not from inside the node's own call.
  overflow_timer_.arm(Duration::zero(), [this] {
    go_down({Errc::kResourceExhausted, "the peer does not read its control connection"});
  });
}

void Peer::send_kv(wire::KvBlock header, kv::Bytes rows) {
  header.payload_bytes = rows.size();
  header.checksum = wire::checksum(rows);
  if (!is_up()) {
    ++stats_.messages_not_sent;
    return;
  }
  Result<kv::Bytes> head = wire::encode(header);
  if (!head) {
    ++stats_.messages_not_sent;
    return log("not sent: " + head.error().message);
  }
  kv_.enqueue(header.attempt, std::move(*head), std::move(rows));
}

PeerStats Peer::stats() const {
  PeerStats stats = stats_;
  stats.up = is_up();
  stats.kv_frames_sent = kv_.frames_sent();
  stats.kv_bytes_sent = kv_.bytes_sent();
  stats.kv_backlog_bytes = kv_.backlog();
  stats.send_credit_bytes = kv_.credit();
  stats.goodput = kv_.goodput().estimate();
  stats.goodput_age = kv_.goodput().age(clock_.now());
  return stats;
}

}  // namespace pallas::net
