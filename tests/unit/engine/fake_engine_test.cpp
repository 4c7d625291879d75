// What FakeEngine promises beyond the contract of every engine: exact virtual time, ids that see
// every row, faults.
#include "engine/fake_engine.h"

#include <map>
#include <set>

#include "virtual_clock.h"

namespace pallas::engine {
namespace {

using namespace std::chrono_literals;
using test::VirtualClock;
using CommandKind = FakeEngine::CommandKind;

// Events with their virtual times.
struct Log : EngineEvents {
  struct Entry {
    char letter;
    SlotId slot;
    TokenPosition position;
    Duration at;
  };
  explicit Log(const Clock& c) : clock(c) {}
  void add(char letter, SlotId slot, TokenPosition position) {
    entries.push_back({letter, slot, position, clock.now().time_since_epoch()});
  }
  void on_prefilled(SlotId s, TokenPosition front, Duration) override { add('p', s, front); }
  void on_replayed(SlotId s, TokenPosition front, Duration) override { add('r', s, front); }
  void on_attached(SlotId s, TokenPosition front) override { add('a', s, front); }
  void on_sampled(SlotId s, const Sampled& token) override {
    add('s', s, token.position);
    tokens[s].push_back(token);
  }
  void on_paused(SlotId s, TokenPosition front) override { add('P', s, front); }
  void on_exported(SlotId s, kv::TokenRange range, kv::Bytes bytes) override {
    add('E', s, range.end);
    rows = std::move(bytes);
  }
  void on_truncated(SlotId s, TokenPosition front) override { add('T', s, front); }
  void on_ranked(SlotId s, std::vector<double> scores) override {
    add('K', s, static_cast<TokenPosition>(scores.size()));
  }
  void on_failed(SlotId s, const Error& error) override {
    add('F', s, 0);
    errors.push_back(error);
  }
  std::string order() const {
    std::string letters;
    for (const Entry& entry : entries) letters.push_back(entry.letter);
    return letters;
  }
  std::vector<TokenId> ids(SlotId slot) {
    std::vector<TokenId> all;
    for (const Sampled& token : tokens[slot]) all.push_back(token.id);
    return all;
  }

  const Clock& clock;
  std::vector<Entry> entries;
  std::map<SlotId, std::vector<Sampled>> tokens;
  std::vector<Error> errors;
  kv::Bytes rows;
};

class FakeEngineTest : public testing::Test {
 protected:
  // Round costs: 1 ms a prefilled token, 10 ms a step and 2 ms more for each further session.
  static FakeEngineConfig round_costs() {
    FakeEngineConfig config;
    config.info.profile.chunk_tokens = 10;
    config.info.profile.prefill = {{0, Seconds(0.001)}};
    config.info.profile.decode = {{1, 0, Seconds(0.010)}, {4, 0, Seconds(0.016)}};
    config.info.profile.export_per_token = Seconds(0.0001);
    config.info.profile.attach_per_token = Seconds(0.0002);
    return config;
  }
  void make(FakeEngineConfig config = round_costs()) {
    engine = std::make_unique<FakeEngine>(clock, std::move(config));
    engine->set_events(&log);
  }
  void SetUp() override { make(); }
  void TearDown() override { EXPECT_TRUE(engine->consistent()); }

  static std::vector<TokenId> words(TokenPosition count, TokenId first = 100) {
    std::vector<TokenId> ids(count);
    for (TokenPosition i = 0; i < count; ++i) ids[i] = first + static_cast<TokenId>(i);
    return ids;
  }
  static DecodeParams params_of(std::vector<TokenId> ids, TokenPosition prompt, TokenIndex count) {
    DecodeParams params;
    params.last_position = static_cast<TokenPosition>(ids.size()) + count - 1;
    params.tokens = std::move(ids);
    params.prompt_tokens = prompt;
    params.sampling.ignore_eos = true;
    return params;
  }
  SlotId reserve(TokenPosition tokens = 500) { return engine->reserve(tokens).value(); }
  void settle() { ASSERT_TRUE(clock.run_until_idle(600s)); }
  // A slot with KV of all of `prompt` but its last id.
  SlotId prepared(const std::vector<TokenId>& prompt) {
    const SlotId slot = reserve();
    engine->prefill(slot, 0, {prompt.begin(), prompt.end() - 1});
    settle();
    return slot;
  }
  std::vector<TokenId> decode(SlotId slot, const std::vector<TokenId>& ids, TokenIndex count,
                              const SamplingParams* sampling = nullptr) {
    DecodeParams params = params_of(ids, 20, count);
    if (sampling != nullptr) params.sampling = *sampling;
    engine->decode(slot, params);
    settle();
    return log.ids(slot);
  }
  kv::Bytes rows_of(SlotId slot, kv::TokenRange range) {
    engine->export_kv(slot, range);
    settle();
    return log.rows;
  }

  VirtualClock clock;
  Log log{clock};
  std::unique_ptr<FakeEngine> engine;
};

// --- time ---

TEST_F(FakeEngineTest, prefill_takes_the_profiles_time_chunk_by_chunk) {
  prepared(words(26));
  ASSERT_EQ(log.order(), "ppp");
  EXPECT_EQ(log.entries[0].at, 10ms);
  EXPECT_EQ(log.entries[1].at, 20ms);
  EXPECT_EQ(log.entries[2].at, 25ms);
  EXPECT_EQ(log.entries[2].position, 25u);
  EXPECT_EQ(engine->stats().prefilled_tokens, 25u);
}

TEST_F(FakeEngineTest, a_step_is_one_batch_of_all_decoding_and_replaying_slots_then_one_chunk) {
  const auto ids = words(5);
  const SlotId a = prepared(ids);
  const SlotId b = prepared(ids);
  const SlotId replaying = reserve(), first = reserve();
  const Duration start = clock.now().time_since_epoch();
  log.entries.clear();
  engine->decode(a, params_of(ids, 5, 2));
  engine->decode(b, params_of(ids, 5, 2));
  engine->replay(replaying, 0, words(2));
  engine->prefill(first, 0, words(20));
  settle();
  // Three in the batch take 14 ms, then a chunk 10 ms, and the same again.
  EXPECT_EQ(log.order(), "ssrpssrp");
  EXPECT_EQ(log.entries[0].at - start, 14ms);
  EXPECT_EQ(log.entries[2].at - start, 14ms);
  EXPECT_EQ(log.entries[3].at - start, 24ms);
  EXPECT_EQ(log.entries[4].at - start, 38ms);
  EXPECT_EQ(log.tokens[a][0].batch, 3u);
  EXPECT_EQ(log.tokens[a][0].step, 14ms);
}

TEST_F(FakeEngineTest, chunks_of_several_prefilling_slots_take_turns) {
  const SlotId a = reserve(), b = reserve(), c = reserve();
  for (const SlotId slot : {a, b, c}) engine->prefill(slot, 0, words(20));
  settle();
  std::vector<SlotId> served;
  for (const auto& entry : log.entries) served.push_back(entry.slot);
  EXPECT_EQ(served, (std::vector<SlotId>{a, b, c, a, b, c}));
}

TEST_F(FakeEngineTest, a_chunk_beside_decoding_slots_keeps_to_its_time) {
  FakeEngineConfig config = round_costs();
  config.chunk_time_beside_decode = 3ms;
  make(config);
  const auto ids = words(5);
  const SlotId a = prepared(ids);
  const SlotId b = reserve();
  log.entries.clear();
  engine->decode(a, params_of(ids, 5, 3));
  engine->prefill(b, 0, words(20));
  settle();
  // Two at a time beside a, then ten.
  EXPECT_EQ(log.order(), "spspspp");
  EXPECT_EQ(log.entries[1].position, 2u);
  EXPECT_EQ(log.entries[5].position, 14u);
}

TEST_F(FakeEngineTest, transfers_take_their_time_between_steps) {
  const SlotId a = prepared(words(11));
  const Duration start = clock.now().time_since_epoch();
  const kv::Bytes rows = rows_of(a, {0, 10});
  EXPECT_EQ(clock.now().time_since_epoch() - start, 1ms);
  const SlotId b = reserve();
  engine->attach_kv(b, 0, 10, rows);
  settle();
  EXPECT_EQ(clock.now().time_since_epoch() - start, 3ms);
  EXPECT_EQ(engine->stats().exported_tokens, 10u);
  EXPECT_EQ(engine->stats().attached_tokens, 10u);
}

TEST_F(FakeEngineTest, many_exports_do_not_hold_up_a_decoding_slot) {
  const auto ids = words(41);
  const SlotId a = prepared(ids);
  engine->decode(a, params_of(ids, 41, 5));
  for (int i = 0; i < 50; ++i) engine->export_kv(a, {0, 20});  // 2 ms each
  log.entries.clear();
  settle();
  EXPECT_EQ(log.order().substr(0, 9), "EEsEEsEEs");
}

TEST_F(FakeEngineTest, a_pause_during_a_step_takes_effect_at_its_end_after_its_token) {
  const auto ids = words(5);
  const SlotId a = prepared(ids);
  engine->decode(a, params_of(ids, 5, 100));
  clock.run_for(25ms);  // in the third step
  engine->pause(a);
  log.entries.clear();
  settle();
  EXPECT_EQ(log.order(), "sP");
  EXPECT_EQ(log.entries[1].position, log.entries[0].position);
  EXPECT_EQ(log.entries[1].at, log.entries[0].at);
}

TEST_F(FakeEngineTest, tokens_keep_to_an_absolute_schedule_and_catch_up_after_a_delay) {
  const auto ids = words(5);
  const SlotId a = prepared(ids);
  const Duration start = clock.now().time_since_epoch();
  DecodeParams params = params_of(ids, 5, 8);
  params.max_token_rate = TokensPerSecond(25);
  params.first_due = 100ms;
  engine->decode(a, params);
  clock.run_for(185ms);  // the third token is due at 180 ms and on its way
  engine->set_slow_factor(10);
  clock.run_for(60ms);  // the fourth, begun at 220 ms, takes 100 ms
  engine->set_slow_factor(1);
  settle();
  std::vector<Duration> at;
  for (const auto& entry : log.entries) {
    if (entry.letter == 's') at.push_back(entry.at - start);
  }
  EXPECT_EQ(at, (std::vector<Duration>{110ms, 150ms, 190ms, 320ms, 330ms, 340ms, 350ms, 390ms}));
}

TEST_F(FakeEngineTest, two_runs_with_the_same_calls_have_the_same_events) {
  const auto run = [] {
    VirtualClock own_clock;
    Log own_log(own_clock);
    FakeEngine own(own_clock, round_costs());
    own.set_events(&own_log);
    std::vector<SlotId> slots;
    for (TokenId i = 0; i < 4; ++i) {
      const auto ids = words(12 + static_cast<TokenPosition>(i), 50 + i);
      slots.push_back(own.reserve(100).value());
      own.prefill(slots.back(), 0, {ids.begin(), ids.end() - 1});
      own.decode(slots.back(), params_of(ids, 12, 10));
    }
    own_clock.run_until_idle(10s);
    std::string trace;
    for (const auto& entry : own_log.entries) {
      trace += entry.letter + std::to_string(entry.at.count()) + " ";
    }
    for (const SlotId slot : slots) {
      for (const TokenId id : own_log.ids(slot)) trace += std::to_string(id) + " ";
    }
    return trace;
  };
  EXPECT_EQ(run(), run());
}

// --- content ---

TEST_F(FakeEngineTest, one_changed_bit_in_any_row_changes_the_ids) {
  const auto ids = words(20);
  const SlotId source = prepared(ids);
  const kv::Bytes rows = rows_of(source, {0, 19});
  const auto expected = decode(source, ids, 6);
  for (const std::size_t at : {std::size_t{0}, rows.size() / 2, rows.size() - 1}) {
    kv::Bytes damaged = rows;
    damaged[at] ^= std::byte{1};
    const SlotId target = reserve();
    engine->attach_kv(target, 0, 19, damaged);
    EXPECT_NE(decode(target, ids, 6), expected) << at;
    engine->release(target);
  }
}

TEST_F(FakeEngineTest, rows_of_another_session_or_in_another_order_change_the_ids) {
  const auto ids = words(20);
  const SlotId source = prepared(ids);
  const kv::Bytes low = rows_of(source, {0, 10});
  const kv::Bytes high = rows_of(source, {10, 19});
  const kv::Bytes swapped = rows_of(source, {9, 19});
  const auto expected = decode(source, ids, 6);
  auto other_ids = ids;
  other_ids[3] = 500;
  const SlotId other = prepared(other_ids);
  const kv::Bytes stale = rows_of(other, {0, 10});

  const SlotId with_stale = reserve();
  engine->attach_kv(with_stale, 0, 10, stale);
  engine->attach_kv(with_stale, 10, 9, high);
  EXPECT_NE(decode(with_stale, ids, 6), expected);
  engine->release(with_stale);

  const SlotId in_wrong_order = reserve();
  engine->attach_kv(in_wrong_order, 0, 10, swapped);
  engine->attach_kv(in_wrong_order, 10, 9, rows_of(source, {0, 9}));
  EXPECT_NE(decode(in_wrong_order, ids, 6), expected);
}

TEST_F(FakeEngineTest, generated_tokens_recomputed_in_chunks_differ_unless_claimed_equal) {
  for (const bool claimed : {false, true}) {
    FakeEngineConfig config = round_costs();
    config.info.capabilities.exact_chunked_generated = claimed;
    make(config);
    log.tokens.clear();
    const auto prompt = words(20);
    const SlotId source = prepared(prompt);
    auto ids = prompt;
    for (const TokenId id : decode(source, prompt, 8)) ids.push_back(id);
    const SlotId target = prepared(ids);
    decode(source, ids, 6);
    decode(target, ids, 6);
    const auto all = log.ids(source);
    const std::vector<TokenId> expected(all.begin() + 8, all.end());
    EXPECT_EQ(log.ids(target) == expected, claimed);
  }
}

TEST_F(FakeEngineTest, engines_of_different_models_have_different_tokens) {
  const auto ids = words(20);
  const auto ours = decode(prepared(ids), ids, 6);
  FakeEngineConfig config = round_costs();
  config.info.compatibility.model_hash = "another";
  make(config);
  log.tokens.clear();
  EXPECT_NE(decode(prepared(ids), ids, 6), ours);
}

TEST_F(FakeEngineTest, each_sampling_parameter_changes_the_ids) {
  const auto ids = words(20);
  SamplingParams base;
  base.ignore_eos = true;
  const auto with = [&](const std::function<void(SamplingParams&)>& change) {
    SamplingParams sampling = base;
    change(sampling);
    const SlotId slot = prepared(ids);
    const auto tokens = decode(slot, ids, 6, &sampling);
    engine->release(slot);
    return tokens;
  };
  std::set<std::vector<TokenId>> seen{with([](SamplingParams&) {})};
  const std::vector<std::function<void(SamplingParams&)>> changes{
      [](SamplingParams& p) { p.temperature = 0.7; },
      [](SamplingParams& p) { p.top_p = 0.9; },
      [](SamplingParams& p) { p.top_k = 40; },
      [](SamplingParams& p) { p.min_p = 0.1; },
      [](SamplingParams& p) { p.repeat_penalty = 1.1; },
      [](SamplingParams& p) { p.presence_penalty = 0.1; },
      [](SamplingParams& p) { p.frequency_penalty = 0.1; },
      [](SamplingParams& p) { p.seed = 1; },
      [](SamplingParams& p) { p.grammar = "root ::= x"; },
      [](SamplingParams& p) {
        p.logit_bias = {{7, 1.0F}};
      },
  };
  for (const auto& change : changes) seen.insert(with(change));
  EXPECT_EQ(seen.size(), changes.size() + 1);
}

TEST_F(FakeEngineTest, generation_ends_by_chance_but_never_below_min_tokens_or_when_ignored) {
  FakeEngineConfig config = round_costs();
  config.end_probability = 0.2;
  make(config);
  const auto ids = words(20);
  std::set<std::size_t> lengths;
  SamplingParams sampling;
  for (sampling.seed = 0; sampling.seed < 20; ++sampling.seed) {
    sampling.min_tokens = 3;
    SlotId slot = prepared(ids);
    const auto tokens = decode(slot, ids, 200, &sampling);
    EXPECT_GE(tokens.size(), 4u);
    EXPECT_TRUE(tokens.size() == 200 || tokens.back() == fake_id::kEnd);
    lengths.insert(tokens.size());
    engine->release(slot);
  }
  EXPECT_GT(lengths.size(), 5u);
  sampling.ignore_eos = true;
  EXPECT_EQ(decode(prepared(ids), ids, 200, &sampling).size(), 200u);
}

TEST_F(FakeEngineTest, its_text_is_whole_characters_with_some_of_several_tokens) {
  const FakeTextCodec codec;
  const auto ids = words(20);
  const auto tokens = decode(prepared(ids), ids, 300);
  int split = 0;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (const auto next = FakeTextCodec::continuation(tokens[i])) {
      EXPECT_EQ(tokens[i + 1], *next);
      ++split;
    } else {
      EXPECT_FALSE(FakeTextCodec::is_continuation(tokens[i + 1]));
    }
  }
  EXPECT_GT(split, 10);
}

// --- faults ---

TEST_F(FakeEngineTest, the_next_command_of_a_kind_fails_as_planned_and_only_that) {
  engine->fail_next(CommandKind::kExport, {Errc::kEngine, "planned"});
  const SlotId a = prepared(words(11));
  engine->export_kv(a, {0, 5});
  settle();
  ASSERT_EQ(log.errors.size(), 1u);
  EXPECT_EQ(log.errors[0], (Error{Errc::kEngine, "planned"}));
  EXPECT_EQ(engine->stats().failures, 1u);
  const SlotId b = prepared(words(11));
  EXPECT_FALSE(rows_of(b, {0, 5}).empty());
}

TEST_F(FakeEngineTest, reservations_are_refused_while_asked_to) {
  engine->refuse_reservations(true);
  EXPECT_EQ(engine->free_slots(), 0u);
  EXPECT_EQ(engine->reserve(10).error().code, Errc::kResourceExhausted);
  engine->refuse_reservations(false);
  EXPECT_TRUE(engine->reserve(10));
}

TEST_F(FakeEngineTest, an_engine_that_stops_answering_goes_on_where_it_was) {
  const auto ids = words(20);
  const SlotId undisturbed = prepared(ids);
  const auto expected = decode(undisturbed, ids, 6);
  const SlotId a = prepared(ids);
  engine->decode(a, params_of(ids, 20, 6));
  clock.run_for(25ms);
  engine->stop_answering();
  log.entries.clear();
  engine->export_kv(a, {0, 3});
  clock.run_for(5s);
  EXPECT_EQ(log.order(), "");
  engine->resume_answering();
  settle();
  EXPECT_EQ(log.ids(a), expected);
  EXPECT_EQ(log.order(), "sEsss");
}

TEST_F(FakeEngineTest, a_release_while_it_does_not_answer_is_counted_at_once) {
  const SlotId a = reserve();
  engine->prefill(a, 0, words(20));
  clock.run_for(5ms);
  engine->stop_answering();
  engine->release(a);
  EXPECT_EQ(engine->live_slots(), 0u);
  engine->resume_answering();
  settle();
  EXPECT_EQ(log.order(), "");
}

TEST_F(FakeEngineTest, a_slow_engine_takes_longer_by_its_factor) {
  engine->set_slow_factor(3);
  prepared(words(11));
  EXPECT_EQ(log.entries.back().at, 30ms);
}

TEST_F(FakeEngineTest, decoding_past_the_reservation_fails_by_name) {
  const auto ids = words(10);
  const SlotId slot = reserve(12);
  engine->prefill(slot, 0, {ids.begin(), ids.end() - 1});
  engine->decode(slot, params_of(ids, 10, 100));
  settle();
  EXPECT_EQ(log.order(), "psssF");  // KV of positions 9, 10, 11
  EXPECT_EQ(log.errors.at(0).code, Errc::kContextExceeded);
}

TEST_F(FakeEngineTest, ids_outside_the_vocabulary_and_senseless_parameters_are_refused) {
  const auto refused = [&](const std::function<void(SlotId)>& give) {
    const SlotId slot = reserve();
    const std::size_t before = log.errors.size();
    give(slot);
    settle();
    engine->release(slot);
    return log.errors.size() == before + 1 ? log.errors.back().code : Errc::kInternal;
  };
  EXPECT_EQ(refused([&](SlotId s) { engine->prefill(s, 0, {-1}); }), Errc::kInvalidArgument);
  EXPECT_EQ(refused([&](SlotId s) { engine->prefill(s, 0, {1000}); }), Errc::kInvalidArgument);
  EXPECT_EQ(refused([&](SlotId s) { engine->decode(s, params_of({}, 0, 5)); }),
            Errc::kInvalidArgument);
  EXPECT_EQ(refused([&](SlotId s) { engine->decode(s, params_of({5}, 1, 0)); }),
            Errc::kInvalidArgument);
  EXPECT_EQ(refused([&](SlotId s) {
              DecodeParams params = params_of({5}, 1, 5);
              params.max_token_rate = TokensPerSecond(-1);
              engine->decode(s, params);
            }),
            Errc::kInvalidArgument);
}

TEST_F(FakeEngineTest, statistics_count_every_token_by_how_its_row_came) {
  const auto ids = words(20);
  const SlotId a = prepared(ids);
  const kv::Bytes rows = rows_of(a, {0, 19});
  decode(a, ids, 5);
  const SlotId b = reserve();
  engine->attach_kv(b, 0, 19, rows);
  engine->replay(b, 19, words(3));
  settle();
  EXPECT_EQ(engine->stats().prefilled_tokens, 19u);
  EXPECT_EQ(engine->stats().sampled_tokens, 5u);
  EXPECT_EQ(engine->stats().attached_tokens, 19u);
  EXPECT_EQ(engine->stats().replayed_tokens, 3u);
  EXPECT_EQ(engine->front(b), 22u);
  EXPECT_EQ(engine->live_slots(), 2u);
  engine->release(a);
  engine->release(b);
  EXPECT_EQ(engine->live_slots(), 0u);
  EXPECT_EQ(engine->stats().releases, 2u);
  EXPECT_FALSE(engine->front(a).has_value());
}

}  // namespace
}  // namespace pallas::engine
