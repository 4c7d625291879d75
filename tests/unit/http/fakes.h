#pragma once
// Stand-ins around the HTTP side: a node that does what the test says, a text codec of one token a
// byte, a responder that keeps what it was given.

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "http/api.h"
#include "http/backend.h"

namespace pallas::http {

// Ids are bytes; a chat is "<role>:<content>;" of every message. Vocabulary: 300.
class ByteCodec : public engine::TextCodec {
 public:
  Result<std::vector<TokenId>> render_chat(
      const std::vector<engine::ChatMessage>& messages) const override {
    std::string text;
    for (const auto& message : messages) text += message.role + ":" + message.content + ";";
    return tokenize(text);
  }
  Result<std::vector<TokenId>> tokenize(const std::string& text) const override {
    std::vector<TokenId> ids;
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }
  std::string piece(TokenId id) const override { return std::string(1, static_cast<char>(id)); }
  bool is_end_of_generation(TokenId) const override { return false; }
  TokenId vocabulary_size() const override { return 300; }
  Result<std::string> grammar_of_schema(const std::string& schema) const override {
    if (schema.find("unsupported") != std::string::npos) {
      return fail(Errc::kUnsupported, "schema keyword");
    }
    return "grammar of " + schema;
  }
};

inline std::string text_of(const std::vector<TokenId>& ids) {
  std::string text;
  for (const auto id : ids) text += static_cast<char>(id);
  return text;
}

class FakeBackend : public Backend {
 public:
  FakeBackend() {
    config_.name = NodeId("gnb-a");
    info_.model_name = "tiny";
    info_.context_tokens = 1000;
    compatibility_.model_hash = "m1";
    compatibility_.tokenizer_hash = "t1";
  }

  const node::NodeConfig& config() const override { return config_; }
  const engine::EngineInfo& engine_info() const override { return info_; }
  wire::Compatibility compatibility() const override { return compatibility_; }

  Status open(node::OpenRequest request, node::StreamId stream) override {
    if (on_open) on_open(stream);
    if (open_error.code != Errc::kInternal) return tl::unexpected(open_error);
    opened.push_back({std::move(request), stream});
    return {};
  }
  Status attach(node::AttachRequest request, node::StreamId stream) override {
    if (on_open) on_open(stream);
    if (attach_error.code != Errc::kInternal) return tl::unexpected(attach_error);
    attached.push_back({std::move(request), stream});
    return {};
  }
  Result<wire::SessionSnapshot> describe(const SessionId& session,
                                         const std::string& token) const override {
    if (known && known->params.resume_token == token) return *known;
    for (const auto& [request, stream] : opened) {
      if (request.session != session || request.params.resume_token != token) continue;
      wire::SessionSnapshot snapshot;
      snapshot.params = request.params;
      snapshot.prompt_tokens = static_cast<TokenPosition>(request.prompt.size());
      snapshot.epoch = Epoch(1);
      return snapshot;
    }
    return fail(Errc::kNotFound, "no session");
  }
  void on_stream_closed(node::StreamId stream) override { closed.push_back(stream); }
  Status stop(const SessionId& session, const std::string& token,
              const NodeId& last_node) override {
    stopped.push_back(session.value + "/" + token + "/" + last_node.value);
    if (stop_error.code != Errc::kInternal) return tl::unexpected(stop_error);
    return {};
  }
  Status on_prediction(const mobility::Prediction& prediction) override {
    predictions.push_back(prediction);
    return ran_answer();
  }
  Status on_handover(const mobility::HandoverEvent& event) override {
    handover_events.push_back(event);
    return ran_answer();
  }
  Status on_position(const mobility::PositionReport& report) override {
    positions.push_back(report);
    return ran_answer();
  }
  std::vector<node::SessionInfo> sessions() const override { return session_infos; }
  const std::vector<node::HandoverReport>& handovers() const override { return reports; }
  const std::vector<node::DepartureReport>& departures() const override { return departure_list; }
  node::NodeStats stats() const override { return node_stats; }
  bool ready() const override { return is_ready; }
  Result<node::MoveReport> move(const node::MoveOrder& order) override {
    moves.push_back(order);
    if (move_error.code != Errc::kInternal) return tl::unexpected(move_error);
    node::MoveReport report;
    report.id = order.dry_run ? "" : order.session.value + ".m1";
    report.session = order.session;
    report.source = config_.name;
    report.target = order.target;
    report.state = order.dry_run ? node::MoveState::kPlanned : node::MoveState::kPreparing;
    report.scheme = "two-front";
    report.bytes = 4096;
    return report;
  }
  std::optional<node::MoveReport> moved(const std::string& id) const override {
    return ran_move && ran_move->id == id ? ran_move : std::nullopt;
  }
  node::DrainStatus drain_status() const override { return drain_state; }

  struct Opened {
    node::OpenRequest request;
    node::StreamId stream;
  };
  struct Attached {
    node::AttachRequest request;
    node::StreamId stream;
  };
  node::NodeConfig config_;
  engine::EngineInfo info_;
  wire::Compatibility compatibility_;
  std::vector<Opened> opened;
  std::vector<Attached> attached;
  std::vector<node::StreamId> closed;
  std::vector<std::string> stopped;
  std::vector<mobility::Prediction> predictions;
  std::vector<mobility::HandoverEvent> handover_events;
  std::vector<mobility::PositionReport> positions;
  std::vector<node::SessionInfo> session_infos;
  std::vector<node::HandoverReport> reports;
  std::vector<node::DepartureReport> departure_list;
  node::NodeStats node_stats;
  bool is_ready = true;
  std::function<void(node::StreamId)> on_open;  // runs within open() and attach()
  std::optional<wire::SessionSnapshot> known;   // what describe() knows besides what was opened
  std::vector<node::MoveOrder> moves;
  std::optional<node::MoveReport> ran_move;
  node::DrainStatus drain_state;
  Error open_error, attach_error, stop_error, ran_error, move_error;  // kInternal: none

 private:
  Status ran_answer() const {
    if (ran_error.code != Errc::kInternal) return tl::unexpected(ran_error);
    return {};
  }
};

struct KeptAnswer : Responder {
  void respond(HttpResponse r) override { response = std::move(r); }
  void begin_events() override { begun = true; }
  void write(std::string_view events) override { text += events; }
  void end() override { ended = true; }

  std::optional<HttpResponse> response;
  bool begun = false, ended = false;
  std::string text;
};

// 1, 2, 3, ...
inline std::function<std::uint64_t()> counting_random() {
  return [n = std::uint64_t{0}]() mutable { return ++n; };
}

inline node::TokenEvent token(std::uint32_t index, std::string text, std::uint64_t epoch = 1) {
  return {Epoch(epoch), index, static_cast<TokenId>(100 + index), std::move(text), NodeId("gnb-a")};
}

inline const std::string kChatBody =
    R"({"model":"tiny","stream":true,"messages":[{"role":"user","content":"hi"}]})";
// What "secret" opens.
inline const std::string kSession = "1cbb4aa5ced9fe72ced7486048b22b5a";

}  // namespace pallas::http
