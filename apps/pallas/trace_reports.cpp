#include "trace_reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

namespace pallas::app {
namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 16;         // levels below which no report is looked for
constexpr double kLongestMs = 1e10;  // what no time of a report exceeds
constexpr std::size_t kNamed = 8;    // handovers that an error lists

// Reads members of one report; the first that is wrong is kept.
class Reader {
 public:
  explicit Reader(const Json& object) : object_(object) {}

  std::string text(const char* name, bool required) {
    const Json* found = find(name, required);
    if (found == nullptr) return {};
    if (found->is_string()) return found->get<std::string>();
    refuse(name, "must be a string");
    return {};
  }
  template <class Integer>
  Integer integer(const char* name) {
    const Json* found = find(name, true);
    if (found == nullptr) return {};
    if (found->is_number_integer()) return found->get<Integer>();
    refuse(name, "must be a whole number");
    return {};
  }
  const Json* object(const char* name) {
    const Json* found = find(name, true);
    if (found == nullptr || found->is_object()) return found;
    refuse(name, "must be an object");
    return nullptr;
  }
  void refuse(const std::string& name, const std::string& what) {
    if (wrong_.empty()) wrong_ = name + ": " + what;
  }
  void adopt(const std::string& path, const Reader& part) {
    if (wrong_.empty() && !part.wrong_.empty()) wrong_ = path + part.wrong_;
  }
  const std::string& wrong() const { return wrong_; }

 private:
  const Json* find(const char* name, bool required) {
    const auto found = object_.find(name);
    if (found != object_.end() && !found->is_null()) return &*found;
    if (required) refuse(name, "is missing");
    return nullptr;
  }

  const Json& object_;
  std::string wrong_;
};

std::optional<double> time_of(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  const double ms = value.get<double>();
  return std::isfinite(ms) && std::abs(ms) <= kLongestMs ? std::optional(ms) : std::nullopt;
}

std::optional<std::uint64_t> count_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<std::uint64_t>();
}

// A member of `phases`: an instant in ms, or a stretch; null where it did not happen.
void read_phase(const std::string& name, const Json& value, TraceReport& report, Reader& reader) {
  if (value.is_null()) return;
  constexpr std::string_view kUnit = "_ms";
  const std::string where = "phases." + name;
  if (name.ends_with(kUnit)) {
    const auto at = time_of(value);
    if (!at) return reader.refuse(where, "must be a time in ms");
    report.phases[name.substr(0, name.size() - kUnit.size())] = {*at, *at, {}, {}, {}};
    return;
  }
  if (!value.is_object()) return reader.refuse(where, "must be an object");
  const auto begin = time_of(value.value("begin_ms", Json()));
  const auto end = time_of(value.value("end_ms", Json()));
  if (!begin || !end) return reader.refuse(where, "must have begin_ms and end_ms");
  if (*end < *begin) return reader.refuse(where, "ends before it begins");
  report.phases[name] = {*begin, *end, count_of(value, "count"), count_of(value, "tokens"),
                         time_of(value.value("busy_ms", Json()))};
}

std::optional<TraceRole> role_of(const Json& object) {
  const auto role = object.find("role");
  if (role == object.end() || !role->is_string() || !object.contains("phases")) return {};
  if (*role == "source") return TraceRole::kSource;
  if (*role == "target") return TraceRole::kTarget;
  if (*role == "ue") return TraceRole::kUe;
  return std::nullopt;
}

Result<TraceReport> read_report(const Json& object, TraceRole role) {
  Reader reader(object);
  TraceReport report;
  report.role = role;
  report.session = SessionId(reader.text("session", true));
  report.epoch = Epoch(reader.integer<std::uint64_t>("epoch"));
  report.scheme = reader.text("scheme", false);
  const bool ue = role == TraceRole::kUe;
  report.source = reader.text(ue ? "from" : "source", !ue);
  report.target = reader.text(ue ? "to" : "target", !ue);
  report.node = role == TraceRole::kSource   ? report.source
                : role == TraceRole::kTarget ? report.target
                                             : reader.text("ue", false);
  if (const Json* clock = reader.object("clock")) {
    Reader members(*clock);
    report.clock_id = members.text("id", false);
    report.monotonic_us = members.integer<std::int64_t>("monotonic_us");
    report.unix_us = members.integer<std::int64_t>("unix_us");
    reader.adopt("clock.", members);
  }
  if (const Json* phases = reader.object("phases")) {
    for (const auto& [name, value] : phases->items()) read_phase(name, value, report, reader);
  }
  if (!reader.wrong().empty()) {
    return fail(Errc::kParse, "a report of a handover: " + reader.wrong());
  }
  return report;
}

Status collect(const Json& json, int depth, std::vector<TraceReport>& into) {
  if (depth > kDeepest || !json.is_structured()) return {};
  if (json.is_object()) {
    if (const auto role = role_of(json)) {
      auto report = read_report(json, *role);
      if (!report) return Failure(report.error());
      into.push_back(std::move(*report));
      return {};
    }
  }
  for (const Json& member : json) {
    if (auto status = collect(member, depth + 1, into); !status) return status;
  }
  return {};
}

std::string name_of(const TraceReport& report) {
  return report.session.value + ":" + std::to_string(report.epoch.value);
}

// What there is to choose from, for an error.
std::string known_handovers(const std::vector<TraceReport>& reports) {
  std::set<std::string> names;
  for (const auto& report : reports) {
    if (report.role != TraceRole::kUe) names.insert(name_of(report));
  }
  if (names.empty()) {
    return "there is none at all: a report is made when the first token of a handover is out, and "
           "only the session's source and target have one, so name them with --gnb";
  }
  std::string list;
  std::size_t listed = 0;
  for (const auto& name : names) {
    if (++listed > kNamed) break;
    list += (list.empty() ? "" : ", ") + name;
  }
  if (names.size() > kNamed) list += fmt::format(" and {} more", names.size() - kNamed);
  return "there are: " + list;
}

}  // namespace

Result<std::vector<TraceReport>> read_trace_reports(std::string_view text) {
  const auto json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return fail(Errc::kParse, "it is no JSON");
  std::vector<TraceReport> reports;
  if (auto status = collect(json, 0, reports); !status) return Failure(status.error());
  return reports;
}

Result<HandoverName> parse_handover_name(const std::string& text) {
  HandoverName name;
  if (text == "latest") return name;
  const auto colon = text.rfind(':');
  name.session = SessionId(text.substr(0, colon));
  const std::string& id = name.session.value;
  const bool plain = std::all_of(id.begin(), id.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
  if (id.empty() || !plain) {
    return fail(Errc::kInvalidArgument,
                "HANDOVER: '" + text + "' names no session; give SESSION, SESSION:EPOCH or latest");
  }
  if (colon == std::string::npos) return name;
  const char* end = text.data() + text.size();
  std::uint64_t epoch = 0;
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, epoch);
  if (error != std::errc() || stop != end) {
    return fail(Errc::kInvalidArgument,
                "HANDOVER: '" + text.substr(colon + 1) +
                    "' is no epoch; it is a whole number, as in the report's "
                    "id");
  }
  name.epoch = Epoch(epoch);
  return name;
}

Result<TracedHandover> choose_handover(const std::vector<TraceReport>& reports,
                                       const HandoverName& name) {
  // The latest by date; epochs order those of one session.
  const TraceReport* chosen = nullptr;
  const auto later = [&](const TraceReport& a, const TraceReport& b) {
    if (a.session == b.session) return a.epoch > b.epoch;
    return a.unix_us > b.unix_us;
  };
  for (const auto& report : reports) {
    if (report.role == TraceRole::kUe) continue;
    if (!name.session.value.empty() && report.session != name.session) continue;
    if (name.epoch && report.epoch != *name.epoch) continue;
    if (chosen == nullptr || later(report, *chosen)) chosen = &report;
  }
  if (chosen == nullptr) {
    return fail(Errc::kNotFound, "HANDOVER: no report of that one; " + known_handovers(reports));
  }
  TracedHandover handover{chosen->session, chosen->epoch, {}, {}, {}};
  for (const auto& report : reports) {
    if (report.session != handover.session || report.epoch != handover.epoch) continue;
    auto& place = report.role == TraceRole::kSource   ? handover.source
                  : report.role == TraceRole::kTarget ? handover.target
                                                      : handover.ue;
    place = report;
  }
  return handover;
}

}  // namespace pallas::app
