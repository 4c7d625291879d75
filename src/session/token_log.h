#pragma once
// The token ids of one session: what determines it, and what its KV is checked against.
//
// Hash of a prefix (KvBlock::token_hash, protocol rule 3), the same in every process:
//   h(0) = 0
//   h(i+1) = XXH3-64 (seed 0) of 12 bytes: h(i) as 8 bytes little-endian, then ids[i] as 4 bytes
//            little-endian (two's complement).

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace pallas::session {

class TokenLog {
 public:
  // (node, count): that many consecutive generated ids were sampled by that node's engine.
  using SampledBy = std::vector<std::pair<NodeId, std::uint32_t>>;

  TokenLog() : TokenLog(std::vector<TokenId>{}) {}
  explicit TokenLog(std::vector<TokenId> prompt);
  // From a peer or a UE: kInvalidArgument, with the field's name, unless prompt_tokens <=
  // tokens.size() and the counts of sampled_by add up to the generated ids. Empty runs are dropped.
  static Result<TokenLog> restore(std::vector<TokenId> tokens, TokenPosition prompt_tokens,
                                  const SampledBy& sampled_by);

  TokenPosition size() const { return static_cast<TokenPosition>(ids_.size()); }
  TokenPosition prompt_tokens() const { return prompt_tokens_; }
  TokenIndex generated() const { return size() - prompt_tokens_; }

  std::span<const TokenId> ids() const { return ids_; }
  // Ids [begin, end), cut to what there is.
  std::span<const TokenId> ids(TokenPosition begin, TokenPosition end) const;
  std::vector<TokenId> copy(TokenPosition begin, TokenPosition end) const;
  TokenId at(TokenPosition position) const { return ids_.at(position); }
  TokenId generated_at(TokenIndex index) const { return ids_.at(prompt_tokens_ + index); }

  // Of ids [0, end); end <= size(). Each id is chained once, when it is first asked for, and at
  // most kHashEvery ids anew.
  std::uint64_t hash(TokenPosition end) const;

  void append(TokenId id, const NodeId& by);
  // Keeps ids [0, max(end, prompt_tokens())).
  void truncate(TokenPosition end);
  // Gives back memory that was set aside for more ids.
  void shrink();
  // What it occupies, spare room included.
  std::uint64_t memory_bytes() const {
    return ids_.capacity() * sizeof(TokenId) + hashes_.capacity() * sizeof(std::uint64_t);
  }

  // Whose engine sampled generated index `index` < generated().
  const NodeId& by(TokenIndex index) const;
  const SampledBy& sampled_by() const { return sampled_by_; }

  // The first position >= first where `other` (ids from `first` on) and this log differ, or where
  // the shorter of the two ends.
  TokenPosition agrees_until(TokenPosition first, std::span<const TokenId> other) const;

 private:
  // Logs are many, most of them are never asked for a hash and the others for few.
  static constexpr TokenPosition kHashEvery = 16;

  std::vector<TokenId> ids_;
  mutable std::vector<std::uint64_t> hashes_{0};  // hashes_[i] of ids [0, kHashEvery i), so far
  TokenPosition prompt_tokens_ = 0;
  SampledBy sampled_by_;
};

// One link of the chain above.
std::uint64_t chain_hash(std::uint64_t previous, TokenId id);

}  // namespace pallas::session
