#include "http/metrics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace pallas::http {
namespace {

struct NodeRow {
  std::string_view name;
  std::string_view help;
  std::uint64_t node::NodeStats::*field;
};
struct HttpRow {
  std::string_view name;
  std::string_view help;
  std::uint64_t HttpStats::*field;
};
using S = node::NodeStats;

// A name that ends in _total is a counter.
constexpr std::array<NodeRow, 46> kNodeRows = {{
    {"pallas_sessions_opened_total", "Sessions that clients opened here.", &S::sessions_opened},
    {"pallas_sessions_finished_total", "Sessions that came to their end here.",
     &S::sessions_finished},
    {"pallas_sessions_failed_total", "Sessions that ended with an error here.",
     &S::sessions_failed},
    {"pallas_tokens_emitted_total", "Tokens written to clients.", &S::tokens_emitted},
    {"pallas_tokens_sampled_total", "Tokens sampled by this node's engine.", &S::tokens_sampled},
    {"pallas_slo_misses_total", "Intervals between emitted tokens above the token SLO.",
     &S::slo_misses},
    {"pallas_handover_preparations_requested_total",
     "Handover preparations that this node asked others for.", &S::preparations_requested},
    {"pallas_handover_preparations_successful_total",
     "Handover preparations that were acknowledged.", &S::preparations_successful},
    {"pallas_handover_preparations_failed_total", "Handover preparations that were refused.",
     &S::preparations_failed},
    {"pallas_handover_preparations_cancelled_total", "Handover preparations that were cancelled.",
     &S::preparations_cancelled},
    {"pallas_leases_expired_total", "Prepared states that ended by their lease.",
     &S::leases_expired},
    {"pallas_handover_executions_requested_total", "Handovers begun.", &S::executions_requested},
    {"pallas_handover_executions_successful_total", "Handovers completed.",
     &S::executions_successful},
    {"pallas_context_retrievals_total", "UEs that arrived without a preparation.", &S::retrievals},
    {"pallas_recoveries_total", "Sessions rebuilt from token ids.", &S::recoveries},
    {"pallas_relays_total", "Sessions served by relaying another node's tokens.", &S::relays},
    {"pallas_stale_epochs_total", "Attachments refused since a later one holds.", &S::stale_epochs},
    {"pallas_kv_sent_bytes_total", "KV bytes sent to peers.", &S::kv_bytes_sent},
    {"pallas_kv_received_bytes_total", "KV bytes received from peers.", &S::kv_bytes_received},
    {"pallas_kv_blocks_refused_total", "KV blocks whose content did not match.",
     &S::kv_blocks_refused},
    {"pallas_tokens_recomputed_total", "Tokens prefilled for a handover.", &S::tokens_recomputed},
    {"pallas_tokens_replayed_total", "Tokens replayed one by one for a handover.",
     &S::tokens_replayed},
    {"pallas_shadow_tokens_total", "Tokens sampled beside a source before the handover.",
     &S::shadow_tokens},
    {"pallas_shadow_tokens_agreed_total", "Of these, those that the source sampled, too.",
     &S::shadow_agreed},
    {"pallas_shadow_tokens_differed_total",
     "Of these, those that were dropped since the source sampled another.", &S::shadow_differed},
    {"pallas_shadow_used_total", "Handovers whose first token was there before.", &S::shadow_used},
    {"pallas_partial_handovers_total", "Sessions that began here on a part of their KV.",
     &S::partial_handovers},
    {"pallas_partial_completed_total", "Of these, those whose KV became whole.",
     &S::partial_completed},
    {"pallas_partial_tokens_total", "Tokens decoded on a part of the KV.", &S::partial_tokens},
    {"pallas_partial_tokens_replayed_total", "Of these, those computed anew for the whole KV.",
     &S::partial_tokens_replayed},
    {"pallas_sessions_partial", "Sessions that decode on a part of their KV now.",
     &S::sessions_partial},
    {"pallas_sessions_live", "Sessions decoding or prefilling here.", &S::sessions_live},
    {"pallas_sessions_prepared", "Sessions prepared here for an arrival.", &S::sessions_prepared},
    {"pallas_sessions_frozen", "Sessions that left and whose KV waits for the release.",
     &S::sessions_frozen},
    {"pallas_sessions_retained", "Sessions that left and whose KV is kept for a return.",
     &S::sessions_retained},
    {"pallas_staged_bytes", "Received KV rows waiting in host memory.", &S::staged_bytes},
    {"pallas_moves_ordered_total", "Moves of sessions that an operator ordered.",
     &S::moves_ordered},
    {"pallas_moves_completed_total", "Of these, those that came to their end.",
     &S::moves_completed},
    {"pallas_moves_failed_total", "Of these, those after which the session was not there.",
     &S::moves_failed},
    {"pallas_sessions_refused_total",
     "Requests refused for want of a slot, a place or a share, or since the gNB is drained.",
     &S::opens_refused},
    {"pallas_handover_preparations_refused_total", "Preparations that this node refused others.",
     &S::preparations_refused},
    {"pallas_kv_live_bytes", "KV of sessions served here.", &S::kv_live_bytes},
    {"pallas_kv_prepared_bytes", "KV prepared for arrivals, without rows that wait.",
     &S::kv_prepared_bytes},
    {"pallas_kv_kept_bytes", "KV of sessions that left: frozen or retained.", &S::kv_kept_bytes},
    {"pallas_log_bytes", "Token ids and texts kept, to write them again.", &S::log_bytes},
    {"pallas_free_slots", "Sessions that the engine can still take.", &S::free_slots},
}};

constexpr std::array<HttpRow, 10> kHttpRows = {{
    {"pallas_http_connections_open", "Open client connections.", &HttpStats::connections_open},
    {"pallas_http_connections_accepted_total", "Client connections taken.",
     &HttpStats::connections_accepted},
    {"pallas_http_connections_refused_total", "Client connections above the limit.",
     &HttpStats::connections_refused},
    {"pallas_http_requests_total", "HTTP requests.", &HttpStats::requests},
    {"pallas_http_streams_open", "Requests whose answer is under way.", &HttpStats::streams_open},
    {"pallas_http_unsent_bytes", "Events that clients have not taken yet.",
     &HttpStats::unsent_bytes},
    {"pallas_http_slow_readers_closed_total", "Clients cut off since they did not read.",
     &HttpStats::slow_readers_closed},
    {"pallas_http_timeouts_total", "Connections closed since a request did not come whole.",
     &HttpStats::timeouts},
    {"pallas_ran_messages_taken_total", "RAN messages taken.", &HttpStats::ran_messages_taken},
    {"pallas_ran_messages_refused_total", "RAN messages refused.",
     &HttpStats::ran_messages_refused},
}};

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 40> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

void head(std::string& out, std::string_view name, std::string_view help, bool counter) {
  out.append("# HELP ").append(name).append(" ");
  for (const char c : help) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  out.append("\n# TYPE ").append(name).append(counter ? " counter\n" : " gauge\n");
}

void simple(std::string& out, std::string_view name, std::string_view help,
            const std::string& value) {
  head(out, name, help, name.ends_with("_total"));
  out.append(name).append(" ").append(value).append("\n");
}

std::string label_text(const std::string& value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

void sample(std::string& out, const Metric& metric) {
  out += metric.name;
  char separator = '{';
  for (const auto& [name, value] : metric.labels) {
    out += separator;
    out.append(name).append("=\"").append(label_text(value)).append("\"");
    separator = ',';
  }
  if (separator == ',') out += '}';
  out.append(" ").append(number_text(metric.value)).append("\n");
}

}  // namespace

std::string metrics_text(const node::NodeStats& node, const HttpStats& http, double slo_ms,
                         std::vector<Metric> others) {
  std::string out;
  simple(out, "pallas_slo_seconds", "The token SLO: the longest good interval between tokens.",
         number_text(slo_ms / 1000));
  for (const auto& row : kNodeRows) {
    simple(out, row.name, row.help, std::to_string(node.*row.field));
  }
  for (const auto& row : kHttpRows) {
    simple(out, row.name, row.help, std::to_string(http.*row.field));
  }
  for (const auto& [status, count] : {std::pair{"2xx", http.responses_2xx},
                                      {"4xx", http.responses_4xx},
                                      {"5xx", http.responses_5xx}}) {
    others.push_back({"pallas_http_responses_total",
                      "HTTP responses by class of status.",
                      true,
                      {{"status", status}},
                      static_cast<double>(count)});
  }
  std::stable_sort(others.begin(), others.end(),
                   [](const Metric& a, const Metric& b) { return a.name < b.name; });
  std::string_view last;
  for (const auto& metric : others) {
    if (metric.name != last) head(out, metric.name, metric.help, metric.counter);
    last = metric.name;
    sample(out, metric);
  }
  return out;
}

}  // namespace pallas::http
