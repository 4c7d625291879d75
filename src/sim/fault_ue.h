#pragma once
// A UE of a fault run: it keeps all that it receives and knows what it should be, as far as that is
// one text; it follows its session as a client does, and comes back when its stream is gone.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/fault_script.h"
#include "sim/ue.h"

namespace pallas::sim {

class FaultUe : public Ue {
 public:
  const FaultUeSettings* settings = nullptr;
  std::vector<TokenId> prompt_ids;
  // What an undisturbed gNB would say; empty where nobody can tell.
  std::vector<TokenId> reference;
  std::vector<std::string> texts;  // of each index

  std::vector<TokenId> ids;
  std::vector<NodeId> by;
  std::function<void(const std::string&)> breach;  // hears broken promises

  // Where it is and what it does about it (sim/fault_run.cpp).
  bool opened = false;
  TimePoint opened_at{};
  bool refused = false;  // the request was: there is no session
  bool away = false;     // it left without a word
  int cell = 0;
  bool executing = false;  // the radio says that it leaves
  int left_from = 0;       // the source of the handover that the radio executes
  TimePoint retry_at{};
  int turned_away = 0;  // times in a row that a gNB had no room
  TimePoint last_token{};
  TimePoint last_sign{};  // token, comment or attach
  int comments = 0;
  TimePoint stopped_at{};  // DELETE was accepted; {}: it was not
  TimePoint alone_since{};
  Duration longest_alone{0};  // without a stream to a gNB that runs

  bool over() const { return refused || finished.has_value(); }
  bool stopped() const { return stopped_at != TimePoint{}; }

  void on_token(const NodeId& emitter, int by_gnb, const node::TokenEvent& token,
                TimePoint now) override;
  void on_finish(const node::FinishEvent& event) override;
  std::vector<TokenId> prompt() const override { return prompt_ids; }
  node::UeContext context(const std::vector<std::string>& names) const override;

 private:
  std::size_t told_ = 0;  // of breaches()
};

// Ids and texts of `ue`'s session at an engine that nobody disturbs.
void find_reference(FaultUe& ue, const engine::FakeEngineConfig& engine);

}  // namespace pallas::sim
