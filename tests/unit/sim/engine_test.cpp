// What the simulated engine costs: batches, chunks, activation.
#include "sim/engine.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "sim/virtual_clock.h"

namespace pallas::sim {
namespace {

using namespace std::chrono_literals;

constexpr double kStep = 0.05;       // one session
constexpr double kPerToken = 0.001;  // prefill
constexpr double kBatchCost = 0.1;   // of a step, for each further session

EngineModel model() {
  EngineModel m = *paper_model("qwen3-14b");
  m.profile =
      constant_profile(TokensPerSecond(1 / kPerToken), TokensPerSecond(1 / kStep), kBatchCost, 100);
  m.activation = Seconds(0);
  m.slots = 8;
  return m;
}

struct Heard : engine::EngineEvents {
  explicit Heard(VirtualClock& c) : clock(c) {}
  VirtualClock& clock;
  std::map<std::uint64_t, std::vector<TimePoint>> sampled;
  std::map<std::uint64_t, std::vector<std::pair<TokenPosition, TimePoint>>> prefilled;
  std::map<std::uint64_t, std::vector<Duration>> busy;
  std::map<std::uint64_t, std::uint32_t> batch;

  void on_prefilled(engine::SlotId slot, TokenPosition front, Duration spent) override {
    prefilled[slot.value].emplace_back(front, clock.now());
    busy[slot.value].push_back(spent);
  }
  void on_replayed(engine::SlotId, TokenPosition, Duration) override {}
  void on_attached(engine::SlotId, TokenPosition) override {}
  void on_sampled(engine::SlotId slot, const engine::Sampled& token) override {
    sampled[slot.value].push_back(clock.now());
    batch[slot.value] = token.batch;
  }
  void on_paused(engine::SlotId, TokenPosition) override {}
  void on_exported(engine::SlotId, kv::TokenRange, kv::Bytes) override {}
  void on_truncated(engine::SlotId, TokenPosition) override {}
  void on_ranked(engine::SlotId, std::vector<double>) override {}
  void on_failed(engine::SlotId, const Error& error) override { FAIL() << error.describe(); }
};

struct Bench {
  explicit Bench(const EngineModel& m) : engine(clock, m), heard(clock) {
    engine.set_events(&heard);
  }
  VirtualClock clock;
  Engine engine;
  Heard heard;

  std::uint64_t slot(TokenPosition tokens = 4000) { return engine.reserve(tokens)->value; }
  void prefill(std::uint64_t slot, TokenPosition first, TokenPosition count) {
    engine.prefill(engine::SlotId(slot), first, std::vector<TokenId>(count, 1));
  }
  // A slot of one prompt token and `generated` ids that came from elsewhere, KV and all.
  std::uint64_t decode(TokenIndex count, TokenIndex generated = 0, double rate = 0,
                       bool awaited = false) {
    const std::uint64_t s = slot();
    if (generated > 0) {
      engine.attach_kv(engine::SlotId(s), 0, generated,
                       kv::Bytes(generated * kStandInBytes, std::byte{}));
    }
    engine::DecodeParams params;
    params.tokens = std::vector<TokenId>(1 + generated, 1);
    params.prompt_tokens = 1;
    params.last_position = generated + count;
    params.max_token_rate = TokensPerSecond(rate);
    params.awaited = awaited;
    engine.decode(engine::SlotId(s), params);
    return s;
  }
  double end() {
    clock.run_until_idle(1h);
    return to_seconds(clock.now().time_since_epoch()).count();
  }
};

TEST(SimEngine, an_awaited_session_has_its_first_step_alone_where_that_is_much_shorter) {
  for (const double cost : {0.9, 0.1}) {  // of a step, for each further session
    EngineModel m = model();
    m.profile =
        constant_profile(TokensPerSecond(1 / kPerToken), TokensPerSecond(1 / kStep), cost, 100);
    Bench b(m);
    for (int i = 0; i < 3; ++i) b.decode(10);
    b.clock.run_for(1ms);
    const std::uint64_t awaited = b.decode(2, 0, 0, true);
    const Duration three = to_duration(Seconds(kStep * (1 + 2 * cost)));
    const Duration alone = to_duration(Seconds(kStep));
    const Duration four = to_duration(Seconds(kStep * (1 + 3 * cost)));
    b.end();
    const auto& at = b.heard.sampled[awaited];
    ASSERT_EQ(at.size(), 2u);
    const Duration first = cost > 0.5 ? three + alone : three + four;
    EXPECT_NEAR(to_ms(at[0].time_since_epoch()), to_ms(first), 1e-3) << cost;
    EXPECT_NEAR(to_ms(at[1].time_since_epoch()), to_ms(first + four), 1e-3) << cost;
  }
}

TEST(SimEngine, a_batch_takes_what_the_profile_says_for_its_size) {
  for (const int sessions : {1, 2, 5}) {
    Bench b(model());
    std::uint64_t slot = 0;
    for (int i = 0; i < sessions; ++i) slot = b.decode(10);
    EXPECT_NEAR(b.end(), 10 * kStep * (1 + kBatchCost * (sessions - 1)), 1e-6) << sessions;
    EXPECT_EQ(b.heard.batch[slot], static_cast<std::uint32_t>(sessions));
  }
}

TEST(SimEngine, a_chunk_delays_the_sessions_that_decode_beside_it_by_its_own_time) {
  Bench b(model());
  const std::uint64_t resident = b.decode(6);
  const std::uint64_t other = b.slot();
  b.prefill(other, 0, 300);  // three chunks of 0.1 s
  EXPECT_NEAR(b.end(), 6 * kStep + 0.3, 1e-6);
  const auto& at = b.heard.sampled[resident];
  EXPECT_NEAR(to_seconds(at[1] - at[0]).count(), kStep + 0.1, 1e-6);
  EXPECT_NEAR(to_seconds(at[5] - at[4]).count(), kStep, 1e-6);
}

TEST(SimEngine, a_fused_step_takes_its_chunk_and_a_share_of_the_batch) {
  EngineModel m = model();
  m.fused_decode_share = 0.2;
  m.chunk_beside_decode = 50;
  Bench b(m);
  const std::uint64_t resident = b.decode(6);
  b.prefill(b.slot(), 0, 100);  // two chunks of 0.05 s
  b.end();
  const auto& at = b.heard.sampled[resident];
  EXPECT_NEAR(to_seconds(at[1] - at[0]).count(), 0.05 + 0.2 * kStep, 1e-6);
  EXPECT_NEAR(to_seconds(at[3] - at[2]).count(), kStep, 1e-6);
}

TEST(SimEngine, prefills_take_turns_or_go_first_come_first_served) {
  for (const bool fcfs : {false, true}) {
    EngineModel m = model();
    m.prefill_fcfs = fcfs;
    Bench b(m);
    const std::uint64_t first = b.slot(), second = b.slot();
    b.prefill(first, 0, 300);
    b.prefill(second, 0, 300);
    b.end();
    const double first_done =
        to_seconds(b.heard.prefilled[first].back().second.time_since_epoch()).count();
    const double second_done =
        to_seconds(b.heard.prefilled[second].back().second.time_since_epoch()).count();
    EXPECT_NEAR(first_done, fcfs ? 0.3 : 0.5, 1e-6);
    EXPECT_NEAR(second_done, 0.6, 1e-6);
  }
}

TEST(SimEngine, the_first_step_of_a_session_from_elsewhere_takes_the_activation) {
  EngineModel m = model();
  m.activation = Seconds(0.3);
  Bench moved(m);
  const std::uint64_t slot = moved.decode(3, 40);
  moved.end();
  const auto& at = moved.heard.sampled[slot];
  EXPECT_NEAR(to_seconds(at[0].time_since_epoch()).count(), 0.3, 1e-6);
  EXPECT_NEAR(to_seconds(at[1] - at[0]).count(), kStep, 1e-6);

  Bench fresh(m);
  fresh.decode(3);
  EXPECT_NEAR(fresh.end(), 3 * kStep, 1e-6);
}

TEST(SimEngine, an_activation_does_not_hold_the_sessions_beside_it) {
  EngineModel m = model();
  m.activation = Seconds(0.5);
  Bench b(m);
  const std::uint64_t resident = b.decode(20);
  b.decode(3, 40);
  b.end();
  const auto& at = b.heard.sampled[resident];
  for (std::size_t i = 1; i < at.size(); ++i) {
    EXPECT_LE(to_seconds(at[i] - at[i - 1]).count(), kStep * (1 + kBatchCost) + 1e-6);
  }
}

TEST(SimEngine, planners_are_told_the_share_of_the_prefill_rate_that_is_set) {
  EngineModel m = model();
  m.told_prefill_share = 0.5;
  Bench b(m);
  EXPECT_NEAR(b.engine.info().profile.prefill_rate(0, 1000).value, 500, 1e-6);
  const std::uint64_t slot = b.slot();
  b.prefill(slot, 0, 100);
  EXPECT_NEAR(b.end(), 0.1, 1e-6);
  EXPECT_NEAR(to_seconds(b.heard.busy[slot].back()).count(), 0.2, 1e-6);
}

TEST(SimEngine, only_the_first_command_waits_for_the_model_to_load) {
  EngineModel m = model();
  m.profile.load = Seconds(2);
  Bench b(m);
  b.decode(3);
  EXPECT_NEAR(b.end(), 2 + 3 * kStep, 1e-6);
  b.decode(3);
  EXPECT_NEAR(b.end(), 2 + 6 * kStep, 1e-6);
}

TEST(SimEngine, a_paced_session_keeps_its_schedule) {
  Bench b(model());
  const std::uint64_t slot = b.decode(11, 0, 4);
  b.end();
  const auto& at = b.heard.sampled[slot];
  EXPECT_NEAR(to_seconds(at[10] - at[0]).count(), 2.5, 1e-6);
}

TEST(SimEngine, ids_depend_on_seed_and_index_and_are_ordinary) {
  for (TokenIndex i = 0; i < 1000; ++i) {
    const TokenId id = sampled_token(5, i);
    EXPECT_GT(id, kEndToken);
    EXPECT_LT(id, kVocabulary);
    EXPECT_EQ(id, sampled_token(5, i));
  }
  EXPECT_NE(sampled_token(5, 1), sampled_token(6, 1));
  EXPECT_NE(sampled_token(5, 1), prompt_token(5, 1));
}

TEST(EngineModel, the_papers_models_have_their_table_values) {
  const auto m = paper_model("qwen3-14b");
  ASSERT_TRUE(m);
  EXPECT_EQ(m->kv_bytes_per_token, 163'840u);
  EXPECT_NEAR(m->profile.decode_step(1, 3000).count(), 1 / 22.0, 1e-12);
  EXPECT_NEAR(m->profile.prefill_rate(0, 3000).value, 3431, 1e-6);
  EXPECT_TRUE(check(*m));
  EXPECT_EQ(paper_model("gpt-2").error().code, Errc::kNotFound);
}

TEST(EngineModel, what_no_engine_has_is_refused_by_its_field) {
  const auto refused = [](const char* field, void (*change)(EngineModel&)) {
    EngineModel m = *paper_model("llama-3-8b");
    change(m);
    const Status ok = check(m);
    ASSERT_FALSE(ok) << field;
    EXPECT_NE(ok.error().message.find(field), std::string::npos) << ok.error().message;
  };
  refused("prefill_rate", [](EngineModel& m) { m.profile.prefill[0].per_token = Seconds(0); });
  refused("decode_rate", [](EngineModel& m) { m.profile.decode[0].step = Seconds(NAN); });
  refused("kv_bytes_per_token", [](EngineModel& m) { m.kv_bytes_per_token = 0; });
  refused("slots", [](EngineModel& m) { m.slots = 0; });
  refused("activation_ms", [](EngineModel& m) { m.activation = Seconds(-1); });
  refused("fused_decode_share", [](EngineModel& m) { m.fused_decode_share = 1.5; });
  refused("told_prefill_share", [](EngineModel& m) { m.told_prefill_share = NAN; });
}

}  // namespace
}  // namespace pallas::sim
