#pragma once
// Errors as a client sees them: OpenAI's error object, and RFC 9457 problem documents for the RAN
// feed.

#include <cstdint>
#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "base/result.h"
#include "http/message.h"

namespace pallas::http {

// {"error": {"message", "type", "param", "code"}}; `type` follows from the status.
struct ApiError {
  int status = 400;
  std::string message;
  std::string param;                     // the field or header at fault; "": null
  std::string code;                      // "": null
  std::optional<std::uint64_t> current;  // stale_epoch: the epoch that holds
  friend bool operator==(const ApiError&, const ApiError&) = default;
};

template <class T>
using Parsed = tl::expected<T, ApiError>;

// Status and code of an error of the node.
ApiError to_api_error(const Error& error);
int status_of(Errc code);

std::string error_json(const ApiError& error);
HttpResponse error_response(const ApiError& error);

// {"type", "title", "status", "detail", "field"}
struct Problem {
  int status = 400;
  std::string kind;    // last part of `type`, "urn:pallas:problem:<kind>"
  std::string detail;  // a sentence about this one
  std::string field;   // "" when it is about none
  friend bool operator==(const Problem&, const Problem&) = default;
};
HttpResponse problem_response(const Problem& problem);

}  // namespace pallas::http
