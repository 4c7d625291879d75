#include "http/ran_parser.h"

#include <array>
#include <limits>

#include "http/json_reader.h"
#include "wire/messages.h"

namespace pallas::http {
namespace {

constexpr double kMaxMs = 86'400'000;  // a day
constexpr double kMaxValidMs = 3'600'000;
constexpr double kMaxClockMs = 1e15;
constexpr double kMaxMetres = 1e7;
constexpr double kMaxSpeed = 1000;

Duration from_ms(double ms) {
  return to_duration(Seconds(ms / 1000));
}

Problem to_problem(const FieldError& error) {
  if (error.out_of_range) return {422, "invalid-value", error.message, error.field};
  return {400, "malformed", error.message, error.field};
}

// A name as it may stand in logs and labels: no control characters.
std::string required_name(Fields& fields, const char* name) {
  fields.require(name);
  const auto text = fields.text(name, 1, wire::kMaxNameBytes);
  if (!text) return {};
  for (const char c : *text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      fields.refuse(name, "must not contain control characters", true);
    }
  }
  return *text;
}

std::uint64_t required_seq(Fields& fields) {
  fields.require("seq");
  return fields.count("seq", std::numeric_limits<std::uint64_t>::max()).value_or(0);
}

double required_number(Fields& fields, const char* name, double min, double max) {
  fields.require(name);
  return fields.number(name, min, max).value_or(0);
}

template <class T, class Read>
RanResult<T> parse(std::string_view text, Read read) {
  const auto json = parse_object(text);
  if (!json) return tl::unexpected(to_problem(json.error()));
  Fields fields(*json);
  T out;
  out.ue = UeId(required_name(fields, "ue"));
  out.seq = required_seq(fields);
  read(*json, fields, out);
  if (fields.failed()) return tl::unexpected(to_problem(fields.error()));
  return out;
}

}  // namespace

RanResult<mobility::Prediction> parse_prediction(std::string_view text) {
  return parse<mobility::Prediction>(
      text, [](const Json& json, Fields& fields, mobility::Prediction& out) {
        fields.number("t_gen_ms", 0, kMaxClockMs);  // the sender's own clock: checked, not used
        out.serving = CellId(required_name(fields, "serving"));
        // null says "no handover foreseen"; leaving the member out says nothing and is an error.
        if (!json.contains("target")) fields.refuse("target", "is required (null: none foreseen)");
        if (fields.find("target") != nullptr) {
          out.target = CellId(required_name(fields, "target"));
          out.in = from_ms(required_number(fields, "in_ms", 0, kMaxMs));
          if (out.target == out.serving) {
            fields.refuse("target", "must not be the serving cell", true);
          }
        } else {
          fields.number("in_ms", 0, kMaxMs);
        }
        if (const auto sigma = fields.number("sigma_ms", 0, kMaxMs)) out.sigma = from_ms(*sigma);
        if (const auto percent = fields.number("confidence", 0, 100)) {
          out.confidence = *percent / 100;
        }
        if (const auto valid = fields.number("valid_ms", 0, kMaxValidMs)) {
          out.valid = from_ms(*valid);
        }
        out.oracle = fields.boolean("oracle").value_or(false);
      });
}

RanResult<mobility::HandoverEvent> parse_handover(std::string_view text) {
  return parse<mobility::HandoverEvent>(
      text, [](const Json&, Fields& fields, mobility::HandoverEvent& out) {
        fields.require("phase");
        if (const auto word = fields.text("phase", 1, 32)) {
          if (const auto phase = mobility::parse_handover_phase(*word)) {
            out.phase = *phase;
          } else {
            fields.refuse("phase",
                          "must be preparation, execution, completed, rejected, cancelled or "
                          "reestablished",
                          true);
          }
        }
        out.source = CellId(required_name(fields, "source"));
        out.target = CellId(required_name(fields, "target"));
        // After a radio link failure the UE may come back in the cell where it was.
        if (out.source == out.target && out.phase != mobility::HandoverPhase::kReestablished) {
          fields.refuse("target", "must not be the source cell", true);
        }
      });
}

RanResult<mobility::PositionReport> parse_position(std::string_view text) {
  return parse<mobility::PositionReport>(
      text, [](const Json&, Fields& fields, mobility::PositionReport& out) {
        out.t_ms = required_number(fields, "t_ms", 0, kMaxClockMs);
        out.x_m = required_number(fields, "x", -kMaxMetres, kMaxMetres);
        out.y_m = required_number(fields, "y", -kMaxMetres, kMaxMetres);
        out.speed_mps = fields.number("speed", 0, kMaxSpeed);
        out.heading_deg = fields.number("heading", 0, 360);
      });
}

Problem ran_problem(const Error& error) {
  Problem problem{status_of(error.code), std::string(to_string(error.code)), error.message, ""};
  switch (error.code) {
    case Errc::kOutOfOrder:
    case Errc::kStaleEpoch:
    case Errc::kStaleAttempt:
    case Errc::kAlreadyExists:
      problem.status = 409;
      problem.kind = "stale-seq";
      problem.field = "seq";
      return problem;
    case Errc::kInvalidArgument:
    case Errc::kNotFound:
      problem.status = 422;
      problem.kind = error.code == Errc::kNotFound ? "unknown" : "invalid-value";
      break;
    default:
      return problem;
  }
  static constexpr std::array<std::string_view, 7> kNames = {"target", "serving", "source", "in_ms",
                                                             "seq",    "phase",   "ue"};
  for (const auto name : kNames) {
    const std::string quoted = "'" + std::string(name) + "'";
    if (error.message.starts_with(name) || error.message.find(quoted) != std::string::npos) {
      problem.field = name;
      break;
    }
  }
  return problem;
}

}  // namespace pallas::http
