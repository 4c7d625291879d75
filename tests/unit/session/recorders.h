#pragma once
// Ports of the session machines that write down what they are asked.

#include <cstdint>
#include <utility>
#include <vector>

#include "session/source_handover.h"
#include "session/target_handover.h"

namespace pallas::session {

inline const kv::Geometry kGeometry{
    .layers = 1, .k_row_bytes = 4, .v_row_bytes = 4, .block_tokens = 16};
inline const Attempt kAttempt{NodeId("a"), BootId(7), 1};

inline TokenLog log_of(TokenPosition prompt, TokenPosition generated) {
  std::vector<TokenId> ids;
  for (TokenPosition p = 0; p < prompt; ++p) ids.push_back(static_cast<TokenId>(100 + p));
  TokenLog log(ids);
  for (TokenPosition g = 0; g < generated; ++g) {
    log.append(static_cast<TokenId>(500 + g), NodeId("a"));
  }
  return log;
}

template <class M>
std::vector<M> all_of(const std::vector<wire::Message>& messages) {
  std::vector<M> found;
  for (const auto& m : messages) {
    if (const auto* one = std::get_if<M>(&m)) found.push_back(*one);
  }
  return found;
}

class SourceRecorder : public SourcePort {
 public:
  void send(wire::Message message) override { sent.push_back(std::move(message)); }
  void send_kv(wire::KvBlock header, kv::Bytes rows) override {
    backlog += rows.size();
    blocks.push_back(std::move(header));
  }
  std::uint64_t kv_backlog() const override { return backlog; }
  std::uint64_t link_ahead() const override { return ahead; }
  void export_rows(kv::TokenRange range) override { exports.push_back(range); }
  void rank() override { ++ranks; }
  bool gives_turns() override {
    ++asked_for_turns;
    return divided;
  }

  std::vector<wire::Message> sent;
  std::vector<wire::KvBlock> blocks;
  std::vector<kv::TokenRange> exports;
  std::uint64_t backlog = 0;
  std::uint64_t ahead = 2 * 16 * 8;  // two blocks
  bool divided = false;
  int asked_for_turns = 0;
  int ranks = 0;
};

class TargetRecorder : public TargetPort {
 public:
  struct Command {
    char kind;  // p, r, a, s (scattered), d (a step that samples), t (the new front)
    kv::TokenRange range;
    friend bool operator==(const Command&, const Command&) = default;
  };
  void send(wire::Message message) override { sent.push_back(std::move(message)); }
  void prefill(TokenPosition first, std::vector<TokenId> tokens) override {
    commands.push_back({'p', {first, first + static_cast<TokenPosition>(tokens.size())}});
  }
  void replay(TokenPosition first, std::vector<TokenId> tokens) override {
    commands.push_back({'r', {first, first + static_cast<TokenPosition>(tokens.size())}});
  }
  void attach_rows(Rows rows) override { commands.push_back({'a', rows.range}); }
  void attach_part(Scattered rows) override {
    const auto& ranges = rows.positions.ranges();
    commands.push_back({'s', {ranges.front().begin, ranges.back().end}});
    part = std::move(rows);
  }
  void decode_next(std::vector<TokenId> ids) override {
    commands.push_back({'d', {}});
    ahead = std::move(ids);
  }
  void truncate(TokenPosition front) override { commands.push_back({'t', {front, front}}); }
  TokenPosition prefill_budget() override { return budget; }
  bool may_follow() const override { return idle; }
  Pace pace() const override { return {age, interval, step}; }
  bool idle = false;
  TokenPosition budget = 1000;
  Duration age{0}, interval{0};
  Seconds step{0};
  std::vector<wire::Message> sent;
  std::vector<Command> commands;
  Scattered part;              // the last
  std::vector<TokenId> ahead;  // that the last step was built upon
};

}  // namespace pallas::session
