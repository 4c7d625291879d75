#pragma once
// Asks an engine questions with a part of the prompt's KV.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/importance.h"
#include "engine_setup.h"
#include "event_loop.h"
#include "utility_record.h"
#include "utility_task.h"

namespace pallas::app {

struct UtilityProbe {
  engine::Ordering ordering = engine::Ordering::kRandom;
  double fraction = 0;  // of the positions [0, prompt tokens - 1)
};

// A prompt is prefilled once, in a slot of its own, and its rows are exported once; each probe
// attaches its share of them to another slot and decodes the answer, several at a time.
class UtilityRunner : public engine::EngineEvents {
 public:
  // `kit` has at least two slots, and outlives this.
  UtilityRunner(EventLoop& loop, EngineKit& kit, engine::AlwaysSent always);
  ~UtilityRunner() override;
  UtilityRunner(const UtilityRunner&) = delete;
  UtilityRunner& operator=(const UtilityRunner&) = delete;

  // `seed` is random's.
  Result<QuestionRecord> ask(const NeedleQuestion& question,
                             const std::vector<UtilityProbe>& probes, std::uint64_t seed);

 private:
  struct Seen {
    std::vector<TokenId> sampled;
    bool ended = false;
    kv::Bytes rows;
    std::vector<double> scores;
    std::optional<Error> error;
  };
  void on_prefilled(engine::SlotId slot, TokenPosition front, Duration busy) override;
  void on_replayed(engine::SlotId slot, TokenPosition front, Duration busy) override;
  void on_attached(engine::SlotId slot, TokenPosition front) override;
  void on_sampled(engine::SlotId slot, const engine::Sampled& token) override;
  void on_paused(engine::SlotId slot, TokenPosition front) override;
  void on_exported(engine::SlotId slot, kv::TokenRange range, kv::Bytes rows) override;
  void on_truncated(engine::SlotId slot, TokenPosition front) override;
  void on_ranked(engine::SlotId slot, std::vector<double> scores) override;
  void on_failed(engine::SlotId slot, const Error& error) override;

  Result<engine::SlotId> open(const NeedleQuestion& question);
  void close(engine::SlotId slot);
  // Until done() or any slot has failed.
  Status wait(const std::function<bool()>& done, const char* what);
  void decode(engine::SlotId slot, const NeedleQuestion& question);
  bool answered_rightly(engine::SlotId slot, const NeedleQuestion& question);
  Status ask_parts(const NeedleQuestion& question, const std::vector<UtilityProbe>& probes,
                   const std::map<engine::Ordering, std::vector<double>>& scores,
                   const kv::Bytes& rows, QuestionRecord& record);

  EventLoop& loop_;
  EngineKit& kit_;
  engine::AlwaysSent always_;
  std::map<engine::SlotId, Seen> seen_;
};

}  // namespace pallas::app
