#pragma once
// A source and a target machine with engines and a link whose every move an input chooses. An
// engine here computes of position p a number that follows from the ids [0, p] and nothing else, so
// that whatever the target holds, computed or received, can be compared with its log.
//
// Checked all the time: one command at a time, each at the front and with the log's ids; rows whose
// content is that of the log; no row before the acknowledgement or above the source's front; no
// message that a peer would refuse. At the end (end_well): once everybody behaves, the KV becomes
// complete, and right.

#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "input_reader.h"
#include "session/source_handover.h"
#include "session/target_handover.h"
#include "wire/codec.h"

namespace pallas::fuzz {

inline const kv::Geometry kGeometry{
    .layers = 1, .k_row_bytes = 4, .v_row_bytes = 4, .block_tokens = 16};
inline constexpr TokenPosition kMostTokens = 240;

class HandoverWorld : public session::SourcePort {
 public:
  explicit HandoverWorld(InputReader& input);
  void step(InputReader& input);
  void end_well();

  // --- session::SourcePort ---
  void send(wire::Message message) override { enqueue(to_target_, std::move(message)); }
  void send_kv(wire::KvBlock header, kv::Bytes rows) override;
  std::uint64_t kv_backlog() const override;
  std::uint64_t link_ahead() const override;
  void export_rows(kv::TokenRange range) override;
  void rank() override { ranking_ = true; }
  bool gives_turns() override { return divided_; }

 private:
  // The target's port: its engine.
  class Engine : public session::TargetPort {
   public:
    explicit Engine(HandoverWorld& world) : world_(world) {}
    void send(wire::Message message) override { enqueue(world_.to_source_, std::move(message)); }
    void prefill(TokenPosition first, std::vector<TokenId> tokens) override {
      compute(first, std::move(tokens));
    }
    void replay(TokenPosition first, std::vector<TokenId> tokens) override {
      compute(first, std::move(tokens));
    }
    void attach_rows(session::Rows rows) override;
    void attach_part(session::Scattered) override { require(false); }  // no plan here is partial
    void decode_next(std::vector<TokenId> ahead) override;
    void truncate(TokenPosition front) override;
    TokenPosition prefill_budget() override { return world_.budget_; }
    bool may_follow() const override { return world_.may_follow_; }
    session::Pace pace() const override { return {world_.id_age_, {}, {}}; }

    bool busy() const { return !computing_.empty() || !attaching_.empty() || decoding_; }
    // Ends the running command, or `at_most` positions of it. `sampled` of a step that samples.
    void go_on(TokenPosition at_most, TokenId sampled);

    std::vector<std::uint64_t> kv;

   private:
    void compute(TokenPosition first, std::vector<TokenId> tokens);
    void append(TokenId id) { kv.push_back(session::chain_hash(kv.empty() ? 0 : kv.back(), id)); }

    HandoverWorld& world_;
    std::vector<TokenId> computing_;
    std::deque<std::vector<std::uint64_t>> attaching_;
    bool decoding_ = false;
  };

  using Queue = std::deque<wire::Message>;
  static void enqueue(Queue& queue, wire::Message message) {
    require(wire::encode(message).has_value());
    queue.push_back(std::move(message));
  }
  static TokenId id_at(TokenPosition position) { return static_cast<TokenId>(1000 + position); }

  void choose(InputReader& input);
  bool go_on_well(InputReader& nothing);
  void check_complete();
  void begin(InputReader& input);
  void sample();
  void pause(bool has_kv);
  void export_next();
  void rank_now(InputReader& input);
  bool deliver_to_target();
  bool deliver_to_source();
  bool deliver_kv(bool keep);
  void attach(InputReader& input);
  void claim();
  void lose_link(bool resume, bool other_boot);
  void lose_source();
  void lie(InputReader& input);
  void told_target();
  bool source_decodes() const { return source_ && !synced_; }

  session::TokenLog source_log_, target_log_;
  TokenPosition source_front_ = 0;
  std::unique_ptr<session::SourceHandover> source_;
  bool pausing_ = false, synced_ = false, ranking_ = false, divided_ = false;
  std::deque<kv::TokenRange> exports_;

  session::StagedRows staged_{kGeometry};
  Engine engine_{*this};
  std::unique_ptr<session::TargetHandover> target_;
  bool attached_ = false, finished_ = false, complete_ = false;
  bool honest_ = true, exact_ = false;
  TokenPosition budget_ = 1000;
  bool may_follow_ = true;
  Duration id_age_{0};

  Queue to_target_, to_source_;
  std::deque<std::pair<wire::KvBlock, kv::Bytes>> kv_;
  std::uint64_t epoch_ = 1;
  std::uint64_t attempts_ = 0;
};

}  // namespace pallas::fuzz
