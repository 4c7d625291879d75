#pragma once
// Just what the HTTP side calls of a node (node/node.h, which says what each means), so that tests
// stand in for one.

#include <vector>

#include "base/result.h"
#include "engine/profile.h"
#include "mobility/ran_events.h"
#include "node/node.h"
#include "wire/messages.h"

namespace pallas::http {

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const node::NodeConfig& config() const = 0;
  virtual const engine::EngineInfo& engine_info() const = 0;
  virtual wire::Compatibility compatibility() const = 0;

  virtual Status open(node::OpenRequest request, node::StreamId stream) = 0;
  virtual Status attach(node::AttachRequest request, node::StreamId stream) = 0;
  virtual Result<wire::SessionSnapshot> describe(const SessionId& session,
                                                 const std::string& token) const = 0;
  virtual void on_stream_closed(node::StreamId stream) = 0;
  virtual Status stop(const SessionId& session, const std::string& token,
                      const NodeId& last_node) = 0;

  virtual Status on_prediction(const mobility::Prediction& prediction) = 0;
  virtual Status on_handover(const mobility::HandoverEvent& event) = 0;
  virtual Status on_position(const mobility::PositionReport& report) = 0;

  virtual std::vector<node::SessionInfo> sessions() const = 0;
  virtual const std::vector<node::HandoverReport>& handovers() const = 0;
  virtual const std::vector<node::DepartureReport>& departures() const = 0;
  virtual node::NodeStats stats() const = 0;
  virtual Result<node::MoveReport> move(const node::MoveOrder& order) = 0;
  virtual std::optional<node::MoveReport> moved(const std::string& id) const = 0;
  virtual node::DrainStatus drain_status() const = 0;
  virtual bool ready() const = 0;
};

}  // namespace pallas::http
