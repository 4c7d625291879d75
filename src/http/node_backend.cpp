// The one place of this folder that calls node::Node; everything else sees a Backend.

#include "http/server.h"

namespace pallas::http {
namespace {

class NodeBackend : public Backend {
 public:
  explicit NodeBackend(node::Node& node) : node_(node) {}

  const node::NodeConfig& config() const override { return node_.config(); }
  const engine::EngineInfo& engine_info() const override { return node_.engine_info(); }
  wire::Compatibility compatibility() const override { return node_.compatibility(); }

  Status open(node::OpenRequest request, node::StreamId stream) override {
    return node_.open(std::move(request), stream);
  }
  Status attach(node::AttachRequest request, node::StreamId stream) override {
    return node_.attach(std::move(request), stream);
  }
  Result<wire::SessionSnapshot> describe(const SessionId& session,
                                         const std::string& token) const override {
    return node_.describe(session, token);
  }
  void on_stream_closed(node::StreamId stream) override { node_.on_stream_closed(stream); }
  Status stop(const SessionId& session, const std::string& token,
              const NodeId& last_node) override {
    return node_.stop(session, token, last_node);
  }

  Status on_prediction(const mobility::Prediction& prediction) override {
    return node_.on_prediction(prediction);
  }
  Status on_handover(const mobility::HandoverEvent& event) override {
    return node_.on_handover(event);
  }
  Status on_position(const mobility::PositionReport& report) override {
    return node_.on_position(report);
  }

  std::vector<node::SessionInfo> sessions() const override { return node_.sessions(); }
  const std::vector<node::HandoverReport>& handovers() const override { return node_.handovers(); }
  const std::vector<node::DepartureReport>& departures() const override {
    return node_.departures();
  }
  node::NodeStats stats() const override { return node_.stats(); }
  bool ready() const override { return node_.ready(); }
  Result<node::MoveReport> move(const node::MoveOrder& order) override { return node_.move(order); }
  std::optional<node::MoveReport> moved(const std::string& id) const override {
    return node_.moved(id);
  }
  node::DrainStatus drain_status() const override { return node_.drain_status(); }

 private:
  node::Node& node_;
};

}  // namespace

void Server::set_node(node::Node* node) {
  auto backend = node == nullptr ? nullptr : std::make_unique<NodeBackend>(*node);
  set_backend(backend.get());
  node_backend_ = std::move(backend);
}

}  // namespace pallas::http
