#include "experiment_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "http/json_writer.h"

namespace pallas::app {
namespace {

using experiments::Outcome;
using experiments::Row;

std::optional<double> ratio(const Row& row) {
  if (!row.paper || *row.paper == 0) return std::nullopt;
  return row.ours / *row.paper;
}

// Short enough for a column, exact enough to compare.
std::string number(double value) {
  const double size = std::abs(value);
  if (size != 0 && (size < 1e-3 || size >= 1e7)) return fmt::format("{:.3e}", value);
  return fmt::format("{:.{}f}", value, size < 10 ? 4 : size < 1000 ? 2 : 1);
}

std::string number(const std::optional<double>& value) {
  return value ? number(*value) : std::string("-");
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

// For strings of gnuplot in double quotes.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

void write_rows(http::JsonWriter& json, const Outcome& outcome) {
  json.begin_array();
  for (const auto& row : outcome.rows) {
    json.begin_object()
        .member("quantity", row.quantity)
        .member("ours", row.ours)
        .member("paper", row.paper)
        .member("ratio", ratio(row));
    if (!row.note.empty()) json.member("note", row.note);
    json.end_object();
  }
  json.end_array();
}

std::string notes(const Outcome& outcome) {
  // One note often stands beside many rows.
  std::vector<std::pair<std::string, std::vector<std::string>>> by_note;
  for (const auto& row : outcome.rows) {
    if (row.note.empty()) continue;
    auto known = std::find_if(by_note.begin(), by_note.end(),
                              [&](const auto& entry) { return entry.first == row.note; });
    if (known == by_note.end()) known = by_note.insert(by_note.end(), {row.note, {}});
    known->second.push_back(row.quantity);
  }
  std::string text;
  for (const auto& [note, quantities] : by_note) {
    text += fmt::format(
        "  {}{}\n      {}\n", quantities.front(),
        quantities.size() == 1 ? std::string() : fmt::format(" and {} more", quantities.size() - 1),
        note);
  }
  return text.empty() ? text : "Notes\n" + text;
}

}  // namespace

std::string outcome_text(const experiments::Experiment& experiment, const Outcome& outcome) {
  std::size_t width = 8;
  for (const auto& row : outcome.rows) width = std::max(width, row.quantity.size());
  std::string text = fmt::format("{}: {}\n\n{:<{}}  {:>12} {:>12} {:>8}\n", experiment.name,
                                 experiment.summary, "quantity", width, "ours", "paper", "ratio");
  for (const auto& row : outcome.rows) {
    const auto r = ratio(row);
    text += fmt::format("{:<{}}  {:>12} {:>12} {:>8}{}\n", row.quantity, width, number(row.ours),
                        number(row.paper), r ? fmt::format("{:.3f}", *r) : std::string("-"),
                        row.note.empty() ? "" : " *");
  }
  text += "\nParameters\n";
  for (const auto& sentence : outcome.parameters) text += "  " + sentence + "\n";
  return text + notes(outcome);
}

std::string outcome_csv(const Outcome& outcome) {
  std::string text = "quantity,ours,paper,ratio,note\n";
  for (const auto& row : outcome.rows) {
    const auto r = ratio(row);
    text += fmt::format("{},{},{},{},{}\n", row.quantity, row.ours,
                        row.paper ? fmt::format("{}", *row.paper) : std::string(),
                        r ? fmt::format("{}", *r) : std::string(),
                        row.note.empty() ? std::string() : quoted(row.note));
  }
  return text;
}

std::string outcome_rows_json(const Outcome& outcome) {
  http::JsonWriter json;
  write_rows(json, outcome);
  return json.take();
}

std::string outcome_json(const experiments::Experiment& experiment,
                         const experiments::Settings& settings, const Outcome& outcome) {
  http::JsonWriter json;
  json.begin_object()
      .member("experiment", experiment.name)
      .member("seed", settings.seed)
      .member("quick", settings.quick)
      .member("trace", settings.trace)
      .key("rows");
  write_rows(json, outcome);
  json.key("parameters").begin_array();
  for (const auto& sentence : outcome.parameters) json.value(sentence);
  json.end_array().end_object();
  return json.take() + "\n";
}

std::string figure_csv(const experiments::Figure& figure) {
  std::string text = "curve,x,y\n";
  for (const auto& curve : figure.curves) {
    for (const auto& [x, y] : curve.points) {
      text += fmt::format("{},{},{}\n", quoted(curve.title), x, y);
    }
  }
  return text;
}

std::string figure_script(const experiments::Figure& figure) {
  // What we write is data: "_" and "^" mean nothing in it.
  std::string script = fmt::format(
      "set title \"{}\" noenhanced\nset xlabel \"{}\" noenhanced\nset ylabel \"{}\" noenhanced\n"
      "set key outside below noenhanced\nset grid\n",
      escaped(figure.title), escaped(figure.x_label), escaped(figure.y_label));
  if (figure.log_x) script += "set logscale x\n";
  if (figure.log_y) script += "set logscale y\n";
  std::string plots;
  for (std::size_t k = 0; k < figure.curves.size(); ++k) {
    const auto& curve = figure.curves[k];
    // gnuplot refuses an empty block.
    if (curve.points.empty()) continue;
    script += fmt::format("$c{} << END\n", k);
    for (const auto& [x, y] : curve.points) script += fmt::format("{} {}\n", x, y);
    script += "END\n";
    plots += fmt::format(
        "{}$c{} using 1:2 with {} title \"{}\" noenhanced", plots.empty() ? "" : ", ", k,
        curve.points.size() > 40 ? "lines lw 2" : "linespoints lw 2", escaped(curve.title));
  }
  if (plots.empty()) return {};
  return script +
         fmt::format(
             "set terminal svg size 800,500 font 'sans,14'\nset output \"{0}.svg\"\nplot {1}\n"
             "set terminal pngcairo size 800,500 font 'sans,11'\nset output \"{0}.png\"\n"
             "plot {1}\n",
             escaped(figure.name), plots);
}

}  // namespace pallas::app
