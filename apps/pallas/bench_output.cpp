#include "bench_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include "http/json_writer.h"

namespace pallas::app {
namespace {

using Optional = std::optional<double>;

std::string cell(const Optional& value, int digits = 1) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "-";
}

Optional ratio(const Optional& a, const Optional& b) {
  if (!a || !b || *b <= 0) return std::nullopt;
  return *a / *b;
}

Optional mean_of(double sum, std::size_t count) {
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

// Those of one setting, in order.
std::vector<std::vector<const SchemeSummary*>> by_setting(
    const std::vector<SchemeSummary>& summaries) {
  std::vector<std::vector<const SchemeSummary*>> groups;
  for (const auto& summary : summaries) {
    if (groups.empty() || groups.back().front()->setting.key() != summary.setting.key()) {
      groups.emplace_back();
    }
    groups.back().push_back(&summary);
  }
  return groups;
}

// What the others are compared with.
const SchemeSummary& yardstick(const std::vector<const SchemeSummary*>& group) {
  const auto found = std::find_if(group.begin(), group.end(),
                                  [](const auto* s) { return s->scheme == "two-front"; });
  return found == group.end() ? *group.front() : **found;
}

std::string setting_text(const SchemeSummary& s) {
  const auto& at = s.setting;
  std::string text = fmt::format("{} tokens, ", at.context);
  if (at.goodput.label == "trace") {
    text += "goodput trace";
  } else if (s.goodput_mbps <= 0) {
    text += "links not paced";
  } else {
    text += fmt::format("{:g} Mbit/s", s.goodput_mbps);
    if (at.goodput.multiple) text += fmt::format(" ({} r_d s_KV)", at.goodput.label);
  }
  text += at.max_token_rate > 0 ? fmt::format(", {:g} tokens/s", at.max_token_rate)
                                : std::string(", rate not capped");
  if (at.movers > 1) text += fmt::format(", {} movers", at.movers);
  if (at.mover_spread > 0) text += fmt::format(" (contexts within {:g})", at.mover_spread);
  if (at.residents > 0) text += fmt::format(", {} residents", at.residents);
  if (at.trip_handovers > 1) text += fmt::format(", {} handovers in a row", at.trip_handovers);
  text += at.window_s ? fmt::format(", window {:g} s", *at.window_s)
                      : fmt::format(", foretold {:.1f} s before", s.available_s);
  return text;
}

std::string heading(const SchemeSummary& s) {
  return setting_text(s) + fmt::format("; a decode step takes {} ms", cell(s.step_ms, 2));
}

// A line of the table: a name, then cells that end at the same columns in every line.
std::string aligned(std::string_view name, std::size_t width,
                    const std::vector<std::string>& cells) {
  constexpr int kWidths[] = {4, 9, 8, 8, 8, 8, 8, 7, 8, 8, 22, 8, 7, 7, 7, 7};
  std::string line = fmt::format("{:<{}}", name, width);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    line += fmt::format("{:>{}}", cells[i], i < std::size(kWidths) ? kWidths[i] : 0);
  }
  return line;
}

std::string notes_of(const SchemeSummary& s) {
  std::string text = fmt::format("  exact {}/{}, ids equal {}/{}", s.exact, s.rows.size(), s.ids_ok,
                                 s.rows.size());
  if (s.reported < s.rows.size()) {
    text += fmt::format(", {} without a report", s.rows.size() - s.reported);
  }
  if (s.failed > 0) text += fmt::format(", {} failed", s.failed);
  return text;
}

std::string table_line(const SchemeSummary& s, const SchemeSummary& first, std::size_t width) {
  const auto intervals =
      fmt::format("{}/{}/{}", cell(s.before.p50), cell(s.preparation.p50), cell(s.after.p50));
  std::vector<std::string> cells = {std::to_string(s.rows.size()),
                                    cell(s.sit.p50),
                                    cell(s.sit.p95),
                                    cell(s.sit.mean),
                                    cell(s.gap.p50),
                                    cell(s.gap.p95),
                                    cell(ratio(s.gap.p50, s.control_gap.p50), 2),
                                    cell(ratio(s.gap.p50, s.control.p50), 2)};
  if (s.scheme == kControl) {
    cells.insert(cells.end(), {"-", "-", intervals});
    return aligned(s.scheme, width, cells) + "\n";
  }
  const auto mean = [&](double sum, int digits) { return cell(mean_of(sum, s.reported), digits); };
  cells.insert(
      cells.end(),
      {cell(ratio(s.sit.mean, first.sit.mean), 2), cell(ratio(s.gap.p50, first.gap.p50), 2),
       intervals, mean(static_cast<double>(s.bytes) / 1e6, 2),
       mean(static_cast<double>(s.recomputed), 0), mean(static_cast<double>(s.replayed), 0),
       mean(static_cast<double>(s.overlap), 0), mean(s.early_s, 2)});
  return aligned(s.scheme, width, cells) + notes_of(s) + "\n";
}

std::string resident_line(const SchemeSummary& s, std::size_t width) {
  const auto part = [](const Distribution& d) {
    return fmt::format("{:>7}{:>7}{:>8}", cell(d.p50), cell(d.p90), cell(d.max));
  };
  return fmt::format("{:<{}}     {}   {}   {}\n", s.scheme, width, part(s.residents_before),
                     part(s.residents_during), part(s.residents_after));
}

// How much of the KV was there at the deadline, and what that is worth; empty where no gNB tells.
std::string accuracy_lines(const std::vector<const SchemeSummary*>& group, std::size_t width) {
  std::string text;
  for (const auto* s : group) {
    if (!s->accuracy) continue;
    text += fmt::format("{:<{}}{:>9}{:>9}{:>12}{:>12}{:>9}\n", s->scheme, width,
                        cell(s->fraction.mean, 3), cell(s->fraction.p50, 3), cell(s->accuracy, 2),
                        cell(s->worst_user_accuracy, 2), s->below_threshold);
  }
  if (text.empty()) return text;
  return fmt::format("{:<{}}{:>9}{:>9}{:>12}{:>12}{:>9}\n", "KV at the deadline", width, "mean",
                     "p50", "accuracy %", "worst user", "below") +
         text;
}

// Of those that began on a part of their KV; empty where none did.
std::string part_lines(const std::vector<const SchemeSummary*>& group, std::size_t width) {
  std::string text;
  for (const auto* s : group) {
    if (s->part.count == 0) continue;
    text += fmt::format("{:<{}}{:>9}{:>9}{:>9}{:>12}{:>12}\n", s->scheme, width, s->part.count,
                        cell(s->part.mean, 3), cell(s->part_tokens.mean),
                        cell(s->part_complete_ms.p50), cell(s->part_complete_ms.max));
  }
  if (text.empty()) return text;
  return fmt::format("{:<{}}{:>9}{:>9}{:>9}{:>12}{:>12}\n", "on a part of KV", width, "n",
                     "fraction", "tokens", "whole p50", "max") +
         text;
}

std::string setting_table(const std::vector<const SchemeSummary*>& group) {
  const auto& first = yardstick(group);
  std::size_t width = 14;
  for (const auto* s : group) width = std::max(width, s->scheme.size() + 1);
  std::string text = heading(first) + "\n";
  text += aligned("scheme", width,
                  {"n", "SIT p50", "p95", "mean", "gap p50", "p95", "/c.gap", "/ITL",
                   "SIT/" + first.scheme.substr(0, 3), "gap/" + first.scheme.substr(0, 3),
                   "ITL before/prep/after", "MB", "recomp", "replay", "overl.", "early"}) +
          "\n";
  for (const auto* s : group) text += table_line(*s, first, width);
  if (first.setting.movers > 1) {
    text += "SIT of each group's worst user, mean:";
    for (const auto* s : group) {
      text += fmt::format(" {} {}", s->scheme, cell(s->worst_user_sit_ms));
    }
    text += "\n" + accuracy_lines(group, width);
  }
  text += part_lines(group, width);
  if (first.setting.residents > 0) {
    text += "residents' ITL: before, during and after the preparation, each p50, p90, max\n";
    for (const auto* s : group) text += resident_line(*s, width);
  }
  return text;
}

void write(http::JsonWriter& json, const char* key, const Distribution& d) {
  json.key(key)
      .begin_object()
      .member("count", d.count)
      .member("p50", d.p50)
      .member("p90", d.p90)
      .member("p95", d.p95)
      .member("p99", d.p99)
      .member("mean", d.mean)
      .member("max", d.max)
      .end_object();
}

void write(http::JsonWriter& json, const SchemeSummary& s) {
  const bool control = s.scheme == kControl;
  json.begin_object()
      .member("scheme", s.scheme)
      .member("context", s.setting.context)
      .member("goodput_mbps", s.goodput_mbps)
      .member("goodput", s.setting.goodput.label)
      .member("movers", s.setting.movers)
      .member("mover_spread", s.setting.mover_spread)
      .member("residents", s.setting.residents)
      .member("max_token_rate", s.setting.max_token_rate)
      .member("trip_handovers", s.setting.trip_handovers)
      .member("available_s", s.available_s)
      .member("window_s", s.setting.window_s)
      .member("runs", s.runs)
      .member("handovers", s.rows.size());
  write(json, "sit_ms", s.sit);
  write(json, "gap_ms", s.gap);
  write(json, "control_gap_ms", s.control_gap);
  json.member("worst_user_sit_ms", s.worst_user_sit_ms);
  write(json, "fraction_at_deadline", s.fraction);
  if (s.part.count > 0) {
    json.key("partial").begin_object();
    write(json, "fraction", s.part);
    write(json, "tokens", s.part_tokens);
    write(json, "complete_ms", s.part_complete_ms);
    json.end_object();
  }
  json.member("accuracy_percent", s.accuracy)
      .member("worst_user_accuracy_percent", s.worst_user_accuracy)
      .member("below_threshold_handovers", s.below_threshold);
  json.key("step_ms").begin_object().member("p50", s.step_ms).end_object();
  json.key("itl_ms").begin_object();
  write(json, "before", s.before);
  write(json, "preparation", s.preparation);
  write(json, "during", s.during);
  write(json, "after", s.after);
  write(json, "control", s.control);
  write(json, "control_preparation", s.control_preparation);
  json.end_object().key("residents_itl_ms").begin_object();
  write(json, "before", s.residents_before);
  write(json, "during", s.residents_during);
  write(json, "after", s.residents_after);
  json.end_object();
  const auto mean = [&](const char* key, double sum) {
    json.member(key, control ? std::nullopt : mean_of(sum, s.reported));
  };
  mean("bytes", static_cast<double>(s.bytes));
  mean("tokens_recomputed", static_cast<double>(s.recomputed));
  mean("tokens_sent", static_cast<double>(s.sent));
  mean("tokens_replayed", static_cast<double>(s.replayed));
  mean("tokens_overlap", static_cast<double>(s.overlap));
  mean("early_s", s.early_s);
  // Of all handovers; the numbers beside say of how many.
  json.member("exact", control || s.exact == s.rows.size())
      .member("ids_ok", s.ids_ok == s.rows.size())
      .member("exact_handovers", control ? s.rows.size() : s.exact)
      .member("ids_ok_handovers", s.ids_ok)
      .member("prepared_handovers", s.prepared)
      .member("reported_handovers", s.reported)
      .member("failed_handovers", s.failed)
      .end_object();
}

experiments::Figure gap_figure(const std::vector<const SchemeSummary*>& group, std::size_t number) {
  experiments::Figure figure;
  figure.name = fmt::format("handover-gaps-{}", number);
  figure.title = "Gap at a handover: " + setting_text(*group.front());
  figure.x_label = "gap, ms";
  figure.y_label = "share of handovers with at most this gap";
  figure.log_x = true;
  for (const auto* s : group) {
    std::vector<double> gaps;
    for (const auto& row : s->rows) {
      if (row.seen.gap_ms) gaps.push_back(*row.seen.gap_ms);
    }
    std::sort(gaps.begin(), gaps.end());
    experiments::Curve curve{s->scheme, {}};
    for (std::size_t i = 0; i < gaps.size(); ++i) {
      curve.points.emplace_back(gaps[i],
                                static_cast<double>(i + 1) / static_cast<double>(gaps.size()));
    }
    figure.curves.push_back(std::move(curve));
  }
  return figure;
}

// One thing that settings differ in.
struct Dimension {
  const char* name;
  const char* label;
  std::function<double(const SchemeSummary&)> value;
};

const std::vector<Dimension>& dimensions() {
  static const std::vector<Dimension> all = {
      {"context", "context at the handover, tokens",
       [](const SchemeSummary& s) -> double { return s.setting.context; }},
      {"goodput", "goodput, Mbit/s", [](const SchemeSummary& s) { return s.goodput_mbps; }},
      {"movers", "users that move together",
       [](const SchemeSummary& s) -> double { return s.setting.movers; }},
      {"residents", "residents at the target",
       [](const SchemeSummary& s) -> double { return s.setting.residents; }},
      {"rate", "tokens/s that a user wants (0: uncapped)",
       [](const SchemeSummary& s) { return s.setting.max_token_rate; }},
      {"trip", "handovers in a row",
       [](const SchemeSummary& s) -> double { return s.setting.trip_handovers; }},
      {"available", "handover foretold so long before, s",
       [](const SchemeSummary& s) { return s.setting.available_s.value_or(0); }},
      {"window", "window of preparation, s",
       [](const SchemeSummary& s) { return s.setting.window_s.value_or(0); }},
  };
  return all;
}

// Which settings differ from this one in that dimension at most.
std::string others_key(const SchemeSummary& s, const Dimension& without) {
  std::string key;
  for (const auto& dimension : dimensions()) {
    if (dimension.name == without.name) continue;
    // Multiples come out as other rates at every context: their labels are what is alike.
    key += std::string_view(dimension.name) == "goodput"
               ? "goodput=" + s.setting.goodput.label + " "
               : fmt::format("{}={:g} ", dimension.name, dimension.value(s));
  }
  key.pop_back();
  return key;
}

void add_dimension_figures(const std::vector<SchemeSummary>& summaries, const Dimension& dimension,
                           const char* what, Optional (*measure)(const SchemeSummary&),
                           std::vector<experiments::Figure>& figures) {
  std::vector<std::string> keys;
  for (const auto& s : summaries) {
    const auto key = others_key(s, dimension);
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  std::size_t number = 0;
  for (const auto& key : keys) {
    experiments::Figure figure;
    figure.title = fmt::format("{} ({})", what, key);
    figure.x_label = dimension.label;
    figure.y_label = std::string(what) + ", ms";
    figure.log_y = true;
    std::size_t longest = 0;
    for (const auto& s : summaries) {
      if (others_key(s, dimension) != key || !measure(s)) continue;
      auto curve = std::find_if(figure.curves.begin(), figure.curves.end(),
                                [&](const auto& c) { return c.title == s.scheme; });
      if (curve == figure.curves.end()) {
        figure.curves.push_back({s.scheme, {}});
        curve = figure.curves.end() - 1;
      }
      curve->points.emplace_back(dimension.value(s), *measure(s));
      longest = std::max(longest, curve->points.size());
    }
    if (longest < 2) continue;
    for (auto& curve : figure.curves) std::sort(curve.points.begin(), curve.points.end());
    figure.name =
        fmt::format("handover-{}-by-{}-{}", what == std::string_view("mean SIT") ? "sit" : "gap",
                    dimension.name, ++number);
    figures.push_back(std::move(figure));
  }
}

std::string csv_number(const Optional& value) {
  return value ? fmt::format("{}", *value) : "";
}

std::string csv_line(const HandoverRow& row) {
  const auto& at = row.setting;
  std::string text =
      fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", row.scheme, at.context,
                  row.goodput_mbps, at.movers, at.residents, at.max_token_rate, at.trip_handovers,
                  row.available_s, csv_number(at.window_s), row.round, row.mover + 1, row.hop + 1,
                  csv_number(row.seen.sit_ms), csv_number(row.seen.gap_ms),
                  csv_number(row.control_gap_ms), row.ids_ok ? (*row.ids_ok ? "1" : "0") : "");
  if (!row.seen.gnb) return text + ",,,,,,,,,,,,,,,,,,,,,\n";
  const auto& gnb = *row.seen.gnb;
  const auto& part = gnb.partial;
  return text +
         fmt::format(
             ",{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", gnb.exact ? 1 : 0,
             gnb.prepared ? 1 : 0, row.seen.foretold_wrongly ? 1 : 0, gnb.tokens_total, gnb.bytes,
             gnb.tokens_received, gnb.tokens_recomputed, gnb.tokens_replayed, gnb.tokens_overlap,
             gnb.early_s, csv_number(gnb.request_ms), csv_number(gnb.fronts_met_ms),
             csv_number(gnb.status_ms), csv_number(gnb.covered_ms), csv_number(gnb.first_token_ms),
             csv_number(gnb.fraction_at_attach), csv_number(gnb.fraction_at_deadline),
             csv_number(row.accuracy), part ? fmt::format("{}", part->fraction) : "",
             part ? fmt::format("{}", part->tokens) : "",
             part ? csv_number(part->complete_ms) : "");
}

}  // namespace

std::string summary_table(const std::vector<SchemeSummary>& summaries) {
  std::string text;
  for (const auto& group : by_setting(summaries)) {
    text += (text.empty() ? "" : "\n") + setting_table(group);
  }
  return text +
         "\nTimes in ms, early in s. SIT and gap of the control: at the same place of a stream "
         "without a handover.\n/c.gap: median gap over the control's; /ITL: over the control's "
         "median interval; /two: over two-front's. MB and\ntokens are means a handover.\n";
}

std::string summary_json(const std::vector<SchemeSummary>& summaries) {
  http::JsonWriter json;
  json.begin_array();
  for (const auto& summary : summaries) write(json, summary);
  return json.end_array().take();
}

std::string handovers_csv(const std::vector<SchemeSummary>& summaries) {
  std::string text =
      "scheme,context,goodput_mbps,movers,residents,max_token_rate,trip_handovers,available_s,"
      "window_s,round,mover,handover,sit_ms,gap_ms,control_gap_ms,ids_ok,exact,prepared,"
      "foretold_wrongly,tokens_total,bytes,tokens_sent,tokens_recomputed,tokens_replayed,"
      "tokens_overlap,early_s,request_ms,fronts_met_ms,status_ms,covered_ms,first_token_ms,"
      "fraction_at_attach,fraction_at_deadline,accuracy,partial_fraction,"
      "partial_tokens,complete_ms\n";
  for (const auto& summary : summaries) {
    for (const auto& row : summary.rows) text += csv_line(row);
  }
  return text;
}

std::vector<experiments::Figure> bench_figures(const std::vector<SchemeSummary>& summaries) {
  std::vector<experiments::Figure> figures;
  std::size_t number = 0;
  for (const auto& group : by_setting(summaries)) figures.push_back(gap_figure(group, ++number));
  for (const auto& dimension : dimensions()) {
    add_dimension_figures(
        summaries, dimension, "mean SIT", [](const SchemeSummary& s) { return s.sit.mean; },
        figures);
    add_dimension_figures(
        summaries, dimension, "median gap", [](const SchemeSummary& s) { return s.gap.p50; },
        figures);
  }
  return figures;
}

}  // namespace pallas::app
