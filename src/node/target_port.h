#pragma once
// The TargetHandover's way to its source and to the session's slot. Internal to node/.

#include <utility>
#include <vector>

#include "node/impl.h"

namespace pallas::node {

class Node::Impl::TargetPortOf : public session::TargetPort {
 public:
  TargetPortOf(Impl& node, Session& session, NodeId source)
      : node_(node),
        session_(session),
        ports_(node.ports),
        source_(std::move(source)),
        slot_(session.slot.value_or(engine::SlotId())),
        phases_(&session.arriving) {}

  // The session is here and decodes: what follows builds its whole KV in `slot`.
  void build_in(engine::SlotId slot) {
    slot_ = slot;
    phases_ = nullptr;
  }

  void send(wire::Message message) override { ports_.peers->send(source_, std::move(message)); }
  void prefill(TokenPosition first, std::vector<TokenId> tokens) override {
    begins([](TargetPhases& phases) -> Stretch& { return phases.prefill; });
    ports_.engine->prefill(slot_, first, std::move(tokens));
  }
  void replay(TokenPosition first, std::vector<TokenId> tokens) override {
    begins([](TargetPhases& phases) -> Stretch& { return phases.replay; });
    ports_.engine->replay(slot_, first, std::move(tokens));
  }
  void attach_rows(session::Rows rows) override {
    begins([](TargetPhases& phases) -> Stretch& { return phases.attaching(); });
    ports_.engine->attach_kv(slot_, rows.range.begin, rows.range.size(), std::move(rows.bytes));
  }
  void attach_part(session::Scattered rows) override {
    begins([](TargetPhases& phases) -> Stretch& { return phases.attaching(); });
    ports_.engine->attach_scattered(slot_, std::move(rows.positions), std::move(rows.bytes));
  }
  void decode_next(std::vector<TokenId> ahead) override {
    node_.decode_shadow(session_, std::move(ahead));
  }
  void truncate(TokenPosition front) override { ports_.engine->truncate(slot_, front); }
  TokenPosition prefill_budget() override { return node_.prefill_budget(session_); }
  bool may_follow() const override { return node_.may_follow(session_); }
  session::Pace pace() const override { return node_.pace(session_); }

 private:
  template <class Which>
  void begins(Which which) {
    if (phases_ != nullptr) which(*(*phases_).operator->()).started(ports_.clock->now());
  }

  Impl& node_;
  Session& session_;
  Node::Ports ports_;
  NodeId source_;
  engine::SlotId slot_;
  OnDemand<TargetPhases>* phases_;
};

}  // namespace pallas::node
