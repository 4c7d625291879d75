#include "demo_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "distribution.h"

namespace pallas::app {
namespace {

// "During" a handover reaches from the beginning of its preparation to this token after it, as the
// gap does.
constexpr std::size_t kTokensAfter = 8;

struct Span {
  TimePoint begin, end;
};

std::vector<Span> busy_spans(const DemoInput& input, const std::vector<DemoHandover>& handovers) {
  std::vector<Span> spans;
  for (const auto& handover : handovers) {
    Span span{handover.seen.executed, handover.seen.executed};
    if (handover.gnb && handover.gnb->request_ms && *handover.gnb->request_ms < 0) {
      span.begin += to_duration(Seconds(*handover.gnb->request_ms / 1000));
    }
    std::size_t after = 0;
    for (const auto& token : input.tokens) {
      if (token.at <= handover.seen.executed) continue;
      span.end = token.at;
      if (++after == kTokensAfter) break;
    }
    spans.push_back(span);
  }
  return spans;
}

void measure_intervals(const DemoInput& input, DemoReport& report) {
  const auto spans = busy_spans(input, report.handovers);
  std::vector<double> all, before, during, after;
  for (std::size_t i = 1; i < input.tokens.size(); ++i) {
    const TimePoint begin = input.tokens[i - 1].at;
    const TimePoint end = input.tokens[i].at;
    const double interval = to_ms(end - begin);
    all.push_back(interval);
    const bool inside = std::any_of(spans.begin(), spans.end(), [&](const Span& span) {
      return begin < span.end && end > span.begin;
    });
    const bool early = spans.empty() || end <= spans.front().begin;
    (inside ? during : early ? before : after).push_back(interval);
  }
  report.itl = percentiles(std::move(all));
  report.itl_before = percentiles(std::move(before));
  report.itl_during = percentiles(std::move(during));
  report.itl_after = percentiles(std::move(after));
}

// The index from which on ids may differ: the first token after the first handover that was not
// exact. Ids before it are bound to the reference.
std::size_t bound_tokens(const DemoInput& input, const DemoReport& report) {
  for (const auto& handover : report.handovers) {
    if (handover.gnb && handover.gnb->exact) continue;
    const auto first =
        std::find_if(input.tokens.begin(), input.tokens.end(), [&](const SeenToken& token) {
          return token.at > handover.seen.executed && token.by == handover.seen.target;
        });
    return static_cast<std::size_t>(first - input.tokens.begin());
  }
  return input.tokens.size();
}

void find_faults(const DemoInput& input, DemoReport& report) {
  if (!input.failure.empty()) report.faults.push_back("the session ended early: " + input.failure);
  for (std::size_t i = 0; i < input.tokens.size(); ++i) {
    if (input.tokens[i].index == i) continue;
    report.faults.push_back(
        fmt::format("the UE got index {} where {} was due", input.tokens[i].index, i));
    break;
  }
  if (input.failure.empty() && input.expected_tokens != input.tokens.size()) {
    report.faults.push_back(
        fmt::format("the UE got {} tokens of {}", input.tokens.size(), input.expected_tokens));
  }
  if (input.contradictions > 0) {
    report.faults.push_back(
        fmt::format("{} tokens came again with another id", input.contradictions));
  }
  if (input.feed_failures > 0) {
    report.faults.push_back(fmt::format("{} reports of the driver were not taken, first {}",
                                        input.feed_failures, input.first_feed_failure));
  }
  const std::size_t bound = bound_tokens(input, report);
  if (report.first_difference && *report.first_difference < bound) {
    report.faults.push_back(
        fmt::format("token {} differs from the reference, and every handover before it was exact",
                    *report.first_difference));
  }
  for (const auto& handover : report.handovers) {
    if (!handover.gnb) {
      report.faults.push_back(fmt::format("{} has no report of epoch {}",
                                          handover.seen.target.value, handover.seen.epoch.value));
    } else if (!handover.gnb->error.empty()) {
      report.faults.push_back(
          fmt::format("handover to {}: {}", handover.seen.target.value, handover.gnb->error));
    }
  }
}

}  // namespace

Percentiles percentiles(std::vector<double> values) {
  const auto all = distribution(std::move(values));
  return {all.p50, all.p95};
}

DemoReport judge(const DemoInput& input) {
  DemoReport report;
  report.scheme = input.scheme;
  report.consistency = input.consistency;
  report.model = input.model;
  report.tokens = input.tokens.size();
  report.prompt_tokens = input.prompt_tokens;
  report.step = percentiles(input.reference_itl_ms);
  for (const auto& seen : input.handovers) {
    DemoHandover handover{seen, std::nullopt, {}};
    for (const auto& source : input.source_reports) {
      if (source.epoch == seen.epoch) handover.source_json = source.json;
    }
    for (const auto& gnb : input.reports) {
      if (gnb.epoch == seen.epoch && gnb.target == seen.target.value) handover.gnb = gnb;
    }
    report.handovers.push_back(std::move(handover));
  }
  report.every_exact = std::all_of(report.handovers.begin(), report.handovers.end(),
                                   [](const auto& h) { return h.gnb && h.gnb->exact; });
  report.oracle = std::any_of(report.handovers.begin(), report.handovers.end(),
                              [](const auto& h) { return h.gnb && h.gnb->oracle; });

  const std::size_t common = std::min(input.tokens.size(), input.reference.size());
  for (std::size_t i = 0; i < common && !report.first_difference; ++i) {
    if (input.tokens[i].id != input.reference[i]) report.first_difference = i;
  }
  if (!report.first_difference && input.tokens.size() != input.reference.size()) {
    report.first_difference = common;
  }
  report.text_identical = !report.first_difference && !input.tokens.empty();
  measure_intervals(input, report);
  find_faults(input, report);
  return report;
}

}  // namespace pallas::app
