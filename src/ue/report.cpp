#include "ue/report.h"

#include <algorithm>
#include <cmath>

#include "session/handover_meter.h"

namespace pallas::ue {
namespace {

// The tokens [begin, end) arrived after this handover's execution and before the next one's.
HandoverStats measure(const SessionId& session, const std::vector<TokenRecord>& tokens,
                      const HandoverMark& mark, std::size_t begin, std::size_t end) {
  HandoverStats stats{.session = session,
                      .from = mark.from,
                      .to = mark.to,
                      .epoch = mark.epoch,
                      .executed_at = mark.executed_at,
                      .last_before = mark.last_before,
                      .gap_ms = {},
                      .sit_ms = {},
                      .relayed = false,
                      .tokens = end - begin,
                      .last_token_at = {},
                      .attach_sent_at = mark.attach_sent_at,
                      .granted_at = mark.granted_at,
                      .first_token_at = {},
                      .first_own_at = {}};
  const auto before = begin > 0 ? std::optional(tokens[begin - 1].at) : std::nullopt;
  stats.last_token_at = before;
  if (begin < end) stats.first_token_at = tokens[begin].at;
  session::HandoverMeter meter(mark.executed_at, before);
  for (std::size_t i = begin; i < end; ++i) {
    const bool own = tokens[i].by == mark.to;
    if (own && !stats.first_own_at) stats.first_own_at = tokens[i].at;
    meter.add(tokens[i].at, own);
  }
  stats.sit_ms = meter.sit_ms();
  stats.gap_ms = meter.gap_ms();
  stats.relayed = meter.relayed();
  return stats;
}

double percentile(const std::vector<double>& sorted, double q) {
  const double rank = q * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(std::floor(rank));
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (rank - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

}  // namespace

std::vector<HandoverStats> measure_handovers(const SessionId& session,
                                             const std::vector<TokenRecord>& tokens,
                                             const std::vector<HandoverMark>& marks) {
  std::vector<HandoverStats> all;
  const auto after = [](const HandoverMark& mark) -> std::size_t {
    return mark.last_before ? *mark.last_before + std::size_t{1} : 0;
  };
  for (std::size_t m = 0; m < marks.size(); ++m) {
    const std::size_t begin = std::min(after(marks[m]), tokens.size());
    const std::size_t next = m + 1 < marks.size() ? after(marks[m + 1]) : tokens.size();
    all.push_back(
        measure(session, tokens, marks[m], begin, std::clamp(next, begin, tokens.size())));
  }
  return all;
}

IntervalStats measure_intervals(const std::vector<TokenRecord>& tokens) {
  std::vector<double> intervals;
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    intervals.push_back(to_ms(tokens[i].at - tokens[i - 1].at));
  }
  if (intervals.empty()) return {};
  std::sort(intervals.begin(), intervals.end());
  return {intervals.size(), percentile(intervals, 0.50), percentile(intervals, 0.95),
          intervals.back()};
}

}  // namespace pallas::ue
