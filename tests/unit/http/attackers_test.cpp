// Strangers and clients who mean harm, at the routes of a real node: what they send costs neither
// memory nor anybody else's session.

#include <gtest/gtest.h>
#include <malloc.h>

#include <random>

#include "engine/fake_engine.h"
#include "engine/fake_text.h"
#include "fakes.h"
#include "node/node.h"
#include "virtual_clock.h"

namespace pallas::http {
namespace {

using namespace std::chrono_literals;

constexpr int kMany = 100'000;

class NoPeers : public node::PeerLink {
 public:
  void send(const NodeId&, wire::Message) override {}
  void send_kv(const NodeId&, wire::KvBlock, kv::Bytes) override {}
  std::uint64_t kv_backlog(const NodeId&) const override { return 0; }
  bool is_up(const NodeId&) const override { return false; }
  std::optional<BytesPerSecond> goodput(const NodeId&) const override { return std::nullopt; }
  void discard_kv(const NodeId&, const Attempt&) override {}
};

// The routes in front of a node with an engine, on virtual time.
class AttackersTest : public testing::Test, public Backend {
 protected:
  AttackersTest() {
    node::NodeConfig config;
    config.name = NodeId("gnb-a");
    config.max_sessions = 64;
    config.cells = {{CellId("here"), NodeId("gnb-a")}, {CellId("there"), NodeId("gnb-b")}};
    api.set_backend(this);
    node.emplace(config, node::Node::Ports{&clock, &engine, &text, &api.ue_link(), &peers, nullptr},
                 BootId(1), [this] { return random_(); });
  }

  const node::NodeConfig& config() const override { return node->config(); }
  const engine::EngineInfo& engine_info() const override { return node->engine_info(); }
  wire::Compatibility compatibility() const override { return node->compatibility(); }
  Status open(node::OpenRequest request, node::StreamId stream) override {
    return node->open(std::move(request), stream);
  }
  Status attach(node::AttachRequest request, node::StreamId stream) override {
    ++attaches;
    return node->attach(std::move(request), stream);
  }
  Result<wire::SessionSnapshot> describe(const SessionId& id,
                                         const std::string& token) const override {
    return node->describe(id, token);
  }
  void on_stream_closed(node::StreamId stream) override { node->on_stream_closed(stream); }
  Status stop(const SessionId& id, const std::string& token, const NodeId& last) override {
    return node->stop(id, token, last);
  }
  Status on_prediction(const mobility::Prediction& p) override { return node->on_prediction(p); }
  Status on_handover(const mobility::HandoverEvent& e) override { return node->on_handover(e); }
  Status on_position(const mobility::PositionReport& r) override { return node->on_position(r); }
  std::vector<node::SessionInfo> sessions() const override { return node->sessions(); }
  const std::vector<node::HandoverReport>& handovers() const override { return node->handovers(); }
  const std::vector<node::DepartureReport>& departures() const override {
    return node->departures();
  }
  node::NodeStats stats() const override { return node->stats(); }
  bool ready() const override { return node->ready(); }
  Result<node::MoveReport> move(const node::MoveOrder& order) override { return node->move(order); }
  std::optional<node::MoveReport> moved(const std::string& id) const override {
    return node->moved(id);
  }
  node::DrainStatus drain_status() const override { return node->drain_status(); }

  // A whole session, as a UE brings it to a gNB that does not know it; then the client goes.
  int attach_as(const std::string& session, const std::string& token, const std::string& ue) {
    KeptAnswer answer;
    const HttpRequest request{"POST",
                              "/v1/sessions/" + session + "/attach",
                              "",
                              {{"Pallas-Resume-Token", token}, {"Pallas-UE", ue}},
                              kContext};
    const auto stream = api.handle(request, answer);
    const int status = answer.response ? answer.response->status : 200;
    if (stream) api.on_disconnected(*stream);
    settle();
    return status;
  }
  void settle() {
    while (!posted.empty()) {
      const auto task = std::move(posted.front());
      posted.pop_front();
      task();
    }
  }
  std::string invented() {
    return hex_128([this] { return random_(); });
  }
  static std::size_t memory() { return ::mallinfo2().uordblks; }

  const std::string kContext =
      R"({"epoch":2,"next_index":0,"last_node":"gnb-b","endpoint":"completions",)"
      R"("request":{"prompt":"hello hello","max_tokens":20},)"
      R"("session":{"seed":1,"completion_id":"cmpl-x","created":1,"prompt_tokens":)" +
      std::to_string(engine::FakeTextCodec().tokenize("hello hello")->size()) + "}}";

  std::mt19937_64 random_{7};
  test::VirtualClock clock;
  engine::FakeEngine engine{clock};
  engine::FakeTextCodec text;
  NoPeers peers;
  std::deque<std::function<void()>> posted;
  Api api{text, clock, options(),
          [this](std::function<void()> task) { posted.push_back(std::move(task)); }};
  std::optional<node::Node> node;
  int attaches = 0;

 private:
  ApiOptions options() {
    ApiOptions o;
    o.random = [this] { return random_(); };
    o.unix_time = [] { return std::int64_t{1700000000}; };
    o.ran_messages_per_second = 0;
    return o;
  }
};

TEST_F(AttackersTest, a_hundred_thousand_invented_sessions_are_nobody) {
  for (int i = 0; i < kMany; ++i) ASSERT_EQ(attach_as(invented(), invented(), "ue"), 404);
  EXPECT_EQ(attaches, 0) << "the node was not even asked";
  EXPECT_TRUE(sessions().empty());
}

TEST_F(AttackersTest, nobody_can_take_a_sessions_place_before_it_comes) {
  // Its id is known, from a log say; its token is not.
  const std::string token = invented();
  const std::string session = session_of(token);
  EXPECT_EQ(attach_as(session, invented(), "thief"), 404);
  EXPECT_TRUE(sessions().empty());
  EXPECT_EQ(attach_as(session, token, "owner"), 200);
  ASSERT_EQ(sessions().size(), 1u);
  EXPECT_EQ(sessions()[0].ue, UeId("owner"));
  EXPECT_EQ(attach_as(session, invented(), "thief"), 404);
}

TEST_F(AttackersTest, sessions_that_a_client_makes_up_have_bounded_room) {
  constexpr int kSessions = 5'000;
  std::size_t before = 0;
  for (int i = 0; i < kSessions; ++i) {
    if (i == kSessions / 4) before = memory();
    const std::string token = invented();
    // Taken while there is room, refused with a reason then; never anything else.
    const int status = attach_as(session_of(token), token, "ue-" + std::to_string(i));
    ASSERT_TRUE(status == 200 || status == 503) << status;
    if (i % 100 == 0) clock.run_for(1s);
  }
  EXPECT_LE(sessions().size(), 64u);
  EXPECT_LT(memory(), before + (2u << 20));
  // When they are gone, everything is free again.
  clock.run_for(10min);
  EXPECT_TRUE(sessions().empty());
  EXPECT_EQ(engine.free_slots(), engine.info().slots);
}

TEST_F(AttackersTest, names_of_ues_that_were_never_seen_have_bounded_room) {
  std::size_t before = 0;
  for (int i = 0; i < kMany; ++i) {
    if (i == kMany / 4) before = memory();
    mobility::Prediction prediction;
    prediction.ue = UeId("invented-ue-" + std::to_string(i));
    prediction.seq = 1;
    prediction.target = CellId("there");
    prediction.in = 1s;
    prediction.valid = 2s;
    ASSERT_TRUE(on_prediction(prediction));
  }
  EXPECT_LT(memory(), before + (4u << 20));
}

}  // namespace
}  // namespace pallas::http
