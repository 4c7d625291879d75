#pragma once
// World's inside: world.cpp runs it, world_records.cpp keeps the book.

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/gnb_clock.h"
#include "sim/world.h"

namespace pallas::sim {

// One gNB: the node, its engine and its ports.
class WorldPeers;
class WorldUes;
struct WorldGnb {
  NodeId id;
  std::vector<CellId> cells;
  bool alive = false;
  BootId boot;
  node::PeerHello hello;            // to the others; what it holds of them is filled in each time
  std::unique_ptr<GnbClock> clock;  // if WorldSettings::faulty
  bool paused = false;
  std::vector<Callback> waiting;  // while it is paused: what it is told
  std::unique_ptr<engine::Engine> engine;
  std::unique_ptr<WorldPeers> peers;
  std::unique_ptr<WorldUes> ues;
  std::unique_ptr<node::Node> node;

  WorldGnb();
  ~WorldGnb();
  WorldGnb(WorldGnb&&) noexcept;
};

class World::Impl : public NetworkListener {
 public:
  Impl(World& world, WorldSettings settings);
  ~Impl() override;

  // NetworkListener.
  void on_message(int from, int to, wire::Message&& message) override;
  void on_kv(int from, int to, const wire::KvBlock& header, kv::Bytes rows) override;
  void on_kv_drained(int from, int to) override;
  void on_sent(int from, int to, const wire::Message& message) override;
  void on_kv_sent(int from, int to, const wire::KvBlock& header) override;
  int relay_hops(int from, int to, const wire::TokenUpdate& update) override;

  void boot(int index);
  void join(int x, int y);
  void cut(int x, int y);
  void cut(int x, int y, Duration later);
  void peer_down(int at, int other);
  void kill(int index);
  void wake(int index, bool timers_first);
  // Tells a node something now, or when it goes on. Nothing where it is down.
  void tell(int index, const SessionId& session, std::string_view what,
            const wire::Message* message, const std::function<void(node::Node&)>& call);
  // Runs `action` now, or when the gNB goes on.
  template <class Action>
  void when_awake(int index, Action action) {
    WorldGnb& g = gnbs_[static_cast<std::size_t>(index)];
    if (g.paused) {
      g.waiting.emplace_back(std::move(action));
    } else {
      action();
    }
  }
  int index_of(const NodeId& id) const;
  int index_of(const std::string& name) const;
  int gnb_of(const CellId& cell) const;  // -1: none
  Ue* ue_of_stream(node::StreamId stream);
  Ue* ue_of_session(const SessionId& session);
  node::StreamId new_stream(const Ue& ue);
  // The UE behind a stream, also one that it has left.
  const Ue& owner_of(node::StreamId stream) const;
  void close_stream(int at, node::StreamId stream);
  void foretell(int at, const Ue& ue, const mobility::Prediction& prediction);
  void draw_rate(const Ue& ue, int from, int to);

  // --- world_records.cpp ---
  struct UeBook {  // what World knows of a UE besides itself
    std::optional<int> forecast;
    TimePoint forecast_since{}, forecast_until{};
    std::vector<std::size_t> open;  // preparations that have not ended
  };
  struct Preparing {  // what a preparation's messages are checked against
    Attempt attempt;
    TokenPosition recompute_end = 0;
  };
  UeBook& book(const Ue& ue);
  void note(const wire::HandoverRequest& m, int from, int to);
  void end_preparation(const SessionId& session, const Attempt& attempt,
                       PreparationRecord::End end);
  void note(const wire::PreparationProgress& m);
  PreparationRecord* find_preparation(const SessionId& session, const Attempt& attempt);
  HandoverRecord new_record(const Ue& ue, int target);
  void take_reports(WorldGnb& g);
  void fill(HandoverRecord& record, const node::HandoverReport& report) const;
  void complete();

 private:
  // World's calls and its nodes' ports work on these.
  friend class World;
  friend class WorldPeers;
  friend class WorldUes;

  World& world_;
  WorldSettings settings_;
  std::vector<std::string> names_;
  std::vector<WorldGnb> gnbs_;
  std::unordered_map<NodeId, int> by_name_;
  std::unordered_map<CellId, int> by_cell_;
  std::unique_ptr<engine::TextCodec> text_;
  double scale_ = 1;
  std::unique_ptr<Network> network_;
  std::vector<std::unique_ptr<Ue>> ues_;
  std::unordered_map<std::uint64_t, Ue*> by_seed_;
  std::uint64_t next_boot_ = 1;
  std::uint64_t next_stream_ = 0;
  std::uint64_t next_seq_ = 0;

  std::vector<UeBook> books_;
  std::vector<PreparationRecord> preparations_;
  std::vector<Preparing> preparing_;                // one for each of preparations_
  std::vector<node::HandoverReport> kept_reports_;  // of gNBs that are down
  std::vector<HandoverRecord> handovers_;
  std::map<int, std::vector<TimePoint>> recent_;  // handovers by target
};

}  // namespace pallas::sim
