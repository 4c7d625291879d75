#pragma once
// Reads JSON that a stranger sent: bounded before it is built, every field checked for type and
// range. Includes nlohmann; for .cpp files of this folder only.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace pallas::http {

using Json = nlohmann::json;

struct FieldError {
  std::string field;  // "messages[2].content"; "" when about the whole body
  std::string message;
  bool out_of_range = false;  // well-formed, but the value cannot be; else type or presence
  friend bool operator==(const FieldError&, const FieldError&) = default;
};

// The body must be one JSON object, nested at most 64 deep and of at most 600,000 values.
tl::expected<Json, FieldError> parse_object(std::string_view text);

// Reads the members of one object. The first error sticks and later reads return nothing, so that
// a parser can be written straight down and ask once at its end. A member that is null counts as
// absent.
class Fields {
 public:
  // `path` stands before the field names in errors, e.g. "request.".
  explicit Fields(const Json& object, std::string path = "")
      : object_(object), path_(std::move(path)) {}

  const Json* find(const char* name) const;
  // find(), and an error when it is absent.
  const Json* require(const char* name);

  // A `min` of numeric_limits<double>::denorm_min() reads "above 0".
  std::optional<double> number(const char* name, double min, double max);
  std::optional<std::int64_t> integer(const char* name, std::int64_t min, std::int64_t max);
  std::optional<std::uint64_t> count(const char* name, std::uint64_t max);
  std::optional<bool> boolean(const char* name);
  // Of min to max bytes.
  std::optional<std::string> text(const char* name, std::size_t min, std::size_t max);

  // Records an error about a member or, with an index in it, about a part of one.
  void refuse(const std::string& field, const std::string& message, bool out_of_range = false);
  bool failed() const { return error_.has_value(); }
  const FieldError& error() const { return *error_; }
  const std::string& path() const { return path_; }

 private:
  const Json& object_;
  std::string path_;
  std::optional<FieldError> error_;
};

}  // namespace pallas::http
