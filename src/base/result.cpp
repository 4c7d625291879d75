#include "base/result.h"

namespace pallas {

std::string_view to_string(Errc code) {
  switch (code) {
    case Errc::kInvalidArgument:
      return "invalid_argument";
    case Errc::kInvalidConfig:
      return "invalid_config";
    case Errc::kParse:
      return "parse_error";
    case Errc::kNotFound:
      return "not_found";
    case Errc::kAlreadyExists:
      return "already_exists";
    case Errc::kUnsupported:
      return "unsupported";
    case Errc::kIncompatible:
      return "incompatible";
    case Errc::kContextExceeded:
      return "context_exceeded";
    case Errc::kResourceExhausted:
      return "resource_exhausted";
    case Errc::kStaleEpoch:
      return "stale_epoch";
    case Errc::kStaleAttempt:
      return "stale_attempt";
    case Errc::kNotOwner:
      return "not_owner";
    case Errc::kChecksum:
      return "checksum_mismatch";
    case Errc::kTooLarge:
      return "too_large";
    case Errc::kUnreachable:
      return "unreachable";
    case Errc::kTimeout:
      return "timeout";
    case Errc::kCancelled:
      return "cancelled";
    case Errc::kRateLimited:
      return "rate_limited";
    case Errc::kUnauthorized:
      return "unauthorized";
    case Errc::kOutOfOrder:
      return "out_of_order";
    case Errc::kEngine:
      return "engine_error";
    case Errc::kIo:
      return "io_error";
    case Errc::kInternal:
      return "internal";
  }
  return "internal";
}

std::string_view to_sentence(Errc code) {
  switch (code) {
    case Errc::kInvalidArgument:
      return "Correct the named value and try again.";
    case Errc::kInvalidConfig:
      return "Correct the named setting; --print-config shows all of them.";
    case Errc::kParse:
      return "The input does not have the documented format at the named place.";
    case Errc::kNotFound:
      return "Nothing by that name is known here; check the spelling.";
    case Errc::kAlreadyExists:
      return "It exists or is in use already; choose another or stop the other user.";
    case Errc::kUnsupported:
      return "This build or model cannot do that; leave the named feature out.";
    case Errc::kIncompatible:
      return "Run the same model and settings at both nodes.";
    case Errc::kContextExceeded:
      return "Shorten the prompt or max_tokens, or configure a larger context.";
    case Errc::kResourceExhausted:
      return "The node is full; try again later or at another node.";
    case Errc::kStaleEpoch:
      return "The UE attached elsewhere later; follow it there.";
    case Errc::kStaleAttempt:
      return "That preparation is over; nothing is to be done.";
    case Errc::kNotOwner:
      return "Another node serves this session; ask there.";
    case Errc::kChecksum:
      return "The bytes were damaged on their way; they are sent again.";
    case Errc::kTooLarge:
      return "Send less at once; the limit is in the message.";
    case Errc::kUnreachable:
      return "Check address and port, and that the other side runs.";
    case Errc::kTimeout:
      return "No answer came in time; check the other side and try again.";
    case Errc::kCancelled:
      return "It was stopped on request.";
    case Errc::kRateLimited:
      return "Send fewer requests and wait before the next.";
    case Errc::kUnauthorized:
      return "Give the right key or resume token.";
    case Errc::kOutOfOrder:
      return "The other side does not follow the protocol; update it.";
    case Errc::kEngine:
      return "The inference engine refused; its own words are in the message.";
    case Errc::kIo:
      return "The operating system refused; its own words are in the message.";
    case Errc::kInternal:
      return "This is a fault of Pallas; please report it.";
  }
  return "";
}

std::string Error::describe() const {
  return std::string(to_string(code)) + ": " + message;
}

}  // namespace pallas
