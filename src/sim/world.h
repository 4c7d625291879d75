#pragma once
// gNBs, their links and UEs on virtual time: node/ unchanged behind virtual ports. A run is a
// function of the settings and the calls made; the same seed gives the same bytes.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "mobility/cells.h"
#include "node/node.h"
#include "sim/engine.h"
#include "sim/engine_model.h"
#include "sim/network.h"
#include "sim/records.h"
#include "sim/ue.h"
#include "sim/virtual_clock.h"

namespace pallas::sim {

struct GnbSettings {
  std::string name;
  std::vector<CellId> cells;          // empty: the one cell "cell-<name>"
  std::optional<EngineModel> engine;  // in place of WorldSettings::engine
};

// The product's settings, but for clocks and limits that cut slow schemes off: a source keeps its
// frozen KV for an hour, reports and sessions are not bounded, reports do without phases, and
// nobody sends comments to waiting UEs, which no record shows. Schemes are what the papers say: no
// shadow.
node::NodeConfig patient_node();

// Hears what happens to each node, for those who judge or count it.
class WorldObserver {
 public:
  virtual ~WorldObserver() = default;
  // Around all that a node is told: `what` is a message's name or that of the call. The session is
  // empty where it is about a peer.
  virtual void before(int gnb, const SessionId& session, std::string_view what,
                      const wire::Message* message) = 0;
  virtual void after(int gnb, const SessionId& session, std::string_view what,
                     const wire::Message* message) = 0;
  // A node writes a token to a stream of this UE, whether somebody still reads it or not.
  virtual void on_emitted(int gnb, const Ue& ue, const node::TokenEvent& token) = 0;
  // A message leaves, and perhaps arrives.
  virtual void on_sent(int from, int to, const wire::Message& message) = 0;
};

struct WorldSettings {
  std::vector<GnbSettings> gnbs;
  std::string scheme = "two-front";
  EngineModel engine;
  NetworkSettings network;
  node::NodeConfig node = patient_node();  // of every gNB; name, cells, scheme are set here
  std::function<void(node::NodeConfig&)> configure;  // last word on each node's settings
  const mobility::CellLayout* layout = nullptr;      // for the nodes' CVH predictor; outlives World
  Duration radio_latency{0};                         // gNB to UE
  // From leaving the source to the attach at the target.
  Duration interruption{0};
  Duration stream_close{std::chrono::milliseconds(20)};  // the old connection ends this much later
  // How many hops a relayed token takes: as many as the UE made handovers since it left the owner
  // (the papers' chain of forwarders), or always one.
  bool relay_hops_follow_path = true;
  bool keep_arrivals = true;  // Ue::arrivals(); 24 bytes a token
  bool check_codec = false;   // encode and decode each message
  std::uint64_t seed = 1;
  // gNBs can be paused, and their links come up by join() alone, not with a restart.
  bool faulty = false;
  WorldObserver* observer = nullptr;  // outlives World
  // In place of sim::Engine and its silent text: tests run other engines. A codec serves all gNBs.
  std::function<std::unique_ptr<engine::Engine>(Clock&)> make_engine;
  std::function<std::unique_ptr<engine::TextCodec>()> make_text;
  std::function<std::unique_ptr<Ue>()> make_ue;
};
// Fails naming the field; World's constructor expects settings that pass.
Status check(const WorldSettings& settings);

class World {
 public:
  explicit World(WorldSettings settings);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  VirtualClock clock;

  const WorldSettings& settings() const;
  Network& network();
  node::Node& node(const std::string& gnb);
  engine::Engine& engine(const std::string& gnb);
  bool alive(const std::string& gnb) const;
  int index(const std::string& gnb) const;  // throws std::logic_error for an unknown name
  const std::vector<std::string>& names() const;
  // Empty when no gNB serves the cell.
  std::string gnb_of(const CellId& cell) const;

  // --- sessions ---
  Ue& open(const std::string& gnb, const UeSettings& settings);
  Status attach(Ue& ue, const std::string& gnb);
  void leave(Ue& ue);  // the stream's connection is gone
  // DELETE at that gNB; the UE names the one that it was attached to last.
  Status stop(Ue& ue, const std::string& gnb);
  const std::vector<std::unique_ptr<Ue>>& ues() const;
  Ue* find(const SessionId& session);

  // --- radio ---
  struct Forecast {
    std::string target{};
    Duration in{0};
    std::optional<Duration> sigma{};
    std::optional<double> confidence{};
    std::optional<Duration> valid{};  // none: `in` and 5 s
    bool oracle = false;
  };
  // To gNB `at`, or where it is empty to the one that the UE is attached to.
  void predict(Ue& ue, const Forecast& forecast, const std::string& at = {});
  void withdraw(Ue& ue, const std::string& at = {});
  void report_position(Ue& ue, mobility::PositionReport report);  // fills ue and seq
  void ran(Ue& ue, mobility::HandoverPhase phase, const std::string& source,
           const std::string& target);
  // Execution, attach (after `interruption`) and completion, now. False where the target refused
  // or is down; the record says why.
  bool hand_over(Ue& ue, const std::string& target);
  // What is foreseen of the UE now and until `valid` from now, for the records only (T_avail):
  // predict() and withdraw() call it, a driver of positions calls it itself. None: nothing.
  void note_forecast(Ue& ue, const std::optional<std::string>& target, Duration valid);

  // --- faults ---
  void cut(const std::string& x, const std::string& y);  // both see the link go down
  // The same, but `y` sees it `later`.
  void cut(const std::string& x, const std::string& y, Duration later);
  void join(const std::string& x, const std::string& y);
  void kill(const std::string& gnb);
  void restart(const std::string& gnb);
  // Nothing of the gNB runs, engine included; what it is told waits (WorldSettings::faulty).
  void pause(const std::string& gnb);
  // What waits comes before the timers that are due, or after them.
  void wake(const std::string& gnb, bool timers_first);
  bool paused(const std::string& gnb) const;

  // --- results ---
  // Completes the records with the nodes' reports; call it when the run is over.
  void finish();
  // After finish(), which takes them out of the UEs: in order of time.
  const std::vector<HandoverRecord>& handovers() const;
  const std::vector<PreparationRecord>& preparations() const;
  node::NodeStats totals() const;  // sums over the gNBs alive
  // Broken promises of all UEs and faults of the codec; empty in a sound run.
  std::vector<std::string> breaches() const;
  // Hears each message as it leaves, KV blocks by their header.
  std::function<void(int from, int to, const wire::Message&)> on_sent;

 private:
  class Impl;
  friend class WorldPeers;  // the ports of its nodes
  friend class WorldUes;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pallas::sim
