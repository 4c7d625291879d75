#include "kv/rate_trace.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace pallas::kv {
namespace {

constexpr std::size_t kMaxLines = 10'000'000;
constexpr double kMaxMs = 3.2e10;  // a year
constexpr double kMaxMbps = 1e9;   // whatever is faster is a mistake, and sums must stay finite
constexpr double kNever = 3.15e9;  // a century: Duration holds three

std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<double> number(std::string_view text) {
  text = trim(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

bool is_rate(const std::optional<double>& mbps) {
  return mbps && *mbps >= 0 && *mbps <= kMaxMbps;
}

// The comma-separated field of that place; none when the line has fewer.
std::optional<std::string_view> field(std::string_view line, std::size_t column) {
  for (; column > 0; --column) {
    const std::size_t comma = line.find(',');
    if (comma == std::string_view::npos) return std::nullopt;
    line.remove_prefix(comma + 1);
  }
  return trim(line.substr(0, line.find(',')));
}

// Cuts the next line off, without its end.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = trim(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::optional<std::size_t> throughput_column(std::string_view heading) {
  for (std::size_t column = 0; true; ++column) {
    const auto name = field(heading, column);
    if (!name || *name == "throughput_mbps") return name ? std::optional(column) : std::nullopt;
  }
}

Failure bad_line(std::size_t line, std::string_view why) {
  return fail(Errc::kParse, "goodput trace line " + std::to_string(line) + ": " + std::string(why));
}

}  // namespace

RateTrace::RateTrace(std::vector<Step> steps) : steps_(std::move(steps)) {
  period_s_ = steps_.back().end_s;
  for (const Step& step : steps_) {
    bytes_per_period_ += (step.end_s - step.begin_s) * step.bytes_per_s;
  }
}

Result<RateTrace> RateTrace::constant(BytesPerSecond rate) {
  if (!std::isfinite(rate.value) || rate.value <= 0) {
    return fail(Errc::kInvalidArgument, "pacing rate: must be positive");
  }
  return RateTrace({Step{0, 1, rate.value}});
}

Result<RateTrace> RateTrace::parse(std::string_view csv) {
  std::vector<Step> steps;
  double offset_s = 0;
  bool may_be_heading = true;
  std::size_t number_of_line = 0;
  while (!csv.empty()) {
    const std::string_view line = take_line(csv);
    if (++number_of_line > kMaxLines) return bad_line(number_of_line, "the trace is too long");
    if (line.empty() || line.front() == '#') continue;
    const std::size_t comma = line.find(',');
    if (comma == std::string_view::npos) return bad_line(number_of_line, "expected t_ms,mbps");
    const auto t_ms = number(line.substr(0, comma));
    const auto mbps = number(line.substr(comma + 1));
    if (!t_ms && !mbps && may_be_heading) {
      if (const auto column = throughput_column(line)) {
        return parse_seconds(csv, *column, number_of_line);
      }
      may_be_heading = false;
      continue;
    }
    may_be_heading = false;
    if (!t_ms || *t_ms < 0 || *t_ms > kMaxMs) {
      return bad_line(number_of_line, "t_ms is not a time");
    }
    if (!is_rate(mbps)) return bad_line(number_of_line, "mbps is not a rate");
    if (steps.empty()) offset_s = *t_ms / 1e3;
    const double begin_s = *t_ms / 1e3 - offset_s;
    if (!steps.empty()) {
      if (begin_s <= steps.back().begin_s) return bad_line(number_of_line, "t_ms does not ascend");
      steps.back().end_s = begin_s;
    }
    steps.push_back({begin_s, 0, BytesPerSecond::from_mbps(*mbps).value});
  }
  return of_steps(std::move(steps));
}

// The lines below the heading, one a second.
Result<RateTrace> RateTrace::parse_seconds(std::string_view csv, std::size_t column,
                                           std::size_t heading_line) {
  std::vector<Step> steps;
  for (std::size_t line_number = heading_line + 1; !csv.empty(); ++line_number) {
    const std::string_view line = take_line(csv);
    if (line_number > kMaxLines) return bad_line(line_number, "the trace is too long");
    if (line.empty()) continue;
    const auto text = field(line, column);
    const auto mbps = text ? number(*text) : std::nullopt;
    if (!is_rate(mbps)) return bad_line(line_number, "throughput_mbps is not a rate");
    const auto begin = static_cast<double>(steps.size());
    steps.push_back({begin, begin + 1, BytesPerSecond::from_mbps(*mbps).value});
  }
  return of_steps(std::move(steps));
}

Result<RateTrace> RateTrace::of_steps(std::vector<Step> steps) {
  if (steps.empty()) return fail(Errc::kParse, "goodput trace: has no line t_ms,mbps");
  const double last_hold =
      steps.size() < 2 ? 1 : steps.back().begin_s - steps[steps.size() - 2].begin_s;
  steps.back().end_s = steps.back().begin_s + last_hold;
  if (std::ranges::none_of(steps, [](const Step& s) { return s.bytes_per_s > 0; })) {
    return fail(Errc::kParse, "goodput trace: every rate is 0");
  }
  return RateTrace(std::move(steps));
}

std::size_t RateTrace::step_at(double in_period_s) const {
  const auto after = std::ranges::upper_bound(steps_, in_period_s, {}, &Step::end_s);
  return std::min(static_cast<std::size_t>(after - steps_.begin()), steps_.size() - 1);
}

BytesPerSecond RateTrace::at(Duration since_start) const {
  const double in_period = std::fmod(to_seconds(since_start).count(), period_s_);
  return BytesPerSecond(steps_[step_at(in_period)].bytes_per_s);
}

std::optional<Duration> RateTrace::next_change(Duration since_start) const {
  if (steps_.size() < 2) return std::nullopt;
  const double since_s = to_seconds(since_start).count();
  const double in_period = std::fmod(since_s, period_s_);
  const double end_s = since_s - in_period + steps_[step_at(in_period)].end_s;
  return std::max(to_duration(Seconds(end_s)), since_start + Duration(1));
}

Duration RateTrace::finish(Duration begin, std::uint64_t bytes) const {
  double left = static_cast<double>(bytes);
  const double periods = std::floor(left / bytes_per_period_);
  if (!(periods * period_s_ < kNever)) return begin + to_duration(Seconds(kNever));
  left -= periods * bytes_per_period_;
  const double start_s = std::max(0.0, to_seconds(begin).count());
  const double in_period = std::fmod(start_s, period_s_);
  double spent_s = periods * period_s_;
  double at_s = in_period;
  std::size_t step = step_at(in_period);
  // At most one period and a step are left; rounding can leave a byte's fraction.
  for (std::size_t walked = 0; left > 1e-6 && walked <= steps_.size(); ++walked) {
    const Step& s = steps_[step];
    const double room = std::max(0.0, s.end_s - at_s) * s.bytes_per_s;
    if (room >= left) {
      spent_s += left / s.bytes_per_s;
      break;
    }
    left -= room;
    spent_s += std::max(0.0, s.end_s - at_s);
    step = (step + 1) % steps_.size();
    at_s = steps_[step].begin_s;
  }
  return begin + to_duration(Seconds(std::min(spent_s, kNever)));
}

}  // namespace pallas::kv
