#include "sim_output.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace pallas::app {
namespace {

using json = nlohmann::ordered_json;

// Columns of a run beside scheme and seed, for CSV and JSON.
std::vector<std::pair<const char*, double>> figures(const sim::ScenarioRun& r) {
  const auto count = [](std::uint64_t n) { return static_cast<double>(n); };
  return {{"ues", count(r.ues)},
          {"gnbs", count(r.gnbs)},
          {"handovers", count(r.handovers)},
          {"failed", count(r.failed)},
          {"prepared", count(r.prepared)},
          {"wrong_target", count(r.wrong_target)},
          {"sit_avg_ms", r.sit_ms.avg},
          {"sit_p50_ms", r.sit_ms.p50},
          {"sit_p90_ms", r.sit_ms.p90},
          {"sit_p99_ms", r.sit_ms.p99},
          {"sit_worst_ms", r.sit_ms.worst},
          {"gap_avg_ms", r.gap_ms.avg},
          {"gap_p99_ms", r.gap_ms.p99},
          {"itl_avg_ms", r.itl_avg_ms},
          {"itl_latency_avg_ms", r.itl_latency_avg_ms},
          {"lead_avg_s", r.lead_s.avg},
          {"early_avg_s", r.early_s.avg},
          {"available_avg_s", r.available_s.avg},
          {"waste_avg_s", r.waste_s.avg},
          {"waste_over_bound_s", r.waste_over_bound_s},
          {"kv_bytes", r.kv_bytes},
          {"recomputed_tokens", count(r.recomputed)},
          {"received_tokens", count(r.received)},
          {"tokens", count(r.tokens)},
          {"events", count(r.events)}};
}

std::string field(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : std::string();
}
json value(const std::optional<double>& value) {
  return value ? json(*value) : json(nullptr);
}

json handover_json(const sim::ScenarioRun& run, const sim::HandoverRecord& h) {
  const auto times = [](const sim::TokenTimes& t) {
    return json{{"itl_avg_ms", t.arrival.avg_ms()},
                {"itl_max_ms", t.arrival.max_ms},
                {"tokens", t.arrival.count}};
  };
  return {{"scheme", h.scheme},
          {"seed", run.seed},
          {"ue", h.ue},
          {"source", h.source},
          {"target", h.target},
          {"epoch", h.epoch},
          {"at_s", h.at_s},
          {"context", h.context},
          {"prepared", h.prepared},
          {"exact", h.exact},
          {"relay", h.relay},
          {"recovery", h.recovery},
          {"failed", h.failed},
          {"error", h.error},
          {"sit_ms", value(h.sit_ms)},
          {"gap_ms", value(h.gap_ms)},
          {"expected_sit_s", h.expected_sit_s},
          {"window_s", value(h.window_s)},
          {"lead_s", value(h.lead_s)},
          {"early_s", value(h.early_s)},
          {"available_s", value(h.available_s)},
          {"early_error_s", value(h.early_error_s)},
          {"waste_s", h.waste_s},
          {"kv_bytes", h.bytes},
          {"tokens_total", h.tokens_total},
          {"tokens_recomputed", h.recomputed},
          {"tokens_replayed", h.replayed},
          {"tokens_received", h.received},
          {"tokens_overlap", h.overlap},
          {"residual_tokens", h.residual},
          {"before", times(h.before)},
          {"during", times(h.during)},
          {"after", times(h.after)}};
}

}  // namespace

std::string runs_text(const std::string& scenario, const std::vector<sim::ScenarioRun>& runs) {
  std::string out = fmt::format("{}: {} UEs, {} gNBs\n", scenario, runs.empty() ? 0 : runs[0].ues,
                                runs.empty() ? 0 : runs[0].gnbs);
  out += fmt::format("{:<14}{:>6}{:>10}{:>10}{:>10}{:>10}{:>10}{:>9}{:>9}{:>9}{:>12}{:>8}\n",
                     "scheme", "seed", "handovers", "prepared", "SIT avg", "SIT P50", "SIT P99",
                     "gap avg", "ITL avg", "early s", "KV MB", "failed");
  for (const sim::ScenarioRun& r : runs) {
    out += fmt::format(
        "{:<14}{:>6}{:>10}{:>10}{:>10.1f}{:>10.1f}{:>10.1f}{:>9.1f}{:>9.1f}{:>9.3f}{:>12.1f}{:>8}"
        "\n",
        r.scheme, r.seed, r.handovers, r.prepared, r.sit_ms.avg, r.sit_ms.p50, r.sit_ms.p99,
        r.gap_ms.avg, r.itl_avg_ms, r.early_s.avg, r.kv_bytes / 1e6, r.failed);
  }
  out += "SIT, gap and ITL in ms.\n";
  return out;
}

std::string runs_csv(const std::vector<sim::ScenarioRun>& runs) {
  std::string out = "scheme,seed";
  for (const auto& column : figures(sim::ScenarioRun{})) out += fmt::format(",{}", column.first);
  out += '\n';
  for (const sim::ScenarioRun& r : runs) {
    out += fmt::format("{},{}", r.scheme, r.seed);
    for (const auto& column : figures(r)) out += fmt::format(",{}", column.second);
    out += '\n';
  }
  return out;
}

std::string runs_json(const std::vector<sim::ScenarioRun>& runs) {
  json all = json::array();
  for (const sim::ScenarioRun& r : runs) {
    json one{{"scheme", r.scheme}, {"seed", r.seed}};
    for (const auto& column : figures(r)) one[column.first] = column.second;
    one["breaches"] = r.breaches;
    all.push_back(std::move(one));
  }
  return all.dump(2) + "\n";
}

std::string handovers_csv(const std::vector<sim::ScenarioRun>& runs) {
  std::string out =
      "scheme,seed,ue,source,target,at_s,context,prepared,sit_ms,gap_ms,window_s,lead_s,early_s,"
      "available_s,waste_s,kv_bytes,recomputed,received,overlap,residual,recovery\n";
  for (const sim::ScenarioRun& r : runs) {
    for (const sim::HandoverRecord& h : r.records) {
      out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
                         h.scheme, r.seed, h.ue, h.source, h.target, h.at_s, h.context,
                         h.prepared ? 1 : 0, field(h.sit_ms), field(h.gap_ms), field(h.window_s),
                         field(h.lead_s), field(h.early_s), field(h.available_s), h.waste_s,
                         h.bytes, h.recomputed, h.received, h.overlap, h.residual, h.recovery);
    }
  }
  return out;
}

std::string handovers_json(const std::vector<sim::ScenarioRun>& runs) {
  json all = json::array();
  for (const sim::ScenarioRun& r : runs) {
    for (const sim::HandoverRecord& h : r.records) all.push_back(handover_json(r, h));
  }
  return all.dump(1) + "\n";
}

}  // namespace pallas::app
