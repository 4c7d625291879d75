// Readers of trajectories. Both formats share one table reader; they differ in their columns.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <istream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "mobility/trajectory.h"

namespace pallas::mobility {
namespace {

constexpr std::size_t kMaxLineBytes = 64 * 1024;
constexpr std::size_t kMaxNameBytes = 256;
constexpr std::size_t kMaxSamples = 50'000'000;

// What SUMO may write besides what we read (sumo --fcd-output.attributes).
constexpr std::array<std::string_view, 22> kIgnoredSumo{
    "type",     "pos",       "lane",        "edge",         "slope",           "signals",
    "z",        "distance",  "odometer",    "acceleration", "accelerationLat", "posLat",
    "speedLat", "leaderGap", "leaderSpeed", "leaderID",     "vehicle",         "stage",
    "segment",  "queue",     "entryTime",   "eventTime"};

Failure at_line(std::size_t line, const std::string& what) {
  return fail(Errc::kParse, "line " + std::to_string(line) + ": " + what);
}

// Lines of a text, counted from 1, without their ends.
class Lines {
 public:
  explicit Lines(std::istream& in) : in_(in) {}

  // False at the end of the text.
  Result<bool> next(std::string& line) {
    line.clear();
    if (!std::getline(in_, line)) {
      if (in_.bad()) return fail(Errc::kIo, "reading failed after line " + std::to_string(number_));
      return false;
    }
    ++number_;
    if (line.size() > kMaxLineBytes) return at_line(number_, "longer than 64 KiB");
    if (number_ == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.find('\0') != std::string::npos) {
      return at_line(number_, "not text (a compressed file must be decompressed first)");
    }
    return true;
  }
  std::size_t number() const { return number_; }

 private:
  std::istream& in_;
  std::size_t number_ = 0;
};

void split(std::string_view line, char separator, std::vector<std::string_view>& fields) {
  fields.clear();
  while (true) {
    const std::size_t end = line.find(separator);
    fields.push_back(line.substr(0, end));
    if (end == std::string_view::npos) return;
    line.remove_prefix(end + 1);
  }
}

constexpr std::size_t kNoColumn = static_cast<std::size_t>(-1);

// Columns of one kind of UE: vehicles and pedestrians share a file.
struct UeColumns {
  std::string id_prefix;      // of the UE's name
  std::string column_prefix;  // in messages
  std::size_t id = kNoColumn, x = kNoColumn, y = kNoColumn;
  std::size_t speed = kNoColumn, heading = kNoColumn;
};

struct Columns {
  char separator = ',';
  std::size_t count = 0;
  std::size_t time = kNoColumn;
  std::vector<UeColumns> kinds;
  bool by_timestep = false;  // time never falls from row to row; rows may hold nothing else
};

Status set_column(std::size_t& slot, std::size_t index, std::string_view name) {
  if (slot != kNoColumn) return at_line(1, "column " + std::string(name) + " is there twice");
  slot = index;
  return {};
}

Status need(std::size_t slot, const std::string& name) {
  if (slot == kNoColumn) return at_line(1, "column " + name + " is missing");
  return {};
}

Status sumo_attribute(UeColumns& kind, std::string_view attribute, std::size_t index,
                      std::string_view name) {
  if (attribute == "id") return set_column(kind.id, index, name);
  if (attribute == "x") return set_column(kind.x, index, name);
  if (attribute == "y") return set_column(kind.y, index, name);
  if (attribute == "speed") return set_column(kind.speed, index, name);
  if (attribute == "angle") return set_column(kind.heading, index, name);
  if (std::find(kIgnoredSumo.begin(), kIgnoredSumo.end(), attribute) != kIgnoredSumo.end()) {
    return {};
  }
  return at_line(1, "unknown column " + std::string(name.substr(0, kMaxNameBytes)));
}

Result<Columns> sumo_columns(std::string_view header) {
  Columns columns;
  columns.separator = ';';
  columns.by_timestep = true;
  UeColumns vehicle{"", "vehicle_"}, person{"person_", "person_"};
  std::vector<std::string_view> names;
  split(header, columns.separator, names);
  columns.count = names.size();
  bool has_vehicle = false, has_person = false;
  for (std::size_t k = 0; k < names.size(); ++k) {
    const std::string_view name = names[k];
    Status status;
    if (name == "timestep_time") {
      status = set_column(columns.time, k, name);
    } else if (name.starts_with(vehicle.column_prefix)) {
      has_vehicle = true;
      status = sumo_attribute(vehicle, name.substr(vehicle.column_prefix.size()), k, name);
    } else if (name.starts_with(person.column_prefix)) {
      has_person = true;
      status = sumo_attribute(person, name.substr(person.column_prefix.size()), k, name);
    } else {
      status = at_line(1, "unknown column " + std::string(name.substr(0, kMaxNameBytes)));
    }
    if (!status) return Failure(status.error());
  }
  if (auto ok = need(columns.time, "timestep_time"); !ok) return Failure(ok.error());
  if (has_vehicle || !has_person) columns.kinds.push_back(vehicle);
  if (has_person) columns.kinds.push_back(person);
  for (const UeColumns& kind : columns.kinds) {
    for (const auto& [slot, attribute] :
         {std::pair{kind.id, "id"}, std::pair{kind.x, "x"}, std::pair{kind.y, "y"}}) {
      if (auto ok = need(slot, kind.column_prefix + attribute); !ok) return Failure(ok.error());
    }
  }
  return columns;
}

Result<Columns> plain_columns(std::string_view header) {
  Columns columns;
  UeColumns ue;
  std::vector<std::string_view> names;
  split(header, columns.separator, names);
  columns.count = names.size();
  for (std::size_t k = 0; k < names.size(); ++k) {
    const std::string_view name = names[k];
    Status status;
    if (name == "t_s") {
      status = set_column(columns.time, k, name);
    } else if (name == "ue") {
      status = set_column(ue.id, k, name);
    } else if (name == "x_m") {
      status = set_column(ue.x, k, name);
    } else if (name == "y_m") {
      status = set_column(ue.y, k, name);
    } else if (name == "speed_mps") {
      status = set_column(ue.speed, k, name);
    } else if (name == "heading_deg") {
      status = set_column(ue.heading, k, name);
    } else {
      status = at_line(1, "unknown column " + std::string(name.substr(0, kMaxNameBytes)));
    }
    if (!status) return Failure(status.error());
  }
  for (const auto& [slot, name] : {std::pair{columns.time, "t_s"}, std::pair{ue.id, "ue"},
                                   std::pair{ue.x, "x_m"}, std::pair{ue.y, "y_m"}}) {
    if (auto ok = need(slot, name); !ok) return Failure(ok.error());
  }
  columns.kinds.push_back(ue);
  return columns;
}

// Rows into trajectories.
class TableReader {
 public:
  TableReader(Columns columns, Lines& lines) : columns_(std::move(columns)), lines_(lines) {}

  Result<std::vector<Trajectory>> read() {
    std::string line;
    while (true) {
      const Result<bool> more = lines_.next(line);
      if (!more) return Failure(more.error());
      if (!*more) break;
      if (line.empty()) continue;
      if (auto ok = row(line); !ok) return Failure(ok.error());
    }
    if (trajectories_.empty()) return at_line(lines_.number(), "the file has no samples");
    return std::move(trajectories_);
  }

 private:
  Status row(std::string_view line) {
    split(line, columns_.separator, fields_);
    if (fields_.size() != columns_.count) {
      return at_line(lines_.number(), std::to_string(fields_.size()) + " fields, the header has " +
                                          std::to_string(columns_.count));
    }
    const Result<double> t = number(columns_.time, "time");
    if (!t) return Failure(t.error());
    if (columns_.by_timestep) {
      if (any_row_ && *t < last_time_) return at_line(lines_.number(), "time runs backwards");
      last_time_ = *t;
      any_row_ = true;
    }
    for (const UeColumns& kind : columns_.kinds) {
      if (fields_[kind.id].empty() && columns_.by_timestep) {
        // The row is about something else, or about nothing; half a sample is a fault.
        if (!fields_[kind.x].empty() || !fields_[kind.y].empty()) {
          return at_line(lines_.number(), kind.column_prefix + "id is empty");
        }
        continue;
      }
      if (auto ok = sample(kind, *t); !ok) return ok;
    }
    return {};
  }

  Status sample(const UeColumns& kind, double t) {
    const std::string_view id = fields_[kind.id];
    if (id.empty()) return at_line(lines_.number(), "the UE's name is empty");
    if (id.size() > kMaxNameBytes) {
      return at_line(lines_.number(), "the UE's name is longer than 256 bytes");
    }
    TrajectorySample sample;
    sample.t = Seconds(t);
    const Result<double> x = number(kind.x, "x");
    if (!x) return Failure(x.error());
    const Result<double> y = number(kind.y, "y");
    if (!y) return Failure(y.error());
    sample.position = {*x, *y};
    if (auto ok = optional_number(kind.speed, "speed", sample.speed_mps); !ok) return ok;
    if (sample.speed_mps && *sample.speed_mps < 0) {
      return at_line(lines_.number(), "speed is negative");
    }
    if (auto ok = optional_number(kind.heading, "heading", sample.heading_deg); !ok) return ok;
    return append(kind.id_prefix + std::string(id), sample);
  }

  Status append(std::string ue, const TrajectorySample& sample) {
    const auto [it, fresh] = index_.try_emplace(std::move(ue), trajectories_.size());
    if (fresh) trajectories_.push_back({UeId(it->first), {}});
    auto& samples = trajectories_[it->second].samples;
    if (!samples.empty() && sample.t <= samples.back().t) {
      return at_line(lines_.number(), sample.t == samples.back().t
                                          ? "a second sample of " + it->first + " at this time"
                                          : "time runs backwards for " + it->first);
    }
    if (++count_ > kMaxSamples) return at_line(lines_.number(), "more than 50,000,000 samples");
    samples.push_back(sample);
    return {};
  }

  Result<double> number(std::size_t column, const char* what) const {
    std::string_view text = fields_[column];
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, value);
    if (text.empty() || parsed.ec != std::errc{} || parsed.ptr != end || !std::isfinite(value)) {
      return at_line(lines_.number(), std::string(what) + " is not a finite number: '" +
                                          std::string(text.substr(0, 40)) + "'");
    }
    return value;
  }

  Status optional_number(std::size_t column, const char* what, std::optional<double>& value) const {
    if (column == kNoColumn || fields_[column].empty()) return {};
    const Result<double> parsed = number(column, what);
    if (!parsed) return Failure(parsed.error());
    value = *parsed;
    return {};
  }

  Columns columns_;
  Lines& lines_;
  std::vector<std::string_view> fields_;
  std::vector<Trajectory> trajectories_;
  std::unordered_map<std::string, std::size_t> index_;
  std::size_t count_ = 0;
  double last_time_ = 0;
  bool any_row_ = false;
};

Result<std::vector<Trajectory>> parse(std::istream& in, bool allow_sumo, bool allow_plain) {
  Lines lines(in);
  std::string header;
  const Result<bool> more = lines.next(header);
  if (!more) return Failure(more.error());
  if (!*more || header.empty()) return at_line(1, "the header is missing");
  const bool sumo = allow_sumo && (!allow_plain || header.find(';') != std::string::npos);
  Result<Columns> columns = sumo ? sumo_columns(header) : plain_columns(header);
  if (!columns) return Failure(columns.error());
  return TableReader(std::move(*columns), lines).read();
}

}  // namespace

Result<std::vector<Trajectory>> parse_sumo_csv(std::istream& in) {
  return parse(in, true, false);
}

Result<std::vector<Trajectory>> parse_plain_csv(std::istream& in) {
  return parse(in, false, true);
}

Result<std::vector<Trajectory>> parse_trajectories(std::istream& in) {
  return parse(in, true, true);
}

}  // namespace pallas::mobility
