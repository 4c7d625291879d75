#pragma once
// Server-sent events (WHATWG HTML, section 9.2) from bytes that arrive split anywhere. Pure.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pallas::ue {

struct SseEvent {
  std::string type;  // empty: "message"
  std::string data;  // lines joined by \n
  std::string id;    // of this event alone; empty if it had none
  friend bool operator==(const SseEvent&, const SseEvent&) = default;
};

struct SseLimits {
  std::size_t line_bytes = 1u << 20;
  std::size_t event_bytes = 4u << 20;
};

class SseParser {
 public:
  explicit SseParser(SseLimits limits = {}) : limits_(limits) {}

  // Appends the events that `bytes` complete. kTooLarge for a line or an event above its limit;
  // nothing may be fed after an error. As the standard says, an event without data is none, and one
  // that the end of the stream cuts is dropped.
  Status feed(std::string_view bytes, std::vector<SseEvent>& events);

  // Comment lines so far: a gNB's keep-alives.
  std::size_t comments() const { return comments_; }

 private:
  Status end_line(std::vector<SseEvent>& events);
  Status take_field(std::string_view name, std::string_view value);

  SseLimits limits_;
  std::string line_;
  SseEvent event_;
  bool has_data_ = false;
  bool after_cr_ = false;  // a \n that follows belongs to the \r before it
  bool first_line_ = true;
  std::size_t comments_ = 0;
};

}  // namespace pallas::ue
