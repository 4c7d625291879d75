#include "session/token_log.h"

// In place: a link of the chain is 12 bytes, less work than a call of the library.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <utility>

namespace pallas::session {

std::uint64_t chain_hash(std::uint64_t previous, TokenId id) {
  std::array<unsigned char, 12> bytes;
  for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(previous >> (8 * i));
  const auto word = static_cast<std::uint32_t>(id);
  for (unsigned i = 0; i < 4; ++i) bytes[8 + i] = static_cast<unsigned char>(word >> (8 * i));
  return XXH3_64bits(bytes.data(), bytes.size());
}

TokenLog::TokenLog(std::vector<TokenId> prompt) : ids_(std::move(prompt)), prompt_tokens_(size()) {}

Result<TokenLog> TokenLog::restore(std::vector<TokenId> tokens, TokenPosition prompt_tokens,
                                   const SampledBy& sampled_by) {
  if (prompt_tokens > tokens.size()) {
    return fail(Errc::kInvalidArgument, "prompt_tokens is " + std::to_string(prompt_tokens) +
                                            " of " + std::to_string(tokens.size()) + " tokens");
  }
  std::uint64_t sampled = 0;
  for (const auto& run : sampled_by) sampled += run.second;
  if (sampled != tokens.size() - prompt_tokens) {
    return fail(Errc::kInvalidArgument, "sampled_by counts " + std::to_string(sampled) +
                                            " generated tokens, there are " +
                                            std::to_string(tokens.size() - prompt_tokens));
  }
  TokenLog log(std::move(tokens));
  log.prompt_tokens_ = prompt_tokens;
  for (const auto& run : sampled_by) {
    if (run.second == 0) continue;
    if (!log.sampled_by_.empty() && log.sampled_by_.back().first == run.first) {
      log.sampled_by_.back().second += run.second;
    } else {
      log.sampled_by_.push_back(run);
    }
  }
  return log;
}

std::span<const TokenId> TokenLog::ids(TokenPosition begin, TokenPosition end) const {
  end = std::min(end, size());
  if (begin >= end) return {};
  return std::span<const TokenId>(ids_).subspan(begin, end - begin);
}

std::vector<TokenId> TokenLog::copy(TokenPosition begin, TokenPosition end) const {
  const auto view = ids(begin, end);
  return {view.begin(), view.end()};
}

std::uint64_t TokenLog::hash(TokenPosition end) const {
  const auto chain = [this](std::uint64_t hash, TokenPosition from, TokenPosition to) {
    for (; from < to; ++from) hash = chain_hash(hash, ids_.at(from));
    return hash;
  };
  const TokenPosition kept = end / kHashEvery;
  while (hashes_.size() <= kept) {
    const auto from = static_cast<TokenPosition>(hashes_.size() - 1) * kHashEvery;
    hashes_.push_back(chain(hashes_.back(), from, from + kHashEvery));
  }
  return chain(hashes_[kept], kept * kHashEvery, end);
}

void TokenLog::append(TokenId id, const NodeId& by) {
  ids_.push_back(id);
  if (!sampled_by_.empty() && sampled_by_.back().first == by) {
    ++sampled_by_.back().second;
  } else {
    sampled_by_.emplace_back(by, 1);
  }
}

void TokenLog::truncate(TokenPosition end) {
  end = std::max(end, prompt_tokens_);
  if (end >= size()) return;
  std::uint32_t surplus = size() - end;
  ids_.resize(end);
  hashes_.resize(std::min<std::size_t>(hashes_.size(), end / kHashEvery + std::size_t{1}));
  while (surplus > 0) {
    auto& last = sampled_by_.back();
    const std::uint32_t cut = std::min(surplus, last.second);
    last.second -= cut;
    surplus -= cut;
    if (last.second == 0) sampled_by_.pop_back();
  }
}

void TokenLog::shrink() {
  ids_.shrink_to_fit();
  hashes_.shrink_to_fit();
}

const NodeId& TokenLog::by(TokenIndex index) const {
  for (const auto& run : sampled_by_) {
    if (index < run.second) return run.first;
    index -= run.second;
  }
  static const NodeId kNobody;
  return kNobody;
}

TokenPosition TokenLog::agrees_until(TokenPosition first, std::span<const TokenId> other) const {
  const auto mine = ids(first, size());
  const auto differs = std::mismatch(mine.begin(), mine.end(), other.begin(), other.end());
  return first + static_cast<TokenPosition>(differs.first - mine.begin());
}

}  // namespace pallas::session
