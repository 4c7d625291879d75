#include "ue/sse_parser.h"

namespace pallas::ue {

Status SseParser::feed(std::string_view bytes, std::vector<SseEvent>& events) {
  while (!bytes.empty()) {
    if (std::exchange(after_cr_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const std::size_t end = bytes.find_first_of("\r\n");
    const std::string_view part = bytes.substr(0, end);
    if (part.size() > limits_.line_bytes - line_.size()) {
      return fail(Errc::kTooLarge, "a line of the event stream is longer than " +
                                       std::to_string(limits_.line_bytes) + " bytes");
    }
    line_ += part;
    if (end == std::string_view::npos) break;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (Status status = end_line(events); !status) return status;
  }
  return {};
}

Status SseParser::end_line(std::vector<SseEvent>& events) {
  const std::string line = std::exchange(line_, {});
  std::string_view rest = line;
  if (std::exchange(first_line_, false) && rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);
  if (rest.empty()) {
    if (std::exchange(has_data_, false)) events.push_back(std::move(event_));
    event_ = {};
    return {};
  }
  const std::size_t colon = rest.find(':');
  if (colon == 0) {
    ++comments_;
    return {};
  }
  std::string_view value;
  if (colon != std::string_view::npos) {
    value = rest.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
  }
  return take_field(rest.substr(0, colon), value);
}

Status SseParser::take_field(std::string_view name, std::string_view value) {
  if (name == "data") {
    if (value.size() + 1 > limits_.event_bytes - event_.data.size()) {
      return fail(Errc::kTooLarge, "an event of the stream is longer than " +
                                       std::to_string(limits_.event_bytes) + " bytes");
    }
    if (std::exchange(has_data_, true)) event_.data += '\n';
    event_.data += value;
  } else if (name == "event") {
    event_.type = value;
  } else if (name == "id") {
    event_.id = value;
  }
  return {};  // the standard ignores fields that it does not know
}

}  // namespace pallas::ue
