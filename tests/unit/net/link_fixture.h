#pragma once
// Peer links on loopback, with everything that they report recorded.

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <functional>

#include "net/asio_clock.h"
#include "net/peer_links.h"
#include "test_certificates.h"

namespace pallas::net {

using namespace std::chrono_literals;
using boost::asio::ip::tcp;

class RecordedEvents : public node::PeerEvents {
 public:
  void on_peer_up(const node::PeerHello& hello) override { ups.push_back(hello); }
  void on_peer_down(const NodeId&) override { ++downs; }
  void on_message(const NodeId&, wire::Message message) override {
    messages.push_back(std::move(message));
  }
  void on_kv(const NodeId&, const wire::KvBlock& header, kv::Bytes rows) override {
    kv_bytes += rows.size();
    blocks.emplace_back(header, std::move(rows));
  }
  void on_kv_drained(const NodeId&) override {
    ++drained;
    if (when_drained) when_drained();
  }
  std::vector<wire::HeldAttempt> held_from(const NodeId&) const override { return held; }

  std::vector<node::PeerHello> ups;
  int downs = 0;
  int drained = 0;
  std::vector<wire::Message> messages;
  std::vector<std::pair<wire::KvBlock, kv::Bytes>> blocks;
  std::uint64_t kv_bytes = 0;
  std::vector<wire::HeldAttempt> held;
  std::function<void()> when_drained;
};

class LinkTest : public ::testing::Test {
 protected:
  // Runs the event loop until `done`, at most `limit`.
  bool run_until(const std::function<bool()>& done, Duration limit = 5s) {
    const TimePoint end = clock_.now() + limit;
    while (!done()) {
      const Duration left = end - clock_.now();
      if (left <= Duration::zero()) return false;
      io_.restart();
      io_.run_one_for(std::min<Duration>(left, 10ms));
    }
    return true;
  }
  void run_for(Duration time) {
    run_until([] { return false; }, time);
  }

  PeerLinksConfig config(const std::string& name, std::uint64_t boot = 1) {
    PeerLinksConfig c;
    c.name = NodeId(name);
    c.boot = BootId(boot);
    c.compatibility.model_hash = "hash of " + name;
    c.keep_alive = 50ms;
    c.dead_after = 400ms;
    c.handshake = 400ms;
    c.backoff_min = 10ms;
    if (certificates_) c.tls = certificates_->make(name);
    c.refresh = 10ms;
    c.log = [this](const std::string& line) { logged_.push_back(line); };
    return c;
  }
  static PeerConfig peer(const std::string& name, std::uint16_t port) {
    PeerConfig p;
    p.name = NodeId(name);
    p.host = "127.0.0.1";
    p.port = port;
    return p;
  }
  std::unique_ptr<PeerLinks> create(PeerLinksConfig c) {
    auto links = PeerLinks::create(io_, clock_, std::move(c));
    EXPECT_TRUE(links) << links.error().describe();
    return links ? std::move(*links) : nullptr;
  }
  // b accepts and a dials; `edit_a` changes a's view of b first.
  void connect_a_and_b(const std::function<void(PeerLinksConfig&)>& edit_a = {}) {
    auto config_b = config("b", 20);
    config_b.peers = {peer("a", 0)};
    b_ = create(std::move(config_b));
    auto config_a = config("a", 10);
    config_a.peers = {peer("b", b_->port())};
    if (edit_a) edit_a(config_a);
    a_ = create(std::move(config_a));
    b_->start(events_b_);
    a_->start(events_a_);
    ASSERT_TRUE(run_until([&] { return events_a_.ups.size() == 1 && events_b_.ups.size() == 1; }));
  }
  bool logged(const std::string& part) const { return times_logged(part) > 0; }
  std::size_t times_logged(const std::string& part) const {
    std::size_t times = 0;
    for (const std::string& line : logged_) {
      if (line.find(part) != std::string::npos) ++times;
    }
    return times;
  }

  static Attempt attempt(std::uint64_t counter = 1) { return {NodeId("a"), BootId(10), counter}; }
  static wire::KvBlock block(TokenPosition first, std::uint64_t counter = 1) {
    wire::KvBlock header;
    header.session = SessionId("s");
    header.attempt = attempt(counter);
    header.first = first;
    header.count = 1;
    return header;
  }
  static kv::Bytes rows(std::size_t size) {
    kv::Bytes bytes(size, std::byte{});
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 >> 3);
    return bytes;
  }

  boost::asio::io_context io_{1};
  AsioClock clock_{io_};
  std::optional<test::TestCertificates> certificates_;  // with them links are under TLS
  std::vector<std::string> logged_;
  RecordedEvents events_a_, events_b_;
  std::unique_ptr<PeerLinks> a_, b_;

  // A peer made by hand, that says whatever the test wants.
  class RawPeer {
   public:
    RawPeer(LinkTest& test, tcp::socket socket) : test_(test), socket_(std::move(socket)) {
      socket_.non_blocking(true);
    }
    static RawPeer call(LinkTest& test, std::uint16_t port) {
      tcp::socket socket(test.io_);
      socket.connect(tcp::endpoint(boost::asio::ip::address_v4::loopback(), port));
      return RawPeer(test, std::move(socket));
    }
    void send(const wire::Message& message) { send(*wire::encode(message)); }
    void send(const kv::Bytes& bytes) {
      socket_.non_blocking(false);
      boost::asio::write(socket_, boost::asio::buffer(bytes));
      socket_.non_blocking(true);
    }
    // The next frame; none at the connection's end or after 2 s.
    std::optional<wire::Message> receive() {
      const auto header = read(wire::kHeaderBytes);
      if (!header) return std::nullopt;
      const auto parsed = wire::decode_header(
          std::span<const std::byte, wire::kHeaderBytes>(header->data(), wire::kHeaderBytes));
      if (!parsed) return std::nullopt;
      const auto body = read(parsed->body_bytes);
      if (!body) return std::nullopt;
      auto message = wire::decode(*parsed, *body);
      if (!message) return std::nullopt;
      if (parsed->payload_bytes > 0 && !read(parsed->payload_bytes)) return std::nullopt;
      return std::move(*message);
    }
    // The next frame of this kind, skipping others.
    template <class M>
    std::optional<M> receive_a() {
      while (auto message = receive()) {
        if (auto* wanted = std::get_if<M>(&*message)) return std::move(*wanted);
      }
      return std::nullopt;
    }
    bool ended() { return !read(1).has_value() && at_end_; }

   private:
    std::optional<kv::Bytes> read(std::size_t bytes) {
      kv::Bytes all(bytes, std::byte{});
      std::size_t got = 0;
      const bool whole = test_.run_until(
          [&] {
            if (got == bytes) return true;
            boost::system::error_code error;
            got += socket_.read_some(boost::asio::buffer(all.data() + got, bytes - got), error);
            at_end_ = error && error != boost::asio::error::would_block;
            return got == bytes || at_end_;
          },
          2s);
      if (!whole || got != bytes) return std::nullopt;
      return all;
    }

    LinkTest& test_;
    tcp::socket socket_;
    bool at_end_ = false;
  };

  static wire::Hello hello(const std::string& name, wire::Channel channel) {
    wire::Hello h;
    h.node = NodeId(name);
    h.boot = BootId(10);
    h.channel = channel;
    return h;
  }
};

}  // namespace pallas::net
