#include "utility_run.h"

#include <algorithm>
#include <cmath>

#include "kv/rows.h"

namespace pallas::app {
namespace {

constexpr Duration kPatience = std::chrono::minutes(10);
// The latest tokens that look back at the others; a prompt's question is about as long.
constexpr std::size_t kWindow = 16;

TokenPosition front_of(const NeedleQuestion& question) {
  return static_cast<TokenPosition>(question.prompt.size() - 1);
}

}  // namespace

UtilityRunner::UtilityRunner(EventLoop& loop, EngineKit& kit, engine::AlwaysSent always)
    : loop_(loop), kit_(kit), always_(always) {
  kit_.engine->set_events(this);
}

UtilityRunner::~UtilityRunner() {
  for (const auto& [slot, seen] : seen_) kit_.engine->release(slot);
  kit_.engine->set_events(nullptr);
}

Result<QuestionRecord> UtilityRunner::ask(const NeedleQuestion& question,
                                          const std::vector<UtilityProbe>& probes,
                                          std::uint64_t seed) {
  const auto slot = open(question);
  if (!slot) return Failure(slot.error());
  engine::Engine& engine = *kit_.engine;
  const TokenPosition front = front_of(question);
  Seen& whole = seen_[*slot];
  engine.prefill(*slot, 0, {question.prompt.begin(), question.prompt.end() - 1});
  engine.export_kv(*slot, {0, front});
  if (auto s = wait([&] { return !whole.rows.empty(); }, "a prefill"); !s) {
    return Failure(s.error());
  }
  const kv::Bytes rows = std::move(whole.rows);

  std::map<engine::Ordering, std::vector<double>> scores;
  const auto window = std::min<std::size_t>(kWindow, question.prompt.size());
  for (const UtilityProbe& probe : probes) {
    if (scores.contains(probe.ordering)) continue;
    whole.scores.clear();
    engine.rank(*slot, {probe.ordering,
                        seed,
                        {question.prompt.end() - static_cast<std::ptrdiff_t>(window),
                         question.prompt.end()}});
    if (auto s = wait([&] { return !whole.scores.empty(); }, "scores"); !s) {
      return Failure(s.error());
    }
    scores[probe.ordering] = std::move(whole.scores);
  }

  QuestionRecord record;
  record.tokens = static_cast<std::uint32_t>(question.prompt.size());
  decode(*slot, question);
  if (auto s = wait([&] { return whole.ended; }, "an answer"); !s) return Failure(s.error());
  record.full = answered_rightly(*slot, question);
  close(*slot);
  if (auto s = ask_parts(question, probes, scores, rows, record); !s) return Failure(s.error());
  return record;
}

Status UtilityRunner::ask_parts(const NeedleQuestion& question,
                                const std::vector<UtilityProbe>& probes,
                                const std::map<engine::Ordering, std::vector<double>>& scores,
                                const kv::Bytes& rows, QuestionRecord& record) {
  engine::Engine& engine = *kit_.engine;
  const TokenPosition front = front_of(question);
  for (std::size_t begin = 0; begin < probes.size();) {
    std::vector<engine::SlotId> slots;
    const std::size_t first = begin;
    for (; begin < probes.size() && engine.free_slots() > 0; ++begin) {
      const UtilityProbe& probe = probes[begin];
      const auto slot = open(question);
      if (!slot) return Failure(slot.error());
      slots.push_back(*slot);
      const auto count = static_cast<TokenPosition>(std::lround(probe.fraction * front));
      kv::Coverage chosen =
          engine::most_important(scores.at(probe.ordering), std::max(count, 1u), always_);
      kv::Bytes part = kv::gather_rows(engine.info().geometry, rows, {0, front}, chosen);
      engine.attach_scattered(*slot, std::move(chosen), std::move(part));
    }
    // Together, so that they decode in one batch.
    for (const auto slot : slots) decode(slot, question);
    const auto all_ended = [&] {
      return std::all_of(slots.begin(), slots.end(), [this](auto s) { return seen_[s].ended; });
    };
    if (auto s = wait(all_ended, "answers"); !s) return s;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const UtilityProbe& probe = probes[first + i];
      record.right[std::string(engine::name_of(probe.ordering))][fraction_name(probe.fraction)] =
          answered_rightly(slots[i], question);
      close(slots[i]);
    }
  }
  return {};
}

Result<engine::SlotId> UtilityRunner::open(const NeedleQuestion& question) {
  const auto tokens = static_cast<TokenPosition>(question.prompt.size()) +
                      std::max<TokenPosition>(question.answer_tokens, kWindow);
  const auto slot = kit_.engine->reserve(tokens);
  if (!slot) return Failure(slot.error());
  seen_[*slot] = {};
  return *slot;
}

void UtilityRunner::close(engine::SlotId slot) {
  kit_.engine->release(slot);
  seen_.erase(slot);
}

Status UtilityRunner::wait(const std::function<bool()>& done, const char* what) {
  const auto failed = [this] {
    return std::find_if(seen_.begin(), seen_.end(),
                        [](const auto& entry) { return entry.second.error.has_value(); });
  };
  if (auto s = loop_.wait([&] { return failed() != seen_.end() || done(); }, kPatience, what); !s) {
    return s;
  }
  if (const auto at = failed(); at != seen_.end()) return Failure(*at->second.error);
  return {};
}

void UtilityRunner::decode(engine::SlotId slot, const NeedleQuestion& question) {
  engine::DecodeParams params;
  params.sampling.temperature = 0;
  params.tokens = question.prompt;
  params.prompt_tokens = static_cast<TokenPosition>(question.prompt.size());
  params.last_position = params.prompt_tokens + question.answer_tokens - 1;
  kit_.engine->decode(slot, std::move(params));
}

bool UtilityRunner::answered_rightly(engine::SlotId slot, const NeedleQuestion& question) {
  std::string text;
  for (const TokenId id : seen_[slot].sampled) text += kit_.text->piece(id);
  return is_answer(text, question.answer);
}

void UtilityRunner::on_prefilled(engine::SlotId, TokenPosition, Duration) {}
void UtilityRunner::on_replayed(engine::SlotId, TokenPosition, Duration) {}
void UtilityRunner::on_attached(engine::SlotId, TokenPosition) {}
void UtilityRunner::on_paused(engine::SlotId, TokenPosition) {}
void UtilityRunner::on_truncated(engine::SlotId, TokenPosition) {}
void UtilityRunner::on_sampled(engine::SlotId slot, const engine::Sampled& token) {
  seen_[slot].sampled.push_back(token.id);
  if (token.limit || token.end_of_generation) seen_[slot].ended = true;
}
void UtilityRunner::on_exported(engine::SlotId slot, kv::TokenRange, kv::Bytes rows) {
  seen_[slot].rows = std::move(rows);
}
void UtilityRunner::on_ranked(engine::SlotId slot, std::vector<double> scores) {
  seen_[slot].scores = std::move(scores);
}
void UtilityRunner::on_failed(engine::SlotId slot, const Error& error) {
  seen_[slot].error = error;
}

}  // namespace pallas::app
