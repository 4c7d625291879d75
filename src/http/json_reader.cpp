#include "http/json_reader.h"

#include <cmath>
#include <limits>
#include <sstream>

namespace pallas::http {
namespace {

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxValues = 600'000;

// A few bytes of brackets become hundreds in memory, so the shape is measured before it is built.
bool is_bounded(std::string_view text) {
  std::size_t depth = 0, values = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
      continue;
    }
    switch (c) {
      case '"':
        in_string = true;
        break;
      case '[':
      case '{':
        if (++depth > kMaxDepth) return false;
        ++values;
        break;
      case ']':
      case '}':
        if (depth > 0) --depth;
        break;
      case ',':
        ++values;
        break;
      default:
        break;
    }
    if (values > kMaxValues) return false;
  }
  return true;
}

std::string range_text(double min, double max) {
  std::ostringstream out;
  out.precision(15);
  if (min == std::numeric_limits<double>::denorm_min()) {
    out << "above 0, at most " << max;
  } else {
    out << "from " << min << " to " << max;
  }
  return out.str();
}

}  // namespace

tl::expected<Json, FieldError> parse_object(std::string_view text) {
  if (!is_bounded(text)) {
    return tl::unexpected(
        FieldError{"", "The body is nested too deeply or has too many values.", false});
  }
  try {
    Json json = Json::parse(text);
    if (!json.is_object()) {
      return tl::unexpected(FieldError{"", "The body must be a JSON object.", false});
    }
    return json;
  } catch (const Json::parse_error& error) {
    return tl::unexpected(FieldError{
        "", "The body is not valid JSON (near byte " + std::to_string(error.byte) + ").", false});
  } catch (const Json::exception&) {
    return tl::unexpected(FieldError{"", "The body holds a number that is too large.", false});
  }
}

const Json* Fields::find(const char* name) const {
  const auto it = object_.find(name);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

const Json* Fields::require(const char* name) {
  const Json* value = find(name);
  if (value == nullptr) refuse(name, "is required");
  return failed() ? nullptr : value;
}

std::optional<double> Fields::number(const char* name, double min, double max) {
  const Json* value = find(name);
  if (value == nullptr || failed()) return std::nullopt;
  if (!value->is_number()) {
    refuse(name, "must be a number");
    return std::nullopt;
  }
  const double number = value->get<double>();
  if (!std::isfinite(number) || number < min || number > max) {
    refuse(name, "must be " + range_text(min, max), true);
    return std::nullopt;
  }
  return number;
}

std::optional<std::int64_t> Fields::integer(const char* name, std::int64_t min, std::int64_t max) {
  const Json* value = find(name);
  if (value == nullptr || failed()) return std::nullopt;
  if (!value->is_number_integer()) {
    refuse(name, "must be an integer");
    return std::nullopt;
  }
  const bool above_int64 =
      value->is_number_unsigned() && value->get<std::uint64_t>() > std::uint64_t{INT64_MAX};
  const auto number = above_int64 ? INT64_MAX : value->get<std::int64_t>();
  if (above_int64 || number < min || number > max) {
    refuse(name, "must be from " + std::to_string(min) + " to " + std::to_string(max), true);
    return std::nullopt;
  }
  return number;
}

std::optional<std::uint64_t> Fields::count(const char* name, std::uint64_t max) {
  const Json* value = find(name);
  if (value == nullptr || failed()) return std::nullopt;
  if (!value->is_number_integer()) {
    refuse(name, "must be an integer");
    return std::nullopt;
  }
  // nlohmann calls an integer unsigned exactly when it was written without a sign.
  if (!value->is_number_unsigned() || value->get<std::uint64_t>() > max) {
    refuse(name, "must be from 0 to " + std::to_string(max), true);
    return std::nullopt;
  }
  return value->get<std::uint64_t>();
}

std::optional<bool> Fields::boolean(const char* name) {
  const Json* value = find(name);
  if (value == nullptr || failed()) return std::nullopt;
  if (!value->is_boolean()) {
    refuse(name, "must be true or false");
    return std::nullopt;
  }
  return value->get<bool>();
}

std::optional<std::string> Fields::text(const char* name, std::size_t min, std::size_t max) {
  const Json* value = find(name);
  if (value == nullptr || failed()) return std::nullopt;
  if (!value->is_string()) {
    refuse(name, "must be a string");
    return std::nullopt;
  }
  const auto& text = value->get_ref<const std::string&>();
  if (text.size() < min || text.size() > max) {
    refuse(
        name,
        text.empty() ? "must not be empty" : "must have at most " + std::to_string(max) + " bytes",
        true);
    return std::nullopt;
  }
  return text;
}

void Fields::refuse(const std::string& field, const std::string& message, bool out_of_range) {
  if (error_) return;
  error_ = FieldError{path_ + field, "'" + path_ + field + "' " + message + ".", out_of_range};
}

}  // namespace pallas::http
