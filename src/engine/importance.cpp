#include "engine/importance.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "base/random.h"

namespace pallas::engine {
namespace {

// Positions that attention leans on whatever they say (StreamingLLM keeps four).
constexpr TokenPosition kSinks = 4;

// Ascending by score, then by position.
void sort_by_score(std::vector<std::uint32_t>& order, std::span<const double> scores) {
  order.resize(scores.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [scores](std::uint32_t a, std::uint32_t b) {
    return scores[a] != scores[b] ? scores[a] < scores[b] : a < b;
  });
}

double norm(std::span<const float> key) {
  double sum = 0;
  for (const float x : key) sum += double{x} * double{x};
  return std::sqrt(sum);
}

}  // namespace

std::string_view name_of(Ordering ordering) {
  switch (ordering) {
    case Ordering::kSinksRecency:
      return "sinks-recency";
    case Ordering::kKeyNorm:
      return "key-norm";
    case Ordering::kKeyDiff:
      return "key-diff";
    case Ordering::kObservationWindow:
      return "observation-window";
    case Ordering::kRandom:
      return "random";
  }
  return {};
}

Result<Ordering> parse_ordering(std::string_view name) {
  std::string known;
  for (const Ordering ordering : kOrderings) {
    if (name_of(ordering) == name) return ordering;
    known += (known.empty() ? "" : ", ") + std::string(name_of(ordering));
  }
  return fail(Errc::kInvalidArgument,
              "ordering: '" + std::string(name) + "' is not one of " + known);
}

Status check_window(const RankRequest& request) {
  if (!request.window.empty() && request.window.size() <= kMaxWindow) return {};
  return fail(Errc::kInvalidArgument, "window: " + std::to_string(request.window.size()) +
                                          " tokens, not 1 to " + std::to_string(kMaxWindow));
}

std::vector<double> sinks_recency_scores(TokenPosition count) {
  std::vector<double> scores(count);
  for (TokenPosition i = 0; i < count; ++i) {
    scores[i] = i < kSinks ? 1.0 : static_cast<double>(i) / static_cast<double>(count);
  }
  return scores;
}

std::vector<double> random_scores(TokenPosition count, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> scores(count);
  for (double& score : scores) score = random.uniform();
  return scores;
}

void RankMean::add(std::span<const double> head) {
  sort_by_score(order_, head);
  const double last = std::max<double>(static_cast<double>(order_.size()) - 1, 1);
  for (std::size_t rank = 0; rank < order_.size(); ++rank) {
    sums_[order_[rank]] += static_cast<double>(rank) / last;
  }
  heads_ += 1;
}

std::vector<double> RankMean::mean() const {
  std::vector<double> means(sums_);
  for (double& mean : means) mean /= std::max(heads_, 1.0);
  return means;
}

std::vector<double> key_norm_scores(std::span<const float> keys, std::size_t dimension) {
  std::vector<double> scores(keys.size() / dimension);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    scores[i] = -norm(keys.subspan(i * dimension, dimension));
  }
  return scores;
}

std::vector<double> key_diff_scores(std::span<const float> keys, std::size_t dimension) {
  const std::size_t count = keys.size() / dimension;
  std::vector<double> norms(count);
  std::vector<double> mean(dimension, 0.0);  // of the keys' directions
  for (std::size_t i = 0; i < count; ++i) {
    const auto key = keys.subspan(i * dimension, dimension);
    norms[i] = norm(key);
    if (norms[i] == 0) continue;
    for (std::size_t d = 0; d < dimension; ++d) mean[d] += key[d] / norms[i];
  }
  double length = 0;
  for (const double x : mean) length += x * x;
  length = std::sqrt(length);
  std::vector<double> scores(count, 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    if (norms[i] == 0 || length == 0) continue;
    double product = 0;
    for (std::size_t d = 0; d < dimension; ++d) product += keys[i * dimension + d] * mean[d];
    scores[i] = -product / (norms[i] * length);
  }
  return scores;
}

std::vector<double> attention_scores(const std::vector<std::vector<double>>& heads) {
  // A number or a name is a few tokens, of which the first draws the attention until it is said.
  constexpr std::size_t kReach = 4;
  if (heads.empty()) return {};
  const std::size_t count = heads.front().size();
  std::vector<double> scores(count, 0.0);
  for (const std::vector<double>& head : heads) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto from = head.begin() + static_cast<std::ptrdiff_t>(i - std::min(i, kReach));
      const auto to = head.begin() + static_cast<std::ptrdiff_t>(std::min(i + kReach + 1, count));
      scores[i] += *std::max_element(from, to);
    }
  }
  return scores;
}

std::vector<TokenPosition> by_importance(std::span<const double> scores) {
  std::vector<TokenPosition> order;
  sort_by_score(order, scores);
  std::reverse(order.begin(), order.end());
  return order;
}

kv::Coverage most_important(std::span<const double> scores, TokenPosition count,
                            AlwaysSent always) {
  const auto end = static_cast<TokenPosition>(scores.size());
  count = std::min(count, end);
  kv::Coverage chosen;
  const auto take = [&](TokenPosition position) {
    if (chosen.total() < count) chosen.add({position, position + 1});
  };
  if (end > 0) take(end - 1);
  for (TokenPosition i = 0; i < std::min(always.sinks, end); ++i) take(i);
  for (TokenPosition i = 0; i < std::min(always.recent, end); ++i) take(end - 1 - i);
  for (const TokenPosition best : by_importance(scores)) {
    if (chosen.total() >= count) break;
    take(best);
  }
  return chosen;
}

}  // namespace pallas::engine
