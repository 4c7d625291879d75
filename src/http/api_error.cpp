#include "http/api_error.h"

#include "http/json_writer.h"

namespace pallas::http {
namespace {

std::string_view type_of(int status) {
  if (status == 429) return "rate_limit_error";
  if (status == 401) return "authentication_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

void text_or_null(JsonWriter& json, std::string_view name, const std::string& text) {
  json.key(name);
  if (text.empty()) {
    json.null();
  } else {
    json.value(text);
  }
}

}  // namespace

int status_of(Errc code) {
  switch (code) {
    case Errc::kInvalidArgument:
    case Errc::kParse:
    case Errc::kUnsupported:
    case Errc::kContextExceeded:
      return 400;
    case Errc::kUnauthorized:
      return 401;
    case Errc::kNotFound:
      return 404;
    case Errc::kAlreadyExists:
    case Errc::kIncompatible:
    case Errc::kStaleEpoch:
    case Errc::kStaleAttempt:
    case Errc::kNotOwner:
    case Errc::kCancelled:
    case Errc::kOutOfOrder:
      return 409;
    case Errc::kTooLarge:
      return 413;
    case Errc::kRateLimited:
      return 429;
    case Errc::kUnreachable:
      return 502;
    case Errc::kResourceExhausted:
      return 503;
    case Errc::kTimeout:
      return 504;
    case Errc::kInvalidConfig:
    case Errc::kChecksum:
    case Errc::kEngine:
    case Errc::kIo:
    case Errc::kInternal:
      return 500;
  }
  return 500;
}

ApiError to_api_error(const Error& error) {
  ApiError out;
  out.status = status_of(error.code);
  out.message = error.message.empty() ? std::string(to_sentence(error.code)) : error.message;
  out.code = error.code == Errc::kContextExceeded ? "context_length_exceeded"
                                                  : std::string(to_string(error.code));
  // The node's messages start with the field's name where one is at fault: "next_index: ...".
  const auto colon = error.message.find(": ");
  if (colon != std::string::npos && out.status < 500 &&
      error.message.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == colon) {
    out.param = error.message.substr(0, colon);
  }
  return out;
}

std::string error_json(const ApiError& error) {
  JsonWriter json;
  json.begin_object().key("error").begin_object();
  json.member("message", error.message).member("type", type_of(error.status));
  text_or_null(json, "param", error.param);
  text_or_null(json, "code", error.code);
  if (error.current) json.member("current", *error.current);
  return json.end_object().end_object().take();
}

HttpResponse error_response(const ApiError& error) {
  HttpResponse response;
  response.status = error.status;
  response.body = error_json(error);
  if (error.status == 429 || error.status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

HttpResponse problem_response(const Problem& problem) {
  JsonWriter json;
  json.begin_object()
      .member("type", "urn:pallas:problem:" + problem.kind)
      .member("title", reason_phrase(problem.status))
      .member("status", problem.status)
      .member("detail", problem.detail);
  if (!problem.field.empty()) json.member("field", problem.field);
  HttpResponse response;
  response.status = problem.status;
  response.content_type = "application/problem+json";
  response.body = json.end_object().take();
  if (problem.status == 429) response.headers.emplace_back("Retry-After", "1");
  return response;
}

}  // namespace pallas::http
