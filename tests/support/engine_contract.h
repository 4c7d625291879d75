#pragma once
// What every engine::Engine must do, as tests: each sentence of engine/engine.h is one or more of
// them. A test program that names `engine_contract` in its DEPS gets all tests (suite
// EngineContract) and instantiates them for its engine:
//
//   INSTANTIATE_TEST_SUITE_P(fake, EngineContract, testing::Values(EngineKind{"fake", make}),
//                            kind_name);
//
// Tests use ids, times and lengths that a small real model on a CPU handles in seconds. What the
// engine does not claim in its capabilities is skipped.

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace pallas::test {

// Gives the tests one or two engines of one kind, and passes time: virtual or real.
class EngineHarness {
 public:
  virtual ~EngineHarness() = default;
  // 0 or 1; made when first asked for. Idle, with every slot free: an engine may live longer than
  // one test, and is given its events anew in each. At least 4 slots, of at least 512 tokens.
  virtual engine::Engine& engine(int which) = 0;
  // Passes time and delivers events on this thread until done() holds, checked before and after
  // each event. False when `limit` is over first.
  virtual bool run_until(const std::function<bool()>& done, Duration limit) = 0;
  virtual TimePoint now() const = 0;
  // The n-th of some hundred ordinary token ids of the vocabulary.
  virtual TokenId ordinary_token(unsigned n) const {
    return static_cast<TokenId>(100 + n * 7919u % 800);
  }
  // A token that ends generation.
  virtual TokenId end_token() const = 0;
};

struct EngineKind {
  std::string name;
  std::function<std::unique_ptr<EngineHarness>()> make;
};
inline std::string kind_name(const testing::TestParamInfo<EngineKind>& info) {
  return info.param.name;
}

// What happened to one slot, by kind and in order.
struct SlotRecord {
  // A letter an event: p r a s | P (paused) E (exported) T (truncated) R (ranked) F
  std::string order;
  std::vector<TokenPosition> prefilled, replayed, attached, paused, truncated;
  std::vector<Duration> busy;  // of prefilled and replayed
  std::vector<engine::Sampled> sampled;
  std::vector<TimePoint> sampled_at;
  std::vector<std::pair<kv::TokenRange, kv::Bytes>> exported;
  std::vector<std::vector<double>> ranked;
  std::vector<Error> failed;
};

// Forwards to an engine and watches the rules that hold for every call and event: no event from
// inside a call, none inside another, none that names a released or unknown slot, none after a
// failure.
class WatchedEngine : public engine::Engine, public engine::EngineEvents {
 public:
  WatchedEngine(engine::Engine& engine, const EngineHarness& harness);
  ~WatchedEngine() override;

  SlotRecord& of(engine::SlotId slot) { return records_[slot]; }
  // Runs after each event has been recorded; may give commands.
  std::function<void(engine::SlotId)> after_event;
  const std::vector<std::string>& violations() const { return violations_; }
  void release_all();

  void set_events(engine::EngineEvents*) override {}
  const engine::EngineInfo& info() const override { return engine_.info(); }
  Result<engine::SlotId> reserve(TokenPosition tokens) override;
  std::uint32_t free_slots() const override { return engine_.free_slots(); }
  void prefill(engine::SlotId slot, TokenPosition first, std::vector<TokenId> tokens) override;
  void replay(engine::SlotId slot, TokenPosition first, std::vector<TokenId> tokens) override;
  void abort(engine::SlotId slot) override;
  void attach_kv(engine::SlotId slot, TokenPosition first, TokenPosition count,
                 kv::Bytes rows) override;
  void attach_scattered(engine::SlotId slot, kv::Coverage positions, kv::Bytes rows) override;
  void export_kv(engine::SlotId slot, kv::TokenRange range) override;
  void truncate(engine::SlotId slot, TokenPosition front) override;
  void rank(engine::SlotId slot, engine::RankRequest request) override;
  void decode(engine::SlotId slot, engine::DecodeParams params) override;
  void pause(engine::SlotId slot) override;
  void release(engine::SlotId slot) override;

 private:
  void on_prefilled(engine::SlotId slot, TokenPosition front, Duration busy) override;
  void on_replayed(engine::SlotId slot, TokenPosition front, Duration busy) override;
  void on_attached(engine::SlotId slot, TokenPosition front) override;
  void on_sampled(engine::SlotId slot, const engine::Sampled& token) override;
  void on_paused(engine::SlotId slot, TokenPosition front) override;
  void on_exported(engine::SlotId slot, kv::TokenRange range, kv::Bytes rows) override;
  void on_truncated(engine::SlotId slot, TokenPosition front) override;
  void on_ranked(engine::SlotId slot, std::vector<double> scores) override;
  void on_failed(engine::SlotId slot, const Error& error) override;

  template <class Call>
  auto call(Call call);
  // Records by `change` under the letter, after the checks.
  void event(engine::SlotId slot, char letter, const std::function<void(SlotRecord&)>& change);

  engine::Engine& engine_;
  const EngineHarness& harness_;
  std::map<engine::SlotId, SlotRecord> records_;
  std::set<engine::SlotId> live_;
  bool in_call_ = false;
  bool in_event_ = false;
  std::vector<std::string> violations_;
};

// A session as a node would drive it.
struct TestSession {
  WatchedEngine* engine = nullptr;
  engine::SlotId slot;
  std::vector<TokenId> ids;
  TokenPosition prompt_tokens = 0;
  engine::SamplingParams sampling;
};

// A session at engine 0 with the rows of all its positions.
struct MovedSession {
  TestSession source;
  kv::Bytes rows;
  TokenPosition front = 0;
};

class EngineContract : public testing::TestWithParam<EngineKind> {
 protected:
  static constexpr Duration kLimit = std::chrono::seconds(60);
  static constexpr TokenPosition kReserve = 400;

  void SetUp() override;
  void TearDown() override;

  WatchedEngine& engine(int which = 0);
  const engine::Capabilities& can() { return engine().info().capabilities; }
  bool run_until(const std::function<bool()>& done) { return harness_->run_until(done, kLimit); }
  void run_for(Duration span) {
    harness_->run_until([] { return false; }, span);
  }
  // `text` chooses among prompts.
  std::vector<TokenId> prompt(TokenPosition tokens, unsigned text = 0) const;
  static SlotRecord& record(const TestSession& s) { return s.engine->of(s.slot); }

  // A reserved slot; temperature 0.8, a seed, penalties, no end of generation.
  TestSession open(TokenPosition prompt_tokens, unsigned text = 0, int node = 0);
  // The same session (ids, parameters) in a slot without KV.
  TestSession open_copy(const TestSession& original, int node);
  // Computes the KV of all prompt ids but the last of the session.
  void prefill(const TestSession& s);
  engine::DecodeParams decode_params(const TestSession& s, TokenIndex count) const;
  void start_decode(const TestSession& s, TokenIndex count);
  // Decodes `count` tokens to the limit and appends their ids.
  std::vector<engine::Sampled> generate(TestSession& s, TokenIndex count);
  // Waits until `count` more tokens than `before` were sampled, or all of the limit.
  bool wait_sampled(const TestSession& s, std::size_t count);
  kv::Bytes export_rows(const TestSession& s, kv::TokenRange range);
  void attach(const TestSession& s, TokenPosition first, TokenPosition count, kv::Bytes rows);
  void truncate(const TestSession& s, TokenPosition front);
  // The rows of `positions` alone, out of those of [0, end), into a slot.
  void attach_scattered(const TestSession& s, const kv::Coverage& positions, const kv::Bytes& all,
                        TokenPosition end);
  std::vector<double> rank(const TestSession& s, engine::RankRequest request);
  MovedSession open_moved(TokenPosition prompt_tokens, TokenIndex generated);
  // The session at engine 1, with these rows of it.
  TestSession open_part(const MovedSession& moved, const kv::Coverage& positions);
  // Gives the command, waits, and expects the slot to fail with this code.
  void expect_failure(const TestSession& s, Errc code, const std::function<void()>& command);

  std::unique_ptr<EngineHarness> harness_;

 private:
  std::array<std::unique_ptr<WatchedEngine>, 2> engines_;
  std::array<std::uint32_t, 2> free_at_start_{};
};

// Ids and digests of two runs are equal, compared from the first token on.
testing::AssertionResult same_tokens(const std::vector<engine::Sampled>& a,
                                     const std::vector<engine::Sampled>& b);
std::vector<TokenId> ids_of(const std::vector<engine::Sampled>& tokens);

}  // namespace pallas::test
