#pragma once
// The ports of World's nodes: their links to each other and their streams to the UEs.

#include "sim/world_impl.h"

namespace pallas::sim {

// A node's links to the others.
class WorldPeers : public node::PeerLink {
 public:
  WorldPeers(World::Impl& world, int self) : world_(world), self_(self) {}

  void send(const NodeId& peer, wire::Message message) override {
    const int to = index(peer);
    if (to >= 0 && to != self_) world_.network_->send(self_, to, std::move(message));
  }
  void send_kv(const NodeId& peer, wire::KvBlock header, kv::Bytes rows) override {
    const int to = index(peer);
    if (to < 0 || to == self_) return;
    world_.network_->send_kv(self_, to, std::move(header), std::move(rows));
  }
  std::uint64_t kv_backlog(const NodeId& peer) const override {
    const int to = index(peer);
    return to < 0 ? 0 : world_.network_->kv_backlog(self_, to);
  }
  bool is_up(const NodeId& peer) const override {
    const int to = index(peer);
    return to >= 0 && to != self_ && world_.network_->is_up(self_, to);
  }
  std::optional<BytesPerSecond> goodput(const NodeId& peer) const override {
    const int to = index(peer);
    if (to < 0 || to == self_) return std::nullopt;
    return world_.network_->goodput(self_, to);
  }
  void discard_kv(const NodeId& peer, const Attempt& attempt) override {
    const int to = index(peer);
    if (to >= 0 && to != self_) world_.network_->discard_kv(self_, to, attempt);
  }

 private:
  // A node mostly asks for the same peer several times in a row.
  int index(const NodeId& peer) const {
    if (last_ < 0 || peer != last_name_) {
      last_name_ = peer;
      last_ = world_.index_of(peer);
    }
    return last_;
  }

  World::Impl& world_;
  int self_;
  mutable NodeId last_name_;  // asked for, and its place
  mutable int last_ = -1;
};

// A node's streams.
class WorldUes : public node::UeLink {
 public:
  WorldUes(World::Impl& world, int self) : world_(world), self_(self) {}

  void deliver(node::StreamId stream, const node::TokenEvent& token) override {
    if (world_.settings_.observer != nullptr) {
      world_.settings_.observer->on_emitted(self_, world_.owner_of(stream), token);
    }
    const Duration latency = world_.settings_.radio_latency;
    if (latency.count() == 0) {
      arrive(stream, token);
      return;
    }
    world_.world_.clock.schedule_after(latency, [this, stream, token] { arrive(stream, token); });
  }
  void finish(node::StreamId stream, const node::FinishEvent& event) override {
    later(stream, [event](Ue& ue) { ue.on_finish(event); });
  }
  void fail(node::StreamId stream, const Error& error) override {
    later(stream, [error](Ue& ue) {
      ue.failed = error;
      ue.stream = {};
    });
  }
  void announce(node::StreamId stream, const NodeId& next) override {
    if (Ue* ue = world_.ue_of_stream(stream)) ue->announced = next;
  }
  void keep_alive(node::StreamId stream) override {
    if (Ue* ue = world_.ue_of_stream(stream)) ++ue->keep_alives;
  }
  void close(node::StreamId stream, const NodeId& next) override {
    later(stream, [next](Ue& ue) {
      ue.closed = true;
      ue.closed_for = next;
      ue.stream = {};
    });
  }

 private:
  void arrive(node::StreamId stream, const node::TokenEvent& token) {
    Ue* const ue = world_.ue_of_stream(stream);
    if (ue == nullptr) return;  // an old stream: nobody reads it
    if (by_ < 0 || token.by != by_name_) {
      by_name_ = token.by;
      by_ = world_.index_of(token.by);
    }
    ue->on_token(world_.gnbs_[static_cast<std::size_t>(self_)].id, by_, token,
                 world_.world_.clock.now());
  }
  // After the tokens that are on their way.
  template <class Action>
  void later(node::StreamId stream, Action action) {
    const Duration latency = world_.settings_.radio_latency;
    const auto act = [this, stream, action] {
      if (Ue* ue = world_.ue_of_stream(stream)) action(*ue);
    };
    if (latency.count() == 0) {
      act();
    } else {
      world_.world_.clock.schedule_after(latency, act);
    }
  }

  World::Impl& world_;
  int self_;
  NodeId by_name_;  // of the last token, and its place
  int by_ = -1;
};

}  // namespace pallas::sim
