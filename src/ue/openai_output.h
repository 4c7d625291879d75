#pragma once
// A followed session as a plain OpenAI answer, streaming or whole. Pure; whoever sends it out is
// local_endpoint.h.

#include <optional>
#include <string>

#include "ue/stream_types.h"

namespace pallas::ue {

// Builds one answer. Streaming: begin, any number of text, finish give the bytes to send, in order,
// and together hold one role delta (chat), one finish reason, usage if asked for, one [DONE].
class OpenAiOutput {
 public:
  OpenAiOutput(Endpoint endpoint, bool include_usage)
      : endpoint_(endpoint), include_usage_(include_usage) {}

  void take_session(const SessionEvent& session);

  std::string begin() const;
  std::string text(const std::string& delta) const;  // empty for an empty delta
  std::string finish(const std::string& reason, const std::string& text,
                     const std::optional<Usage>& usage) const;

  // The answer of a request that does not stream.
  std::string whole(const std::string& text, const std::string& reason,
                    const std::optional<Usage>& usage) const;

 private:
  Endpoint endpoint_;
  bool include_usage_;
  std::string id_, model_;
  std::int64_t created_ = 0;
};

// The event that ends a stream that failed.
std::string error_event(const ApiError& error);

}  // namespace pallas::ue
