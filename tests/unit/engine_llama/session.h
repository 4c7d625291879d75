#pragma once
// A session on a real engine, driven step by step.

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "harness.h"

namespace pallas::test {

// Records what one engine says of its slots; tests wait for what they expect.
class Events : public engine::EngineEvents {
 public:
  std::map<engine::SlotId, SlotRecord> of;

 private:
  void on_prefilled(engine::SlotId s, TokenPosition front, Duration) override {
    of[s].prefilled.push_back(front);
  }
  void on_replayed(engine::SlotId s, TokenPosition front, Duration) override {
    of[s].replayed.push_back(front);
  }
  void on_attached(engine::SlotId s, TokenPosition front) override {
    of[s].attached.push_back(front);
  }
  void on_sampled(engine::SlotId s, const engine::Sampled& token) override {
    of[s].sampled.push_back(token);
  }
  void on_paused(engine::SlotId s, TokenPosition front) override { of[s].paused.push_back(front); }
  void on_exported(engine::SlotId s, kv::TokenRange range, kv::Bytes rows) override {
    of[s].exported.emplace_back(range, std::move(rows));
  }
  void on_truncated(engine::SlotId s, TokenPosition front) override {
    of[s].truncated.push_back(front);
  }
  void on_ranked(engine::SlotId s, std::vector<double> scores) override {
    of[s].ranked.push_back(std::move(scores));
  }
  void on_failed(engine::SlotId s, const Error& error) override { of[s].failed.push_back(error); }
};

// Two engines with their events.
class Nodes {
 public:
  explicit Nodes(engine::LlamaConfig config = test_config()) : harness_(std::move(config)) {}
  ~Nodes() {
    for (int i = 0; i < 2; ++i) {
      if (used_[i]) harness_.llama(i).set_events(nullptr);
    }
  }

  engine::LlamaEngine& engine(int node = 0) {
    engine::LlamaEngine& engine = harness_.llama(node);
    if (!used_[node]) engine.set_events(&events_[node]);
    used_[node] = true;
    return engine;
  }
  SlotRecord& record(engine::SlotId slot, int node = 0) { return events_[node].of[slot]; }
  bool wait(const std::function<bool()>& done) {
    return harness_.run_until(done, std::chrono::seconds(120));
  }
  LlamaHarness& harness() { return harness_; }

  // Waits for the record to hold `count` of what `list` gives, or a failure.
  template <class List>
  testing::AssertionResult wait_for(engine::SlotId slot, int node, List SlotRecord::*list,
                                    std::size_t count) {
    SlotRecord& r = record(slot, node);
    if (!wait([&] { return (r.*list).size() >= count || !r.failed.empty(); })) {
      return testing::AssertionFailure() << "nothing came";
    }
    if (!r.failed.empty()) return testing::AssertionFailure() << r.failed[0].describe();
    return testing::AssertionSuccess();
  }

 private:
  LlamaHarness harness_;
  Events events_[2];
  bool used_[2] = {false, false};
};

// Ordinary ids, some hundred different ones.
std::vector<TokenId> some_ids(TokenPosition count, unsigned text = 0);
// Temperature 0.8, penalties, a seed.
engine::SamplingParams hot_sampling(std::uint64_t seed = 7);
engine::DecodeParams decode_params(std::vector<TokenId> ids, TokenPosition prompt_tokens,
                                   TokenIndex count, engine::SamplingParams sampling);
std::vector<TokenId> slice(const std::vector<TokenId>& ids, std::size_t begin, std::size_t end);

// Positions, ids and digests of two runs are equal.
testing::AssertionResult same_run(const std::vector<engine::Sampled>& a,
                                  const std::vector<engine::Sampled>& b);

}  // namespace pallas::test
