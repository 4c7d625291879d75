#include "http/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>

namespace pallas::http {
namespace {

bool is_continuation(unsigned char c) {
  return (c & 0xC0) == 0x80;
}

// Length of the well-formed UTF-8 character that starts at `i` (RFC 3629), 0 if there is none.
std::size_t character_length(std::string_view s, std::size_t i) {
  const auto at = [&](std::size_t k) {
    return i + k < s.size() ? static_cast<unsigned char>(s[i + k]) : 0u;
  };
  const auto c = at(0);
  if (c < 0x80) return 1;
  const auto second = at(1);
  if (c >= 0xC2 && c <= 0xDF) return is_continuation(second) ? 2 : 0;
  if (c >= 0xE0 && c <= 0xEF) {
    const bool overlong = c == 0xE0 && second < 0xA0;
    const bool surrogate = c == 0xED && second > 0x9F;
    return is_continuation(second) && is_continuation(at(2)) && !overlong && !surrogate ? 3 : 0;
  }
  if (c >= 0xF0 && c <= 0xF4) {
    const bool overlong = c == 0xF0 && second < 0x90;
    const bool above = c == 0xF4 && second > 0x8F;
    return is_continuation(second) && is_continuation(at(2)) && is_continuation(at(3)) &&
                   !overlong && !above
               ? 4
               : 0;
  }
  return 0;
}

void escape(std::string& out, char c) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  const auto u = static_cast<unsigned char>(c);
  if (u < 0x20 || u == 0x7F) {
    out += "\\u00";
    out += kHex[u >> 4];
    out += kHex[u & 15];
  } else {
    out += c;
  }
}

}  // namespace

void JsonWriter::separate() {
  if (comma_) out_ += ',';
  comma_ = true;
}

JsonWriter& JsonWriter::begin_object() {
  separate();
  out_ += '{';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::end_object() {
  out_ += '}';
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::begin_array() {
  separate();
  out_ += '[';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::end_array() {
  out_ += ']';
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  value(name);
  out_ += ':';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  out_ += '"';
  for (std::size_t i = 0; i < text.size();) {
    const auto length = character_length(text, i);
    if (length == 0) {
      out_ += "\xEF\xBF\xBD";
      ++i;
    } else if (length == 1) {
      escape(out_, text[i++]);
    } else {
      out_ += text.substr(i, length);
      i += length;
    }
  }
  out_ += '"';
  return *this;
}

JsonWriter& JsonWriter::value(bool truth) {
  return raw(truth ? "true" : "false");
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  std::array<char, 40> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return raw({text.data(), static_cast<std::size_t>(end - text.data())});
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  out_ += json;
  return *this;
}

}  // namespace pallas::http
