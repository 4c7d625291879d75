#pragma once
// Which positions of a session's KV matter most, told from what an engine has: the order in which a
// partial handover sends them. A score belongs to a token, over all layers and heads, because a
// cache keeps or lacks a position as a whole. Pure.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "kv/token_range.h"

namespace pallas::engine {

enum class Ordering : std::uint8_t {
  kSinksRecency,       // the first positions, then the latest (StreamingLLM, arXiv 2309.17453)
  kKeyNorm,            // keys of small norm first (arXiv 2406.11430)
  kKeyDiff,            // keys unlike the mean key first (KeyDiff, arXiv 2504.15364)
  kObservationWindow,  // what the latest tokens attend to (SnapKV, arXiv 2404.14469)
  kRandom,             // a control
};
inline constexpr Ordering kOrderings[] = {Ordering::kSinksRecency, Ordering::kKeyNorm,
                                          Ordering::kKeyDiff, Ordering::kObservationWindow,
                                          Ordering::kRandom};
std::string_view name_of(Ordering ordering);  // "sinks-recency", "key-norm", ...
// kInvalidArgument, naming all of them.
Result<Ordering> parse_ordering(std::string_view name);

struct RankRequest {
  Ordering ordering = Ordering::kSinksRecency;
  std::uint64_t seed = 0;  // of kRandom
  // Of kObservationWindow: these tokens are evaluated after the front and forgotten again; how they
  // attend is the score. 1 to kMaxWindow ids: the latest of the session, whose KV the slot may or
  // may not hold.
  std::vector<TokenId> window;
};
inline constexpr TokenPosition kMaxWindow = 64;
// kInvalidArgument for a window of another size.
Status check_window(const RankRequest& request);

std::vector<double> sinks_recency_scores(TokenPosition count);
std::vector<double> random_scores(TokenPosition count, std::uint64_t seed);

// Scores of a head are comparable only within the head, so the heads' ranks are averaged: 0 is the
// least important position of every head, 1 the most important one of every head. Positions whose
// scores are equal rank by position, the later the higher.
class RankMean {
 public:
  explicit RankMean(TokenPosition count) : sums_(count, 0.0) {}
  TokenPosition count() const { return static_cast<TokenPosition>(sums_.size()); }
  void add(std::span<const double> head);  // count() scores
  std::vector<double> mean() const;

 private:
  std::vector<double> sums_;
  std::vector<std::uint32_t> order_;
  double heads_ = 0;
};

// Scores of one head whose keys are rows of `dimension` elements.
std::vector<double> key_norm_scores(std::span<const float> keys, std::size_t dimension);
std::vector<double> key_diff_scores(std::span<const float> keys, std::size_t dimension);

// From the attention of a window of queries to each position, by layer and head (a row each): the
// largest within four positions, so that a token brings its neighbours along, averaged over heads.
std::vector<double> attention_scores(const std::vector<std::vector<double>>& heads);

// What no ordering leaves out, as long as it fits: the first `sinks` positions, which every query
// leans on, and the `recent` last ones.
struct AlwaysSent {
  TokenPosition sinks = 4;
  TokenPosition recent = 16;
};

// All positions, the most important first. Equal scores: the later position first.
std::vector<TokenPosition> by_importance(std::span<const double> scores);

// The `count` positions of [0, scores.size()) to have first: those always sent (the very last
// position before any other, since decoding goes on behind it), then by score. Equal scores: the
// later position first.
kv::Coverage most_important(std::span<const double> scores, TokenPosition count, AlwaysSent always);

}  // namespace pallas::engine
