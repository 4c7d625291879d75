// A demo report as JSON and as tables.

#include <fmt/format.h>

#include <algorithm>

#include "demo_report.h"
#include "http/json_writer.h"

namespace pallas::app {
namespace {

std::string cell(const std::optional<double>& value, int digits = 1) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "-";
}

void write(http::JsonWriter& json, const char* key, const Percentiles& p) {
  json.key(key);
  json.begin_object().member("p50", p.p50).member("p95", p.p95).end_object();
}

void write(http::JsonWriter& json, const DemoHandover& handover) {
  const GnbReport none;
  const GnbReport& gnb = handover.gnb ? *handover.gnb : none;
  json.begin_object()
      .member("scheme", gnb.scheme)
      .member("source", handover.seen.source.value)
      .member("target", handover.seen.target.value)
      .member("epoch", handover.seen.epoch.value)
      .member("prepared", gnb.prepared)
      .member("exact", gnb.exact)
      .member("gap_ms", handover.seen.gap_ms)
      .member("sit_ms", handover.seen.sit_ms)
      .member("window_s", gnb.window_s)
      .member("early_s", gnb.early_s)
      .member("tokens_recomputed", gnb.tokens_recomputed)
      .member("tokens_replayed", gnb.tokens_replayed)
      .member("bytes", gnb.bytes)
      .member("tokens_total", gnb.tokens_total)
      .member("tokens_received", gnb.tokens_received)
      .member("tokens_overlap", gnb.tokens_overlap)
      .member("residual_tokens", gnb.residual_tokens)
      .member("shadow_tokens", gnb.shadow_tokens)
      .member("shadow_agreed", gnb.shadow_agreed)
      .member("shadow_differed", gnb.shadow_differed)
      .member("shadow_used", gnb.shadow_used)
      .member("expected_sit_s", gnb.expected_sit_s)
      .member("relay", gnb.relay)
      .member("oracle", gnb.oracle)
      .member("recovery", gnb.recovery)
      .member("error", gnb.error);
  // What each took part in it reported, as `pallas trace` reads it.
  json.key("reports").begin_array();
  for (const auto* report : {&gnb.json, &handover.source_json, &handover.seen.json}) {
    if (!report->empty()) json.raw(*report);
  }
  json.end_array().end_object();
}

}  // namespace

std::string to_json(const DemoReport& report) {
  http::JsonWriter json;
  json.begin_object()
      .member("scheme", report.scheme)
      .member("consistency", report.consistency)
      .member("model", report.model)
      .member("oracle", report.oracle)
      .member("text_identical", report.text_identical)
      .member("first_difference", report.first_difference)
      .member("tokens", report.tokens)
      .member("prompt_tokens", report.prompt_tokens);
  write(json, "itl_ms", report.itl);
  write(json, "step_ms", report.step);
  // How step_ms came about: the reference run is uncapped, so its intervals are decode steps.
  json.member("step_source", "intervals of the uncapped reference run at one gNB");
  write(json, "itl_before_ms", report.itl_before);
  write(json, "itl_during_ms", report.itl_during);
  write(json, "itl_after_ms", report.itl_after);
  json.key("handovers");
  json.begin_array();
  for (const auto& handover : report.handovers) write(json, handover);
  json.end_array();
  json.key("faults");
  json.begin_array();
  for (const auto& fault : report.faults) json.value(fault);
  json.end_array();
  return json.end_object().take();
}

std::string handover_table(const DemoReport& report) {
  std::string out = fmt::format("{:<22} {:>8} {:>8} {:>8} {:>8} {:>8} {:>6} {:>6} {:>6} {:>8}\n",
                                "handover", "gap ms", "SIT ms", "window s", "early s", "context",
                                "recomp", "replay", "moved", "MB");
  for (const auto& handover : report.handovers) {
    const auto way = handover.seen.source.value + " -> " + handover.seen.target.value;
    if (!handover.gnb) {
      out += fmt::format("{:<22} {:>8} {:>8}  no report\n", way, cell(handover.seen.gap_ms),
                         cell(handover.seen.sit_ms));
      continue;
    }
    const auto& gnb = *handover.gnb;
    std::string notes = gnb.prepared ? "prepared" : "unprepared";
    notes += gnb.relay ? ", relay" : gnb.exact ? ", exact" : ", not exact";
    if (!gnb.recovery.empty()) notes += ", recovered: " + gnb.recovery;
    if (gnb.oracle) notes += ", oracle";
    if (gnb.shadow_tokens > 0) {
      notes += fmt::format(", shadow {}{}", gnb.shadow_tokens, gnb.shadow_used ? ", used" : "");
      if (gnb.shadow_differed > 0) notes += fmt::format(", {} differed", gnb.shadow_differed);
    }
    out +=
        fmt::format("{:<22} {:>8} {:>8} {:>8.2f} {:>8.2f} {:>8} {:>6} {:>6} {:>6} {:>8.2f}  {}\n",
                    way, cell(handover.seen.gap_ms), cell(handover.seen.sit_ms), gnb.window_s,
                    gnb.early_s, gnb.tokens_total, gnb.tokens_recomputed, gnb.tokens_replayed,
                    gnb.tokens_received, static_cast<double>(gnb.bytes) / 1e6, notes);
  }
  return out;
}

std::string comparison_table(const std::vector<DemoReport>& reports) {
  std::string out =
      fmt::format("{:<13} {:>9} {:>9} {:>9} {:>9} {:>26} {:>8} {:>7} {:>6}  {:<7} {}\n", "scheme",
                  "SIT p50", "SIT max", "gap p50", "gap max", "ITL p50 before/during/after", "MB",
                  "recomp", "replay", "exact", "ids equal");
  for (const auto& report : reports) {
    std::vector<double> gaps, sits;
    std::uint64_t bytes = 0, recomputed = 0, replayed = 0;
    for (const auto& handover : report.handovers) {
      if (handover.seen.gap_ms) gaps.push_back(*handover.seen.gap_ms);
      if (handover.seen.sit_ms) sits.push_back(*handover.seen.sit_ms);
      if (!handover.gnb) continue;
      bytes += handover.gnb->bytes;
      recomputed += handover.gnb->tokens_recomputed;
      replayed += handover.gnb->tokens_replayed;
    }
    const auto worst = [](const std::vector<double>& values) -> std::optional<double> {
      if (values.empty()) return std::nullopt;
      return *std::max_element(values.begin(), values.end());
    };
    out += fmt::format(
        "{:<13} {:>9} {:>9} {:>9} {:>9} {:>26} {:>8.2f} {:>7} {:>6}  {:<7} {}\n", report.scheme,
        cell(percentiles(sits).p50), cell(worst(sits)), cell(percentiles(gaps).p50),
        cell(worst(gaps)),
        fmt::format("{} / {} / {}", cell(report.itl_before.p50), cell(report.itl_during.p50),
                    cell(report.itl_after.p50)),
        static_cast<double>(bytes) / 1e6, recomputed, replayed, report.every_exact ? "yes" : "no",
        report.text_identical ? "yes"
                              : fmt::format("until {}", report.first_difference.value_or(0)));
  }
  return out + "Times in ms; MB, recomputed and replayed tokens are sums over all handovers.\n";
}

}  // namespace pallas::app
