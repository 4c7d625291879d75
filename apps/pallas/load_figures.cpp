#include "load_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "http/json_writer.h"

namespace pallas::app {

Quantiles quantiles(std::vector<double> values) {
  Quantiles q;
  q.count = values.size();
  if (values.empty()) return q;
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const auto rank = std::ceil(share * static_cast<double>(values.size()));
    return values[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
  };
  q.p50 = at(0.5);
  q.p99 = at(0.99);
  q.max = values.back();
  return q;
}

void add_lateness(const LoadSession& session, double rate, TimePoint from, TimePoint to,
                  std::vector<double>& ms) {
  const double interval_ms = 1000 / rate;
  for (std::size_t stream = 0; stream < session.began.size(); ++stream) {
    const std::size_t first = session.began[stream];
    const std::size_t end =
        stream + 1 < session.began.size() ? session.began[stream + 1] : session.arrivals.size();
    double best = std::numeric_limits<double>::infinity();
    const auto offset = [&](std::size_t i) {
      return to_ms(session.arrivals[i] - session.arrivals[first]) -
             static_cast<double>(i - first) * interval_ms;
    };
    for (std::size_t i = first; i < end; ++i) best = std::min(best, offset(i));
    for (std::size_t i = first; i < end; ++i) {
      const TimePoint at = session.arrivals[i];
      if (at >= from && at < to) ms.push_back(offset(i) - best);
    }
  }
}

std::optional<double> added_gap_ms(const LoadSession& session, double rate) {
  if (session.began.size() < 2) return std::nullopt;
  const std::size_t first = session.began.back();
  if (first == 0 || first >= session.arrivals.size()) return std::nullopt;
  return to_ms(session.arrivals[first] - session.arrivals[first - 1]) - 1000 / rate;
}

namespace {

void member(http::JsonWriter& json, const char* name, const Quantiles& q) {
  json.key(name)
      .begin_object()
      .member("count", q.count)
      .member("p50", q.p50)
      .member("p99", q.p99)
      .member("max", q.max)
      .end_object();
}

std::string line(const char* name, const Quantiles& q) {
  return fmt::format("  {:<34} {:>9.2f} {:>9.2f} {:>9.2f}\n", name, q.p50, q.p99, q.max);
}

}  // namespace

std::string to_json(const LoadFigures& f) {
  http::JsonWriter json;
  json.begin_object()
      .member("sessions", f.sessions)
      .member("handovers", f.handovers)
      .member("rate", f.rate)
      .member("seconds", f.seconds)
      .member("good", f.good())
      .member("tokens", f.tokens)
      .member("tokens_expected", f.expected)
      .member("lost", f.lost)
      .member("repeated", f.repeated)
      .member("wrong", f.wrong)
      .member("broken", f.broken)
      .member("first_error", f.first_error)
      .member("handovers_done", f.handovers_done)
      .member("refusals_asked", f.refusals_asked)
      .member("refusals_in_order", f.refusals_in_order)
      .member("cpu_before", f.cpu_before)
      .member("cpu_handovers", f.cpu_handovers)
      .member("cpu_after", f.cpu_after)
      .member("rss_empty", f.rss_empty)
      .member("rss_full", f.rss_full)
      .member("bytes_per_session", f.bytes_per_session);
  member(json, "late_before_ms", f.late_before);
  member(json, "late_handovers_ms", f.late_handovers);
  member(json, "late_after_ms", f.late_after);
  member(json, "gap_ms", f.gap);
  member(json, "attach_ms", f.attach);
  return json.end_object().take();
}

std::string to_text(const LoadFigures& f) {
  std::string out;
  out += fmt::format("{} sessions of {} tokens/s, {} handovers to their gNB within a second: {}\n",
                     f.sessions, f.rate, f.handovers, f.good() ? "good" : "NOT GOOD");
  out += fmt::format("  tokens {} of {} expected; lost {}, repeated {}, wrong {}, broken {}\n",
                     f.tokens, f.expected, f.lost, f.repeated, f.wrong, f.broken);
  if (!f.first_error.empty()) out += "  first error: " + f.first_error + "\n";
  out += fmt::format("  handovers {} of {}; refusals in order {} of {}\n", f.handovers_done,
                     f.handovers, f.refusals_in_order, f.refusals_asked);
  out += fmt::format("  of one core: {:.0f} % before, {:.0f} % in the second, {:.0f} % after\n",
                     100 * f.cpu_before, 100 * f.cpu_handovers, 100 * f.cpu_after);
  out += fmt::format("  memory {:.1f} MB empty, {:.1f} MB full: {:.1f} kB a session\n",
                     static_cast<double>(f.rss_empty) / 1e6, static_cast<double>(f.rss_full) / 1e6,
                     f.bytes_per_session / 1e3);
  out += fmt::format("  {:<34} {:>9} {:>9} {:>9}\n", "ms", "p50", "p99", "max");
  out += line("token late, before", f.late_before);
  out += line("token late, while they arrive", f.late_handovers);
  out += line("token late, after", f.late_after);
  out += line("added to the interval of who moved", f.gap);
  out += line("attach to its first event", f.attach);
  return out;
}

}  // namespace pallas::app
