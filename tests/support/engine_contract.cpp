#include "engine_contract.h"

#include "kv/rows.h"

namespace pallas::test {

using engine::DecodeParams;
using engine::Sampled;
using engine::SlotId;

// --- WatchedEngine ---

WatchedEngine::WatchedEngine(engine::Engine& engine, const EngineHarness& harness)
    : engine_(engine), harness_(harness) {
  engine_.set_events(this);
}

WatchedEngine::~WatchedEngine() {
  engine_.set_events(nullptr);
}

template <class Call>
auto WatchedEngine::call(Call call) {
  struct Inside {
    bool& flag;
    bool before;
    explicit Inside(bool& f) : flag(f), before(f) { flag = true; }
    ~Inside() { flag = before; }
  } inside(in_call_);
  return call();
}

void WatchedEngine::release_all() {
  for (const SlotId slot : std::set<SlotId>(live_)) release(slot);
}

Result<SlotId> WatchedEngine::reserve(TokenPosition tokens) {
  auto slot = call([&] { return engine_.reserve(tokens); });
  if (slot) {
    if (records_.contains(*slot)) violations_.emplace_back("a slot id was given twice");
    records_[*slot];
    live_.insert(*slot);
  }
  return slot;
}
void WatchedEngine::prefill(SlotId slot, TokenPosition first, std::vector<TokenId> tokens) {
  call([&] { engine_.prefill(slot, first, std::move(tokens)); });
}
void WatchedEngine::replay(SlotId slot, TokenPosition first, std::vector<TokenId> tokens) {
  call([&] { engine_.replay(slot, first, std::move(tokens)); });
}
void WatchedEngine::abort(SlotId slot) {
  call([&] { engine_.abort(slot); });
}
void WatchedEngine::attach_kv(SlotId slot, TokenPosition first, TokenPosition count,
                              kv::Bytes rows) {
  call([&] { engine_.attach_kv(slot, first, count, std::move(rows)); });
}
void WatchedEngine::attach_scattered(SlotId slot, kv::Coverage positions, kv::Bytes rows) {
  call([&] { engine_.attach_scattered(slot, std::move(positions), std::move(rows)); });
}
void WatchedEngine::rank(SlotId slot, engine::RankRequest request) {
  call([&] { engine_.rank(slot, std::move(request)); });
}
void WatchedEngine::export_kv(SlotId slot, kv::TokenRange range) {
  call([&] { engine_.export_kv(slot, range); });
}
void WatchedEngine::truncate(SlotId slot, TokenPosition front) {
  call([&] { engine_.truncate(slot, front); });
}
void WatchedEngine::decode(SlotId slot, DecodeParams params) {
  call([&] { engine_.decode(slot, std::move(params)); });
}
void WatchedEngine::pause(SlotId slot) {
  call([&] { engine_.pause(slot); });
}
void WatchedEngine::release(SlotId slot) {
  call([&] { engine_.release(slot); });
  live_.erase(slot);
}

void WatchedEngine::event(SlotId slot, char letter,
                          const std::function<void(SlotRecord&)>& change) {
  const auto broken = [&](const char* rule) {
    std::string& violation = violations_.emplace_back("event ");
    violation.push_back(letter);
    violation.append(rule);
  };
  if (in_event_) broken(" came inside another event");
  if (in_call_) broken(" came from inside a call");
  if (!live_.contains(slot)) broken(" names no live slot");
  if (!records_[slot].failed.empty()) broken(" came after a failure");
  in_event_ = true;
  records_[slot].order.push_back(letter);
  change(records_[slot]);
  if (after_event) after_event(slot);
  in_event_ = false;
}

void WatchedEngine::on_prefilled(SlotId slot, TokenPosition front, Duration busy) {
  event(slot, 'p', [&](SlotRecord& record) {
    record.prefilled.push_back(front);
    record.busy.push_back(busy);
  });
}
void WatchedEngine::on_replayed(SlotId slot, TokenPosition front, Duration busy) {
  event(slot, 'r', [&](SlotRecord& record) {
    record.replayed.push_back(front);
    record.busy.push_back(busy);
  });
}
void WatchedEngine::on_attached(SlotId slot, TokenPosition front) {
  event(slot, 'a', [&](SlotRecord& record) { record.attached.push_back(front); });
}
void WatchedEngine::on_sampled(SlotId slot, const Sampled& token) {
  event(slot, 's', [&](SlotRecord& record) {
    record.sampled.push_back(token);
    record.sampled_at.push_back(harness_.now());
  });
}
void WatchedEngine::on_paused(SlotId slot, TokenPosition front) {
  event(slot, 'P', [&](SlotRecord& record) { record.paused.push_back(front); });
}
void WatchedEngine::on_exported(SlotId slot, kv::TokenRange range, kv::Bytes rows) {
  event(slot, 'E',
        [&](SlotRecord& record) { record.exported.emplace_back(range, std::move(rows)); });
}
void WatchedEngine::on_truncated(SlotId slot, TokenPosition front) {
  event(slot, 'T', [&](SlotRecord& record) { record.truncated.push_back(front); });
}
void WatchedEngine::on_ranked(SlotId slot, std::vector<double> scores) {
  event(slot, 'R', [&](SlotRecord& record) { record.ranked.push_back(std::move(scores)); });
}
void WatchedEngine::on_failed(SlotId slot, const Error& error) {
  event(slot, 'F', [&](SlotRecord& record) { record.failed.push_back(error); });
}

// --- EngineContract ---

void EngineContract::SetUp() {
  harness_ = GetParam().make();
}

void EngineContract::TearDown() {
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    if (!engines_[i]) continue;
    engines_[i]->after_event = nullptr;
    engines_[i]->release_all();
    EXPECT_EQ(engines_[i]->free_slots(), free_at_start_[i]) << "slots were lost";
  }
  run_for(std::chrono::milliseconds(100));  // whatever still runs must stay silent
  for (auto& engine : engines_) {
    if (!engine) continue;
    for (const std::string& violation : engine->violations()) ADD_FAILURE() << violation;
    engine.reset();
  }
}

WatchedEngine& EngineContract::engine(int which) {
  auto& slot = engines_.at(static_cast<std::size_t>(which));
  if (!slot) {
    slot = std::make_unique<WatchedEngine>(harness_->engine(which), *harness_);
    free_at_start_[static_cast<std::size_t>(which)] = slot->free_slots();
  }
  return *slot;
}

std::vector<TokenId> EngineContract::prompt(TokenPosition tokens, unsigned text) const {
  std::vector<TokenId> ids;
  for (unsigned i = 0; i < tokens; ++i) ids.push_back(harness_->ordinary_token(i + 131 * text));
  return ids;
}

TestSession EngineContract::open(TokenPosition prompt_tokens, unsigned text, int node) {
  TestSession s;
  s.engine = &engine(node);
  const auto slot = s.engine->reserve(kReserve);
  if (!slot) {
    ADD_FAILURE() << slot.error().describe();
    return s;
  }
  s.slot = *slot;
  s.ids = prompt(prompt_tokens, text);
  s.prompt_tokens = prompt_tokens;
  s.sampling.temperature = 0.8;
  s.sampling.seed = 1000 + text;
  s.sampling.repeat_penalty = 1.1;
  s.sampling.presence_penalty = 0.2;
  s.sampling.ignore_eos = true;
  return s;
}

TestSession EngineContract::open_copy(const TestSession& original, int node) {
  TestSession copy = open(original.prompt_tokens, 0, node);
  copy.ids = original.ids;
  copy.sampling = original.sampling;
  return copy;
}

void EngineContract::prefill(const TestSession& s) {
  const auto end =
      std::min<TokenPosition>(s.prompt_tokens, static_cast<TokenPosition>(s.ids.size() - 1));
  if (end == 0) return;
  s.engine->prefill(s.slot, 0, {s.ids.begin(), s.ids.begin() + end});
  ASSERT_TRUE(
      run_until([&] { return !record(s).prefilled.empty() && record(s).prefilled.back() == end; }));
}

DecodeParams EngineContract::decode_params(const TestSession& s, TokenIndex count) const {
  DecodeParams params;
  params.sampling = s.sampling;
  params.tokens = s.ids;
  params.prompt_tokens = s.prompt_tokens;
  params.last_position = static_cast<TokenPosition>(s.ids.size()) + count - 1;
  params.digest_logits = true;
  return params;
}

void EngineContract::start_decode(const TestSession& s, TokenIndex count) {
  s.engine->decode(s.slot, decode_params(s, count));
}

bool EngineContract::wait_sampled(const TestSession& s, std::size_t count) {
  return run_until(
             [&] { return record(s).sampled.size() >= count || !record(s).failed.empty(); }) &&
         record(s).failed.empty();
}

std::vector<Sampled> EngineContract::generate(TestSession& s, TokenIndex count) {
  if (count == 0) return {};
  const std::size_t before = record(s).sampled.size();
  start_decode(s, count);
  if (!wait_sampled(s, before + count)) {
    ADD_FAILURE() << "decoded " << record(s).sampled.size() - before << " of " << count
                  << " tokens: "
                  << (record(s).failed.empty() ? "timeout" : record(s).failed[0].describe());
    return {};
  }
  std::vector<Sampled> tokens(record(s).sampled.begin() + static_cast<std::ptrdiff_t>(before),
                              record(s).sampled.end());
  for (const Sampled& token : tokens) s.ids.push_back(token.id);
  return tokens;
}

kv::Bytes EngineContract::export_rows(const TestSession& s, kv::TokenRange range) {
  if (range.empty()) return {};
  const std::size_t before = record(s).exported.size();
  s.engine->export_kv(s.slot, range);
  if (!run_until([&] { return record(s).exported.size() > before; })) {
    ADD_FAILURE() << "no rows of [" << range.begin << "," << range.end << ")";
    return {};
  }
  EXPECT_EQ(record(s).exported.back().first, range);
  return record(s).exported.back().second;
}

void EngineContract::attach(const TestSession& s, TokenPosition first, TokenPosition count,
                            kv::Bytes rows) {
  if (count == 0) return;
  const std::size_t before = record(s).attached.size();
  s.engine->attach_kv(s.slot, first, count, std::move(rows));
  ASSERT_TRUE(run_until([&] { return record(s).attached.size() > before; }));
  EXPECT_EQ(record(s).attached.back(), first + count);
}

void EngineContract::truncate(const TestSession& s, TokenPosition front) {
  const std::size_t before = record(s).truncated.size();
  s.engine->truncate(s.slot, front);
  ASSERT_TRUE(run_until([&] { return record(s).truncated.size() > before; }));
  EXPECT_EQ(record(s).truncated.back(), front);
}

void EngineContract::attach_scattered(const TestSession& s, const kv::Coverage& positions,
                                      const kv::Bytes& all, TokenPosition end) {
  const std::size_t before = record(s).attached.size();
  s.engine->attach_scattered(s.slot, positions,
                             kv::gather_rows(engine().info().geometry, all, {0, end}, positions));
  ASSERT_TRUE(
      run_until([&] { return record(s).attached.size() > before || !record(s).failed.empty(); }));
  ASSERT_TRUE(record(s).failed.empty()) << record(s).failed[0].describe();
  EXPECT_EQ(record(s).attached.back(), positions.ranges().back().end);
}

std::vector<double> EngineContract::rank(const TestSession& s, engine::RankRequest request) {
  const std::size_t before = record(s).ranked.size();
  s.engine->rank(s.slot, std::move(request));
  if (!run_until([&] { return record(s).ranked.size() > before || !record(s).failed.empty(); }) ||
      !record(s).failed.empty()) {
    ADD_FAILURE() << "no scores";
    return {};
  }
  return record(s).ranked.back();
}

MovedSession EngineContract::open_moved(TokenPosition prompt_tokens, TokenIndex generated) {
  MovedSession moved;
  moved.source = open(prompt_tokens);
  prefill(moved.source);
  generate(moved.source, generated);
  moved.front = static_cast<TokenPosition>(moved.source.ids.size() - 1);
  moved.rows = export_rows(moved.source, {0, moved.front});
  return moved;
}

TestSession EngineContract::open_part(const MovedSession& moved, const kv::Coverage& positions) {
  TestSession s = open_copy(moved.source, 1);
  attach_scattered(s, positions, moved.rows, moved.front);
  return s;
}

void EngineContract::expect_failure(const TestSession& s, Errc code,
                                    const std::function<void()>& command) {
  command();
  ASSERT_TRUE(run_until([&] { return !record(s).failed.empty(); }));
  EXPECT_EQ(record(s).failed.back().code, code) << record(s).failed.back().describe();
  EXPECT_FALSE(record(s).failed.back().message.empty());
}

testing::AssertionResult same_tokens(const std::vector<Sampled>& a, const std::vector<Sampled>& b) {
  if (a.size() != b.size()) {
    return testing::AssertionFailure() << a.size() << " tokens against " << b.size();
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].position != b[i].position || a[i].id != b[i].id ||
        a[i].logits_digest != b[i].logits_digest) {
      return testing::AssertionFailure()
             << "token " << i << ": position " << a[i].position << " id " << a[i].id << " digest "
             << std::hex << a[i].logits_digest << " against " << std::dec << b[i].position << " id "
             << b[i].id << " digest " << std::hex << b[i].logits_digest;
    }
  }
  return testing::AssertionSuccess();
}

std::vector<TokenId> ids_of(const std::vector<Sampled>& tokens) {
  std::vector<TokenId> ids;
  for (const Sampled& token : tokens) ids.push_back(token.id);
  return ids;
}

}  // namespace pallas::test
