#include "bench_transfer_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "distribution.h"
#include "http/json_writer.h"

namespace pallas::app {
namespace {

using Optional = std::optional<double>;

Optional median(const TransferRow& row, const std::function<double(const TransferSample&)>& of) {
  std::vector<double> values;
  for (const auto& sample : row.samples) values.push_back(of(sample));
  return distribution(std::move(values)).p50;
}

bool same_setting(const TransferRow& a, const TransferRow& b) {
  return a.model == b.model && a.block_tokens == b.block_tokens;
}

Optional ratio(const Optional& a, const Optional& b) {
  if (!a || !b || *b <= 0) return std::nullopt;
  return *a / *b;
}

std::string cell(const Optional& value, double scale = 1) {
  return value ? fmt::format("{:.2f}", *value / scale) : "-";
}

std::string note(const TransferRow& row) {
  std::string text;
  const auto add = [&](const std::string& part) {
    if (!part.empty()) text += (text.empty() ? "" : "; ") + part;
  };
  add(row.detail);
  if (row.rows_equal) add(*row.rows_equal ? "rows equal" : "ROWS DIFFER");
  add(row.why_not);
  return text;
}

}  // namespace

std::vector<TransferFigures> transfer_figures(const std::vector<TransferRow>& rows) {
  std::vector<TransferFigures> all;
  for (const auto& row : rows) {
    const auto bytes = static_cast<double>(row.bytes);
    const double gb = bytes / 1e9;
    TransferFigures f;
    f.bytes_per_s = median(row, [&](const auto& s) { return bytes / s.seconds; });
    f.source_cpu_s_per_gb = median(row, [&](const auto& s) { return s.source_cpu_s / gb; });
    f.target_cpu_s_per_gb = median(row, [&](const auto& s) { return s.target_cpu_s / gb; });
    f.cpu_s_per_gb =
        median(row, [&](const auto& s) { return (s.source_cpu_s + s.target_cpu_s) / gb; });
    all.push_back(f);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t k = 0; k < rows.size(); ++k) {
      if (!same_setting(rows[i], rows[k])) continue;
      const auto speed = ratio(all[i].bytes_per_s, all[k].bytes_per_s);
      const auto cpu = ratio(all[i].cpu_s_per_gb, all[k].cpu_s_per_gb);
      if (rows[k].path == kYardstickPath) {
        all[i].speed_ratio = speed;
        all[i].cpu_ratio = cpu;
      } else if (rows[k].path == kTlsYardstickPath) {
        all[i].tls_speed_ratio = speed;
        all[i].tls_cpu_ratio = cpu;
      }
    }
  }
  return all;
}

std::string transfer_table(const std::vector<TransferRow>& rows, const TransferScene& scene) {
  const auto figures = transfer_figures(rows);
  std::string text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& row = rows[i];
    const auto& f = figures[i];
    if (i == 0 || !same_setting(row, rows[i - 1])) {
      text += fmt::format("{}{}, blocks of {} tokens ({} bytes), {:.0f} MB a sample\n",
                          text.empty() ? "" : "\n", row.model, row.block_tokens, row.block_bytes,
                          static_cast<double>(row.bytes) / 1e6);
      text += fmt::format("  {:<12}{:>7}{:>8}{:>8}{:>11}{:>8}{:>8}{:>9}{:>9}{:>4}  {}\n", "path",
                          "GB/s", "/yard", "/tls", "CPU s/GB", "/yard", "/tls", "source", "target",
                          "n", "");
    }
    auto line = fmt::format("  {:<12}{:>7}{:>8}{:>8}{:>11}{:>8}{:>8}{:>9}{:>9}{:>4}  {}", row.path,
                            cell(f.bytes_per_s, 1e9), cell(f.speed_ratio), cell(f.tls_speed_ratio),
                            cell(f.cpu_s_per_gb), cell(f.cpu_ratio), cell(f.tls_cpu_ratio),
                            cell(f.source_cpu_s_per_gb), cell(f.target_cpu_s_per_gb),
                            row.samples.size(), note(row));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text +
         fmt::format(
             "\nMedians; GB: 10^9 bytes. CPU: user and system time of both processes. /yard: "
             "over {}, /tls:\nover {}. Congestion control of all: {}. {}.\n",
             kYardstickPath, kTlsYardstickPath, scene.congestion_control, scene.cores);
}

std::string transfer_json(const std::vector<TransferRow>& rows, const TransferScene& scene) {
  const auto figures = transfer_figures(rows);
  http::JsonWriter json;
  json.begin_array();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& row = rows[i];
    const auto& f = figures[i];
    json.begin_object()
        .member("path", row.path)
        .member("model", row.model)
        .member("block_tokens", row.block_tokens)
        .member("block_bytes", row.block_bytes)
        .member("bytes", row.bytes)
        .member("samples", row.samples.size())
        .member("bytes_per_s", f.bytes_per_s)
        .member("cpu_s_per_gb", f.cpu_s_per_gb)
        .member("source_cpu_s_per_gb", f.source_cpu_s_per_gb)
        .member("target_cpu_s_per_gb", f.target_cpu_s_per_gb)
        .member("bytes_per_s_over_tcp_xxh3", f.speed_ratio)
        .member("cpu_over_tcp_xxh3", f.cpu_ratio)
        .member("bytes_per_s_over_tls_xxh3", f.tls_speed_ratio)
        .member("cpu_over_tls_xxh3", f.tls_cpu_ratio)
        .member("rows_equal", row.rows_equal)
        .member("congestion_control", scene.congestion_control)
        .member("cores", scene.cores)
        .member("detail", row.detail)
        .member("why_not", row.why_not);
    json.key("seconds").begin_array();
    for (const auto& sample : row.samples) json.value(sample.seconds);
    json.end_array().end_object();
  }
  return json.end_array().take();
}

}  // namespace pallas::app
